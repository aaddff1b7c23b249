//! `samara bench model`: tokens per second and the cost of a token in counts.
//!
//! Prompts are random ids, so nothing is reused between runs. Every shape runs once before it is measured: pipelines are
//! compiled then. A rate is the median over the repetitions.

use std::time::Instant;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use samara_chat::FinishReason;
use samara_engine::{Engine, EngineConfig, Event, Request, Sampling, Stats};
use samara_formats::Checkpoint;
use samara_model::{Config, Decoder, LoadProgress};
use samara_ops::counts;
use serde::Serialize;

use super::synthetic::{BlockType, Synthetic};
use crate::Exit;
use crate::adapters::{AdapterArgs, AdapterReport};
use crate::args::{DeviceArgs, KvArgs, ModelArgs};
use crate::console::Console;
use crate::progress::Bar;
use crate::{loading, output};

/// Measures a model's prompt and generation rates
#[derive(Args, Debug)]
#[command(after_help = super::EXAMPLES)]
pub(super) struct ModelBenchArgs {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    adapters: AdapterArgs,
    /// A model of random weights made on the spot, which is as fast as a real one of its shape
    #[arg(long, value_enum, conflicts_with = "model")]
    synthetic: Option<Synthetic>,
    /// How the synthetic model's matrices are quantised
    #[arg(long, value_enum, default_value_t = BlockType::Q4K, requires = "synthetic")]
    synthetic_type: BlockType,
    #[command(flatten)]
    device: DeviceArgs,
    /// Lengths of the prompts to measure
    #[arg(long, value_name = "TOKENS,...", value_delimiter = ',', default_values_t = [64, 256], value_parser = at_least_one())]
    prompts: Vec<usize>,
    /// How many tokens precede those whose generation is measured; each length is measured by itself
    #[arg(long, value_name = "TOKENS,...", value_delimiter = ',', default_values_t = [0])]
    contexts: Vec<usize>,
    /// Tokens to generate for each measurement
    #[arg(short = 'n', long, value_name = "N", default_value_t = 32, value_parser = at_least_one())]
    tokens: usize,
    /// Measurements of each kind, of which the median counts
    #[arg(short, long, value_name = "N", default_value_t = 5, value_parser = at_least_one())]
    repetitions: usize,
    /// Tokens of the prompt computed at a time
    #[arg(long, value_name = "TOKENS", default_value_t = 64, value_parser = at_least_one())]
    prefill_chunk: usize,
    /// Measure generation also where each step waits for the token of the one before, in turns with the usual way
    #[arg(long)]
    waiting_too: bool,
    #[command(flatten)]
    kv: KvArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

#[derive(Serialize)]
struct Report {
    device: String,
    adapters: Vec<AdapterReport>,
    weights_device_bytes: u64,
    adapters_device_bytes: u64,
    kv_device_bytes: u64,
    /// Opening the device and bringing the weights to it.
    load_s: f64,
    /// From the start of the program to its first token, pipelines compiled on the way.
    first_token_s: f64,
    /// Pipelines compiled while the weights were on their way, and those that the first token needed.
    pipelines_at_load: usize,
    pipelines_at_first_token: usize,
    prompts: Vec<Rate>,
    generation: Vec<Rate>,
    /// The same where each step waits for the token of the one before; empty unless asked for.
    generation_waiting: Vec<Rate>,
    /// Steps of a generated token that were given to the device before the result of the one before was back.
    ahead_per_token: f64,
    launches_per_token: f64,
    submits_per_token: f64,
    readbacks_per_token: f64,
    readback_bytes_per_token: f64,
}

/// One row of the table.
#[derive(Serialize)]
struct Rate {
    /// Tokens of the prompt, or tokens that precede the generated ones.
    n_tokens: usize,
    tokens_per_s: f64,
    slowest_tokens_per_s: f64,
    fastest_tokens_per_s: f64,
}

/// Seconds of one sequence, and its counts.
struct Run {
    prompt_s: f64,
    generation_s: f64,
    stats: Stats,
}

/// Runs the command.
///
/// # Errors
/// The model or the device is unusable, or a length does not fit the model's context.
pub(super) fn run(args: &ModelBenchArgs, console: &Console) -> anyhow::Result<Exit> {
    let start = Instant::now();
    let checkpoint = checkpoint(args)?;
    let adapters = args.adapters.open()?;
    let longest = Config::from_checkpoint(&checkpoint)?.context_length;
    let context_tokens = context_needed(args);
    anyhow::ensure!(
        context_tokens <= longest,
        "{context_tokens} tokens do not fit the model's context of {longest}; use shorter --prompts or --contexts"
    );
    let open = loading::open_device(&args.device)?;
    console.detail(&format!("device: {open}"));
    let bar = Bar::bytes("loading");
    let mut progress = |progress: LoadProgress<'_>| bar.set(progress.done_bytes, Some(progress.total_bytes));
    let decoder = Decoder::load(&checkpoint, &open, &mut progress)?.with_scaled(&adapters)?;
    drop(bar);
    let load_s = start.elapsed().as_secs_f64();
    let pipelines_at_load = counts::pipelines();
    let (weights_device_bytes, adapters_device_bytes) = (decoder.n_bytes(), decoder.adapters_bytes());
    let (prefill_chunk_tokens, kv) = (args.prefill_chunk, args.kv.kv);
    let sizes = |ahead| EngineConfig { context_tokens, prefill_chunk_tokens, kv, ahead };
    let waiting = args.waiting_too.then(|| Engine::new(decoder.clone(), sizes(false))).transpose()?;
    let mut bench = Bench { engine: Engine::new(decoder, sizes(true))?, waiting, next_seed: 1 };
    bench.run(&Case::prompt(1))?;
    let first_token_s = start.elapsed().as_secs_f64();
    let pipelines_at_first_token = counts::pipelines();
    let Rates { prompts, generation, generation_waiting, stats } = bench.rates(args)?;
    let report = Report {
        device: open.name,
        adapters: adapters.iter().map(AdapterReport::of).collect(),
        weights_device_bytes,
        adapters_device_bytes,
        kv_device_bytes: bench.engine.cache_bytes(),
        load_s,
        first_token_s,
        pipelines_at_load,
        pipelines_at_first_token,
        prompts,
        generation,
        generation_waiting,
        ahead_per_token: stats.ahead_per_token(),
        launches_per_token: stats.launches_per_token(),
        submits_per_token: stats.submits_per_token(),
        readbacks_per_token: stats.readbacks_per_token(),
        readback_bytes_per_token: stats.readback_bytes_per_token(),
    };
    if args.json {
        output::json(&report)?
    } else {
        output::stream(&text(&report))?
    }
    Ok(Exit::Done)
}

fn checkpoint(args: &ModelBenchArgs) -> anyhow::Result<Checkpoint> {
    match args.synthetic {
        Some(synthetic) => synthetic.checkpoint(args.synthetic_type),
        None => Ok(loading::source(&args.model)?.open()?),
    }
}

fn context_needed(args: &ModelBenchArgs) -> usize {
    let longest = |lengths: &[usize]| lengths.iter().copied().max().unwrap_or(0);
    (longest(&args.prompts) + 2).max(longest(&args.contexts) + args.tokens + 2)
}

/// A shape to measure: tokens that go in, tokens that come out, and those whose time counts.
struct Case {
    /// Whether each step waits for the token of the one before.
    waits: bool,
    n_tokens: usize,
    n_generated: usize,
    n_timed: usize,
    seconds: fn(&Run) -> f64,
    rates: Vec<f64>,
}

impl Case {
    fn prompt(n_tokens: usize) -> Self {
        let seconds = |run: &Run| run.prompt_s;
        Self { waits: false, n_tokens, n_generated: 1, n_timed: n_tokens, seconds, rates: Vec::new() }
    }

    /// One token more is generated than counts, for the first belongs to the prompt.
    fn generation(n_tokens: usize, n_timed: usize, waits: bool) -> Self {
        let seconds = |run: &Run| run.generation_s;
        Self { waits, n_tokens, n_generated: n_timed + 1, n_timed, seconds, rates: Vec::new() }
    }
}

/// What all cases came to.
struct Rates {
    prompts: Vec<Rate>,
    generation: Vec<Rate>,
    generation_waiting: Vec<Rate>,
    /// Of one generation.
    stats: Stats,
}

struct Bench {
    engine: Engine,
    /// One that waits for each token.
    waiting: Option<Engine>,
    next_seed: u64,
}

impl Bench {
    /// Rates of all prompts and contexts, which take turns, and the counts of a generation.
    fn rates(&mut self, args: &ModelBenchArgs) -> anyhow::Result<Rates> {
        let bar = Bar::steps("measuring");
        let mut cases: Vec<Case> = args.prompts.iter().map(|&n_tokens| Case::prompt(n_tokens)).collect();
        let generation =
            |waits| args.contexts.iter().map(move |&n_tokens| Case::generation(n_tokens, args.tokens, waits));
        cases.extend(self.waiting.iter().flat_map(|_| generation(true)));
        cases.extend(generation(false));
        let n_steps = (cases.len() * (args.repetitions + 1)) as u64;
        let (mut n_done, mut stats) = (0, Stats::default());
        for round in 0..=args.repetitions {
            for case in &mut cases {
                let run = self.run(case)?;
                // The first round is there to compile what each shape needs.
                if round > 0 {
                    case.rates.push(case.n_timed as f64 / (case.seconds)(&run));
                }
                stats = run.stats;
                n_done += 1;
                bar.set(n_done, Some(n_steps));
            }
        }
        let generation = cases.split_off(args.prompts.len());
        let (waiting, generation): (Vec<Case>, Vec<Case>) = generation.into_iter().partition(|case| case.waits);
        let rates = |cases: Vec<Case>| cases.into_iter().map(|case| Rate::new(case.n_tokens, case.rates)).collect();
        let [prompts, generation, generation_waiting] = [cases, generation, waiting].map(rates);
        Ok(Rates { prompts, generation, generation_waiting, stats })
    }

    /// Continues a random prompt greedily; the first token belongs to the prompt.
    fn run(&mut self, case: &Case) -> anyhow::Result<Run> {
        let prompt = self.random_ids(case.n_tokens.max(1));
        let engine = self.waiting.as_mut().filter(|_| case.waits).unwrap_or(&mut self.engine);
        let start = Instant::now();
        engine.submit(Request {
            prompt,
            max_tokens: case.n_generated,
            stop_ids: Vec::new(),
            sampling: Sampling::default(),
            logit_limit: usize::MAX,
        })?;
        let mut prompt_s = None;
        loop {
            for event in pollster::block_on(engine.step())? {
                match event {
                    Event::Token { .. } => {
                        prompt_s.get_or_insert_with(|| start.elapsed().as_secs_f64());
                    }
                    Event::Finished { reason, stats, .. } => {
                        anyhow::ensure!(reason == FinishReason::Length, "a measured sequence ended early: {reason:?}");
                        let prompt_s = prompt_s.unwrap_or_default();
                        return Ok(Run { prompt_s, generation_s: start.elapsed().as_secs_f64() - prompt_s, stats });
                    }
                    Event::Prefill { .. } => {}
                }
            }
        }
    }

    fn random_ids(&mut self, n_ids: usize) -> Vec<u32> {
        let vocab_size = self.engine.model().config().vocab_size as u64;
        let mut state = self.next_seed;
        self.next_seed += 1;
        // The constants of Knuth's MMIX generator; its upper half is random enough.
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % vocab_size) as u32
        };
        (0..n_ids).map(|_| next()).collect()
    }
}

impl Rate {
    fn new(n_tokens: usize, rates: Vec<f64>) -> Self {
        let fastest_tokens_per_s = rates.iter().copied().fold(0.0, f64::max);
        let (tokens_per_s, slowest_tokens_per_s) = super::median_and_least(rates);
        Self { n_tokens, tokens_per_s, slowest_tokens_per_s, fastest_tokens_per_s }
    }
}

fn text(report: &Report) -> String {
    let facts = output::facts(&[
        ("device", report.device.clone()),
        ("weights on the device", output::bytes(report.weights_device_bytes)),
        ("LoRA adapters on it", output::bytes(report.adapters_device_bytes)),
        ("keys and values", output::bytes(report.kv_device_bytes)),
        ("loaded after", format!("{:.2} s", report.load_s)),
        ("first token after", format!("{:.2} s", report.first_token_s)),
        ("pipelines compiled by then", report.pipelines_at_first_token.to_string()),
        ("while loading", report.pipelines_at_load.to_string()),
        ("launches per token", format!("{:.0}", report.launches_per_token)),
        ("submits per token", format!("{:.0}", report.submits_per_token)),
        ("begun before the last was back", format!("{:.0}%", 100.0 * report.ahead_per_token)),
        ("read back per token", output::bytes(report.readback_bytes_per_token as u64)),
    ]);
    let row = |name: &str, rate: &Rate| {
        vec![
            format!("{name} {}", rate.n_tokens),
            format!("{:.2}", rate.tokens_per_s),
            format!("{:.2}", rate.slowest_tokens_per_s),
            format!("{:.2}", rate.fastest_tokens_per_s),
        ]
    };
    let head = ["tokens per second", "median", "slowest", "fastest"].map(str::to_owned).to_vec();
    let prompts = report.prompts.iter().map(|rate| row("prompt of", rate));
    let generation = report.generation.iter().map(|rate| row("generation after", rate));
    let waiting = report.generation_waiting.iter().map(|rate| row("waiting, after", rate));
    let rows: Vec<_> = std::iter::once(head).chain(prompts).chain(generation).chain(waiting).collect();
    format!("{facts}\n{}", output::table(&rows))
}
