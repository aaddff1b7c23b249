//! What a run can go on from: a folder for each checkpoint, written beside its place and renamed when it is whole.
//!
//! `state.json` holds numbers, `state.safetensors` the trained matrices and their moments, bit for bit. A folder with its
//! final name is always whole; what a kill leaves has another name and is taken away by the next run.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use burn::tensor::{Device, Tensor};
use safetensors::SafeTensors;
use samara_data::Cursor;
use samara_ops::{matrix, read_f32};
use serde::{Deserialize, Serialize};

use crate::optimizer::Moment;
use crate::trainer::{Memory, Trainer};
use crate::{Learner, TrainError};

const NUMBERS: &str = "state.json";
const MATRICES: &str = "state.safetensors";
/// The adapter, as others read it.
pub const ADAPTER: &str = "adapter";
/// Numbers are small; a larger file is none of ours.
const MAX_NUMBERS_BYTES: u64 = 16 << 20;

/// The numbers of a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    pub memory: Memory,
    /// The next batch.
    pub cursor: Cursor,
    /// Of the data that was trained on.
    pub digest: String,
    /// Lowest validation loss so far, and its step.
    pub best: Option<(f64, u64)>,
    /// What must be the same for a run to go on: the sections that shape its steps.
    pub shape: String,
}

/// The checkpoints of an output folder.
#[derive(Debug, Clone)]
pub struct Checkpoints {
    folder: PathBuf,
}

impl Checkpoints {
    /// Those in `output`, whose unfinished ones are taken away.
    ///
    /// # Errors
    /// The folder cannot be made or read.
    pub fn open(output: &Path) -> Result<Self, TrainError> {
        let folder = output.join("checkpoints");
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, "make", error))?;
        let this = Self { folder };
        for path in this.entries()? {
            if !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("step-")) {
                fs::remove_dir_all(&path).map_err(|error| failed(&path, "remove", error))?;
            }
        }
        Ok(this)
    }

    /// The last one.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn last(&self) -> Result<Option<PathBuf>, TrainError> {
        Ok(self.steps()?.pop().map(|(_, path)| path))
    }

    /// The one of this step.
    pub fn of_step(&self, step: u64) -> PathBuf {
        self.folder.join(format!("step-{step:08}"))
    }

    /// Writes one. Where it returns, it has reached the disk; where it is killed, there is none or all of it.
    ///
    /// # Errors
    /// The device gave no answer, or the disk is full.
    pub async fn save(&self, trainer: &Trainer, saved: &Saved) -> Result<PathBuf, TrainError> {
        let path = self.of_step(saved.memory.step);
        if path.exists() {
            return Ok(path);
        }
        let beside = self.folder.join(format!("unfinished-{}", std::process::id()));
        let _ = fs::remove_dir_all(&beside);
        fs::create_dir(&beside).map_err(|error| failed(&beside, "make", error))?;
        let written = self.fill(&beside, trainer, saved).await;
        if let Err(error) = written {
            let _ = fs::remove_dir_all(&beside);
            return Err(error);
        }
        fs::rename(&beside, &path).map_err(|error| failed(&path, "rename", error))?;
        sync_folder(&self.folder);
        Ok(path)
    }

    async fn fill(&self, beside: &Path, trainer: &Trainer, saved: &Saved) -> Result<(), TrainError> {
        let numbers = serde_json::to_vec_pretty(saved).map_err(io::Error::other);
        let numbers = numbers.map_err(|error| failed(&beside.join(NUMBERS), "write", error))?;
        write(&beside.join(NUMBERS), &numbers)?;
        let matrices = Matrices::of(trainer).await?;
        write(&beside.join(MATRICES), &matrices.to_bytes(&beside.join(MATRICES))?)?;
        if let Some(adapter) = trainer.learner.to_adapter().await? {
            adapter.write(&beside.join(ADAPTER))?;
        }
        sync_folder(beside);
        Ok(())
    }

    /// Takes away all but the last `keep_last` and the one of step `best`.
    ///
    /// # Errors
    /// One cannot be removed.
    pub fn prune(&self, keep_last: usize, best: Option<u64>) -> Result<(), TrainError> {
        let steps = self.steps()?;
        let n_old = steps.len().saturating_sub(keep_last.max(1));
        for (step, path) in steps.into_iter().take(n_old).filter(|(step, _)| Some(*step) != best) {
            // A folder that is half removed must not look whole.
            let doomed = self.folder.join(format!("removed-{step}"));
            fs::rename(&path, &doomed).map_err(|error| failed(&path, "remove", error))?;
            fs::remove_dir_all(&doomed).map_err(|error| failed(&doomed, "remove", error))?;
        }
        Ok(())
    }

    fn steps(&self) -> Result<Vec<(u64, PathBuf)>, TrainError> {
        let step = |path: PathBuf| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            Some((name.strip_prefix("step-")?.parse().ok()?, path))
        };
        let mut steps: Vec<(u64, PathBuf)> = self.entries()?.into_iter().filter_map(step).collect();
        steps.sort();
        Ok(steps)
    }

    fn entries(&self) -> Result<Vec<PathBuf>, TrainError> {
        let read = || fs::read_dir(&self.folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
        read().map_err(|error| failed(&self.folder, "read", error))
    }
}

/// Brings a trainer to where a checkpoint was, and gives its numbers.
///
/// # Errors
/// A file is missing, damaged, or of another model.
pub fn restore(path: &Path, trainer: &mut Trainer) -> Result<Saved, TrainError> {
    let saved = read_numbers(&path.join(NUMBERS))?;
    let file = path.join(MATRICES);
    let bytes = fs::read(&file).map_err(|error| failed(&file, "read", error))?;
    let matrices = SafeTensors::deserialize(&bytes).map_err(|error| damaged(&file, error.to_string()))?;
    let times: Vec<usize> = times(&file, &bytes, trainer.learner.values().len())?;
    let device = trainer.learner.device().clone();
    let mut values = Vec::new();
    let mut moments = Vec::new();
    for (index, (value, time)) in trainer.learner.values().iter().zip(times).enumerate() {
        let read = |part: &str| read_matrix(&matrices, &format!("{index:05}.{part}"), value.dims(), &device, &file);
        values.push(read("value")?);
        let moment = || Ok::<_, TrainError>(Moment { time, first: read("first")?, second: read("second")? });
        moments.push(if time > 0 { Some(moment()?) } else { None });
    }
    trainer.learner.replace(values);
    trainer.moments.restore(moments);
    trainer.memory = saved.memory.clone();
    Ok(saved)
}

fn read_numbers(path: &Path) -> Result<Saved, TrainError> {
    let n_bytes = fs::metadata(path).map_err(|error| failed(path, "read", error))?.len();
    if n_bytes > MAX_NUMBERS_BYTES {
        return Err(damaged(path, format!("{n_bytes} bytes")));
    }
    let bytes = fs::read(path).map_err(|error| failed(path, "read", error))?;
    serde_json::from_slice(&bytes).map_err(|error| damaged(path, error.to_string()))
}

/// How often each matrix was updated, from the file's header.
fn times(path: &Path, bytes: &[u8], n_matrices: usize) -> Result<Vec<usize>, TrainError> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| damaged(path, error.to_string()))?;
    let text = header.metadata().as_ref().and_then(|entries| entries.get("times"));
    let times: Option<Vec<usize>> = text.and_then(|text| serde_json::from_str(text).ok());
    let times = times.ok_or_else(|| damaged(path, "no `times`".to_owned()))?;
    if times.len() != n_matrices {
        return Err(damaged(path, format!("{} matrices, the run trains {n_matrices}", times.len())));
    }
    Ok(times)
}

fn read_matrix(
    file: &SafeTensors<'_>,
    name: &str,
    shape: [usize; 2],
    device: &Device,
    path: &Path,
) -> Result<Tensor<2>, TrainError> {
    let view = file.tensor(name).map_err(|error| damaged(path, error.to_string()))?;
    if view.shape() != shape || view.dtype() != safetensors::Dtype::F32 {
        return Err(damaged(
            path,
            format!("`{name}` is {:?} {:?}, expected F32 {shape:?}", view.dtype(), view.shape()),
        ));
    }
    let values: Vec<f32> = view.data().as_chunks::<4>().0.iter().map(|word| f32::from_le_bytes(*word)).collect();
    Ok(matrix(values, shape[0], device))
}

/// The matrices of a checkpoint in host memory.
struct Matrices {
    tensors: Vec<(String, [usize; 2], Vec<f32>)>,
    times: Vec<usize>,
}

impl Matrices {
    async fn of(trainer: &Trainer) -> Result<Self, TrainError> {
        let learner: &Learner = &trainer.learner;
        let mut tensors = Vec::new();
        let mut times = Vec::new();
        for (index, (value, moment)) in learner.values().iter().zip(trainer.moments.moments()).enumerate() {
            times.push(moment.as_ref().map_or(0, |moment| moment.time));
            let moments = moment.map(|moment| [("first", moment.first), ("second", moment.second)]);
            for (part, tensor) in [("value", value.clone())].into_iter().chain(moments.into_iter().flatten()) {
                tensors.push((format!("{index:05}.{part}"), tensor.dims(), read_f32(tensor).await?));
            }
        }
        Ok(Self { tensors, times })
    }

    fn to_bytes(&self, path: &Path) -> Result<Vec<u8>, TrainError> {
        let views = self.tensors.iter().map(|(name, shape, values)| (name.clone(), View(shape, values)));
        let metadata = HashMap::from([("times".to_owned(), format!("{:?}", self.times))]);
        safetensors::serialize(views, Some(metadata)).map_err(|error| failed(path, "write", io::Error::other(error)))
    }
}

/// A matrix as the safetensors crate asks for it.
struct View<'a>(&'a [usize; 2], &'a [f32]);

impl safetensors::View for View<'_> {
    fn dtype(&self) -> safetensors::Dtype {
        safetensors::Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        self.0
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Owned(self.1.iter().flat_map(|value| value.to_le_bytes()).collect())
    }

    fn data_len(&self) -> usize {
        4 * self.1.len()
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), TrainError> {
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|error| failed(path, "write", error))
}

/// A renamed file survives a power cut once its folder is synced; where folders cannot be opened, that is the system's own.
fn sync_folder(path: &Path) {
    if let Ok(folder) = File::open(path) {
        let _ = folder.sync_all();
    }
}

fn failed(path: &Path, action: &'static str, source: io::Error) -> TrainError {
    TrainError::File { path: path.to_owned(), action, source }
}

fn damaged(path: &Path, reason: String) -> TrainError {
    TrainError::Damaged { path: path.to_owned(), reason }
}
