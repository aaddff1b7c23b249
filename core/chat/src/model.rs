//! A loaded model: weights on a device, and the dialect they were trained in.

use samara_formats::Checkpoint;
use samara_model::{Config, Decoder, LoadProgress, ScaledAdapter};
use samara_ops::device::OpenDevice;

use crate::{ChatError, Dialect, Source};

/// A model ready for a [`crate::Session`].
pub struct Model {
    pub(crate) decoder: Decoder,
    pub(crate) dialect: Dialect,
}

impl Model {
    /// Opens a source and loads it onto a device. `progress` hears of every block of rows.
    ///
    /// # Errors
    /// What is wrong with which file, tensor or setting.
    pub fn load(
        source: &Source,
        open: &OpenDevice,
        progress: &mut dyn FnMut(LoadProgress<'_>),
    ) -> Result<Self, ChatError> {
        Self::from_checkpoint(&source.open()?, open, progress)
    }

    /// Loads an opened checkpoint onto a device. The dialect comes first: it fails fast.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn from_checkpoint(
        checkpoint: &Checkpoint,
        open: &OpenDevice,
        progress: &mut dyn FnMut(LoadProgress<'_>),
    ) -> Result<Self, ChatError> {
        let dialect = Dialect::from_checkpoint(checkpoint)?;
        let decoder = Decoder::load(checkpoint, open, progress)?;
        Ok(Self { decoder, dialect })
    }

    /// The same model with these LoRA adapters on it; its weights stay as they are.
    ///
    /// # Errors
    /// An adapter that was made for another model, or what went wrong on the device.
    pub fn with_adapters(self, adapters: &[ScaledAdapter]) -> Result<Self, ChatError> {
        Ok(Self { decoder: self.decoder.with_scaled(adapters)?, ..self })
    }

    /// The model's configuration.
    pub fn config(&self) -> &Config {
        self.decoder.config()
    }

    /// Its textual side.
    pub fn dialect(&self) -> &Dialect {
        &self.dialect
    }
}
