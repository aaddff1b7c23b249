//! What a session does when its device is lost: it asks for the model again, and the engine goes on.

use std::pin::Pin;

use samara_engine::{Engine, EngineError};
use samara_model::{Decoder, ModelError, ScaledAdapter};
use samara_ops::OpsError;
use samara_ops::device::{self, DeviceChoice, Limits};
use samara_ops::family::Kernels;

use crate::{ChatError, Source};

/// Losses in a row, without a token in between, after which there is no use in going on.
const MAX_LOSSES: usize = 3;

type Loading = Pin<Box<dyn Future<Output = Result<Decoder, ChatError>>>>;

/// Where a session gets its model from when the device is lost.
pub struct Reload(Box<dyn FnMut() -> Loading>);

impl Reload {
    /// Calls `load` each time. It gives the model of the session again, on a device that has been opened anew.
    pub fn new<F>(mut load: impl FnMut() -> F + 'static) -> Self
    where
        F: Future<Output = Result<Decoder, ChatError>> + 'static,
    {
        Self(Box::new(move || Box::pin(load())))
    }

    /// Opens the source and the device again, as they were opened first, with the same kernels.
    pub fn from_source(source: Source, choice: DeviceChoice, limits: Limits, kernels: Kernels) -> Self {
        Self::new(move || {
            let source = source.clone();
            async move {
                let mut open = device::open(choice, limits).await?;
                open.kernels = kernels;
                Ok(Decoder::load(&source.open()?, &open, &mut |_| {})?)
            }
        })
    }

    /// Puts these LoRA adapters on the model each time, as the session has them from the start.
    #[must_use]
    pub fn with_adapters(mut self, adapters: Vec<ScaledAdapter>) -> Self {
        Self::new(move || {
            let (loading, adapters) = ((self.0)(), adapters.clone());
            async move { Ok(loading.await?.with_scaled(&adapters)?) }
        })
    }
}

/// Whether the device of a session is there, and how to get another.
pub(crate) struct Recovery {
    reload: Option<Reload>,
    is_lost: bool,
    n_losses: usize,
}

impl Recovery {
    pub fn new(reload: Option<Reload>) -> Self {
        Self { reload, is_lost: false, n_losses: 0 }
    }

    /// Notes a loss.
    ///
    /// # Errors
    /// There is no other model to be had, or this happens again and again.
    pub fn lost(&mut self, reason: &str) -> Result<(), ChatError> {
        self.is_lost = true;
        self.n_losses += 1;
        if self.reload.is_none() {
            return Err(EngineError::DeviceLost { reason: reason.to_owned() }.into());
        }
        if self.n_losses == MAX_LOSSES {
            self.n_losses = 0;
            return Err(ChatError::DeviceKeepsFailing { n_losses: MAX_LOSSES, reason: reason.to_owned() });
        }
        Ok(())
    }

    /// Notes that the device works.
    pub fn works(&mut self) {
        self.n_losses = 0;
    }

    /// Gives the engine a model on a device that is there; does nothing where it has one.
    ///
    /// # Errors
    /// The model cannot be loaded again, or its device is lost each time.
    pub async fn restore(&mut self, engine: &mut Engine) -> Result<(), ChatError> {
        while self.is_lost {
            let Some(Reload(load)) = &mut self.reload else { return Ok(()) };
            match load().await {
                Ok(decoder) => {
                    engine.replace_model(decoder)?;
                    self.is_lost = false;
                }
                Err(ChatError::Model(ModelError::Device(OpsError::Lost { reason }))) => self.lost(&reason)?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
