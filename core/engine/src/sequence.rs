//! One sequence on its way: its tokens, how the next is chosen, and what a chosen one does to it.

use std::ops::Range;

use samara_ops::counts::Counts;

use crate::sampler::{choice, uniform};
use crate::{Choice, Event, FinishReason, Picked, Request, SequenceId, Stats};

/// A submitted request and what has become of it.
pub(crate) struct Sequence {
    pub id: SequenceId,
    request: Request,
    /// Prompt, then generated tokens.
    tokens: Vec<u32>,
    pub stats: Stats,
}

impl Sequence {
    pub fn new(id: SequenceId, request: Request) -> Self {
        let tokens = request.prompt.clone();
        let stats = Stats { prompt_tokens: tokens.len(), ..Stats::default() };
        Self { id, request, tokens, stats }
    }

    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// How the token after the last one is chosen.
    pub fn choice(&self) -> Choice {
        self.choice_of(self.stats.generated_tokens)
    }

    /// How the token after that one is chosen, where there is certain to be room for it and the choice depends on no token.
    pub fn choice_after_next(&self, context_tokens: usize) -> Option<Choice> {
        let n_generated = self.stats.generated_tokens + 1;
        let has_room = n_generated < self.request.max_tokens && self.tokens.len() + 1 < context_tokens;
        let choice = self.choice_of(n_generated);
        (has_room && choice.adjustments.is_empty()).then_some(choice)
    }

    fn choice_of(&self, token_idx: usize) -> Choice {
        let Request { sampling, logit_limit, .. } = &self.request;
        choice(sampling, *logit_limit, &self.tokens, uniform(sampling.seed, token_idx as u64))
    }

    /// Goes on with a chosen token.
    pub fn push(&mut self, Picked { token, logprob }: Picked) -> Event {
        self.tokens.push(token);
        self.stats.generated_tokens += 1;
        Event::Token { id: self.id, token, logprob }
    }

    /// The ending, if the token just chosen is the last.
    pub fn ending(&self, context_tokens: usize) -> Option<Event> {
        let stopped = self.tokens.last().is_some_and(|token| self.request.stop_ids.contains(token));
        let reason = if stopped {
            FinishReason::Stop
        } else if self.stats.generated_tokens >= self.request.max_tokens {
            FinishReason::Length
        } else if self.tokens.len() >= context_tokens {
            FinishReason::Context
        } else {
            return None;
        };
        Some(self.finished(reason))
    }

    /// Notes that the tokens in `span` ran and what that cost. Gives the progress where prompt tokens were among them.
    pub fn ran(&mut self, span: Range<usize>, spent: Counts) -> Option<Event> {
        let total_tokens = self.stats.prompt_tokens;
        if span.start >= total_tokens {
            self.stats.add_decode(spent);
            return None;
        }
        if self.stats.prefill_steps == 0 {
            self.stats.cached_tokens = span.start;
        }
        self.stats.add_prefill(spent);
        Some(Event::Prefill { id: self.id, done_tokens: span.end.min(total_tokens), total_tokens })
    }

    pub fn finished(&self, reason: FinishReason) -> Event {
        Event::Finished { id: self.id, reason, stats: self.stats }
    }
}
