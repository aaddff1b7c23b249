//! The sampling that a model's makers suggest.

use samara_engine::Sampling;
use serde_json::Value;

/// What `generation_config.json` suggests: greedy unless `do_sample` is true, as the reference implementation reads it.
/// `None` where it says nothing usable.
pub(crate) fn suggested(generation_config: &Value) -> Option<Sampling> {
    let config = generation_config;
    let number = |key: &str| config.get(key).and_then(Value::as_f64).map(|x| x as f32);
    let plain = Sampling::default();
    let repetition_penalty = number("repetition_penalty").unwrap_or(plain.repetition_penalty);
    let sampling = if config.get("do_sample").and_then(Value::as_bool)? {
        Sampling {
            temperature: number("temperature").unwrap_or(1.0),
            top_k: config.get("top_k").and_then(Value::as_u64).and_then(|k| k.try_into().ok()).unwrap_or(0),
            top_p: number("top_p").unwrap_or(1.0),
            min_p: number("min_p").unwrap_or(0.0),
            repetition_penalty,
            ..plain
        }
    } else {
        Sampling { repetition_penalty, ..plain }
    };
    sampling.check(0).ok().map(|()| sampling)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sampling_is_suggested_only_where_the_file_says_so() {
        assert_eq!(suggested(&json!({ "temperature": 0.6 })), None);
        assert_eq!(suggested(&json!({ "do_sample": false, "temperature": 0.6 })), Some(Sampling::default()));
        let warm = Sampling { temperature: 0.6, top_p: 0.95, ..Sampling::default() };
        assert_eq!(suggested(&json!({ "do_sample": true, "temperature": 0.6, "top_p": 0.95 })), Some(warm));
    }

    #[test]
    fn a_suggestion_outside_its_range_is_none() {
        assert_eq!(suggested(&json!({ "do_sample": true, "temperature": -3 })), None);
        assert_eq!(suggested(&json!({ "do_sample": true, "top_p": 0 })), None);
    }
}
