//! `owner/repo[:file]`, as users write it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::HubError;

/// A repository on the hub and, optionally, one file (or part of a file's name) in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoRef {
    pub owner: String,
    pub repo: String,
    pub file: Option<String>,
}

impl RepoRef {
    /// `owner/repo`.
    pub fn repo_id(&self) -> String {
        format!("{}/{}", self.owner, self.repo)
    }

    /// The folder below `models_dir` where this repository's files live.
    pub fn folder(&self, models_dir: &Path) -> PathBuf {
        models_dir.join(&self.owner).join(&self.repo)
    }
}

impl FromStr for RepoRef {
    type Err = HubError;

    /// # Errors
    /// When the text is not two plain names with a slash between them, or the file part leaves the repository.
    fn from_str(text: &str) -> Result<Self, HubError> {
        let bad = || HubError::Reference(text.to_owned());
        let (repo_id, file) = match text.split_once(':') {
            Some((repo_id, file)) => (repo_id, Some(file)),
            None => (text, None),
        };
        let (owner, repo) = repo_id.split_once('/').ok_or_else(bad)?;
        let file_is_safe = file.is_none_or(is_relative_path);
        if !(is_name(owner) && is_name(repo) && file_is_safe) {
            return Err(bad());
        }
        Ok(Self { owner: owner.to_owned(), repo: repo.to_owned(), file: file.map(str::to_owned) })
    }
}

impl fmt::Display for RepoRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.repo)?;
        self.file.iter().try_for_each(|file| write!(f, ":{file}"))
    }
}

fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Whether a path from outside stays inside the folder it is joined to, on every platform.
pub(super) fn is_relative_path(path: &str) -> bool {
    !path.contains(['\\', ':', '\0']) && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_write_is_understood() {
        let plain: RepoRef = "allenai/OLMo-2-0425-1B-Instruct".parse().unwrap();
        assert_eq!((plain.owner.as_str(), plain.file.as_deref()), ("allenai", None));
        let with_file: RepoRef = "allenai/x-GGUF:sub/x-Q4_K_M.gguf".parse().unwrap();
        assert_eq!(with_file.file.as_deref(), Some("sub/x-Q4_K_M.gguf"));
        assert_eq!(with_file.to_string(), "allenai/x-GGUF:sub/x-Q4_K_M.gguf");
    }

    #[test]
    fn paths_that_leave_the_folder_are_refused() {
        for text in [
            "",
            "repo",
            "a/b/c",
            "../b",
            "a/..",
            "a/b:../c",
            "a/b:/etc/passwd",
            "a/b:",
            "a/b:c\\d",
            "https://x/y",
            "a /b",
        ] {
            assert!(text.parse::<RepoRef>().is_err(), "{text:?} was accepted");
        }
    }
}
