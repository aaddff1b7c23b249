//! Logits of every family's miniature against those of the official implementation.
//!
//! The golden values come from one pass in f32 without a cache (`golden/make.py`). Attention is
//! causal, so its row `n - 1` is what any way of computing the first `n` tokens must give: at once,
//! in chunks, across a window's border, after going back. Each way runs on each device.

use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};

use anyhow::{Context, Result, ensure};
use safetensors::SafeTensors;
use samara_formats::Checkpoint;
use samara_model::{Attention, Decoder, KvCache, NormPlacement, Want};
use samara_ops::{
    counts,
    device::{self, DeviceChoice, Limits, OpenDevice},
    read_f32,
};

/// Folders of `golden/`: a checkpoint in safetensors, and for some the same in GGUF.
const MINIATURES: [&str; 8] = ["llama", "olmo", "olmo_tied", "olmo2", "olmo2_gqa_bf16", "olmo3", "olmoe", "gemma3"];

/// Files that hold the same model as the safetensors beside them.
const GGUF_FILES: &str = "model.gguf";

/// Largest difference allowed, as a part of the largest logit.
const TOLERANCE: f32 = 1e-4;

const CAPACITY: usize = 48;

#[test]
fn logits_are_those_of_the_official_implementation() {
    check_all(|model, golden| {
        let mut cache = model.new_cache(CAPACITY, CAPACITY);
        let logits = feed(model, &mut cache, &golden.ids, Want::All)?;
        golden.check(0..golden.ids.len(), &logits)
    });
}

#[test]
fn chunks_across_the_window_give_the_logits_of_one_pass() {
    check_all(|model, golden| {
        for chunk in [1, 3, 8] {
            for n_tokens in border_lengths(model) {
                let mut cache = model.new_cache(CAPACITY, chunk);
                let ids = golden.first(n_tokens)?;
                let logits = feed(model, &mut cache, ids, Want::All)?;
                golden
                    .check(n_tokens - rows_of(model, &logits)..n_tokens, &logits)
                    .with_context(|| format!("{n_tokens} tokens in chunks of {chunk}"))?;
                ensure!(cache.len() == n_tokens, "the cache counts {}", cache.len());
            }
        }
        Ok(())
    });
}

#[test]
fn the_last_row_alone_is_the_last_of_all_rows() {
    check_all(|model, golden| {
        for n_tokens in [1, 2, 17] {
            let mut cache = model.new_cache(CAPACITY, CAPACITY);
            let logits = feed(model, &mut cache, golden.first(n_tokens)?, Want::Last)?;
            golden.check(n_tokens - 1..n_tokens, &logits)?;
        }
        Ok(())
    });
}

#[test]
fn going_back_and_on_gives_the_logits_of_a_fresh_start() {
    check_all(|model, golden| {
        for (n_kept, n_wrong) in [(5, 4), (8, 8), (9, 3), (17, 8), (24, 1)] {
            let mut cache = model.new_cache(CAPACITY, 8);
            feed(model, &mut cache, golden.first(n_kept)?, Want::Last)?;
            feed(model, &mut cache, golden.first(n_wrong)?, Want::Last)?;
            ensure!(cache.rewind(n_kept), "cannot go back from {} to {n_kept}", n_kept + n_wrong);
            let rest = golden.ids.get(n_kept..n_kept + 10).context("too few golden ids")?;
            let logits = feed(model, &mut cache, rest, Want::Last)?;
            golden
                .check(n_kept + 9..n_kept + 10, &logits)
                .with_context(|| format!("{n_wrong} tokens taken back at {n_kept}"))?;
        }
        Ok(())
    });
}

#[test]
fn a_cache_that_cannot_go_back_starts_over() {
    check_all(|model, golden| {
        let mut cache = model.new_cache(CAPACITY, 3);
        feed(model, &mut cache, &golden.ids, Want::Last)?;
        let slides = model.config().attention.iter().any(|kind| *kind != Attention::Full);
        ensure!(cache.can_rewind(5) != slides, "what a ring overwrote is gone");
        ensure!(cache.rewind(0) && cache.is_empty());
        let logits = feed(model, &mut cache, golden.first(10)?, Want::Last)?;
        golden.check(9..10, &logits)
    });
}

#[test]
fn chunks_appended_without_logits_fill_the_cache_all_the_same() {
    check_all(|model, golden| {
        let mut cache = model.new_cache(CAPACITY, 8);
        for chunk in golden.first(16)?.chunks(8) {
            model.append(chunk, &mut cache);
        }
        let last = golden.ids.get(16..17).context("too few golden ids")?;
        let logits = feed(model, &mut cache, last, Want::Last)?;
        golden.check(16..17, &logits)
    });
}

#[test]
fn bytes_told_before_loading_are_those_taken() {
    check_all(|model, golden| {
        let checkpoint = Checkpoint::open(&golden.folder)?;
        let told = samara_model::DeviceMemory::needed(model.config(), &checkpoint, CAPACITY, 8)?;
        let cache = model.new_cache(CAPACITY, 8);
        ensure!(told.kv_bytes == cache.n_bytes() as u64, "{told:?}, cache {}", cache.n_bytes());
        ensure!(told.weights_bytes >= model.n_bytes(), "{told:?}, weights {}", model.n_bytes());
        Ok(())
    });
}

/// What one more token costs is the same for every token, and known.
#[test]
fn a_decode_step_is_one_upload_one_readback_and_a_fixed_list_of_launches() {
    check_all(|model, golden| {
        let config = model.config();
        let norms = if config.placement == NormPlacement::Sandwich { 2 } else { 0 };
        let experts = if config.moe.is_some() { 3 } else { 0 };
        let launches = (config.n_layers * (9 + norms + experts) + 3) as u64;
        let mut cache = model.new_cache(CAPACITY, 8);
        feed(model, &mut cache, golden.first(8)?, Want::Last)?;
        for token in golden.ids.chunks(1).skip(8).take(3) {
            let before = counts::read();
            feed(model, &mut cache, token, Want::Last)?;
            let step = counts::read() - before;
            let on_a_gpu = step.launches > 0;
            ensure!(!on_a_gpu || step.launches == launches, "{step:?}, expected {launches} launches");
            ensure!(!on_a_gpu || (step.uploads, step.submits) == (1, 1), "{step:?}");
            ensure!(step.readbacks == 1, "{step:?}");
        }
        Ok(())
    });
}

/// Runs `check` for each miniature, in each of its files, on each device.
fn check_all(check: impl Fn(&Decoder, &Golden) -> Result<()>) {
    let mut failures = Vec::new();
    for open in devices() {
        for name in MINIATURES {
            let golden = Golden::read(name).unwrap();
            for file in golden.files() {
                let found = load(&file, open).and_then(|model| check(&model, &golden));
                let place = || format!("{} on {}", file.display(), open.name);
                failures.extend(found.with_context(place).err().map(|error| format!("{error:#}")));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The CPU, and the first adapter where there is one.
fn devices() -> &'static [OpenDevice] {
    static DEVICES: OnceLock<Vec<OpenDevice>> = OnceLock::new();
    DEVICES.get_or_init(|| {
        let open = |choice| pollster::block_on(device::open(choice, Limits::Default));
        let cpu = open(DeviceChoice::Cpu).unwrap();
        match open(DeviceChoice::Gpu(0)) {
            Ok(gpu) => vec![cpu, gpu],
            Err(error) => {
                let required = std::env::var("REQUIRE_GPU").is_ok_and(|value| value == "1");
                assert!(!required, "REQUIRE_GPU=1, but there is no adapter: {error}");
                eprintln!("SKIPPED on GPU: {error}");
                vec![cpu]
            }
        }
    })
}

fn load(file: &Path, open: &OpenDevice) -> Result<Decoder> {
    let mut told = (0, 0);
    let model = Decoder::load(&Checkpoint::open(file)?, open, &mut |progress| {
        told = (progress.done_bytes, progress.total_bytes);
    })?;
    ensure!(told.0 == told.1 && told.1 > 0, "loading told {} of {} bytes", told.0, told.1);
    Ok(model)
}

/// Feeds `ids` in chunks as large as the cache takes; gives the logits of the last chunk.
fn feed(model: &Decoder, cache: &mut KvCache, ids: &[u32], want: Want) -> Result<Vec<f32>> {
    let logits = ids.chunks(cache.max_chunk()).map(|chunk| model.forward(chunk, cache, want)).last();
    Ok(pollster::block_on(read_f32(logits.context("no tokens to feed")?))?)
}

fn rows_of(model: &Decoder, logits: &[f32]) -> usize {
    logits.len() / model.config().vocab_size
}

/// Just below, at, just above the window, and past two of them; the same for models without one.
fn border_lengths(model: &Decoder) -> [usize; 4] {
    let window = model.config().attention.iter().find_map(|kind| match kind {
        Attention::Sliding(window) => Some(*window),
        Attention::Full => None,
    });
    let window = window.unwrap_or(8);
    [window - 1, window, window + 1, 2 * window + 1]
}

/// What the official implementation computes with one miniature.
struct Golden {
    folder: PathBuf,
    ids: Vec<u32>,
    /// `[T, V]`
    logits: Vec<f32>,
    max_logit: f32,
}

impl Golden {
    fn read(name: &str) -> Result<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name);
        let bytes =
            std::fs::read(folder.join("golden.safetensors")).with_context(|| format!("golden values of {name}"))?;
        let tensors = SafeTensors::deserialize(&bytes)?;
        let words =
            |name: &str| -> Result<Vec<[u8; 4]>> { Ok(tensors.tensor(name)?.data().as_chunks::<4>().0.to_vec()) };
        let logits: Vec<f32> = words("logits")?.into_iter().map(f32::from_le_bytes).collect();
        let max_logit = logits.iter().fold(0.0, |max: f32, x| max.max(x.abs()));
        let ids = words("ids")?.into_iter().map(u32::from_le_bytes).collect();
        Ok(Self { folder, ids, logits, max_logit })
    }

    /// The folder itself and the GGUF file in it, if there is one.
    fn files(&self) -> Vec<PathBuf> {
        let gguf = self.folder.join(GGUF_FILES);
        [Some(self.folder.clone()), gguf.exists().then_some(gguf)].into_iter().flatten().collect()
    }

    fn first(&self, n_tokens: usize) -> Result<&[u32]> {
        self.ids.get(..n_tokens).context("too few golden ids")
    }

    /// Compares `found` with the golden logits of the tokens in `rows`.
    fn check(&self, rows: std::ops::Range<usize>, found: &[f32]) -> Result<()> {
        let vocab_size = self.logits.len() / self.ids.len();
        let expected = self.logits.get(rows.start * vocab_size..rows.end * vocab_size);
        let expected = expected.context("too few golden logits")?;
        ensure!(found.len() == expected.len(), "{} logits, not {}", found.len(), expected.len());
        ensure!(found.iter().all(|x| x.is_finite()), "a logit is not finite");
        let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let allowed = TOLERANCE * self.max_logit;
        ensure!(off <= allowed, "logits of {rows:?} differ by {off}, more than {allowed}");
        Ok(())
    }
}
