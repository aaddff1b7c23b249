//! Conversations in files. Native only; the one place of this crate that writes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::{ChatError, Conversation};

/// Far more than any context holds.
const MAX_BYTES: u64 = 64 << 20;

impl Conversation {
    /// Writes the conversation as JSON. The file is replaced at once and whole: it is written beside its place, synced
    /// and renamed, so that a crash leaves the old one.
    ///
    /// # Errors
    /// The file system refuses; the message names the path.
    pub fn save(&self, path: &Path) -> Result<(), ChatError> {
        let json = self.to_json()?;
        replace(path, json.as_bytes()).map_err(|source| file_error(path, "write", source))
    }

    /// Reads a conversation from a file that [`Self::save`] wrote, or that holds a bare list of messages.
    ///
    /// # Errors
    /// The file cannot be read, is too large, or holds something else.
    pub fn load(path: &Path) -> Result<Self, ChatError> {
        let mut json = String::new();
        let unreadable = |source| file_error(path, "read", source);
        let file = File::open(path).map_err(unreadable)?;
        let n_bytes = file.metadata().map_err(unreadable)?.len();
        if n_bytes > MAX_BYTES {
            return Err(ChatError::ConversationSize { path: shown(path), n_bytes, max_bytes: MAX_BYTES });
        }
        file.take(MAX_BYTES).read_to_string(&mut json).map_err(unreadable)?;
        Self::from_json(&json, &shown(path))
    }
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder(path))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// The folder of a file; a bare name lies in the current one.
fn folder(path: &Path) -> PathBuf {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

fn file_error(path: &Path, action: &'static str, source: io::Error) -> ChatError {
    ChatError::File { path: shown(path), action, source }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(text: &str) -> Conversation {
        let mut talk = Conversation::new(None);
        talk.say(text);
        talk
    }

    #[test]
    fn a_saved_conversation_comes_back_and_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("talk.json");
        for text in ["a long first version", "short"] {
            talk(text).save(&path).unwrap();
            assert_eq!(Conversation::load(&path).unwrap(), talk(text));
        }
        assert_eq!(folder.path().read_dir().unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_failed_save_leaves_the_place_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("taken");
        std::fs::create_dir(&taken).unwrap();
        let error = talk("x").save(&taken).unwrap_err();
        assert_eq!(error.to_string(), format!("{}: cannot write", taken.display()));
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
        assert!(talk("x").save(&folder.path().join("no/such/folder")).is_err());
    }

    #[test]
    fn what_cannot_be_loaded_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("talk.json");
        let message = || Conversation::load(&path).unwrap_err().to_string();
        assert_eq!(message(), format!("{}: cannot read", path.display()));
        std::fs::write(&path, b"\xFF\xFE").unwrap();
        assert_eq!(message(), format!("{}: cannot read", path.display()));
        std::fs::write(&path, "[").unwrap();
        assert_eq!(message(), format!("{}: not a conversation", path.display()));
        File::create(&path).unwrap().set_len(MAX_BYTES + 1).unwrap();
        assert!(message().contains("more than the 67108864 that a conversation may have"));
    }

    #[test]
    fn a_bare_file_name_lies_in_the_current_folder() {
        assert_eq!(folder(Path::new("talk.json")), Path::new("."));
        assert_eq!(folder(Path::new("a/talk.json")), Path::new("a"));
    }
}
