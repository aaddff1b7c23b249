//! The result of training all weights: the model itself, in the format that it came in.

use std::ops::Range;
use std::path::Path;

use anyhow::Context;
use samara_formats::{Checkpoint, DType, FormatError, Metadata, NewTensor, copy_companions, gguf, write_safetensors};
use samara_model::TensorRows;
use samara_ops::read_f32;
use samara_train::{Learner, RunConfig};

/// Writes the trained model into the output folder; does nothing where adapters were trained.
pub(super) fn export(checkpoint: &Checkpoint, learner: &Learner, config: &RunConfig) -> anyhow::Result<()> {
    if learner.tensors().is_empty() {
        return Ok(());
    }
    let trained = Trained::read(learner)?;
    match checkpoint.metadata() {
        Metadata::HuggingFace(_) => {
            let tensors: Vec<NewTensor> = checkpoint.tensors().map(NewTensor::from).collect();
            let path = config.output.join("model.safetensors");
            write_safetensors(&path, &tensors, |tensor, rows| trained.rows(checkpoint, tensor, rows))?;
            if config.model.is_dir() {
                copy_companions(Path::new(&config.model), &config.output)?;
            }
        }
        Metadata::Gguf(metadata) => {
            let dtype = |tensor: &NewTensor| if tensor.shape.len() > 1 { DType::F16 } else { tensor.dtype };
            let tensors = checkpoint.tensors().map(NewTensor::from);
            let tensors: Vec<NewTensor> = tensors.map(|tensor| NewTensor { dtype: dtype(&tensor), ..tensor }).collect();
            let path = config.output.join("model.gguf");
            gguf::write(&path, metadata, &tensors, |tensor, rows| trained.rows(checkpoint, tensor, rows))?;
        }
    }
    Ok(())
}

/// Trained values by the checkpoint's tensors.
struct Trained {
    tensors: Vec<(TensorRows, Vec<f32>)>,
}

impl Trained {
    fn read(learner: &Learner) -> anyhow::Result<Self> {
        let mut tensors = Vec::new();
        for (value, all_rows) in learner.values().iter().zip(learner.tensors()) {
            let mut values = pollster::block_on(read_f32(value.clone())).context("reading the trained weights")?;
            for rows in all_rows {
                let rest = values.split_off((rows.rows.len() * rows.width).min(values.len()));
                tensors.push((rows.clone(), stored(rows, values)));
                values = rest;
            }
        }
        Ok(Self { tensors })
    }

    /// Rows of a tensor as the file has them; those that are not trained as they were.
    fn rows(&self, checkpoint: &Checkpoint, tensor: &NewTensor, rows: Range<usize>) -> Result<Vec<f32>, FormatError> {
        let mut values = match checkpoint.tensor(&tensor.name) {
            Some(info) => checkpoint.rows_f32(info, rows.clone())?,
            None => Vec::new(),
        };
        for (place, trained) in self.tensors.iter().filter(|(place, _)| place.tensor == tensor.name) {
            for row in rows.clone().filter(|row| place.rows.contains(row)) {
                let (from, to) = ((row - place.rows.start) * place.width, (row - rows.start) * place.width);
                let source = trained.get(from..from + place.width);
                if let (Some(target), Some(source)) = (values.get_mut(to..to + place.width), source) {
                    target.copy_from_slice(source);
                }
            }
        }
        Ok(values)
    }
}

/// Values as the file stores them: heads' rows in pairs where they were, less what loading adds.
fn stored(rows: &TensorRows, mut values: Vec<f32>) -> Vec<f32> {
    values.iter_mut().for_each(|value| *value -= rows.add);
    match rows.interleaved {
        Some(head_dim) => gguf::interleaved_rows(&values, rows.width, head_dim),
        None => values,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_heads_go_back_to_pairs() {
        let rows = TensorRows { tensor: String::new(), rows: 0..8, width: 1, interleaved: Some(4), add: 1.0 };
        let loaded = vec![1.0, 3.0, 2.0, 4.0, 5.0, 7.0, 6.0, 8.0];
        assert_eq!(stored(&rows, loaded), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    }
}
