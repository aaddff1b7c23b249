//! The operations of the model families, each three times: shape check, reference body, WGSL launch.
//!
//! An [`Operation`] is a value that knows its kernel, its reference twin and its gradients; `run` hands it
//! to whichever backend holds the buffers. On a wgpu device the kernel is launched, on Burn's pure-Rust `Flex` device
//! the reference runs, so the same model code serves both and each is the other's test. Burn, CubeCL and wgpu are
//! seen nowhere to the right of this crate except for `burn::tensor::{Device, Tensor}`.
//!
//! The door is open to operations of one's own: see [`custom`].
//!
//! It never sees a file, a token's text or a request. Shapes in the docs: B batch, T time, D model, H heads,
//! K kv heads, C head width, F feed-forward, V vocabulary, E experts, k picks.

mod attention;
#[cfg(not(target_arch = "wasm32"))]
pub mod bench;
mod capture;
mod ceilings;
pub mod counts;
mod cross_entropy;
#[cfg(not(target_arch = "wasm32"))]
pub mod custom;
pub mod device;
mod documents;
mod dropout;
mod embed;
mod error;
pub mod family;
mod faults;
mod gated_linear;
mod glu;
pub mod gradient;
mod greedy;
mod improbable;
mod kv;
mod linear;
mod low_rank;
mod moe;
mod norm;
mod operation;
mod peak;
mod penalise;
mod pick;
mod qk_norm_rope;
mod readback;
mod row_lengths;
mod run;
mod sample;
mod scale_columns;
mod self_attention;
mod step;
mod sum_squares;
#[cfg(not(target_arch = "wasm32"))]
pub mod trial;
mod weight;

pub use attention::{AttentionSpec, attention, attention_scratch_bytes};
pub use capture::{Recording, record};
pub use ceilings::{ceiling_copy, ceiling_multiply_add, stock_matmul};
pub use cross_entropy::{Loss, LossSpec, cross_entropy};
pub use documents::{Documents, IGNORE};
pub use dropout::dropout;
pub use embed::embed;
pub use error::{OpsError, SampleError};
pub use faults::{Faults, is_panic_of_loss};
pub use gated_linear::gated_linear;
pub use glu::{Activation, glu};
pub use greedy::{check_finite, greedy, log_prob};
pub use improbable::{Improbable, skip_improbable};
pub use kv::{KvFormat, KvFormats, UnknownKvFormats};
pub use linear::linear;
pub use low_rank::low_rank;
pub use moe::{Routes, moe_combine, moe_linear, moe_route};
pub use norm::{Norm, NormKind, add_norm, norm, norm_add};
pub use operation::{Host, HostMut, Launch, Operation};
pub use peak::{held_bytes, peak_bytes};
pub use penalise::{Adjustment, Adjustments, penalise};
pub use pick::{Choice, Picked, Picking, pick, pick_on_host};
pub use qk_norm_rope::{HeadShape, LayerCache, QkNorm, QkSpec, RopeTable, qk_norm_rope};
pub use readback::{last_row, read_f32};
pub use row_lengths::row_lengths;
pub use samara_shaders::Format;
pub use sample::{Draw, sample};
pub use scale_columns::scale_columns;
pub use self_attention::self_attention;
pub use step::Step;
pub use sum_squares::sum_squares;
pub use weight::{Weight, WeightBuilder, matrix, row_bytes, vector};
