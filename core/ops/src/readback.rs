//! Results back to the host: the only place that waits for the device.

use crate::counts;
use crate::error::OpsError;
use burn::tensor::{Element, Int, Tensor, TensorData};
use std::fmt::Debug;

/// The last row of `x [T, D]`, as `[1, D]`.
pub fn last_row(x: &Tensor<2>) -> Tensor<2> {
    let [n_rows, width] = x.dims();
    if n_rows == 1 { x.clone() } else { x.clone().slice([n_rows - 1..n_rows, 0..width]) }
}

/// The values of a tensor, row-major.
///
/// Asynchronous because a browser cannot block.
///
/// # Errors
/// If the device was lost, a launch before it failed, or memory ran out.
pub async fn read_f32<const R: usize>(tensor: Tensor<R>) -> Result<Vec<f32>, OpsError> {
    values(tensor.into_data_async().await)
}

/// The words of a tensor of ids, row-major. Fails as [`read_f32`] does.
pub(crate) async fn read_u32<const R: usize>(tensor: Tensor<R, Int>) -> Result<Vec<u32>, OpsError> {
    values(tensor.into_data_async().await)
}

fn values<E: Element>(data: Result<TensorData, impl Debug>) -> Result<Vec<E>, OpsError> {
    let data = data.map_err(|error| OpsError::Readback(format!("{error:?}")))?;
    let values = data.try_into_vec::<E>().map_err(|error| OpsError::Readback(format!("{error:?}")))?;
    counts::read_back(size_of_val(values.as_slice()) as u64);
    Ok(values)
}
