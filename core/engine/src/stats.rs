//! What a sequence cost, as counts. The engine has no clock: whoever calls `step` measures time.

use samara_ops::counts::Counts;

/// Counts of one sequence. A step that was begun ahead counts where its token is; one that was not wanted, nowhere.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stats {
    /// Tokens of the prompt, the reused ones included.
    pub prompt_tokens: usize,
    /// Prompt tokens that an earlier sequence had left in the cache.
    pub cached_tokens: usize,
    /// Tokens generated, a closing stop id included.
    pub generated_tokens: usize,
    /// Steps that ran prompt tokens.
    pub prefill_steps: usize,
    /// Steps that ran generated tokens only. The first token comes out of the last prefill step.
    pub decode_steps: usize,
    /// What the device did in the prefill steps.
    pub prefill: Counts,
    /// What the device did in the decode steps.
    pub decode: Counts,
}

impl Stats {
    /// Kernel launches of one decode step; 0 where none ran.
    pub fn launches_per_token(&self) -> f64 {
        self.per_decode_step(self.decode.launches)
    }

    /// Command submissions of one decode step; 0 where none ran.
    pub fn submits_per_token(&self) -> f64 {
        self.per_decode_step(self.decode.submits)
    }

    /// Buffer uploads of one decode step; 0 where none ran.
    pub fn uploads_per_token(&self) -> f64 {
        self.per_decode_step(self.decode.uploads)
    }

    /// Waits for the device in one decode step; 0 where none ran.
    pub fn readbacks_per_token(&self) -> f64 {
        self.per_decode_step(self.decode.readbacks)
    }

    /// Bytes read back in one decode step; 0 where none ran.
    pub fn readback_bytes_per_token(&self) -> f64 {
        self.per_decode_step(self.decode.readback_bytes)
    }

    /// How many of the decode steps were given to the device while the result of the one before was on its way, from 0 to 1.
    pub fn ahead_per_token(&self) -> f64 {
        self.per_decode_step(self.decode.ahead)
    }

    fn per_decode_step(&self, count: u64) -> f64 {
        count as f64 / self.decode_steps.max(1) as f64
    }

    pub(crate) fn add_prefill(&mut self, spent: Counts) {
        self.prefill_steps += 1;
        self.prefill = self.prefill + spent;
    }

    pub(crate) fn add_decode(&mut self, spent: Counts) {
        self.decode_steps += 1;
        self.decode = self.decode + spent;
    }
}
