//! Results back to the host: the only place that waits for the device.

use crate::counts;
use crate::error::OpsError;
use burn::tensor::{Element, Int, Tensor, TensorData};
use std::fmt::Display;

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

fn values<E: Element>(data: Result<TensorData, impl Display>) -> Result<Vec<E>, OpsError> {
    let data = data.map_err(|error| OpsError::Readback(root_cause(&error.to_string())))?;
    let values = data.try_into_vec::<E>().map_err(|error| OpsError::Readback(format!("{error:?}")))?;
    counts::read_back(size_of_val(values.as_slice()) as u64);
    Ok(values)
}

/// The last of the runtime's causes, without where it was noticed.
fn root_cause(text: &str) -> String {
    let last = text.rsplit("Caused by:").next().unwrap_or(text);
    let said = last.lines().map(str::trim).take_while(|line| !line.contains("backtrace") && *line != "Asked at:");
    said.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_of_causes_is_told_by_its_last() {
        let text = "An error happened\nCaused by:\n  An IO error\nCaused by:\n  can't allocate 7 bytes\nNo backtrace\nAsked at:\nNo backtrace";
        assert_eq!(root_cause(text), "can't allocate 7 bytes");
        assert_eq!(root_cause("plain"), "plain");
    }
}
