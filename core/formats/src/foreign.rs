//! Tells what a file is from its first bytes, and what it is instead when it is no model.

use std::fmt;

use crate::FormatError;
use crate::source::SourceFile;

/// A kind of file that people hand over in place of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// The text that Git LFS leaves where a large file belongs.
    GitLfsPointer,
    /// A web page, usually an error or a login.
    Html,
    /// JSON or another text, usually an error message.
    Text,
    /// PyTorch's own format, which executes code when read.
    Pickle,
    /// The formats that came before GGUF.
    OldGgml,
    /// GGUF for a big-endian machine.
    BigEndianGguf,
    /// None of the known kinds.
    Unknown,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GitLfsPointer => {
                "this is a Git LFS pointer, not the model; run `git lfs pull` in its folder, or download the file itself"
            }
            Self::Html => "this is a web page, not a model; the download was refused or redirected, so download it again",
            Self::Text => "this is a text, not a model; look inside: it may be the error message of a failed download",
            Self::Pickle => {
                "this is a PyTorch pickle, which runs code when it is read, so it is not opened; \
                 use the model's safetensors or GGUF files, or convert it to safetensors"
            }
            Self::OldGgml => "this is a GGML file from before GGUF; convert it to GGUF, or download a newer file",
            Self::BigEndianGguf => "this GGUF is written for a big-endian machine; only little-endian files are read",
            Self::Unknown => "this is neither GGUF nor safetensors",
        })
    }
}

/// A kind of file that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Gguf,
    Safetensors,
}

/// Tells GGUF from safetensors by content, with the file name's ending as a hint for damaged files.
///
/// # Errors
/// Says what the file is when it is neither.
pub(crate) fn identify(file: &SourceFile) -> Result<Kind, FormatError> {
    let head = file.head(512)?;
    if head.is_empty() {
        return Err(FormatError::Empty { file: file.name.clone() });
    }
    if head.starts_with(b"GGUF") {
        return match head.get(4..8) {
            Some([0, 0, 0, version]) if *version != 0 => Err(not_a_model(file, Foreign::BigEndianGguf)),
            _ => Ok(Kind::Gguf),
        };
    }
    if is_safetensors_head(&head) {
        return Ok(Kind::Safetensors);
    }
    match foreign(&head) {
        Foreign::Unknown => by_ending(file, &head),
        known => Err(not_a_model(file, known)),
    }
}

/// Whether a text file that should be JSON is a pointer or a page instead.
pub(crate) fn check_text(file: &SourceFile) -> Result<(), FormatError> {
    match foreign(&file.head(512)?) {
        found @ (Foreign::GitLfsPointer | Foreign::Html) => Err(not_a_model(file, found)),
        _ => Ok(()),
    }
}

/// Whether a file's name says that it is a pickle.
pub(crate) fn has_pickle_ending(name: &str) -> bool {
    [".bin", ".pt", ".pth", ".ckpt", ".pkl"].iter().any(|ending| name.ends_with(ending))
}

fn not_a_model(file: &SourceFile, found: Foreign) -> FormatError {
    FormatError::NotAModel { file: file.name.clone(), found }
}

/// A plausible header length followed by the start of a JSON object.
fn is_safetensors_head(head: &[u8]) -> bool {
    matches!(head, [_, _, _, _, 0, 0, 0, 0, b'{', ..])
}

fn by_ending(file: &SourceFile, head: &[u8]) -> Result<Kind, FormatError> {
    if file.name.ends_with(".safetensors") {
        Ok(Kind::Safetensors)
    } else if file.name.ends_with(".gguf") && b"GGUF".starts_with(head) {
        Ok(Kind::Gguf)
    } else if has_pickle_ending(&file.name) {
        Err(not_a_model(file, Foreign::Pickle))
    } else {
        Err(not_a_model(file, Foreign::Unknown))
    }
}

fn foreign(head: &[u8]) -> Foreign {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start().to_ascii_lowercase();
    if text.starts_with(b"version https://git-lfs") {
        Foreign::GitLfsPointer
    } else if ["<!doctype", "<html", "<head", "<?xml"].iter().any(|tag| text.starts_with(tag.as_bytes())) {
        Foreign::Html
    } else if head.starts_with(b"PK\x03\x04") || matches!(head, [0x80, 2..=5, ..]) {
        Foreign::Pickle
    } else if [b"lmgg", b"fmgg", b"tjgg", b"algg"].iter().any(|magic| head.starts_with(*magic)) {
        Foreign::OldGgml
    } else if text.len() >= 8 && text.is_ascii() && !text.contains(&0) {
        Foreign::Text
    } else {
        Foreign::Unknown
    }
}
