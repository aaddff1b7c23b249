//! Where things live on this machine: pulled models, chat history, and what `--model` means.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::hub::{Catalogue, RepoRef};

/// The folder of pulled models: `SAMARA_MODELS`, else `samara/models` in the user's data folder.
pub(crate) fn models_dir() -> anyhow::Result<PathBuf> {
    match std::env::var_os("SAMARA_MODELS").filter(|folder| !folder.is_empty()) {
        Some(folder) => Ok(folder.into()),
        None => Ok(data_dir()?.join("models")),
    }
}

/// The file that remembers what was typed in `samara chat`.
pub(crate) fn history_path() -> anyhow::Result<PathBuf> {
    Ok(data_dir()?.join("history.txt"))
}

/// The file or folder that `--model` names: a path, a catalogue name, or `owner/repo[:file]`, the last two after a pull.
///
/// # Errors
/// When there is no such thing here; the message says how to get it.
pub(crate) fn model_path(name: &str) -> anyhow::Result<PathBuf> {
    let path = Path::new(name);
    if path.exists() {
        return Ok(path.to_owned());
    }
    let catalogue = Catalogue::embedded().context("reading the built-in catalogue")?;
    let looks_like_path = path.is_absolute() || name.starts_with('.') || is_model_file(path);
    let Some(reference) = catalogue.resolve(name).ok().filter(|_| !looks_like_path) else {
        bail!("{name}: no such file or folder, and no name in the catalogue (`samara pull --list` shows it)");
    };
    let folder = reference.folder(&models_dir()?);
    match pulled_file(&folder, &reference) {
        Some(path) => Ok(path),
        None => bail!("{name}: not here yet; `samara pull {name}` downloads it"),
    }
}

/// What a pull of `reference` left in `folder`: the file that was named, or the folder.
fn pulled_file(folder: &Path, reference: &RepoRef) -> Option<PathBuf> {
    let Some(wanted) = &reference.file else { return folder.is_dir().then(|| folder.to_owned()) };
    let exact = folder.join(wanted);
    if exact.is_file() {
        return Some(exact);
    }
    let wanted = wanted.to_ascii_lowercase();
    let mut fitting = files_below(folder)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "gguf"))
        .filter(|path| path.to_string_lossy().to_ascii_lowercase().contains(&wanted))
        .collect::<Vec<_>>();
    fitting.sort();
    fitting.into_iter().next()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let below = |path: PathBuf| if path.is_dir() { files_below(&path) } else { vec![path] };
    entries.flatten().flat_map(|entry| below(entry.path())).collect()
}

fn is_model_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gguf" || extension == "safetensors")
}

/// The folder of what can be found out again: `SAMARA_CACHE`, else `samara` in the user's cache folder.
pub(crate) fn cache_dir() -> Option<PathBuf> {
    match std::env::var_os("SAMARA_CACHE").filter(|folder| !folder.is_empty()) {
        Some(folder) => Some(folder.into()),
        None => dirs::cache_dir().map(|folder| folder.join("samara")),
    }
}

fn data_dir() -> anyhow::Result<PathBuf> {
    let folder = dirs::data_dir().context("this user has no data folder; set SAMARA_MODELS to a folder for models")?;
    Ok(folder.join("samara"))
}
