//! Gradients and loss curves of PyTorch, `transformers` and `peft`, in `tests/golden/train/`.

use std::{
    collections::BTreeMap,
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use safetensors::SafeTensors;
use samara_formats::{
    Checkpoint,
    peft::{AdapterConfig, LoraAdapter, LoraModule, TargetModules},
};
use samara_ops::{Documents, IGNORE, device::OpenDevice};

/// The tensors of one file.
pub struct Golden {
    pub name: String,
    values: BTreeMap<String, Values>,
}

struct Values {
    shape: Vec<usize>,
    floats: Vec<f32>,
    ints: Vec<i32>,
}

impl Golden {
    pub fn read(name: &str) -> Result<Self> {
        let path = root().join("train").join(format!("{name}.safetensors"));
        let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
        let file = SafeTensors::deserialize(&bytes)?;
        let values = file.tensors().into_iter().map(|(name, view)| {
            let words = view.data().as_chunks::<4>().0;
            let is_float = view.dtype() == safetensors::Dtype::F32;
            let floats = words.iter().filter(|_| is_float).map(|word| f32::from_le_bytes(*word)).collect();
            let ints = words.iter().filter(|_| !is_float).map(|word| i32::from_le_bytes(*word)).collect();
            (name, Values { shape: view.shape().to_vec(), floats, ints })
        });
        Ok(Self { name: name.to_owned(), values: values.collect() })
    }

    pub fn floats(&self, name: &str) -> Result<&[f32]> {
        Ok(&self.values.get(name).with_context(|| format!("{}: no {name}", self.name))?.floats)
    }

    fn ints(&self, name: &str) -> Result<&[i32]> {
        Ok(&self.values.get(name).with_context(|| format!("{}: no {name}", self.name))?.ints)
    }

    /// The documents under a prefix, and how many of their tokens have a label.
    pub fn documents(&self, prefix: &str, open: &OpenDevice) -> Result<Documents> {
        let [ids, positions, labels] = self.rows(prefix)?;
        Ok(Documents::new(&ids, &positions, &labels, &open.device))
    }

    /// Ids, positions and labels under a prefix.
    pub fn rows(&self, prefix: &str) -> Result<[Vec<u32>; 3]> {
        let words = |name: &str| -> Result<Vec<u32>> {
            let ints = self.ints(&format!("{prefix}{name}"))?;
            Ok(ints.iter().map(|value| u32::try_from(*value).unwrap_or(IGNORE)).collect())
        };
        Ok([words("ids")?, words("positions")?, words("labels")?])
    }

    /// The adapter whose tensors begin with `prefix`.
    pub fn adapter(&self, prefix: &str, alpha: f32) -> Result<LoraAdapter> {
        let mut modules = Vec::new();
        let names = self.values.keys().filter_map(|name| name.strip_prefix(prefix));
        for key in names.filter(|key| key.ends_with("lora_A.weight")) {
            let path = key.trim_start_matches("base_model.model.").trim_end_matches(".lora_A.weight");
            let b_name = format!("{prefix}{}", key.replace("lora_A", "lora_B"));
            let (a, b) = (&self.values[&format!("{prefix}{key}")], &self.values[&b_name]);
            let magnitude =
                self.values.get(&format!("{prefix}{}", key.replace("lora_A.weight", "lora_magnitude_vector")));
            modules.push(LoraModule {
                path: path.to_owned(),
                d_in: a.shape[1],
                d_out: b.shape[0],
                a: a.floats.clone(),
                b: b.floats.clone(),
                magnitude: magnitude.map(|values| values.floats.clone()),
            });
        }
        ensure!(!modules.is_empty(), "{}: no adapter under {prefix}", self.name);
        modules.sort_by(|a, b| a.path.cmp(&b.path));
        let rank = modules[0].a.len() / modules[0].d_in;
        let config = AdapterConfig {
            rank,
            alpha,
            dropout: 0.0,
            use_rslora: false,
            use_dora: modules[0].magnitude.is_some(),
            target_modules: TargetModules::AllLinear,
            base_model: None,
        };
        Ok(LoraAdapter { config, modules })
    }

    /// Whether the official embedding leaves a row out of training that the head does not train either.
    pub fn has_padding_row(&self) -> Result<bool> {
        let config = self.config()?;
        Ok(config["pad_token_id"].is_u64() && config["tie_word_embeddings"] == false)
    }

    /// The values of the padding token's row.
    pub fn padding_row(&self, width: usize) -> Result<Range<usize>> {
        let id = self.config()?["pad_token_id"].as_u64().context("a padding token")? as usize;
        Ok(id * width..(id + 1) * width)
    }

    fn config(&self) -> Result<serde_json::Value> {
        Ok(serde_json::from_slice(&fs::read(root().join(&self.name).join("config.json"))?)?)
    }

    pub fn checkpoint(&self) -> Result<Checkpoint> {
        let base = self.name.trim_end_matches(".curve");
        let gguf = root().join("gguf").join(format!("{base}.gguf"));
        Ok(if gguf.exists() && base.contains('.') {
            Checkpoint::open(&gguf)?
        } else {
            Checkpoint::open(&root().join(base))?
        })
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}
