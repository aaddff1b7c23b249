//! A published adapter that a model is to have, and how strongly.
//!
//! It holds values in host memory, so it outlives a device and can be put on the model again.

use std::sync::Arc;

use samara_formats::peft::{LoraAdapter, LoraModule};

use crate::{
    Config, ModelError,
    adapter::{Site, fitted},
};

/// A published adapter with its factor. A clone shares the values.
#[derive(Debug, Clone)]
pub struct ScaledAdapter {
    /// What messages call it.
    pub name: String,
    pub adapter: Arc<LoraAdapter>,
    /// What its own scale is multiplied by: 1 is as it was trained, 0 turns it off but for the magnitudes of a DoRA.
    pub strength: f32,
}

impl ScaledAdapter {
    /// Says whether a model has all its modules.
    ///
    /// # Errors
    /// [`ModelError::NamedAdapter`] with every module that the model does not have, or has in another shape.
    pub fn check(&self, config: &Config) -> Result<(), ModelError> {
        self.fitted(config).map(drop)
    }

    /// Bytes it takes on a device: its values, and for every magnitude the length that is divided by.
    pub fn n_bytes(&self) -> u64 {
        let n_magnitudes = |module: &LoraModule| module.magnitude.as_ref().map_or(0, Vec::len);
        let of = |module: &LoraModule| module.a.len() + module.b.len() + 2 * n_magnitudes(module);
        self.adapter.modules.iter().map(|module| 4 * of(module) as u64).sum()
    }

    /// What B (A x) is multiplied by.
    pub(crate) fn scale(&self) -> f32 {
        self.strength * self.adapter.config.scale()
    }

    pub(crate) fn fitted(&self, config: &Config) -> Result<Vec<(Site, &LoraModule)>, ModelError> {
        let named = |error| ModelError::NamedAdapter { source_name: self.name.clone(), error: Box::new(error) };
        fitted(&self.adapter, config).map_err(named)
    }
}
