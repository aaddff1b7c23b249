//! The fixed device buffer that tells a forward pass where it is: position and token ids.
//!
//! Kernels read it instead of getting new arguments, so one decode step is launch for launch the same as the next. The
//! choice that ends a pass leaves its token here, so the next pass can follow before the host knows it.

use crate::error::OpsError;
use crate::readback::read_u32;
use crate::run;
use burn::tensor::{DType, Device, Int, Tensor, TensorData};

/// Words before the ids: position, number of tokens, the bits of a draw, and one that keeps the ids aligned.
pub(crate) const HEADER_WORDS: usize = 4;
/// Where among them the draw is.
pub(crate) const DRAW_WORD: usize = 2;

/// Position and token ids of the tokens being computed, and where the draw after them falls, in device memory:
/// `[position, T, bits of the draw, 0, ids..]`.
#[derive(Debug, Clone)]
pub struct Step {
    buffer: Option<Tensor<1, Int>>,
    n_tokens: usize,
    max_tokens: usize,
    device: Device,
}

impl Step {
    /// A buffer for at most `max_tokens` tokens at once.
    pub fn new(max_tokens: usize, device: &Device) -> Self {
        let data = TensorData::new(vec![0u32; HEADER_WORDS + max_tokens], [HEADER_WORDS + max_tokens]);
        let buffer = Some(Tensor::from_data(data, (device, DType::U32)));
        Self { buffer, n_tokens: 0, max_tokens, device: device.clone() }
    }

    /// Moves to `tokens` starting at `position`, with the [`crate::Choice::uniform`] of the choice after them: the one upload
    /// of a forward pass.
    ///
    /// # Panics
    /// If there are more than `max_tokens`.
    pub fn set(&mut self, position: usize, tokens: &[u32], uniform: f32) {
        assert!(tokens.len() <= self.max_tokens, "{} tokens in a step of {}", tokens.len(), self.max_tokens);
        self.write(position, tokens.len(), uniform, tokens);
    }

    /// Moves to the one token that the choice after the last pass left here, which the host need not know, at `position`;
    /// otherwise as [`Step::set`].
    pub fn follow(&mut self, position: usize, uniform: f32) {
        self.write(position, 1, uniform, &[]);
    }

    fn write(&mut self, position: usize, n_tokens: usize, uniform: f32, ids: &[u32]) {
        let mut words = vec![position as u32, n_tokens as u32, uniform.to_bits(), 0];
        words.extend_from_slice(ids);
        self.n_tokens = n_tokens;
        self.buffer = self.buffer.take().map(|buffer| run::write_words(buffer, words));
    }

    /// T, the number of tokens of this pass.
    pub fn n_tokens(&self) -> usize {
        self.n_tokens
    }

    /// The most tokens of one pass.
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// The device that holds the buffer.
    pub fn device(&self) -> Device {
        self.device.clone()
    }

    /// Waits until the device has done all that it was given before, and brings nothing but this buffer back.
    ///
    /// # Errors
    /// If the device was lost, a launch before it failed, or memory ran out.
    pub async fn wait(&self) -> Result<(), OpsError> {
        match &self.buffer {
            Some(buffer) => read_u32(buffer.clone()).await.map(drop),
            None => Ok(()),
        }
    }

    pub(crate) fn buffer(&self) -> run::Buffer {
        self.buffer.as_ref().map_or(run::Buffer::Empty, run::int)
    }

    /// The buffer, given away so that a choice can be written without a copy.
    pub(crate) fn take(&mut self) -> run::Buffer {
        self.buffer.take().map_or(run::Buffer::Empty, run::into_int)
    }

    pub(crate) fn put_back(&mut self, buffer: Tensor<1, Int>) {
        self.buffer = Some(buffer);
    }
}
