//! `samara bench check`: every kernel of this device against its reference in plain Rust.
//!
//! The tests do the same at many more sizes; this is for a machine that has the program but not the source.

use anyhow::Context;
use clap::Args;
use samara_ops::bench::{OLMO2_1B_HEADS, Subject, largest_error};
use samara_ops::device::{self, DeviceChoice, OpenDevice};
use samara_ops::family::Family;
use samara_ops::{Activation, Format, HeadShape, KvFormat, KvFormats, NormKind, QkNorm};
use serde::Serialize;

use crate::args::{DeviceArgs, LimitsArg};
use crate::console::Console;
use crate::progress::Bar;
use crate::{Exit, loading, output};

const EXAMPLES: &str = "\
Examples:
  samara bench check
  samara bench check --device gpu:0 --json
  samara bench check --limits default        with what every browser grants";

/// Compares every kernel with its reference on this device
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    device: DeviceArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    device: String,
    n_cases: usize,
    n_failed: usize,
    cases: Vec<Compared>,
}

/// One row of the table.
#[derive(Serialize)]
struct Compared {
    operation: &'static str,
    format: Option<&'static str>,
    family: Option<&'static str>,
    shape: String,
    passed: bool,
    /// The largest difference, over the root mean square of the reference's values.
    largest_error: f64,
    /// What rounding allows.
    bound: f64,
}

/// Runs the command.
///
/// # Errors
/// The device is unusable or fails, or a kernel is wrong.
pub(super) fn run(args: &CheckArgs, console: &Console) -> anyhow::Result<Exit> {
    let open = loading::open_device(&args.device)?;
    console.detail(&format!("device: {open}"));
    let cpu = pollster::block_on(device::open(DeviceChoice::Cpu, LimitsArg::Adapter.into()))?;
    let bar = Bar::steps("checking");
    let subjects = subjects(&open.families());
    let mut cases = Vec::with_capacity(subjects.len());
    for subject in &subjects {
        cases.push(compare(subject, &open, &cpu).with_context(|| subject.name())?);
        bar.set(cases.len() as u64, Some(subjects.len() as u64));
    }
    drop(bar);
    let n_failed = cases.iter().filter(|case| !case.passed).count();
    let report = Report { device: open.name, n_cases: cases.len(), n_failed, cases };
    if args.json {
        output::json(&report)?;
    } else {
        output::stream(&text(&report))?;
    }
    anyhow::ensure!(n_failed == 0, "{n_failed} of {} kernels differ from their reference", report.n_cases);
    Ok(Exit::Done)
}

/// Every kernel at least once, at sizes that end inside a workgroup.
fn subjects(families: &[Family]) -> Vec<Subject> {
    let formats = Format::ALL.into_iter();
    let mut all: Vec<_> = formats.flat_map(|format| reading_weights(format, families)).collect();
    for kind in [NormKind::Rms, NormKind::Layer] {
        let (n_tokens, width) = (3, 577);
        all.push(Subject::Norm { kind, n_tokens, width });
        all.push(Subject::NormAdd { kind, n_tokens, width });
        all.push(Subject::AddNorm { kind, n_tokens, width });
    }
    let activations = [Activation::Silu, Activation::GeluTanh];
    all.extend(activations.map(|activation| Subject::Glu { activation, n_tokens: 3, d_ff: 1030 }));
    let norms = [QkNorm::None, QkNorm::Full, QkNorm::PerHead];
    let grouped = |head_dim: usize| HeadShape { n_heads: 4, n_kv_heads: 2, head_dim };
    all.extend(norms.map(|norm| Subject::QkNormRope { norm, heads: grouped(64), n_tokens: 5 }));
    for &family in families {
        let heads = [grouped(64), OLMO2_1B_HEADS, grouped(256)];
        let of = |kv, n_tokens| heads.map(|heads| Subject::Attention { family, kv, heads, n_tokens, n_keys: 301 });
        let mixed = KvFormats { keys: KvFormat::Q8, values: KvFormat::Q4 };
        let formats = KvFormat::ALL.map(KvFormats::from).into_iter().chain([mixed]);
        all.extend(formats.flat_map(|kv| [of(kv, 1), of(kv, 5)].concat()));
    }
    for vocab_size in [4099, 100_352] {
        all.push(Subject::Greedy { vocab_size });
        all.push(Subject::Sample { vocab_size });
    }
    all.push(Subject::Penalise { vocab_size: 4099 });
    all.push(Subject::CeilingCopy { n_values: 70_004 });
    all.push(Subject::CeilingMultiplyAdd { n_values: 70_004, n_rounds: 9 });
    all.push(Subject::StockMatmul { n_tokens: 3, n_out: 67, n_in: 512 });
    all
}

fn reading_weights(format: Format, families: &[Family]) -> Vec<Subject> {
    let n_in = if format == Format::Ragged { 131 } else { 512 };
    let products = families
        .iter()
        .flat_map(|&family| [1, 35].map(|n_tokens| Subject::Linear { format, family, n_tokens, n_out: 67, n_in }));
    let activation = if (format as usize).is_multiple_of(2) { Activation::Silu } else { Activation::GeluTanh };
    let gated = families.iter().map(|&family| Subject::GatedLinear { format, family, activation, n_out: 67, n_in });
    let embed = Subject::Embed { format, n_tokens: 5, n_rows: 67, n_in };
    let experts = Subject::Experts { format, n_tokens: 5, n_experts: 4, n_out: 19, n_in };
    products.chain(gated).chain([embed, experts]).collect()
}

fn compare(subject: &Subject, open: &OpenDevice, cpu: &OpenDevice) -> anyhow::Result<Compared> {
    let found = pollster::block_on(subject.ready(open, 0).values())?;
    let expected = pollster::block_on(subject.ready(cpu, 0).values())?;
    let largest_error = largest_error(&found, &expected);
    let bound = subject.bound();
    Ok(Compared {
        operation: subject.name(),
        format: subject.format().map(Format::name),
        family: subject.family().map(Family::name),
        shape: subject.shape(),
        passed: largest_error <= bound,
        largest_error,
        bound,
    })
}

fn text(report: &Report) -> String {
    let row = |case: &Compared| {
        vec![
            if case.passed { "pass" } else { "FAIL" }.to_owned(),
            case.operation.to_owned(),
            case.format.unwrap_or("-").to_owned(),
            case.family.unwrap_or("-").to_owned(),
            case.shape.clone(),
            format!("{:.1e}", case.largest_error),
            format!("{:.1e}", case.bound),
        ]
    };
    let head = ["", "operation", "format", "family", "shape", "largest error", "bound"].map(str::to_owned).to_vec();
    let rows: Vec<_> = std::iter::once(head).chain(report.cases.iter().map(row)).collect();
    let passed = report.n_cases - report.n_failed;
    format!("{}\n{passed} of {} pass on {}\n", output::table(&rows), report.n_cases, report.device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_measured_against_the_size_of_the_values() {
        assert_eq!(largest_error(&[3.0, -3.0], &[2.0, -2.0]), 0.5);
        assert_eq!(largest_error(&[0.0], &[0.0]), 0.0);
    }

    #[test]
    fn what_is_nan_or_missing_passes_nowhere() {
        assert!(largest_error(&[f32::NAN, 1.0], &[1.0, 1.0]).is_nan());
        assert!(largest_error(&[1.0], &[1.0, 1.0]).is_nan());
    }
}
