//! Short names for published models that Samara runs well.

use serde::{Deserialize, Serialize};

use super::{HubError, RepoRef};

/// Every short name, in the order `samara pull --list` shows them.
#[derive(Debug, Clone)]
pub struct Catalogue {
    pub entries: Vec<CatalogueEntry>,
}

/// A short name, and the repository and file it stands for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CatalogueEntry {
    pub name: String,
    pub repo: String,
    /// A file of the repository, or a part of its name that fits one file only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Size of the download in 10^9 bytes, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_gb: Option<f64>,
    pub licence: String,
    pub about: String,
}

impl Catalogue {
    /// The catalogue built into this binary.
    ///
    /// # Errors
    /// Never in a released binary: a test reads it.
    pub fn embedded() -> Result<Self, serde_json::Error> {
        let entries = serde_json::from_str(include_str!("../../../assets/catalogue.json"))?;
        Ok(Self { entries })
    }

    /// The entry with this short name.
    pub fn find(&self, name: &str) -> Option<&CatalogueEntry> {
        self.entries.iter().find(|entry| entry.name.eq_ignore_ascii_case(name))
    }

    /// What the user means by `text`: a short name, or `owner/repo[:file]`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn resolve(&self, text: &str) -> Result<RepoRef, HubError> {
        match self.find(text) {
            Some(entry) => entry.reference(),
            None => text.parse(),
        }
    }
}

impl CatalogueEntry {
    /// The repository and file this name stands for.
    ///
    /// # Errors
    /// When the catalogue's own text is malformed.
    pub fn reference(&self) -> Result<RepoRef, HubError> {
        let reference: RepoRef = self.repo.parse()?;
        Ok(RepoRef { file: self.file.clone(), ..reference })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_names_a_repository_once() {
        let catalogue = Catalogue::embedded().unwrap();
        for entry in &catalogue.entries {
            entry.reference().unwrap();
            assert_eq!(catalogue.entries.iter().filter(|other| other.name == entry.name).count(), 1, "{}", entry.name);
        }
    }

    #[test]
    fn short_names_and_repositories_are_told_apart() {
        let catalogue = Catalogue::embedded().unwrap();
        assert_eq!(catalogue.resolve("OLMo2-1B").unwrap().to_string(), "allenai/OLMo-2-0425-1B-Instruct-GGUF:Q4_K_M");
        assert_eq!(catalogue.resolve("a/b:c.gguf").unwrap().to_string(), "a/b:c.gguf");
        assert!(catalogue.resolve("olmo9").is_err());
    }
}
