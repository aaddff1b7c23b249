//! The report for people, as plain text and as Markdown.

use super::{Measured, Report};
use crate::output;

/// Facts, then aligned columns.
pub(super) fn text(report: &Report) -> String {
    let rows: Vec<_> = std::iter::once(head()).chain(report.cases.iter().map(row)).collect();
    format!("{}\n{}", output::facts(&facts(report)), output::table(&rows))
}

/// Facts as a list, then a table.
pub(super) fn markdown(report: &Report) -> String {
    let facts: String = facts(report).iter().map(|(name, value)| format!("- {name}: {value}\n")).collect();
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let ruler =
        line(head().iter().enumerate().map(|(column, _)| if column < 4 { "---" } else { "---:" }.to_owned()).collect());
    let rows: String = report.cases.iter().map(|case| line(row(case))).collect();
    format!("{facts}\n{}{ruler}{rows}", line(head()))
}

fn facts(report: &Report) -> Vec<(&'static str, String)> {
    vec![
        ("device", report.device.clone()),
        ("driver", report.driver.clone()),
        ("times by the clock of", format!("the {}, median of {} rounds", report.clock, report.rounds)),
        ("copy", format!("{:.1} GB/s, read and written", report.copy_gb_per_s)),
        ("multiply-add", format!("{:.0} GFLOP/s", report.multiply_add_gflop_per_s)),
        (
            "empty launch",
            format!(
                "{:.1} us on the device, {:.1} us of the host",
                report.empty_launch_us, report.empty_launch_host_us
            ),
        ),
        ("empty launch and readback", format!("{:.0} us", report.round_trip_us)),
    ]
}

fn head() -> Vec<String> {
    let names = [
        "operation",
        "format",
        "family",
        "shape",
        "launches",
        "median us",
        "best us",
        "KB",
        "GB/s",
        "GFLOP/s",
        "share",
        "bound by",
        "x Burn f32",
    ];
    names.map(str::to_owned).to_vec()
}

fn row(case: &Measured) -> Vec<String> {
    let or_dash = |text: Option<&str>| text.unwrap_or("-").to_owned();
    vec![
        case.operation.to_owned(),
        or_dash(case.format),
        or_dash(case.family),
        case.shape.clone(),
        case.launches.to_string(),
        format!("{:.1}", case.median_us),
        format!("{:.1}", case.best_us),
        format!("{:.0}", case.bytes as f64 / 1e3),
        format!("{:.1}", case.gb_per_s),
        format!("{:.1}", case.gflop_per_s),
        format!("{:.0}%", 100.0 * case.share),
        case.bound_by.to_owned(),
        case.times_burn.map_or_else(|| "-".to_owned(), |times| format!("{times:.2}")),
    ]
}
