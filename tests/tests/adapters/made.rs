//! Adapters and merged models that are made for a test.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use samara_formats::{
    Checkpoint, DType, Metadata, NewTensor, gguf,
    peft::{AdapterConfig, LoraAdapter, LoraModule, TargetModules},
    write_safetensors,
};
use samara_model::{Config, Merge, ScaledAdapter, Site};

use crate::trained;

/// A merged model in a folder that goes with it.
pub struct Merged {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Merged {
    pub fn checkpoint(&self) -> Result<Checkpoint> {
        Ok(Checkpoint::open(&self.path)?)
    }
}

/// The same kind of file with the adapters worked in, in f32.
pub fn merged(checkpoint: &Checkpoint, adapters: &[ScaledAdapter]) -> Result<Merged> {
    let merge = Merge::new(checkpoint, adapters)?;
    let folder = tempfile::tempdir()?;
    let rows = |tensor: &NewTensor, rows| merge.rows(&tensor.name, rows);
    let tensors: Vec<_> =
        checkpoint.tensors().map(|info| NewTensor { dtype: DType::F32, ..NewTensor::from(info) }).collect();
    let path = match checkpoint.metadata() {
        Metadata::Gguf(metadata) => {
            let path = folder.path().join("merged.gguf");
            gguf::write(&path, &gguf::merged_metadata(metadata, DType::F32), &tensors, rows)?;
            path
        }
        Metadata::HuggingFace(_) => {
            std::fs::copy(Path::new(checkpoint.source()).join("config.json"), folder.path().join("config.json"))?;
            write_safetensors(&folder.path().join("model.safetensors"), &tensors, rows)?;
            folder.path().to_owned()
        }
    };
    Ok(Merged { _folder: folder, path })
}

/// An adapter of all modules whose values are drawn from `seed`.
pub fn random(config: &Config, rank: usize, seed: u64) -> LoraAdapter {
    let mut state = seed;
    let mut draw = |n: usize| -> Vec<f32> {
        // Knuth's MMIX generator; its upper half is random enough.
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u32 << 23) as f32 - 1.0
        };
        (0..n).map(|_| 0.2 * next()).collect()
    };
    let mut module = |site: Site| LoraModule {
        path: site.path.clone(),
        d_in: site.n_in,
        d_out: site.columns.len(),
        a: draw(rank * site.n_in),
        b: draw(rank * site.columns.len()),
        magnitude: None,
    };
    let mut modules: Vec<_> = Site::all(config).into_iter().map(&mut module).collect();
    modules.sort_by(|a, b| a.path.cmp(&b.path));
    let config = AdapterConfig {
        rank,
        alpha: 4.0,
        dropout: 0.0,
        use_rslora: false,
        use_dora: false,
        target_modules: TargetModules::AllLinear,
        base_model: None,
    };
    LoraAdapter { config, modules }
}

/// The same adapter with magnitudes, about as large as rows of the miniatures are long.
pub fn as_dora(adapter: &LoraAdapter) -> LoraAdapter {
    let mut dora = adapter.clone();
    for module in &mut dora.modules {
        module.magnitude = Some((0..module.d_out).map(|row| 0.6 + 0.1 * (row % 9) as f32).collect());
    }
    dora.config.use_dora = true;
    dora
}

/// The adapter with the magnitudes that the golden file has for it, if it has any.
pub fn with_magnitudes(mut adapter: LoraAdapter, golden: &trained::Golden, prefix: &str) -> Result<LoraAdapter> {
    if !prefix.starts_with("dora") {
        return Ok(adapter);
    }
    for module in &mut adapter.modules {
        let key = format!("{prefix}base_model.model.{}.lora_magnitude_vector", module.path);
        module.magnitude = Some(golden.floats(&key).context(key)?.to_vec());
    }
    adapter.config.use_dora = true;
    Ok(adapter)
}
