//! Models that are split over several GGUF files, `NAME-00001-of-0000N.gguf` and so on.
//!
//! The first part carries the metadata; every part has its own tensor table and says its number and the total.

use super::Part;
use crate::FormatError;
use crate::source::Folder;

/// A file name that says it is one part of several.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Name {
    prefix: String,
    part: u32,
    n_parts: u32,
}

impl Name {
    /// Takes a part's file name apart; `None` for a name that does not say so, or that says it is the only part.
    pub fn parse(name: &str) -> Option<Self> {
        let (rest, n_parts) = name.strip_suffix(".gguf")?.rsplit_once("-of-")?;
        let (prefix, part) = rest.rsplit_once('-')?;
        let (part, n_parts) = (five_digits(part)?, five_digits(n_parts)?);
        (n_parts > 1 && (1..=n_parts).contains(&part)).then(|| Self { prefix: prefix.to_owned(), part, n_parts })
    }

    /// The file name of a part, counted from 1.
    fn file_name(&self, part: u32) -> String {
        format!("{}-{part:05}-of-{:05}.gguf", self.prefix, self.n_parts)
    }
}

/// Whether a file name says that it is a part of a set, but not the first.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn is_later_part(name: &str) -> bool {
    Name::parse(name).is_some_and(|name| name.part > 1)
}

fn five_digits(text: &str) -> Option<u32> {
    let digits = text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

/// Reads every part of a set, in order.
pub(super) fn load(folder: &mut dyn Folder, set: &Name) -> Result<Vec<Part>, FormatError> {
    let mut parts = Vec::new();
    for number in 1..=set.n_parts {
        let name = set.file_name(number);
        let part = Part::read(folder, &name, parts.len())?.ok_or_else(|| FormatError::MissingShard {
            file: folder.label().to_owned(),
            shard: name,
            needed_by: format!("the set of {} parts", set.n_parts),
        })?;
        check_part(&part, number, set.n_parts)?;
        parts.push(part);
    }
    check_total(&parts)?;
    Ok(parts)
}

fn check_part(part: &Part, number: u32, n_parts: u32) -> Result<(), FormatError> {
    let expected = (Some(number - 1), Some(n_parts));
    let found = (part.metadata.u32("split.no"), part.metadata.u32("split.count"));
    if found == expected {
        return Ok(());
    }
    Err(FormatError::Split {
        file: part.file.name.clone(),
        problem: format!(
            "its name says part {number} of {n_parts}, but split.no is {} (expected {}) and split.count is {}",
            or_missing(found.0),
            number - 1,
            or_missing(found.1)
        ),
    })
}

fn check_total(parts: &[Part]) -> Result<(), FormatError> {
    let Some(first) = parts.first() else { return Ok(()) };
    let found: usize = parts.iter().map(|part| part.tensors.len()).sum();
    match first.metadata.u32("split.tensors.count") {
        Some(expected) if expected as usize != found => Err(FormatError::Split {
            file: first.file.name.clone(),
            problem: format!("split.tensors.count is {expected}, but the parts hold {found} tensors"),
        }),
        _ => Ok(()),
    }
}

fn or_missing(value: Option<u32>) -> String {
    value.map_or_else(|| "missing".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_names_are_recognised() {
        let name = Name::parse("olmo-Q4_K-00002-of-00003.gguf").unwrap();
        assert_eq!(name, Name { prefix: "olmo-Q4_K".into(), part: 2, n_parts: 3 });
        assert_eq!(name.file_name(1), "olmo-Q4_K-00001-of-00003.gguf");
    }

    #[test]
    fn other_names_are_single_files() {
        for name in [
            "model.gguf",
            "model-00001-of-00001.gguf",
            "model-00004-of-00003.gguf",
            "model-00000-of-00003.gguf",
            "model-1-of-3.gguf",
            "model-0000é-of-00003.gguf",
            "model-00001-of-00003.safetensors",
        ] {
            assert_eq!(Name::parse(name), None, "{name}");
        }
    }
}
