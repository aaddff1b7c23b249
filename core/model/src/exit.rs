//! What stands between two parts of a decoder: a residual sum with one or two norms.
//!
//! It belongs to the part before it, and the last one holds the final norm. So pre-norm, post-norm
//! and sandwich models run through the same lines, and a sum is one operation with its norm.

use burn::tensor::Tensor;
use samara_ops::{self as ops, Norm, Step, Weight};

/// How a part's output joins the residual stream and what the next part is given. `N` is the plan
/// of a norm, or the norm.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Exit<N> {
    /// The sum goes on; the next part is given its norm.
    Pre { next: N },
    /// The output is normed before the sum; the next part is given the sum itself.
    Post { after: N },
    /// The output is normed before the sum; the next part is given the sum's norm.
    Sandwich { after: N, next: N },
}

/// What lies between two parts, both `[T, D]`.
#[derive(Debug, Clone)]
pub struct Stream {
    /// The residual stream.
    pub residual: Tensor<2>,
    /// What the next part is given; after the last one, what the head is given.
    pub input: Tensor<2>,
}

impl Stream {
    /// Before the first part: the tokens' embeddings.
    pub(crate) fn enter(step: &Step, embed: &Weight, norm: Option<&Norm>, scale: f32) -> Self {
        let residual = ops::embed(step, embed, scale);
        let input = norm.map_or_else(|| residual.clone(), |norm| ops::norm(&residual, norm));
        Self { residual, input }
    }
}

impl<N> Exit<N> {
    /// The same exit with each norm made into another thing.
    pub fn try_map<M, E>(&self, mut make: impl FnMut(&N) -> Result<M, E>) -> Result<Exit<M>, E> {
        Ok(match self {
            Self::Pre { next } => Exit::Pre { next: make(next)? },
            Self::Post { after } => Exit::Post { after: make(after)? },
            Self::Sandwich { after, next } => Exit::Sandwich { after: make(after)?, next: make(next)? },
        })
    }

    /// Its norms.
    pub fn norms(&self) -> impl Iterator<Item = &N> {
        let (after, next) = match self {
            Self::Pre { next } => (None, Some(next)),
            Self::Post { after } => (Some(after), None),
            Self::Sandwich { after, next } => (Some(after), Some(next)),
        };
        after.into_iter().chain(next)
    }
}

impl Exit<Norm> {
    /// Joins a part's output, `[T, D]`, to the residual stream.
    pub fn join(&self, residual: &Tensor<2>, output: &Tensor<2>) -> Stream {
        match self {
            Self::Pre { next } => {
                let (residual, input) = ops::add_norm(output, residual, next);
                Stream { residual, input }
            }
            Self::Post { after } => {
                let residual = ops::norm_add(output, after, residual);
                Stream { input: residual.clone(), residual }
            }
            Self::Sandwich { after, next } => {
                let residual = ops::norm_add(output, after, residual);
                Stream { input: ops::norm(&residual, next), residual }
            }
        }
    }
}
