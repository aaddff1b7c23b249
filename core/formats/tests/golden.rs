//! Every codec against the values of the `gguf` Python package, through a file that the package wrote.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use samara_formats::{Checkpoint, DType};

const BLOCKS: &[u8] = include_bytes!("golden/blocks.gguf");

fn check_values(checkpoint: &Checkpoint, dtype: DType) {
    let blocks = checkpoint.tensor(&dtype.to_string()).unwrap();
    let expected = checkpoint.tensor(&format!("{dtype}.f32")).unwrap();
    assert_eq!((blocks.dtype, expected.dtype), (dtype, DType::F32));
    assert_eq!(blocks.shape, expected.shape);
    let found = checkpoint.rows_f32(blocks, 0..blocks.n_rows()).unwrap();
    let expected = checkpoint.rows_f32(expected, 0..expected.n_rows()).unwrap();
    for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let is_same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
        assert!(is_same, "{dtype} value {i}: {found} instead of {expected}");
    }
}

#[test]
fn every_codec_gives_the_reference_values_bit_for_bit() {
    let checkpoint = Checkpoint::from_gguf("blocks.gguf", BLOCKS).unwrap();
    assert_eq!(checkpoint.tensors().len(), 2 * DType::ALL.len());
    for dtype in DType::ALL {
        check_values(&checkpoint, dtype);
    }
}

#[test]
fn rows_can_be_taken_one_at_a_time() {
    let checkpoint = Checkpoint::from_gguf("blocks.gguf", BLOCKS).unwrap();
    for tensor in checkpoint.tensors() {
        let whole = checkpoint.rows_f32(tensor, 0..tensor.n_rows()).unwrap();
        let rows = (0..tensor.n_rows()).map(|row| checkpoint.rows_f32(tensor, row..row + 1).unwrap());
        let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(rows.flatten().collect()), bits(whole), "{}", tensor.name);
    }
}
