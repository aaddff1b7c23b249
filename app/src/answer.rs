//! One generation from start to end: pieces to the caller as they come, Ctrl-C as a cancellation, and the time it took.

use std::time::Instant;

use samara_chat::{Channel, Done, FinishReason, Piece, Prompt, Session, Settings};
use serde::Serialize;

use crate::interrupt::Watching;
use crate::output;

/// A finished generation with its times.
pub(crate) struct Answer {
    pub(crate) done: Done,
    /// Until the whole prompt was computed; the first token is chosen at that moment.
    pub(crate) prompt_s: f64,
    /// From then on.
    pub(crate) decode_s: f64,
}

/// Speeds of one answer, in tokens per second; 0 where nothing was computed.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Speed {
    pub(crate) prompt_tokens_per_s: f64,
    pub(crate) generated_tokens_per_s: f64,
}

/// What the caller does with pieces of text as they come.
pub(crate) type OnText<'a> = dyn FnMut(Channel, &str) -> anyhow::Result<()> + 'a;

/// Continues `prompt`; a raised flag ends it after the current step.
///
/// # Errors
/// The prompt is refused, the device fails, or `on_text` does.
pub(crate) fn answer(
    session: &mut Session,
    prompt: &Prompt,
    settings: &Settings,
    watching: &Watching,
    on_text: &mut OnText,
) -> anyhow::Result<Answer> {
    let start = Instant::now();
    let mut prompt_end = start;
    let mut is_prompt_done = false;
    let mut generation = session.generate(prompt, settings)?;
    loop {
        if watching.is_raised() {
            generation.cancel();
        }
        match pollster::block_on(generation.next())? {
            // After a loss the prompt is computed anew; its time counts to the answer that was interrupted.
            Some(Piece::Progress { done_tokens, total_tokens }) => {
                if !is_prompt_done {
                    prompt_end = Instant::now();
                }
                is_prompt_done |= done_tokens == total_tokens;
            }
            Some(Piece::Text { channel, text }) => on_text(channel, &text)?,
            Some(Piece::DeviceLost { reason }) => {
                eprintln!("warning: the graphics device was reset ({reason}); loading the model again");
            }
            Some(Piece::Done(done)) => {
                let (prompt_s, decode_s) = ((prompt_end - start).as_secs_f64(), prompt_end.elapsed().as_secs_f64());
                return Ok(Answer { done, prompt_s, decode_s });
            }
            None => anyhow::bail!("the generation ended without a result"),
        }
    }
}

impl Answer {
    /// Tokens that were computed over the time that took: a reused prompt costs nothing and counts nothing.
    pub(crate) fn speed(&self) -> Speed {
        let stats = &self.done.stats;
        Speed {
            prompt_tokens_per_s: per_second(stats.prompt_tokens.saturating_sub(stats.cached_tokens), self.prompt_s),
            generated_tokens_per_s: per_second(stats.decode_steps, self.decode_s),
        }
    }

    /// One line for people: how much and how fast.
    pub(crate) fn summary(&self) -> String {
        let (stats, speed) = (&self.done.stats, self.speed());
        format!(
            "{} prompt tokens at {:.1}/s, {} generated at {:.1}/s, ended by {}",
            stats.prompt_tokens,
            speed.prompt_tokens_per_s,
            stats.generated_tokens,
            speed.generated_tokens_per_s,
            finish_reason(self.done.reason)
        )
    }
}

/// Shows a piece of an answer; reasoning is dimmed.
pub(crate) fn show(channel: Channel, text: &str) -> anyhow::Result<()> {
    match channel {
        Channel::Reasoning => output::stream(&output::dim(text))?,
        Channel::Answer => output::stream(text)?,
    }
    Ok(())
}

/// The word for a reason, as JSON has it.
pub(crate) fn finish_reason(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::Context => "context",
        FinishReason::Cancelled => "cancelled",
    }
}

fn per_second(n_tokens: usize, seconds: f64) -> f64 {
    if n_tokens == 0 || seconds <= 0.0 { 0.0 } else { n_tokens as f64 / seconds }
}
