//! One continuation on its way, pulled piece by piece.

use std::collections::VecDeque;

use samara_engine::{Engine, EngineError, Event, FinishReason, SequenceId, Stats};

use crate::ChatError;
use crate::output::{Channel, Output, Shown, Written};
use crate::recovery::Recovery;

/// What a generation gives next.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "pieces are handed on one by one, so a box would save nothing")]
pub enum Piece {
    /// Prompt tokens done; a long prompt gives several of these before its first text.
    Progress { done_tokens: usize, total_tokens: usize },
    /// Text to show, never part of a character or of a stop string.
    Text { channel: Channel, text: String },
    /// The device was lost. The next call brings the model back, which takes as long as loading did, and the same
    /// generation goes on; its progress is reported anew.
    DeviceLost { reason: String },
    /// The last piece.
    Done(Done),
}

/// How a generation ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// `Stop` for a stop id and for a stop string.
    pub reason: FinishReason,
    /// All that was written.
    pub written: Written,
    /// What it took, as counts.
    pub stats: Stats,
}

/// A running continuation. Dropping it cancels it.
pub struct Generation<'s> {
    engine: &'s mut Engine,
    recovery: &'s mut Recovery,
    id: SequenceId,
    stop_ids: Vec<u32>,
    /// `None` once ended.
    output: Option<Output>,
    ready: VecDeque<Piece>,
    hit_stop_string: bool,
}

impl<'s> Generation<'s> {
    pub(crate) fn new(
        engine: &'s mut Engine,
        recovery: &'s mut Recovery,
        id: SequenceId,
        stop_ids: Vec<u32>,
        output: Output,
    ) -> Self {
        let (output, ready) = (Some(output), VecDeque::new());
        Self { engine, recovery, id, stop_ids, output, ready, hit_stop_string: false }
    }

    /// The next piece; `None` after [`Piece::Done`].
    ///
    /// # Errors
    /// The model's numbers broke down, the device ran out of memory, or it is lost and cannot be had back. Nothing comes
    /// after an error.
    pub async fn next(&mut self) -> Result<Option<Piece>, ChatError> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Ok(Some(piece));
            }
            if self.output.is_none() {
                return Ok(None);
            }
            self.step().await.inspect_err(|_| self.output = None)?;
        }
    }

    async fn step(&mut self) -> Result<(), ChatError> {
        // A cancelled generation only wants to be told so; its device is opened when there is work again.
        if self.engine.active().is_some() {
            self.recovery.restore(self.engine).await?;
        }
        match self.engine.step().await {
            Ok(events) => events.into_iter().for_each(|event| self.take(event)),
            Err(EngineError::DeviceLost { reason }) => {
                self.recovery.lost(&reason)?;
                self.ready.push_back(Piece::DeviceLost { reason });
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Ends it early: what was held back still comes, then [`Piece::Done`] with [`FinishReason::Cancelled`].
    pub fn cancel(&mut self) {
        self.engine.cancel(self.id);
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Prefill { id, done_tokens, total_tokens } if id == self.id => {
                self.ready.push_back(Piece::Progress { done_tokens, total_tokens });
            }
            Event::Token { id, token, .. } if id == self.id => self.take_token(token),
            Event::Finished { id, reason, stats } if id == self.id => self.end(reason, stats),
            // The ending of an earlier generation that was dropped.
            _ => {}
        }
    }

    fn take_token(&mut self, token: u32) {
        self.recovery.works();
        let Some(output) = &mut self.output else { return };
        if self.stop_ids.contains(&token) {
            return output.push_silent(token);
        }
        let (shown, hit) = output.push(token);
        self.show(shown);
        if hit {
            self.hit_stop_string = true;
            self.engine.cancel(self.id);
        }
    }

    fn end(&mut self, reason: FinishReason, stats: Stats) {
        let Some(output) = self.output.take() else { return };
        let (shown, written) = output.finish();
        self.show(shown);
        let reason = if self.hit_stop_string { FinishReason::Stop } else { reason };
        self.ready.push_back(Piece::Done(Done { reason, written, stats }));
    }

    fn show(&mut self, shown: Shown) {
        self.ready.extend(shown.into_iter().map(|(channel, text)| Piece::Text { channel, text }));
    }
}

impl Drop for Generation<'_> {
    fn drop(&mut self) {
        self.engine.cancel(self.id);
    }
}
