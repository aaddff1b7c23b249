//! The JSON object that `generate` prints and that `chat` prints for each answer.

use serde::Serialize;

use crate::adapters::AdapterReport;
use crate::answer::{Answer, Speed, finish_reason};
use crate::loading::Loaded;

/// One answer for a program to read.
#[derive(Serialize)]
pub(crate) struct Report<'a> {
    text: &'a str,
    /// Left out where the model did not reason aloud.
    #[serde(skip_serializing_if = "str::is_empty")]
    reasoning: &'a str,
    ids: &'a [u32],
    finish_reason: &'static str,
    stats: StatsReport<'a>,
}

#[derive(Serialize)]
struct StatsReport<'a> {
    prompt_tokens: usize,
    generated_tokens: usize,
    #[serde(flatten)]
    speed: Speed,
    load_s: f64,
    launches_per_token: f64,
    submits_per_token: f64,
    readback_bytes_per_token: f64,
    adapters: &'a [AdapterReport],
    weights_device_bytes: u64,
    adapters_device_bytes: u64,
    kv_device_bytes: u64,
    device: &'a str,
}

impl<'a> Report<'a> {
    /// What `answer` says and what it cost.
    pub(crate) fn new(answer: &'a Answer, loaded: &'a Loaded) -> Self {
        let (written, stats) = (&answer.done.written, &answer.done.stats);
        Self {
            text: &written.answer,
            reasoning: &written.reasoning,
            ids: &written.ids,
            finish_reason: finish_reason(answer.done.reason),
            stats: StatsReport {
                prompt_tokens: stats.prompt_tokens,
                generated_tokens: stats.generated_tokens,
                speed: answer.speed(),
                load_s: loaded.load_s,
                launches_per_token: stats.launches_per_token(),
                submits_per_token: stats.submits_per_token(),
                readback_bytes_per_token: stats.readback_bytes_per_token(),
                adapters: &loaded.adapters,
                weights_device_bytes: loaded.session.weights_bytes(),
                adapters_device_bytes: loaded.session.adapters_bytes(),
                kv_device_bytes: loaded.session.cache_bytes(),
                device: &loaded.device,
            },
        }
    }
}
