//! The event files of TensorBoard: protocol buffers in the framing of TFRecord.
//!
//! A record is its length, a checksum of the length, the event, a checksum of the event. Of the protocol we need three
//! messages with six fields, so they are written out here: `Event { wall_time = 1, step = 2, file_version = 3, summary = 5 }`,
//! `Summary { value = 1 }` and `Value { tag = 1, simple_value = 2 }`.

use std::io::{self, BufReader, Read};

use super::Metrics;

const VERSION: &str = "brain.Event:2";
/// No event of ours comes near; a longer one is damage.
const MAX_EVENT_BYTES: u64 = 1 << 24;

const VARINT: u8 = 0;
const FIXED_64: u8 = 1;
const BYTES: u8 = 2;
const FIXED_32: u8 = 5;

/// The record that a file begins with.
pub(super) fn version(unix_time_s: f64) -> Vec<u8> {
    let mut event = Vec::new();
    field(&mut event, 1, FIXED_64, &unix_time_s.to_le_bytes());
    bytes_field(&mut event, 3, VERSION.as_bytes());
    record(&event)
}

/// The record of a step.
pub(super) fn scalars(metrics: &Metrics<'_>) -> Vec<u8> {
    let mut summary = Vec::new();
    for (name, number) in &metrics.values {
        let mut value = Vec::new();
        bytes_field(&mut value, 1, name.as_bytes());
        field(&mut value, 2, FIXED_32, &(*number as f32).to_le_bytes());
        bytes_field(&mut summary, 1, &value);
    }
    let mut event = Vec::new();
    field(&mut event, 1, FIXED_64, &metrics.unix_time_s.to_le_bytes());
    field(&mut event, 2, VARINT, &varint(metrics.step));
    bytes_field(&mut event, 5, &summary);
    record(&event)
}

fn record(event: &[u8]) -> Vec<u8> {
    let length = (event.len() as u64).to_le_bytes();
    let checksums = [&length, event].map(|bytes| masked_checksum(bytes).to_le_bytes());
    let [of_length, of_event] = checksums;
    [&length, of_length.as_slice(), event, &of_event].concat()
}

/// CRC-32C, turned and shifted: a checksum of data that holds checksums would be weak otherwise.
fn masked_checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

fn field(out: &mut Vec<u8>, number: u8, kind: u8, bytes: &[u8]) {
    out.push(number << 3 | kind);
    out.extend(bytes);
}

fn bytes_field(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    field(out, number, BYTES, &varint(bytes.len() as u64));
    out.extend(bytes);
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Bytes up to the first record that is half, damaged, or of a step from `from_step` on.
pub(super) fn kept_bytes(file: &mut impl Read, from_step: u64) -> io::Result<u64> {
    let mut reader = BufReader::new(file);
    let mut kept = 0;
    while let Some(event) = read_record(&mut reader)? {
        if step(&event).is_some_and(|step| step >= from_step) {
            break;
        }
        kept += record(&event).len() as u64;
    }
    Ok(kept)
}

/// The next event; none at the end of the file and where a record is half or damaged.
fn read_record(reader: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let Some(length) = read_checked(reader, 8)? else { return Ok(None) };
    let length = length.try_into().map_or(u64::MAX, u64::from_le_bytes);
    if length > MAX_EVENT_BYTES { Ok(None) } else { read_checked(reader, length) }
}

/// So many bytes and the checksum after them; none where they end early or it is wrong.
fn read_checked(reader: &mut impl Read, n_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    reader.take(n_bytes + 4).read_to_end(&mut bytes)?;
    let Some((bytes, checksum)) = bytes.split_last_chunk() else { return Ok(None) };
    let is_good = bytes.len() as u64 == n_bytes && u32::from_le_bytes(*checksum) == masked_checksum(bytes);
    Ok(is_good.then(|| bytes.to_vec()))
}

/// The step of an event that we wrote: it stands after the time. The version has none.
fn step(event: &[u8]) -> Option<u64> {
    let (tag, rest) = event.get(9..)?.split_first()?;
    if *tag != 2 << 3 | VARINT {
        return None;
    }
    let last = rest.iter().take(10).position(|byte| byte & 0x80 == 0)?;
    let sevens = rest.get(..=last)?.iter().zip((0..).step_by(7));
    Some(sevens.fold(0, |step, (byte, shift)| step | u64::from(byte & 0x7f) << shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_those_of_the_published_format() {
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
        // A tag and eight bytes of time, then a tag, a length and the name of the version.
        let bytes = version(0.0);
        assert_eq!(bytes.get(..8), Some(&24u64.to_le_bytes()[..]));
        assert!(bytes.get(12..36).unwrap().ends_with(b"\x1a\x0dbrain.Event:2"));
        assert_eq!(bytes.len(), 40);
    }

    #[test]
    fn steps_are_found_in_events_of_any_size() {
        for step_written in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let metrics = Metrics { step: step_written, unix_time_s: 1.0, values: vec![("loss", 1.0)] };
            let event = read_record(&mut scalars(&metrics).as_slice()).unwrap().unwrap();
            assert_eq!(step(&event), Some(step_written));
        }
        let event = read_record(&mut version(1.0).as_slice()).unwrap().unwrap();
        assert_eq!(step(&event), None);
    }
}
