//! The files of a repository, and which of them make up a model.

use serde::Deserialize;

use super::reference::is_relative_path;
use super::{HubError, RepoRef};

/// One file on the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFile {
    /// Relative to the repository, with `/` between folders.
    pub path: String,
    pub size_bytes: Option<u64>,
    /// In lower-case hexadecimal; known for large files only.
    pub sha256: Option<String>,
}

/// Files a safetensors model needs besides its weights; those a repository lacks are left out.
const COMPANIONS: [&str; 7] = [
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "model.safetensors.index.json",
];

/// Which GGUF to take when nobody says: good quality at a size that fits most devices, first found wins.
const PREFERRED_GGUF: [&str; 6] = ["Q4_K_M", "Q4_K_S", "Q4_1", "Q4_0", "Q5_K_M", "Q8_0"];

/// The files of one model: one GGUF (all of its parts), or safetensors with what belongs to them.
///
/// # Errors
/// When the wanted file does not exist, fits several files, or the repository holds no model.
pub fn choose_files(files: &[RemoteFile], repo: &RepoRef) -> Result<Vec<RemoteFile>, HubError> {
    match &repo.file {
        Some(wanted) => named(files, repo, wanted),
        None => whole_model(files, repo),
    }
}

/// Reads the hub's answer to a listing request; folders are left out.
pub(super) fn parse(json: &[u8]) -> Result<Vec<RemoteFile>, String> {
    let entries: Vec<Entry> =
        serde_json::from_slice(json).map_err(|error| format!("not a listing of files: {error}"))?;
    let files = entries.into_iter().filter(|entry| entry.kind == "file" && is_relative_path(&entry.path));
    Ok(files.map(RemoteFile::from).collect())
}

/// The address of the next page in a `Link` header.
pub(super) fn next_page(link: &str) -> Option<&str> {
    let next = link.split(',').find(|part| part.contains("rel=\"next\""))?;
    next.trim().strip_prefix('<')?.split_once('>').map(|(url, _)| url)
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "type")]
    kind: String,
    path: String,
    size: Option<u64>,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    oid: String,
    size: Option<u64>,
}

impl From<Entry> for RemoteFile {
    fn from(entry: Entry) -> Self {
        let linked_size = entry.lfs.as_ref().and_then(|lfs| lfs.size);
        let sha256 = entry.lfs.and_then(|lfs| as_sha256(&lfs.oid));
        Self { path: entry.path, size_bytes: linked_size.or(entry.size), sha256 }
    }
}

/// The digest, when the text is one.
pub(super) fn as_sha256(text: &str) -> Option<String> {
    let is_digest = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| text.to_ascii_lowercase())
}

fn named(files: &[RemoteFile], repo: &RepoRef, wanted: &str) -> Result<Vec<RemoteFile>, HubError> {
    if let Some(exact) = files.iter().find(|file| file.path == wanted) {
        return Ok(with_parts(files, exact));
    }
    let fits = |file: &&RemoteFile| file.path.to_ascii_lowercase().contains(&wanted.to_ascii_lowercase());
    let candidates: Vec<_> = first_parts(files).filter(fits).collect();
    match candidates.as_slice() {
        [one] => Ok(with_parts(files, one)),
        [] => {
            Err(HubError::NoSuchFile { repo: repo.repo_id(), wanted: wanted.to_owned(), available: model_paths(files) })
        }
        many => Err(HubError::Ambiguous { repo: repo.repo_id(), wanted: wanted.to_owned(), candidates: paths(many) }),
    }
}

fn whole_model(files: &[RemoteFile], repo: &RepoRef) -> Result<Vec<RemoteFile>, HubError> {
    let weights: Vec<_> = files.iter().filter(|file| is_root_safetensors(&file.path)).collect();
    if !weights.is_empty() {
        let companions = files.iter().filter(|file| COMPANIONS.contains(&file.path.as_str()));
        return Ok(companions.chain(weights).cloned().collect());
    }
    let candidates: Vec<_> = first_parts(files).collect();
    match candidates.as_slice() {
        [] => Err(HubError::NoModel { repo: repo.repo_id() }),
        [one] => Ok(with_parts(files, one)),
        many => preferred(many).map(|file| with_parts(files, file)).ok_or_else(|| HubError::Ambiguous {
            repo: repo.repo_id(),
            wanted: repo.repo_id(),
            candidates: paths(many),
        }),
    }
}

fn preferred<'a>(candidates: &[&'a RemoteFile]) -> Option<&'a RemoteFile> {
    let find = |quant: &str| candidates.iter().copied().find(|file| file.path.to_ascii_uppercase().contains(quant));
    PREFERRED_GGUF.iter().find_map(|quant| find(quant))
}

/// GGUF files, of split ones only the first part; projections for pictures are no language models.
fn first_parts(files: &[RemoteFile]) -> impl Iterator<Item = &RemoteFile> {
    let is_model = |path: &str| path.ends_with(".gguf") && !path.to_ascii_lowercase().contains("mmproj");
    files
        .iter()
        .filter(move |file| is_model(&file.path) && split_name(&file.path).is_none_or(|(_, part, _)| part == "00001"))
}

/// A file with the other parts of its split set.
fn with_parts(files: &[RemoteFile], file: &RemoteFile) -> Vec<RemoteFile> {
    let Some((stem, _, n_parts)) = split_name(&file.path) else { return vec![file.clone()] };
    let same_set = |other: &&RemoteFile| split_name(&other.path).is_some_and(|(s, _, n)| s == stem && n == n_parts);
    files.iter().filter(same_set).cloned().collect()
}

/// `("dir/name", "00001", "00003")` of `dir/name-00001-of-00003.gguf`.
fn split_name(path: &str) -> Option<(&str, &str, &str)> {
    let (rest, n_parts) = path.strip_suffix(".gguf")?.rsplit_once("-of-")?;
    let (stem, part) = rest.rsplit_once('-')?;
    let is_number = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(part) && is_number(n_parts)).then_some((stem, part, n_parts))
}

/// Weights beside the config; copies in folders are other formats of the same model.
fn is_root_safetensors(path: &str) -> bool {
    path.ends_with(".safetensors") && !path.contains('/') && path.starts_with("model")
}

fn model_paths(files: &[RemoteFile]) -> Vec<String> {
    let is_model = |file: &&RemoteFile| file.path.ends_with(".gguf") || file.path.ends_with(".safetensors");
    files.iter().filter(is_model).map(|file| file.path.clone()).collect()
}

fn paths(files: &[&RemoteFile]) -> Vec<String> {
    files.iter().map(|file| file.path.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(paths: &[&str]) -> Vec<RemoteFile> {
        paths.iter().map(|path| RemoteFile { path: (*path).to_owned(), size_bytes: Some(1), sha256: None }).collect()
    }

    fn chosen(paths: &[&str], reference: &str) -> Result<Vec<String>, HubError> {
        let files = choose_files(&remote(paths), &reference.parse().unwrap())?;
        Ok(files.into_iter().map(|file| file.path).collect())
    }

    #[test]
    fn safetensors_bring_their_companions_and_nothing_else() {
        let files = [
            "README.md",
            "config.json",
            "tokenizer.json",
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
        ];
        let more = ["model.safetensors.index.json", "original/model.safetensors", "onnx/model.onnx"];
        let got = chosen(&[&files[..], &more[..]].concat(), "a/b").unwrap();
        assert_eq!(got, ["config.json", "tokenizer.json", more[0], files[3], files[4]]);
    }

    #[test]
    fn of_many_quantisations_the_preferred_one_is_taken() {
        let files = ["m-Q8_0.gguf", "m-Q4_K_M.gguf", "m-f16.gguf", "mmproj-f16.gguf"];
        assert_eq!(chosen(&files, "a/b").unwrap(), ["m-Q4_K_M.gguf"]);
        assert_eq!(chosen(&files, "a/b:q8_0").unwrap(), ["m-Q8_0.gguf"]);
        assert!(matches!(chosen(&files, "a/b:m-"), Err(HubError::Ambiguous { .. })));
    }

    #[test]
    fn a_split_file_comes_whole() {
        let files = ["q/m-00001-of-00002.gguf", "q/m-00002-of-00002.gguf", "other-Q2_K.gguf"];
        assert_eq!(chosen(&files, "a/b:q/m").unwrap(), files[..2]);
    }

    #[test]
    fn what_is_missing_is_named_with_what_is_there() {
        let error = chosen(&["m-Q8_0.gguf"], "a/b:Q3").unwrap_err().to_string();
        assert!(error.contains("no file `Q3`") && error.contains("m-Q8_0.gguf"), "{error}");
        assert!(matches!(chosen(&["README.md"], "a/b"), Err(HubError::NoModel { .. })));
    }

    #[test]
    fn listings_from_strangers_cannot_leave_the_folder() {
        let json = br#"[{"type":"file","path":"../x.gguf","size":1},{"type":"directory","path":"d"},
            {"type":"file","path":"d/m.gguf","size":134,"lfs":{"oid":"00","size":5}}]"#;
        assert_eq!(
            parse(json).unwrap(),
            [RemoteFile { path: "d/m.gguf".to_owned(), size_bytes: Some(5), sha256: None }]
        );
        assert!(parse(b"<html>").is_err());
    }

    #[test]
    fn links_lead_to_the_next_page() {
        assert_eq!(next_page(r#"<https://h/api?cursor=x>; rel="next""#), Some("https://h/api?cursor=x"));
        assert_eq!(next_page(r#"<https://h/api>; rel="prev""#), None);
    }
}
