//! `samara bench ops`: every operation's time, and its share of what the device could do at best.
//!
//! A copy and a chain of multiply-adds set the ceilings, and Burn's own kernels compute the same f32 products, all in one
//! run. Machines are noisy, so a round measures every case once, and a number is the median over the rounds. Pipelines are
//! made before the first round. Times are the device's own where it has timestamps, for several launches in one submission.

mod cases;
mod table;

use std::time::Instant;

use anyhow::Context;
use clap::Args;
use samara_ops::bench::{Ready, Subject};
use samara_ops::device::OpenDevice;
use samara_ops::family::Family;
use samara_ops::{Format, KvFormats};
use serde::Serialize;

use super::median_and_least;
use crate::args::DeviceArgs;
use crate::console::Console;
use crate::progress::Bar;
use crate::{Exit, loading, output};

/// What the launches of a case should take together in a round.
const ROUND_S: f64 = 0.01;
/// The most launches of a case in a round: they fit one submission.
const MAX_LAUNCHES: usize = 256;

const EXAMPLES: &str = "\
Examples:
  samara bench ops
  samara bench ops --device gpu:0 --sizes 2048x2048,8192x2048,2048x8192 --markdown
  samara bench ops --formats q4_1,f32 --tokens 1 --repetitions 20 --json

A share is the time that the binding ceiling allows over the time it took. More than 100% means that data came from a cache.";

/// Measures every operation against what the device can do at best, and against Burn's kernels
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct OpsBenchArgs {
    #[command(flatten)]
    device: DeviceArgs,
    /// Weights to measure products with, rows by values of a row; a format whose blocks do not fit the rows is left out
    #[arg(long, value_name = "ROWSxWIDTH,...", value_delimiter = ',', value_parser = size, default_value = "2048x2048,576x1536")]
    sizes: Vec<(usize, usize)>,
    /// Tokens at once
    #[arg(long, value_name = "TOKENS,...", value_delimiter = ',', default_values_t = [1, 64], value_parser = clap::value_parser!(u32).range(1..))]
    tokens: Vec<u32>,
    /// Formats of the weights
    #[arg(long, value_name = "FORMAT,...", value_delimiter = ',', value_parser = format, default_value = "f32,f16,q4_0,q4_1,q8_0,q4_k,q6_k")]
    formats: Vec<Format>,
    /// How many keys attention sees
    #[arg(long, value_name = "KEYS,...", value_delimiter = ',', default_values_t = [64, 1024, 4096], value_parser = clap::value_parser!(u32).range(1..))]
    keys: Vec<u32>,
    /// How keys and values are kept, as for `generate`
    #[arg(long, value_name = "FORMAT,...", value_delimiter = ',', default_value = "f32,f16,q8,q4")]
    kv: Vec<KvFormats>,
    /// Rounds, of which the median counts
    #[arg(short, long, value_name = "N", default_value_t = 5)]
    repetitions: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Print tables in Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

/// What was measured.
#[derive(Serialize)]
struct Report {
    device: String,
    driver: String,
    /// "device" where its own timestamps measured, else "host".
    clock: &'static str,
    rounds: usize,
    /// A launch that does next to nothing, among many.
    empty_launch_us: f64,
    /// The same by the host's clock, over all launches of a submission and the wait for them.
    empty_launch_host_us: f64,
    /// A launch that does next to nothing and 16 bytes read back, by the host's clock.
    round_trip_us: f64,
    copy_gb_per_s: f64,
    multiply_add_gflop_per_s: f64,
    cases: Vec<Measured>,
}

/// One row of the table.
#[derive(Serialize)]
struct Measured {
    operation: &'static str,
    format: Option<&'static str>,
    family: Option<&'static str>,
    shape: String,
    /// In a round.
    launches: usize,
    median_us: f64,
    best_us: f64,
    bytes: u64,
    flops: u64,
    gb_per_s: f64,
    gflop_per_s: f64,
    /// The time that the ceiling allows over the median.
    share: f64,
    /// Which ceiling that is.
    bound_by: &'static str,
    /// How many times as fast as Burn's f32 product of the same shape.
    times_burn: Option<f64>,
}

/// A case with its inputs on the device, and what it took so far.
struct Case {
    subject: Subject,
    ready: Ready,
    launches: usize,
    /// Seconds of one launch, a number a round.
    seconds: Vec<f64>,
}

/// Runs the command.
///
/// # Errors
/// The device is unusable or fails.
pub(super) fn run(args: &OpsBenchArgs, console: &Console) -> anyhow::Result<Exit> {
    let open = loading::open_device(&args.device)?;
    console.detail(&format!("device: {open}"));
    let empty = empty_launches(&open)?;
    let cases = measure(cases::all(args, &open), args.repetitions.max(1), &open)?;
    let report = Report::new(&open, args.repetitions.max(1), empty, &cases);
    match (args.json, args.markdown) {
        (true, _) => output::json(&report)?,
        (_, true) => output::stream(&table::markdown(&report))?,
        _ => output::stream(&table::text(&report))?,
    }
    Ok(Exit::Done)
}

/// Warms every case up, then measures all of them once a round.
fn measure(subjects: Vec<Subject>, n_rounds: usize, open: &OpenDevice) -> anyhow::Result<Vec<Case>> {
    let bar = Bar::steps("measuring");
    let n_steps = subjects.len() * (n_rounds + 1);
    let mut n_done = 0;
    let mut done = || {
        n_done += 1;
        bar.set(n_done, Some(n_steps as u64));
    };
    let mut cases = Vec::with_capacity(subjects.len());
    for subject in subjects {
        cases.push(Case::warm(subject, open)?);
        done();
    }
    for _ in 0..n_rounds {
        for case in &mut cases {
            case.measure()?;
            done();
        }
    }
    Ok(cases)
}

impl Case {
    /// Launches it until its pipelines are made, and finds how many launches fill a round.
    fn warm(subject: Subject, open: &OpenDevice) -> anyhow::Result<Self> {
        let mut ready = subject.ready(open, cases::cold_bytes(&subject, open));
        let mut launch = || pollster::block_on(ready.seconds(1)).with_context(|| subject.name());
        launch()?;
        let once = launch()?.min(launch()?);
        let launches = ((ROUND_S / once.max(1e-7)) as usize).clamp(1, MAX_LAUNCHES);
        Ok(Self { subject, ready, launches, seconds: Vec::new() })
    }

    fn measure(&mut self) -> anyhow::Result<()> {
        let seconds = pollster::block_on(self.ready.seconds(self.launches)).with_context(|| self.subject.name())?;
        self.seconds.push(seconds / self.launches as f64);
        Ok(())
    }

    fn median(&self) -> f64 {
        median_and_least(self.seconds.clone()).0
    }
}

/// Microseconds of a launch that does next to nothing: by the device's clock, by the host's, and with a readback.
fn empty_launches(open: &OpenDevice) -> anyhow::Result<[f64; 3]> {
    let mut ready = Subject::CeilingCopy { n_values: 4 }.ready(open, 0);
    let mut rounds = [(); 3].map(|()| Vec::new());
    for _ in 0..10 {
        let start = Instant::now();
        let device = pollster::block_on(ready.seconds(MAX_LAUNCHES))? / MAX_LAUNCHES as f64;
        let host = start.elapsed().as_secs_f64() / MAX_LAUNCHES as f64;
        let start = Instant::now();
        pollster::block_on(ready.values())?;
        let round_trip = start.elapsed().as_secs_f64();
        rounds.iter_mut().zip([device, host, round_trip]).for_each(|(round, seconds)| round.push(1e6 * seconds));
    }
    Ok(rounds.map(|round| median_and_least(round).0))
}

impl Report {
    fn new(open: &OpenDevice, rounds: usize, empty: [f64; 3], cases: &[Case]) -> Self {
        let ceilings = Ceilings::of(cases);
        let [empty_launch_us, empty_launch_host_us, round_trip_us] = empty;
        let adapter = open.adapter.as_ref();
        let has_clock = adapter.is_some_and(|adapter| adapter.features.contains(&"timestamp-query"));
        Self {
            device: open.name.clone(),
            driver: adapter.map_or_else(String::new, |adapter| format!("{} {}", adapter.backend, adapter.driver)),
            clock: if has_clock { "device" } else { "host" },
            rounds,
            empty_launch_us,
            empty_launch_host_us,
            round_trip_us,
            copy_gb_per_s: ceilings.bytes_per_s / 1e9,
            multiply_add_gflop_per_s: ceilings.flops_per_s / 1e9,
            cases: cases.iter().map(|case| Measured::new(case, &ceilings, stock_of(case, cases))).collect(),
        }
    }
}

/// What the device does at best.
struct Ceilings {
    bytes_per_s: f64,
    flops_per_s: f64,
}

impl Ceilings {
    fn of(cases: &[Case]) -> Self {
        let mut ceilings = Self { bytes_per_s: f64::INFINITY, flops_per_s: f64::INFINITY };
        for case in cases {
            let work = case.subject.work();
            match case.subject {
                Subject::CeilingCopy { .. } => ceilings.bytes_per_s = work.n_bytes as f64 / case.median(),
                Subject::CeilingMultiplyAdd { .. } => ceilings.flops_per_s = work.n_flops as f64 / case.median(),
                _ => {}
            }
        }
        ceilings
    }
}

/// Seconds of Burn's product of the same shape.
fn stock_of(case: &Case, cases: &[Case]) -> Option<f64> {
    let Subject::Linear { n_tokens, n_out, n_in, .. } = case.subject else { return None };
    let stock = Subject::StockMatmul { n_tokens, n_out, n_in };
    cases.iter().find(|case| case.subject == stock).map(Case::median)
}

impl Measured {
    fn new(case: &Case, ceilings: &Ceilings, stock: Option<f64>) -> Self {
        let (median, best) = median_and_least(case.seconds.clone());
        let work = case.subject.work();
        let memory = work.n_bytes as f64 / ceilings.bytes_per_s;
        let arithmetic = work.n_flops as f64 / ceilings.flops_per_s;
        Self {
            operation: case.subject.name(),
            format: case.subject.format().map(Format::name),
            family: case.subject.family().map(Family::name),
            shape: case.subject.shape(),
            launches: case.launches,
            median_us: 1e6 * median,
            best_us: 1e6 * best,
            bytes: work.n_bytes,
            flops: work.n_flops,
            gb_per_s: work.n_bytes as f64 / median / 1e9,
            gflop_per_s: work.n_flops as f64 / median / 1e9,
            share: memory.max(arithmetic) / median,
            bound_by: if memory >= arithmetic { "memory" } else { "arithmetic" },
            times_burn: stock.map(|stock| stock / median),
        }
    }
}

fn size(text: &str) -> Result<(usize, usize), String> {
    let sizes = text.split_once('x').and_then(|(rows, width)| Some((rows.parse().ok()?, width.parse().ok()?)));
    let positive = sizes.filter(|&(rows, width): &(usize, usize)| rows > 0 && width > 0);
    positive.ok_or_else(|| "give it as ROWSxWIDTH, for example 8192x2048".to_owned())
}

fn format(text: &str) -> Result<Format, String> {
    let formats = || Format::ALL.into_iter().filter(|format| *format != Format::Ragged);
    let names: Vec<_> = formats().map(Format::name).collect();
    formats().find(|format| format.name() == text).ok_or_else(|| format!("it is none of {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rows_and_widths() {
        assert_eq!(size("576x1536"), Ok((576, 1536)));
        for text in ["", "5", "x", "0x4", "4x0", "-1x4", "4x4x4"] {
            assert!(size(text).is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn formats_go_by_the_names_of_their_kernels() {
        assert_eq!(format("q4_k"), Ok(Format::Q4K));
        assert!(format("ragged").is_err() && format("q4").is_err());
    }
}
