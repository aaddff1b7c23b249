//! Results back to the host: the only place that waits for the device.

use crate::counts;
use crate::error::OpsError;
use burn::tensor::Tensor;

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
    let data = tensor.into_data_async().await.map_err(|error| OpsError::Readback(format!("{error:?}")))?;
    let values = data.try_into_vec::<f32>().map_err(|error| OpsError::Readback(format!("{error:?}")))?;
    counts::read_back(4 * values.len() as u64);
    Ok(values)
}
