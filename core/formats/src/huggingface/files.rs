//! Files of a model that are already in memory: embedded in the program, or downloaded by a page.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::FormatError;
use crate::source::{Folder, SourceFile};

/// Named files in memory, as a folder would hold them.
#[derive(Debug, Clone, Default)]
pub struct HuggingFaceFiles {
    source: String,
    files: BTreeMap<String, Cow<'static, [u8]>>,
}

impl HuggingFaceFiles {
    /// No files yet. `source` is what messages call the model.
    pub fn new(source: impl Into<String>) -> Self {
        Self { source: source.into(), files: BTreeMap::new() }
    }

    /// The same with one more file, for instance `config.json` or `model.safetensors`.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, bytes: impl Into<Cow<'static, [u8]>>) -> Self {
        self.files.insert(name.into(), bytes.into());
        self
    }

    /// What messages call the model.
    pub fn source(&self) -> &str {
        &self.source
    }
}

impl Folder for HuggingFaceFiles {
    fn label(&self) -> &str {
        &self.source
    }

    fn names(&self) -> Result<Vec<String>, FormatError> {
        Ok(self.files.keys().cloned().collect())
    }

    fn take(&mut self, name: &str) -> Result<Option<SourceFile>, FormatError> {
        Ok(self.files.remove(name).map(|bytes| SourceFile::new(name, bytes)))
    }
}
