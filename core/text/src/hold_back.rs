//! How much of a text must wait because it may be the start of a marker.

/// Bytes at the end of `text` that are a proper prefix of one of `markers`: the longest such, 0 if none.
pub(crate) fn held_bytes<'a>(text: &str, markers: impl IntoIterator<Item = &'a str>) -> usize {
    markers.into_iter().map(|marker| overlap_bytes(text, marker)).max().unwrap_or(0)
}

fn overlap_bytes(text: &str, marker: &str) -> usize {
    let longest = text.len().min(marker.len().saturating_sub(1));
    let starts = |n: &usize| marker.get(..*n).is_some_and(|prefix| text.ends_with(prefix));
    (1..=longest).rev().find(starts).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::held_bytes;

    #[test]
    fn longest_proper_prefix_waits() {
        let cases = [
            ("abc", "cd", 1),
            ("abc", "abc", 0),
            ("aab", "aabaa", 3),
            ("日", "日本", 3),
            ("", "x", 0),
            ("<th", "<think>", 3),
        ];
        for (text, marker, expected) in cases {
            assert_eq!(held_bytes(text, [marker]), expected, "{text:?} {marker:?}");
        }
    }
}
