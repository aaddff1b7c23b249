//! A LoRA adapter under the names and in the row order of its base model's GGUF.

use samara_formats::{
    gguf::{GgufLora, encode_lora, interleaved_rows},
    peft::{LoraAdapter, LoraModule},
};

use crate::{
    Config, Family, ModelError,
    adapter::fitted,
    names::{Plan, RowOrder},
};

/// The bytes of the GGUF that llama.cpp reads as an adapter of the model with this configuration.
///
/// # Errors
/// Modules that the model does not have, or has in another shape; magnitudes, which GGUF adapters do not have.
pub fn gguf_adapter(adapter: &LoraAdapter, config: &Config) -> Result<Vec<u8>, ModelError> {
    let plan = Plan::gguf(config, &|_| true);
    let fitted = fitted(adapter, config)?;
    let placed = fitted.iter().filter_map(|(site, module)| Some((plan.piece(site)?, *module)));
    let placed: Vec<_> =
        placed.map(|(piece, module)| (&piece.tensor, module, ordered_b(module, piece.order))).collect();
    let modules: Vec<_> = placed
        .iter()
        .map(|(name, module, b)| GgufLora { name, d_in: module.d_in, d_out: module.d_out, a: &module.a, b })
        .collect();
    Ok(encode_lora(architecture(config.family), &adapter.config, &modules)?)
}

/// The rows of B as the file keeps those of the matrix.
fn ordered_b(module: &LoraModule, order: RowOrder) -> Vec<f32> {
    match order {
        RowOrder::AsStored => module.b.clone(),
        RowOrder::Interleaved { head_dim } => {
            interleaved_rows(&module.b, module.b.len() / module.d_out.max(1), head_dim)
        }
    }
}

/// What GGUF files call a family; Olmo 3 is an OLMO 2 whose layers slide.
fn architecture(family: Family) -> &'static str {
    match family {
        Family::Olmo3 => Family::Olmo2.name(),
        other => other.name(),
    }
}
