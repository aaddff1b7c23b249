//! Samara in a browser tab: what JavaScript calls, and nothing else.
//!
//! The same engine and the same kernels as in the binary, on the device that the browser lends. Nothing here blocks,
//! starts a thread, reads a clock or opens a file. Elsewhere than in a browser this library is empty.

#[cfg(target_arch = "wasm32")]
mod model;
#[cfg(target_arch = "wasm32")]
pub use model::Model;
