//! The golden values in `tests/golden/`: checkpoints, token ids, and the logits that belong to them.

use std::{
    collections::BTreeMap,
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use safetensors::SafeTensors;
use samara_formats::{Checkpoint, HuggingFaceFiles};
use samara_ops::{Picked, log_prob};
use serde_json::Value;

/// Folders, each with a checkpoint as its family publishes it.
const MINIATURES: [&str; 8] = ["llama", "olmo", "olmo_tied", "olmo2", "olmo2_gqa_bf16", "olmo3", "olmoe", "gemma3"];

/// Variants that ask for what is not built, and what the message must name.
const UNBUILT: [(&str, &str); 1] = [("olmo2_gelu", "gelu")];

/// Largest difference allowed, as a part of the largest logit.
const TOLERANCE: f32 = 1e-4;

/// A checkpoint and what the official implementation computes with it.
pub struct Golden {
    pub name: String,
    pub ids: Vec<u32>,
    source: Source,
    /// `[T, V]`
    logits: Vec<f32>,
    max_logit: f32,
}

enum Source {
    /// A folder or a file.
    Path(PathBuf),
    /// A folder whose configuration reads otherwise.
    Variant { folder: PathBuf, config: Value },
}

/// The miniature of every family.
pub fn miniatures() -> Vec<Golden> {
    let read = |name: &&str| {
        let folder = root().join(name);
        let values = Values::read(&folder.join("golden.safetensors"))?;
        Golden::new(name, Source::Path(folder), &values.ids()?, values.logits("logits")?)
    };
    MINIATURES.iter().map(read).collect::<Result<_>>().unwrap()
}

/// GGUF files: miniatures converted in f32, which have no values of their own, and quantised ones, which have.
pub fn gguf_files() -> Vec<Golden> {
    let folder = root().join("gguf");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "gguf"));
    files.sort();
    files.iter().map(|file| gguf_file(file)).collect::<Result<_>>().unwrap()
}

fn gguf_file(file: &Path) -> Result<Golden> {
    let name = file.file_stem().and_then(|stem| stem.to_str()).context("a name in UTF-8")?;
    let own = file.with_file_name(format!("{name}.golden.safetensors"));
    let values = if own.exists() { own } else { root().join(name).join("golden.safetensors") };
    let values = Values::read(&values)?;
    Golden::new(&format!("{name}.gguf"), Source::Path(file.to_owned()), &values.ids()?, values.logits("logits")?)
}

/// Miniatures under another text of their configuration.
pub fn variants() -> Vec<Golden> {
    all_variants().into_iter().filter(|variant| words_of_refusal(variant).is_none()).collect()
}

/// Variants that must be refused, with what the message names.
pub fn unbuilt_variants() -> Vec<(Golden, &'static str)> {
    let with_words = |variant| Some((words_of_refusal(&variant)?, variant));
    all_variants().into_iter().filter_map(with_words).map(|(words, variant)| (variant, words)).collect()
}

fn words_of_refusal(variant: &Golden) -> Option<&'static str> {
    UNBUILT.iter().find(|(name, _)| *name == variant.name).map(|(_, words)| *words)
}

fn all_variants() -> Vec<Golden> {
    let text = fs::read(root().join("variants.json")).unwrap();
    let list: Vec<Value> = serde_json::from_slice(&text).unwrap();
    let own = Values::read(&root().join("variants.safetensors")).unwrap();
    list.iter().map(|entry| variant(entry, &own)).collect::<Result<_>>().unwrap()
}

fn variant(entry: &Value, own: &Values) -> Result<Golden> {
    let text = |key: &str| entry[key].as_str().with_context(|| format!("`{key}` of a variant"));
    let folder = root().join(text("miniature")?);
    let values = Values::read(&folder.join("golden.safetensors"))?;
    let same = entry["same"].as_bool().context("`same` of a variant")?;
    let logits = if same { values.logits("logits") } else { own.logits(text("name")?) }?;
    let source = Source::Variant { folder, config: entry["config"].clone() };
    Golden::new(text("name")?, source, &values.ids()?, logits)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

impl Golden {
    fn new(name: &str, source: Source, ids: &[u32], logits: Vec<f32>) -> Result<Self> {
        ensure!(!ids.is_empty() && logits.len().is_multiple_of(ids.len()), "{name}: a row of logits for each id");
        let max_logit = logits.iter().fold(0.0, |max: f32, x| max.max(x.abs()));
        Ok(Self { name: name.to_owned(), ids: ids.to_vec(), source, logits, max_logit })
    }

    pub fn checkpoint(&self) -> Result<Checkpoint> {
        match &self.source {
            Source::Path(path) => Ok(Checkpoint::open(path)?),
            Source::Variant { folder, config } => in_memory(folder, config),
        }
    }

    pub fn first(&self, n_tokens: usize) -> Result<&[u32]> {
        self.ids.get(..n_tokens).context("too few golden ids")
    }

    /// Compares `found` with the likeliest token after the one at `position`.
    pub fn check_likeliest(&self, position: usize, found: Picked) -> Result<()> {
        let vocab_size = self.logits.len() / self.ids.len();
        let row = self.logits.chunks_exact(vocab_size).nth(position).context("too few golden logits")?;
        let best = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let logit = *row.get(found.token as usize).context("an id beyond the vocabulary")?;
        // Each of two logits, and the logarithm of the sum over all, may be off by the tolerance.
        let allowed = 2.0 * TOLERANCE * self.max_logit;
        ensure!(best - logit <= allowed, "{found:?} is {} below the best, more than {allowed}", best - logit);
        let off = (log_prob(row, found.token) as f32 - found.logprob).abs();
        ensure!(off <= allowed, "the log-probability of {found:?} is off by {off}, more than {allowed}");
        Ok(())
    }

    /// Compares `found` with the golden logits of the tokens in `rows`.
    pub fn check(&self, rows: Range<usize>, found: &[f32]) -> Result<()> {
        self.check_within(TOLERANCE, rows, found)
    }

    /// The same, with another part of the largest logit allowed.
    pub fn check_within(&self, tolerance: f32, rows: Range<usize>, found: &[f32]) -> Result<()> {
        let vocab_size = self.logits.len() / self.ids.len();
        let expected = self.logits.get(rows.start * vocab_size..rows.end * vocab_size);
        let expected = expected.context("too few golden logits")?;
        ensure!(found.len() == expected.len(), "{} logits, not {}", found.len(), expected.len());
        ensure!(found.iter().all(|x| x.is_finite()), "a logit is not finite");
        let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let allowed = tolerance * self.max_logit;
        ensure!(off <= allowed, "logits of {rows:?} differ by {off}, more than {allowed}");
        Ok(())
    }
}

/// The files of a folder with another `config.json`.
fn in_memory(folder: &Path, config: &Value) -> Result<Checkpoint> {
    let mut files = HuggingFaceFiles::new(folder.display().to_string());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).context("a name in UTF-8")?.to_owned();
        if name.starts_with("model") {
            files = files.with(name, fs::read(&path)?);
        }
    }
    Ok(Checkpoint::from_huggingface(files.with("config.json", serde_json::to_vec(config)?))?)
}

/// A safetensors file of f32 logits and i32 ids.
struct Values(BTreeMap<String, Vec<[u8; 4]>>);

impl Values {
    fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| path.display().to_string())?;
        let tensors = SafeTensors::deserialize(&bytes)?;
        let words = |(name, view): (String, safetensors::tensor::TensorView<'_>)| {
            (name, view.data().as_chunks::<4>().0.to_vec())
        };
        Ok(Self(tensors.tensors().into_iter().map(words).collect()))
    }

    fn ids(&self) -> Result<Vec<u32>> {
        Ok(self.words("ids")?.iter().copied().map(u32::from_le_bytes).collect())
    }

    fn logits(&self, name: &str) -> Result<Vec<f32>> {
        Ok(self.words(name)?.iter().copied().map(f32::from_le_bytes).collect())
    }

    fn words(&self, name: &str) -> Result<&[[u8; 4]]> {
        Ok(self.0.get(name).with_context(|| format!("golden `{name}`"))?)
    }
}
