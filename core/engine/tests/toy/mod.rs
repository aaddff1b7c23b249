//! A language model small enough to reason about: its logits are a hash of every id in its cache.
//!
//! A cache that is wrong by one id gives entirely different tokens, so equal ids prove equal histories.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::Poll;

use samara_engine::{Choice, KvFormats, LanguageModel, Picked, RewindableCache, SampleError};
use samara_ops::{OpsError, pick_on_host};

pub const VOCAB_SIZE: usize = 24;

#[derive(Default)]
pub struct Toy {
    /// How far its caches can go back; `None` for any distance.
    pub slack_tokens: Option<usize>,
    /// The id whose presence in the cache turns every logit into NaN.
    pub poison: Option<u32>,
    /// How many calls its device still answers; `None` for any number.
    pub answers: Cell<Option<usize>>,
    /// Tokens run, one entry per call.
    pub calls: RefCell<Vec<usize>>,
    /// Choices that nobody has waited for yet.
    pub on_their_way: Cell<usize>,
    /// Choices begun while another was on its way.
    pub ahead: Cell<usize>,
}

pub struct ToyCache {
    ids: Vec<u32>,
    capacity_tokens: usize,
    max_chunk_tokens: usize,
    slack_tokens: Option<usize>,
    /// What was chosen last, as only the device knows it.
    chosen: Option<u32>,
}

impl LanguageModel for Toy {
    type Cache = ToyCache;
    type Picking = Result<Picked, SampleError>;

    fn vocab_size(&self) -> usize {
        VOCAB_SIZE
    }

    fn context_length(&self) -> usize {
        64
    }

    fn new_cache(&self, capacity_tokens: usize, max_chunk_tokens: usize, _: KvFormats) -> ToyCache {
        ToyCache { ids: Vec::new(), capacity_tokens, max_chunk_tokens, slack_tokens: self.slack_tokens, chosen: None }
    }

    async fn append(&self, tokens: &[u32], cache: &mut ToyCache) -> Result<(), OpsError> {
        self.run(tokens, cache)?;
        pend_once().await;
        Ok(())
    }

    async fn pick(&self, tokens: &[u32], cache: &mut ToyCache, choice: &Choice) -> Result<Self::Picking, OpsError> {
        self.run(tokens, cache)?;
        let picked = pick_on_host(&self.row(&cache.ids), choice);
        cache.chosen = Some(picked.map_or(0, |picked| picked.token));
        let n_earlier = self.on_their_way.replace(self.on_their_way.get() + 1);
        self.ahead.set(self.ahead.get() + n_earlier.min(1));
        Ok(picked)
    }

    async fn pick_next(&self, cache: &mut ToyCache, choice: &Choice) -> Result<Option<Self::Picking>, OpsError> {
        assert!(choice.adjustments.is_empty(), "a choice that depends on tokens cannot be begun ahead of them");
        let chosen = cache.chosen.unwrap();
        self.pick(&[chosen], cache, choice).await.map(Some)
    }

    async fn picked(&self, picking: Self::Picking) -> Result<Result<Picked, SampleError>, OpsError> {
        self.answer()?;
        pend_once().await;
        self.on_their_way.set(self.on_their_way.get() - 1);
        Ok(picking)
    }

    async fn logits(&self, tokens: &[u32], cache: &mut ToyCache) -> Result<Vec<f32>, OpsError> {
        let start = cache.ids.len();
        self.append(tokens, cache).await?;
        Ok((start..cache.ids.len()).flat_map(|last| self.row(&cache.ids[..=last])).collect())
    }
}

impl Toy {
    fn run(&self, tokens: &[u32], cache: &mut ToyCache) -> Result<(), OpsError> {
        assert!(!tokens.is_empty() && tokens.len() <= cache.max_chunk_tokens);
        self.answer()?;
        cache.ids.extend_from_slice(tokens);
        cache.chosen = None;
        assert!(cache.ids.len() <= cache.capacity_tokens);
        self.calls.borrow_mut().push(tokens.len());
        Ok(())
    }

    fn answer(&self) -> Result<(), OpsError> {
        match self.answers.get() {
            Some(0) => Err(OpsError::Lost { reason: "a test".to_owned() }),
            left => {
                self.answers.set(left.map(|n| n - 1));
                Ok(())
            }
        }
    }

    /// Logits between -4 and 4 after `ids`.
    pub fn row(&self, ids: &[u32]) -> Vec<f32> {
        if self.poison.is_some_and(|id| ids.contains(&id)) {
            return vec![f32::NAN; VOCAB_SIZE];
        }
        let history = ids.iter().fold(17, |hash, &id| mix(hash ^ u64::from(id)));
        (0..VOCAB_SIZE as u64).map(|id| (mix(history ^ id) % 8192) as f32 / 1024.0 - 4.0).collect()
    }
}

impl RewindableCache for ToyCache {
    fn rewind(&mut self, n_tokens: usize) -> bool {
        let near = self.slack_tokens.is_none_or(|slack| self.ids.len() - n_tokens <= slack);
        let can = near || n_tokens == 0;
        if can {
            self.ids.truncate(n_tokens);
            self.chosen = None;
        }
        can
    }

    fn n_bytes(&self) -> u64 {
        self.capacity_tokens as u64
    }
}

/// Scrambles 64 bits.
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ (x >> 29)).wrapping_mul(0xd6e8_feb8_6659_fd93) ^ (x >> 32)
}

/// Gives way once, as a readback does.
async fn pend_once() {
    let mut ready = false;
    poll_fn(|cx| {
        cx.waker().wake_by_ref();
        if std::mem::replace(&mut ready, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await
}
