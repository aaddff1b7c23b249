//! Adapters worked into the weights: for every row w of a matrix, `w + s b A`, a few rows at a time and on the host.
//!
//! DoRA (Liu et al. 2024, as peft computes it) then brings the row to the length that its magnitude m says:
//! `m (w + s b A) / ‖w + s b A‖`. Several adapters change a row one after another, and the length that a DoRA divides by is
//! that of the base with its own product alone; so it is in peft while they stay beside the weights.
//!
//! Not here: files. What a tensor is stored as, and writing it, is for whoever asks for the rows.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use samara_formats::{Checkpoint, peft::LoraModule};

use crate::{
    Config, ModelError, ScaledAdapter,
    names::{self, Plan, RowOrder},
};

/// A checkpoint with adapters worked in.
pub struct Merge<'a> {
    checkpoint: &'a Checkpoint,
    /// By tensor.
    changes: BTreeMap<String, Vec<Change<'a>>>,
}

/// What one adapter does to the rows of one tensor.
struct Change<'a> {
    module: &'a LoraModule,
    /// How the tensor's rows lie in the file; those of B lie as stored.
    order: RowOrder,
    scale: f32,
}

impl<'a> Merge<'a> {
    /// Finds the tensor of each module.
    ///
    /// # Errors
    /// What is wrong with the checkpoint, or every module of an adapter that the model does not have in this shape.
    pub fn new(checkpoint: &'a Checkpoint, adapters: &'a [ScaledAdapter]) -> Result<Self, ModelError> {
        let config = Config::from_checkpoint(checkpoint)?;
        let plan = Plan::new(&config, checkpoint);
        names::check(&plan, &config, checkpoint)?;
        let mut changes = BTreeMap::<_, Vec<_>>::new();
        for adapter in adapters {
            for (site, module) in adapter.fitted(&config)? {
                let Some(piece) = plan.piece(&site) else { continue };
                let change = Change { module, order: piece.order, scale: adapter.scale() };
                changes.entry(piece.tensor.clone()).or_default().push(change);
            }
        }
        Ok(Self { checkpoint, changes })
    }

    /// The names of the tensors that change.
    pub fn changed(&self) -> BTreeSet<&str> {
        self.changes.keys().map(String::as_str).collect()
    }

    /// Some rows of a tensor of the checkpoint, as they are after the merge.
    ///
    /// # Errors
    /// There is no such tensor, or it has fewer rows.
    pub fn rows(&self, tensor: &str, rows: Range<usize>) -> Result<Vec<f32>, ModelError> {
        let info = self.checkpoint.tensor(tensor).ok_or_else(|| ModelError::MissingTensor {
            source_name: self.checkpoint.source().to_owned(),
            tensor: tensor.to_owned(),
            expected: Vec::new(),
        })?;
        let base = self.checkpoint.rows_f32(info, rows.clone())?;
        let Some(changes) = self.changes.get(tensor) else { return Ok(base) };
        let mut merged = base.clone();
        let width = info.row_len().max(1);
        for ((idx, base), merged) in rows.zip(base.chunks(width)).zip(merged.chunks_mut(width)) {
            changes.iter().for_each(|change| change.apply(idx, base, merged));
        }
        Ok(merged)
    }
}

impl Change<'_> {
    /// Works into `merged` what the adapter does to row `idx` of the tensor, which is `base` without any.
    fn apply(&self, idx: usize, base: &[f32], merged: &mut [f32]) {
        let row = self.order.decoder_row(idx);
        self.add_product(row, merged);
        let Some(magnitudes) = &self.module.magnitude else { return };
        let mut turned = base.to_vec();
        self.add_product(row, &mut turned);
        let norm = turned.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
        let magnitude = magnitudes.get(row).copied().unwrap_or_default();
        // A row of zeros has no direction and stays one.
        let factor = if norm > 0.0 { (f64::from(magnitude) / norm) as f32 } else { 0.0 };
        merged.iter_mut().for_each(|value| *value *= factor);
    }

    /// Adds `s b A` for row `row` of B.
    fn add_product(&self, row: usize, values: &mut [f32]) {
        let LoraModule { a, b, d_in, d_out, .. } = self.module;
        let rank = b.len() / (*d_out).max(1);
        let b = b.get(row * rank..(row + 1) * rank).unwrap_or_default();
        for (b, a) in b.iter().zip(a.chunks((*d_in).max(1))) {
            let factor = self.scale * b;
            values.iter_mut().zip(a).for_each(|(value, a)| *value += factor * a);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(magnitude: Option<Vec<f32>>) -> LoraModule {
        LoraModule {
            path: "m".into(),
            d_in: 2,
            d_out: 2,
            a: vec![1.0, 2.0, 3.0, 4.0],
            b: vec![1.0, 0.0, 0.0, 1.0],
            magnitude,
        }
    }

    fn merged(module: &LoraModule, idx: usize, base: [f32; 2]) -> Vec<f32> {
        let mut merged = base.to_vec();
        Change { module, order: RowOrder::AsStored, scale: 0.5 }.apply(idx, &base, &mut merged);
        merged
    }

    #[test]
    fn a_row_gains_its_own_row_of_the_product() {
        assert_eq!(merged(&module(None), 0, [1.0, 1.0]), [1.5, 2.0]);
        assert_eq!(merged(&module(None), 1, [1.0, 1.0]), [2.5, 3.0]);
    }

    #[test]
    fn a_magnitude_is_the_length_of_its_row() {
        let dora = module(Some(vec![10.0, 1.0]));
        assert_eq!(merged(&dora, 0, [2.5, 3.0]), [6.0, 8.0]);
        assert_eq!(merged(&dora, 0, [-0.5, -1.0]), [0.0, 0.0]);
    }

    #[test]
    fn rows_in_pairs_are_those_of_both_halves() {
        let order = RowOrder::Interleaved { head_dim: 4 };
        let rows: Vec<_> = (0..8).map(|idx| order.decoder_row(idx)).collect();
        assert_eq!(rows, [0, 2, 1, 3, 4, 6, 5, 7]);
    }
}
