//! Reads a file with this crate and writes it anew, for `tests/golden/rewrite.py`, which checks the result with the
//! official packages.
//!
//!     rewrite adapter FOLDER NEW_FOLDER
//!     rewrite adapter-gguf FOLDER NEW_FILE ARCHITECTURE HEAD_DIM    (HEAD_DIM: 0 where q and k rows are not interleaved)
//!     rewrite model FOLDER NEW_FOLDER
//!     rewrite gguf FILE NEW_FILE F16|Q8_0|BF16|F32

use std::borrow::Cow;
use std::error::Error;
use std::path::Path;

use samara_formats::gguf::{self, GgufLora};
use samara_formats::peft::{LoraAdapter, LoraModule};
use samara_formats::{Checkpoint, DType, FormatError, Metadata, NewTensor, copy_companions, write_safetensors};

/// Parts of a layer, as PEFT and as GGUF call them.
const PARTS: [(&str, &str); 7] = [
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.o_proj", "attn_output"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["adapter", from, to] => LoraAdapter::open(Path::new(from))?.write(Path::new(to))?,
        ["adapter-gguf", from, to, architecture, head_dim] => {
            export(&LoraAdapter::open(Path::new(from))?, Path::new(to), architecture, head_dim.parse()?)?;
        }
        ["model", from, to] => rewrite_folder(Path::new(from), Path::new(to))?,
        ["gguf", from, to, kind] => rewrite_gguf(Path::new(from), Path::new(to), kind)?,
        _ => return Err("see the first lines of this example".into()),
    }
    Ok(())
}

fn export(adapter: &LoraAdapter, to: &Path, architecture: &str, head_dim: usize) -> Result<(), Box<dyn Error>> {
    let names = adapter.modules.iter().map(|module| gguf_name(&module.path)).collect::<Result<Vec<_>, _>>()?;
    let bs: Vec<_> = adapter.modules.iter().map(|module| ordered_b(module, adapter.config.rank, head_dim)).collect();
    let modules = adapter.modules.iter().zip(&names).zip(&bs);
    let modules: Vec<_> = modules
        .map(|((module, name), b)| GgufLora { name, d_in: module.d_in, d_out: module.d_out, a: &module.a, b })
        .collect();
    Ok(gguf::write_lora(to, architecture, &adapter.config, &modules)?)
}

fn gguf_name(path: &str) -> Result<String, Box<dyn Error>> {
    let layer = path.strip_prefix("model.layers.").and_then(|rest| rest.split_once('.'));
    let (layer, part) = layer.ok_or("a module outside the layers")?;
    let (_, name) = PARTS.into_iter().find(|(official, _)| *official == part).ok_or("a module of another kind")?;
    Ok(format!("blk.{layer}.{name}.weight"))
}

fn ordered_b(module: &LoraModule, rank: usize, head_dim: usize) -> Cow<'_, [f32]> {
    let is_rotated = module.path.ends_with(".q_proj") || module.path.ends_with(".k_proj");
    if is_rotated && head_dim > 0 {
        Cow::Owned(gguf::interleaved_rows(&module.b, rank, head_dim))
    } else {
        Cow::Borrowed(&module.b)
    }
}

fn rewrite_folder(from: &Path, to: &Path) -> Result<(), FormatError> {
    let source = Checkpoint::open(from)?;
    let tensors: Vec<_> = source.tensors().map(NewTensor::from).collect();
    copy_companions(from, to)?;
    write_safetensors(&to.join("model.safetensors"), &tensors, rows_of(&source))
}

fn rewrite_gguf(from: &Path, to: &Path, kind: &str) -> Result<(), Box<dyn Error>> {
    let kind = DType::ALL.into_iter().find(|dtype| dtype.to_string() == kind).ok_or("an unknown type")?;
    let source = Checkpoint::open(from)?;
    let Metadata::Gguf(metadata) = source.metadata() else { return Err("not a GGUF file".into()) };
    let tensors: Vec<_> = source
        .tensors()
        .map(|tensor| NewTensor { dtype: gguf::merged_dtype(&tensor.name, &tensor.shape, kind), ..tensor.into() })
        .collect();
    Ok(gguf::write(to, &gguf::merged_metadata(metadata, kind), &tensors, rows_of(&source))?)
}

/// Where a merge would add to them, these are the source's own values.
fn rows_of(
    source: &Checkpoint,
) -> impl FnMut(&NewTensor, std::ops::Range<usize>) -> Result<Vec<f32>, FormatError> + use<'_> {
    |tensor, rows| match source.tensor(&tensor.name) {
        Some(held) => source.rows_f32(held, rows),
        None => Err(FormatError::NotFound { path: tensor.name.clone() }),
    }
}
