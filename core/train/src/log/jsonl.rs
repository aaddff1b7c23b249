//! A step as a line of JSON: `{"step":3,"unix_time_s":1.5,"loss":2.1}`. A number that is not finite is `null`.

use std::io::{self, BufRead, BufReader, Read};

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::Metrics;

impl Serialize for Metrics<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2 + self.values.len()))?;
        map.serialize_entry("step", &self.step)?;
        map.serialize_entry("unix_time_s", &self.unix_time_s)?;
        for (name, value) in &self.values {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The line of a step, with its end.
pub(super) fn line(metrics: &Metrics<'_>) -> Vec<u8> {
    // Texts and numbers are always JSON, so there is nothing that could fail.
    let mut line = serde_json::to_vec(metrics).unwrap_or_default();
    line.push(b'\n');
    line
}

#[derive(serde::Deserialize)]
struct Step {
    step: u64,
}

/// Bytes up to the first line that is half, damaged, or of a step from `from_step` on.
pub(super) fn kept_bytes(file: &mut impl Read, from_step: u64) -> io::Result<u64> {
    let mut reader = BufReader::new(file);
    let (mut line, mut kept) = (Vec::new(), 0);
    loop {
        line.clear();
        let n_bytes = reader.read_until(b'\n', &mut line)? as u64;
        let is_before = serde_json::from_slice(&line).is_ok_and(|Step { step }| step < from_step);
        if !(is_before && line.ends_with(b"\n")) {
            return Ok(kept);
        }
        kept += n_bytes;
    }
}
