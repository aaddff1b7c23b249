//! `value[start:stop:step]` as in Python. The engine's own slice fails on an empty list with a negative step, as in `messages[::-1]`.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

/// The slice of a text or a list; of nothing, an empty list.
pub(super) fn slice(value: &Value, start: &Value, stop: &Value, step: &Value) -> Result<Value, Error> {
    let step = bound(step)?.unwrap_or(1);
    let (start, stop) = (bound(start)?, bound(stop)?);
    if step == 0 {
        return Err(Error::new(ErrorKind::InvalidOperation, "slice step cannot be zero"));
    }
    match value.as_str() {
        Some(text) => Ok(take(&text.chars().collect::<Vec<_>>(), start, stop, step).collect::<String>().into()),
        None if matches!(
            value.kind(),
            ValueKind::Undefined | ValueKind::None | ValueKind::Seq | ValueKind::Iterable
        ) =>
        {
            let items: Vec<Value> = value.try_iter()?.collect();
            Ok(take(&items, start, stop, step).collect::<Vec<_>>().into())
        }
        None => {
            Err(Error::new(ErrorKind::InvalidOperation, format!("value of type {} cannot be sliced", value.kind())))
        }
    }
}

fn bound(value: &Value) -> Result<Option<i64>, Error> {
    if value.is_none() || value.is_undefined() { Ok(None) } else { i64::try_from(value.clone()).map(Some) }
}

/// Indices as Python's `slice.indices` gives them.
fn take<T: Clone>(items: &[T], start: Option<i64>, stop: Option<i64>, step: i64) -> impl Iterator<Item = T> {
    let len = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let (lowest, highest) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let (first, last) = if step > 0 { (lowest, highest) } else { (highest, lowest) };
    let place = |bound: i64| if bound < 0 { bound.saturating_add(len).max(lowest) } else { bound.min(highest) };
    let (start, stop) = (start.map_or(first, place), stop.map_or(last, place));
    let before_stop = move |at: &i64| if step > 0 { *at < stop } else { *at > stop };
    let indices = std::iter::successors(Some(start), move |at| at.checked_add(step)).take_while(before_stop);
    indices.filter_map(|at| items.get(usize::try_from(at).ok()?).cloned())
}

#[cfg(test)]
mod tests {
    use super::take;

    #[test]
    fn indices_are_those_of_python() {
        let cases = [
            (None, None, 1, "abcde"),
            (None, None, -1, "edcba"),
            (Some(1), Some(-1), 1, "bcd"),
            (Some(-2), None, 1, "de"),
            (Some(9), Some(-9), -2, "eca"),
            (Some(3), Some(0), -1, "dcb"),
            (Some(-9), Some(9), 3, "ad"),
            (Some(i64::MIN), Some(i64::MAX), i64::MAX, "a"),
            (Some(2), Some(2), 1, ""),
        ];
        let items: Vec<char> = "abcde".chars().collect();
        for (start, stop, step, expected) in cases {
            assert_eq!(take(&items, start, stop, step).collect::<String>(), expected, "[{start:?}:{stop:?}:{step}]");
        }
        assert_eq!(take::<char>(&[], None, None, -1).count(), 0);
    }
}
