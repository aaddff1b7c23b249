//! Results back to the host: the only place that waits for the device.

use crate::counts::{self, OnItsWay};
use crate::error::OpsError;
use crate::faults::Faults;
use crate::run::{Words, read_words};
use burn::tensor::{Element, Int, Tensor, TensorData};
use std::cell::RefCell;
use std::fmt::{self, Display};
use std::task::{Context, Waker};

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

/// Words that come to the host without anybody waiting: work may be given to the device before they are here.
pub(crate) struct Reading {
    /// `None` once they are here.
    words: Option<Words>,
    on_its_way: OnItsWay,
    faults: Faults,
}

thread_local! {
    /// What nobody waits for any more. The runtime would use a buffer again while it is still mapped for such a reading.
    static ABANDONED: RefCell<Vec<Words>> = const { RefCell::new(Vec::new()) };
}

impl Reading {
    /// Asks for the words of `source` as they are before anything that is given to the device later.
    pub fn begin(source: Tensor<1, Int>, faults: &Faults) -> Self {
        let is_pending = |words: &mut Words| words.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
        ABANDONED.with_borrow_mut(|all| all.retain_mut(is_pending));
        let words = Some(read_words(source));
        Self { words, on_its_way: counts::reading(), faults: faults.clone() }
    }

    /// Waits for the words, or for a fault of the device.
    ///
    /// # Errors
    /// If the device was lost, a launch before it failed, or memory ran out.
    pub async fn wait(mut self) -> Result<Vec<u32>, OpsError> {
        let Some(words) = &mut self.words else { return Ok(Vec::new()) };
        let words = self.faults.settle(words).await;
        self.words = None;
        let words = words?;
        self.on_its_way.arrived(size_of_val(words.as_slice()) as u64);
        Ok(words)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let words = self.words.take().filter(|_| self.faults.check().is_ok());
        // A thread that ends reads nothing any more.
        let _ = ABANDONED.try_with(|all| all.borrow_mut().extend(words));
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").finish_non_exhaustive()
    }
}

/// The words of a tensor of ids, row-major. Fails as [`read_f32`] does.
pub(crate) async fn read_u32<const R: usize>(tensor: Tensor<R, Int>) -> Result<Vec<u32>, OpsError> {
    values(tensor.into_data_async().await)
}

fn values<E: Element>(data: Result<TensorData, impl Display>) -> Result<Vec<E>, OpsError> {
    let data = data.map_err(failed)?;
    let values = data.try_into_vec::<E>().map_err(|error| OpsError::Readback(format!("{error:?}")))?;
    counts::read_back(size_of_val(values.as_slice()) as u64);
    Ok(values)
}

/// What the runtime says of a readback that failed.
pub(crate) fn failed(error: impl Display) -> OpsError {
    OpsError::Readback(root_cause(&error.to_string()))
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
