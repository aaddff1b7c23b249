//! `model.safetensors.index.json`: which file holds which tensor of a model in several parts.
//!
//! As in the reference implementation, a tensor that the index does not name but a part holds is kept, `metadata` may
//! be missing, and its `total_size` is not believed.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use serde::Deserialize;

use super::unique::UniqueMap;
use super::{INDEX, Weights, parse_json, read_tensors};
use crate::error::shown;
use crate::source::{Folder, SourceFile};
use crate::{FormatError, TensorInfo};

/// A parsed index.
pub(super) struct Index {
    file: String,
    weight_map: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Json {
    weight_map: UniqueMap<String>,
}

impl Index {
    /// Reads the index of a folder; `None` when it has none.
    pub fn read(folder: &mut dyn Folder) -> Result<Option<Self>, FormatError> {
        let Some(file) = folder.take(INDEX)? else { return Ok(None) };
        let Json { weight_map } = parse_json(&file)?;
        let index = Self { file: file.name, weight_map: weight_map.0.into_iter().collect() };
        index.check()?;
        Ok(Some(index))
    }

    /// Whether some tensor is said to be in this file.
    pub fn has_shard(&self, name: &str) -> bool {
        self.weight_map.values().any(|shard| shard == name)
    }

    /// Opens every part, and takes each tensor from the part that the index names.
    pub fn load(&self, folder: &mut dyn Folder) -> Result<Weights, FormatError> {
        let mut first_tensors = BTreeMap::new();
        for (tensor, shard) in &self.weight_map {
            first_tensors.entry(shard.as_str()).or_insert(tensor.as_str());
        }
        let (mut files, mut tensors) = (Vec::new(), Vec::new());
        for (shard, first_tensor) in first_tensors {
            let file = self.open_shard(folder, shard, first_tensor)?;
            let held = read_tensors(&file, files.len())?;
            self.check_held(&held, &file, shard)?;
            tensors.extend(held.into_iter().filter(|tensor| self.belongs(tensor, shard)));
            files.push(file);
        }
        Ok((files, tensors))
    }

    fn open_shard(&self, folder: &mut dyn Folder, shard: &str, tensor: &str) -> Result<SourceFile, FormatError> {
        folder.take(shard)?.ok_or_else(|| FormatError::MissingShard {
            file: self.file.clone(),
            shard: shown(shard),
            needed_by: format!("tensor {}", shown(tensor)),
        })
    }

    /// A tensor that another part should hold is left to it.
    fn belongs(&self, tensor: &TensorInfo, shard: &str) -> bool {
        self.weight_map.get(&tensor.name).is_none_or(|owner| owner == shard)
    }

    fn check(&self) -> Result<(), FormatError> {
        if self.weight_map.is_empty() {
            return Err(self.error("weight_map names no tensors".into()));
        }
        match self.weight_map.iter().find(|(_, shard)| !stays_inside(shard)) {
            Some((tensor, shard)) => {
                let problem = format!("tensor {} is in {}, outside the model's folder", shown(tensor), shown(shard));
                Err(self.error(problem))
            }
            None => Ok(()),
        }
    }

    fn check_held(&self, held: &[TensorInfo], file: &SourceFile, shard: &str) -> Result<(), FormatError> {
        let held: std::collections::HashSet<_> = held.iter().map(|tensor| tensor.name.as_str()).collect();
        let promised = self.weight_map.iter().filter(|(_, owner)| *owner == shard).map(|(tensor, _)| tensor.as_str());
        match promised.into_iter().find(|tensor| !held.contains(tensor)) {
            Some(tensor) => Err(self.error(format!("tensor {} is not in {}", shown(tensor), file.name))),
            None => Ok(()),
        }
    }

    fn error(&self, problem: String) -> FormatError {
        FormatError::Index { file: self.file.clone(), problem }
    }
}

/// Whether a part's name, subfolders included, cannot lead out of the folder on any system.
fn stays_inside(name: &str) -> bool {
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    !name.is_empty() && !name.contains(['\\', ':', '\0']) && Path::new(name).components().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::stays_inside;

    #[test]
    fn part_names_stay_in_the_folder() {
        assert!(stays_inside("model-00001-of-00002.safetensors"));
        assert!(stays_inside("sub/folder/part.safetensors"));
        for name in ["", "../x", "a/../../x", "/etc/x", "C:\\x", "C:x", "a\\..\\x", "a\0", "./x"] {
            assert!(!stays_inside(name), "{name}");
        }
    }
}
