//! An adapter's folder on disk: two files that must change as one.
//!
//! A write goes in two steps. It first leaves both new files whole under `.next` names, the config last: its coming
//! into being is the moment the new adapter is the folder's adapter. Then it moves them to their names. Whoever meets
//! a folder between the steps reads, or finishes, the second one.

use std::path::Path;

use super::{CONFIG, LoraAdapter, WEIGHTS, load, required};
use crate::disk::DiskFolder;
use crate::huggingface::MAX_JSON_BYTES;
use crate::source::Folder;
use crate::{FormatError, output};

/// Readings before giving up on a folder that keeps changing.
const MAX_READS: usize = 5;

fn next(name: &str) -> String {
    format!("{name}.next")
}

pub(super) fn write(adapter: &LoraAdapter, path: &Path) -> Result<(), FormatError> {
    let (config, weights) = adapter.to_bytes()?;
    output::create_folder(path)?;
    // What an earlier write left half moved must not mix with this one.
    finish(path)?;
    output::write_file(&path.join(next(WEIGHTS)), &weights)?;
    output::write_file(&path.join(next(CONFIG)), &config)?;
    finish(path)
}

/// The second step, from wherever it stands; nothing to do for a folder at rest.
fn finish(path: &Path) -> Result<(), FormatError> {
    let mut folder = DiskFolder::of(path);
    let Some(config) = contents(&mut folder, &next(CONFIG))? else { return Ok(()) };
    if folder.take(&next(WEIGHTS))?.is_some() {
        // Programs that know nothing of `.next` must not see the old config with the new weights.
        if contents(&mut folder, CONFIG)?.is_some_and(|old| old != config) {
            output::remove(&path.join(CONFIG))?;
        }
        output::rename(&path.join(next(WEIGHTS)), &path.join(WEIGHTS))?;
    }
    output::rename(&path.join(next(CONFIG)), &path.join(CONFIG))?;
    output::sync_folder(Some(path))
}

/// Reads again when a config changed meanwhile: then the weights may have been those of the other one.
pub(super) fn open(path: &Path) -> Result<LoraAdapter, FormatError> {
    let mut folder = DiskFolder::of(path);
    for _ in 0..MAX_READS {
        let before = configs(&mut folder)?;
        let result = read(&mut folder);
        if configs(&mut folder)? == before {
            return result;
        }
    }
    Err(FormatError::AdapterChanges { folder: folder.label().to_owned() })
}

/// Whether there is a config, moved or not.
pub(super) fn is_adapter(path: &Path) -> bool {
    [CONFIG.to_owned(), next(CONFIG)].iter().any(|name| path.join(name).is_file())
}

fn configs(folder: &mut DiskFolder) -> Result<[Option<Vec<u8>>; 2], FormatError> {
    Ok([contents(folder, &next(CONFIG))?, contents(folder, CONFIG)?])
}

fn read(folder: &mut DiskFolder) -> Result<LoraAdapter, FormatError> {
    let Some(config) = folder.take(&next(CONFIG))? else {
        return load(&required(folder, CONFIG)?, &required(folder, WEIGHTS)?);
    };
    match folder.take(&next(WEIGHTS))? {
        Some(weights) => load(&config, &weights),
        None => load(&config, &required(folder, WEIGHTS)?),
    }
}

/// A small file's bytes; `None` when there is no such file.
fn contents(folder: &mut DiskFolder, name: &str) -> Result<Option<Vec<u8>>, FormatError> {
    let Some(file) = folder.take(name)? else { return Ok(None) };
    Ok(Some(file.read_all(MAX_JSON_BYTES)?.into_owned()))
}
