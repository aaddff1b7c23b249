//! Products in every format against sums in f64: how much of a result is rounding.
//!
//! The weights are decoded in f32 by the reference; products and sums of those are exact for our purposes. NMSE is
//! `sum (y - exact)² / sum exact²`. With u = 2^-24, a running sum of k terms rounds by at most u of itself, and itself is
//! about `sqrt(k)` terms large; independent roundings add as squares, so n of them leave `u² n / 6` of the result's square.
//! A weight is itself the result of up to three roundings, which is a few u² more. `4 n u²` allows for all that and for
//! chance, and is far below what matters: 1e-7 for f32, 1e-6 for f16 and 5e-4 for quantised weights.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod pair;
#[path = "pair/stored.rs"]
mod stored;

use burn::tensor::Tensor;
use pair::{matrix, pair, random};
use samara_ops::device::OpenDevice;
use samara_ops::family::Kernels;
use samara_ops::*;
use stored::{stored_rows, stored_weight};

/// Terms of a sum, and sums.
const N_IN: usize = 2048;
const N_OUT: usize = 48;

fn read<const R: usize>(tensor: Tensor<R>) -> Vec<f32> {
    pollster::block_on(read_f32(tensor)).unwrap()
}

/// All rows of a weight: the embeddings of 0, 1, 2 and so on.
fn decoded(weight: &Weight, open: &OpenDevice) -> Vec<f32> {
    let ids: Vec<u32> = (0..N_OUT as u32).collect();
    let mut step = Step::new(N_OUT, &open.device);
    step.set(0, &ids, 0.0);
    read(embed(&step, weight, 1.0))
}

/// `x wᵀ` in f64.
fn exact(x: &[f32], w: &[f32]) -> Vec<f64> {
    let dot = |x: &[f32], w: &[f32]| x.iter().zip(w).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum();
    x.chunks_exact(N_IN).flat_map(|x| w.chunks_exact(N_IN).map(move |w| dot(x, w))).collect()
}

fn nmse(found: &[f32], exact: &[f64]) -> f64 {
    assert_eq!(found.len(), exact.len());
    let errors = found.iter().zip(exact).map(|(found, exact)| (f64::from(*found) - exact).powi(2));
    errors.sum::<f64>() / exact.iter().map(|exact| exact * exact).sum::<f64>()
}

#[test]
fn products_are_right_but_for_the_rounding_of_their_sums() {
    let Some(mut pair) = pair() else { return };
    let bound = 4.0 * N_IN as f64 * f64::from(f32::EPSILON / 2.0).powi(2);
    let formats = Format::ALL.into_iter().filter(|format| *format != Format::Ragged);
    for (format, n_tokens) in formats.flat_map(|format| [(format, 1), (format, 9)]) {
        let rows = stored_rows(format, N_OUT, N_IN);
        let weight = |open: &OpenDevice| stored_weight(format, N_IN, &rows, N_OUT, open);
        let x = random(31, n_tokens * N_IN, 1.0);
        let exact = exact(&x, &decoded(&weight(&pair.cpu), &pair.cpu));
        let product = |open: &OpenDevice| read(linear(&matrix(&x, n_tokens, &open.device), &weight(open)));
        let of_reference = nmse(&product(&pair.cpu), &exact);
        assert!(of_reference <= bound, "{format:?}, {n_tokens} tokens, reference: {of_reference:e} > {bound:e}");
        for family in pair.gpu.families() {
            pair.gpu.kernels = Kernels::all(family);
            let of_kernel = nmse(&product(&pair.gpu), &exact);
            println!("{format:?}, {n_tokens} tokens, {family}: {of_kernel:.1e}, reference {of_reference:.1e}");
            assert!(of_kernel <= bound, "{format:?}, {n_tokens} tokens, {family}: {of_kernel:e} > {bound:e}");
        }
    }
}
