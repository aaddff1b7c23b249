//! What goes to stdout and stderr, and how numbers are written for people.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

pub(crate) use samara_model::memory::readable as bytes;
use serde::Serialize;

/// Writes `value` to stdout as one line of JSON.
///
/// # Errors
/// When stdout cannot be written to.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value)?;
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

/// Writes `text` to stdout at once, so that it appears while the next part is computed.
///
/// # Errors
/// When stdout cannot be written to.
pub(crate) fn stream(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Refuses to write where something is, unless told to; an empty folder counts as nothing.
///
/// # Errors
/// Something is there.
pub(crate) fn check_free(path: &Path, force: bool) -> anyhow::Result<()> {
    let is_empty = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    if force || is_empty || !path.exists() {
        return Ok(());
    }
    anyhow::bail!("{}: exists already; --force overwrites it", path.display())
}

/// Aligned columns, two spaces apart; the last column is ragged.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..n_columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// Two columns of names and values.
pub(crate) fn facts(facts: &[(&str, String)]) -> String {
    table(&facts.iter().map(|(name, value)| vec![(*name).to_owned(), value.clone()]).collect::<Vec<_>>())
}

/// Grey text on a terminal, plain text elsewhere.
pub(crate) fn dim(text: &str) -> String {
    if wants_colour() { format!("\x1b[2m{text}\x1b[0m") } else { text.to_owned() }
}

/// Whether stdout is a terminal whose user has not asked for plain text.
pub(crate) fn wants_colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec!["bcd".to_owned(), "22".to_owned()]];
        assert_eq!(table(&rows), "a    1\nbcd  22\n");
    }
}
