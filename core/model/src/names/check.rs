//! A plan against the tensors that are really there, before a byte of them is read.

use std::collections::BTreeSet;

use samara_formats::{Checkpoint, Metadata};

use super::{GGUF_ROPE_DIVISORS, Plan};
use crate::{
    ModelError,
    config::{Config, Family},
};

/// Endings of tensors that repeat what the configuration says.
const REDUNDANT_ENDINGS: [&str; 1] = [".rotary_emb.inv_freq"];

/// Beginnings of tensors of the part of Gemma 3 that sees pictures.
const PICTURE_PREFIXES: [&str; 4] =
    ["vision_tower.", "multi_modal_projector.", "model.vision_tower.", "model.multi_modal_projector."];

/// Checks that every tensor of the plan is there in its shape, and that no other is left over:
/// a tensor nobody asked for is a sign of a model that differs from what its name says.
///
/// # Errors
/// The first tensor that is missing, misshapen or unknown.
pub(crate) fn check(plan: &Plan, config: &Config, checkpoint: &Checkpoint) -> Result<(), ModelError> {
    for (tensor, shape) in wanted(plan) {
        check_shape(checkpoint, tensor, &shape)?;
    }
    let known: BTreeSet<String> = wanted(plan).map(|(tensor, _)| tensor.to_owned()).collect();
    let mut others = checkpoint.tensors().filter(|info| !known.contains(&info.name));
    match others.find(|info| !is_redundant(&info.name, config, checkpoint.metadata())) {
        None => Ok(()),
        Some(info) => Err(ModelError::UnknownTensor {
            source_name: checkpoint.source().to_owned(),
            tensor: info.name.clone(),
            family: config.family.to_string(),
            found: info.shape.clone(),
        }),
    }
}

/// Every tensor of the plan with the shape it must have; tensors with several pieces repeat.
fn wanted(plan: &Plan) -> impl Iterator<Item = (&str, Vec<usize>)> {
    let pieces = plan.matrices().flat_map(|matrix| &matrix.pieces);
    let vectors = plan.vectors().flat_map(|vector| &vector.tensors);
    pieces
        .map(|piece| (piece.tensor.as_str(), piece.shape.clone()))
        .chain(vectors.map(|(tensor, len)| (tensor.as_str(), vec![*len])))
}

fn check_shape(checkpoint: &Checkpoint, tensor: &str, expected: &[usize]) -> Result<(), ModelError> {
    let source_name = checkpoint.source().to_owned();
    let (tensor, expected) = (tensor.to_owned(), expected.to_vec());
    match checkpoint.tensor(&tensor) {
        None => Err(ModelError::MissingTensor { source_name, tensor, expected }),
        Some(info) if info.shape != expected => {
            let found = info.shape.clone();
            Err(ModelError::TensorShape { source_name, tensor, expected, found })
        }
        Some(_) => Ok(()),
    }
}

/// Tensors that may be left over: each repeats something or belongs to another part.
fn is_redundant(name: &str, config: &Config, metadata: &Metadata) -> bool {
    match metadata {
        Metadata::Gguf(_) => config.family == Family::Llama && name == GGUF_ROPE_DIVISORS,
        Metadata::HuggingFace(_) => {
            REDUNDANT_ENDINGS.iter().any(|ending| name.ends_with(ending))
                || (config.tied_head && name.ends_with("lm_head.weight"))
                || (config.family == Family::Gemma3 && PICTURE_PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        }
    }
}
