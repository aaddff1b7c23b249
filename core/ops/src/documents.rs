//! Documents laid end to end on the device: what training computes at once.
//!
//! There is no batch dimension and no padding. A token's position in its document says where the document begins, so
//! attention and RoPE keep to it, and a batch of many short documents costs what one long one of as many tokens does.

use crate::run;
use crate::step::Step;
use burn::tensor::{DType, Device, Int, Tensor, TensorData};

/// What a token has for a label where it is not trained on.
pub const IGNORE: u32 = u32::MAX;

/// Ids, positions and labels of `T` tokens in device memory.
#[derive(Debug, Clone)]
pub struct Documents {
    step: Step,
    positions: Tensor<1, Int>,
    labels: Tensor<1, Int>,
    n_trained: usize,
}

impl Documents {
    /// Uploads `T` tokens. Every id must be in the vocabulary and every position below the capacity of the RoPE tables;
    /// a label is the id of the token that follows in the same document, or [`IGNORE`].
    ///
    /// # Panics
    /// If the lengths differ, or a position neither follows the one before it nor is 0.
    pub fn new(ids: &[u32], positions: &[u32], labels: &[u32], device: &Device) -> Self {
        assert!(ids.len() == positions.len() && ids.len() == labels.len() && !ids.is_empty(), "documents: lengths");
        let follows = |pair: &[u32]| pair[1] == 0 || pair[1] == pair[0] + 1;
        assert!(positions[0] == 0 && positions.windows(2).all(follows), "documents: positions");
        let mut step = Step::new(ids.len(), device);
        step.set(0, ids, 0.0);
        let n_trained = labels.iter().filter(|label| **label != IGNORE).count();
        Self { step, positions: words(positions, device), labels: words(labels, device), n_trained }
    }

    /// T.
    pub fn n_tokens(&self) -> usize {
        self.step.n_tokens()
    }

    /// How many tokens have a label.
    pub fn n_trained(&self) -> usize {
        self.n_trained
    }

    /// The ids, for [`crate::embed`].
    pub fn step(&self) -> &Step {
        &self.step
    }

    pub(crate) fn positions(&self) -> run::Buffer {
        run::int(&self.positions)
    }

    pub(crate) fn labels(&self) -> run::Buffer {
        run::int(&self.labels)
    }
}

fn words(values: &[u32], device: &Device) -> Tensor<1, Int> {
    Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), (device, DType::U32))
}
