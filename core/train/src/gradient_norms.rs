//! How long gradients are: of each matrix and of each layer, and which is the first that is no number.

use burn::tensor::Tensor;
use samara_ops::{read_f32, sum_squares};

use crate::{Learner, TrainError};

/// The norms of the gradients of one pass or step.
#[derive(Debug, Clone, PartialEq)]
pub struct GradientNorms {
    /// Of each trained matrix, in the learner's order; 0 where the loss does not depend on it.
    pub matrices: Vec<f64>,
    /// Of each layer, the part outside of layers last.
    pub layers: Vec<f64>,
    /// The name of the first matrix whose gradient has no finite norm.
    pub not_finite: Option<String>,
}

/// The norms of a learner's gradients, gathered on the device: one readback.
///
/// # Errors
/// The device failed.
pub async fn gradient_norms(learner: &Learner, gradients: &[Option<Tensor<2>>]) -> Result<GradientNorms, TrainError> {
    let (indices, found) = present(gradients);
    if found.is_empty() {
        return Ok(GradientNorms::of_squares(learner, &[]));
    }
    let squares = read_f32(sum_squares(found.into_iter(), learner.device())).await?;
    let squares: Vec<_> = indices.into_iter().zip(squares.into_iter().map(f64::from)).collect();
    Ok(GradientNorms::of_squares(learner, &squares))
}

/// The gradients that there are, with their places.
pub(crate) fn present(gradients: &[Option<Tensor<2>>]) -> (Vec<usize>, Vec<&Tensor<2>>) {
    gradients.iter().enumerate().filter_map(|(index, gradient)| Some((index, gradient.as_ref()?))).unzip()
}

impl GradientNorms {
    /// From the squared lengths of some matrices, by their places in the learner.
    pub fn of_squares(learner: &Learner, squares: &[(usize, f64)]) -> Self {
        let n_layers = learner.config().n_layers;
        let (mut matrices, mut layers) = (vec![0.0; learner.values().len()], vec![0.0; n_layers + 1]);
        for (index, square) in squares {
            let layer = learner.layer_of(*index).unwrap_or(n_layers);
            for sum in matrices.get_mut(*index).into_iter().chain(layers.get_mut(layer)) {
                *sum += square;
            }
        }
        let roots = |squares: Vec<f64>| squares.into_iter().map(f64::sqrt).collect();
        let not_finite = squares.iter().find(|(_, square)| !square.is_finite());
        Self {
            matrices: roots(matrices),
            layers: roots(layers),
            not_finite: not_finite.map(|(index, _)| learner.name_of(*index)),
        }
    }

    /// Of all gradients together.
    pub fn total(&self) -> f64 {
        self.layers.iter().map(|norm| norm * norm).sum::<f64>().sqrt()
    }
}
