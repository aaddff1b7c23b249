//! AdamW for a list of matrices: Burn's arithmetic, our order of things, and moments that can be written down.

use burn::optim::{AdamW, AdamWConfig, AdamWState, Optimizer};
use burn::tensor::Tensor;

use crate::config::OptimizerConfig;

/// The optimizer and its memory of each trained matrix (Loshchilov & Hutter 2019).
pub struct Moments {
    adamw: AdamW,
    states: Vec<Option<AdamWState<2>>>,
}

/// The memory of one matrix.
#[derive(Debug, Clone)]
pub struct Moment {
    /// Updates so far.
    pub time: usize,
    /// Of the gradient, as the matrix.
    pub first: Tensor<2>,
    /// Of its square.
    pub second: Tensor<2>,
}

impl Moments {
    /// For so many matrices, none of which was updated before.
    pub fn new(config: &OptimizerConfig, n_matrices: usize) -> Self {
        let adamw = AdamWConfig::new()
            .with_beta_1(config.betas[0] as f32)
            .with_beta_2(config.betas[1] as f32)
            .with_epsilon(config.eps as f32)
            .with_weight_decay(config.weight_decay as f32);
        Self { adamw: adamw.build(), states: vec![None; n_matrices] }
    }

    /// The matrices after an update with `factor` times their gradients; those without one stay as they are.
    pub fn update(
        &mut self,
        values: &[Tensor<2>],
        gradients: Vec<Option<Tensor<2>>>,
        factor: f64,
        rate: impl Fn(usize) -> f64,
    ) -> Vec<Tensor<2>> {
        let mut updated = values.to_vec();
        let matrices = updated.iter_mut().zip(&mut self.states).zip(gradients).enumerate();
        for (index, ((value, state), gradient)) in matrices {
            let Some(gradient) = gradient else { continue };
            let gradient = if factor == 1.0 { gradient } else { gradient.mul_scalar(factor) };
            (*value, *state) = self.adamw.step(rate(index), value.clone(), gradient, state.take());
        }
        updated
    }

    /// The memory of each matrix, none before its first update.
    pub fn moments(&self) -> Vec<Option<Moment>> {
        let moment = |state: &AdamWState<2>| Moment {
            time: state.momentum.time,
            first: state.momentum.moment_1.clone(),
            second: state.momentum.moment_2.clone(),
        };
        self.states.iter().map(|state| state.as_ref().map(moment)).collect()
    }

    /// Goes on from these.
    pub fn restore(&mut self, moments: Vec<Option<Moment>>) {
        let state = |moment: Moment| {
            let Moment { time, first, second } = moment;
            AdamWState::new(burn::optim::AdaptiveMomentumState::new(time, first, second))
        };
        self.states = moments.into_iter().map(|moment| moment.map(state)).collect();
    }
}
