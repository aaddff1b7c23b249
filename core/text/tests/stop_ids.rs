//! Where a turn ends: ids from every place that may name them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use samara_text::{StopIdSources, stop_ids, turn_end_ids};
use serde_json::{Value, json};

fn check_stop_ids(generation_config: Value, config: Value, tokenizer_eos: Option<u32>, gguf: &[u32], expected: &[u32]) {
    let sources =
        StopIdSources { generation_config: Some(&generation_config), config: Some(&config), tokenizer_eos, gguf };
    assert_eq!(stop_ids(sources), expected);
}

#[test]
fn olmo_1_stops_though_its_generation_config_names_the_wrong_eos() {
    check_stop_ids(json!({"eos_token_id": 0}), json!({"eos_token_id": 50279}), Some(50_279), &[], &[0, 50_279]);
}

#[test]
fn a_list_of_eos_ids_is_a_union() {
    check_stop_ids(
        json!({"eos_token_id": [100_265, 100_257]}),
        json!({"eos_token_id": 100_257}),
        None,
        &[100_257],
        &[100_257, 100_265],
    );
}

#[test]
fn values_that_are_no_id_say_nothing() {
    check_stop_ids(json!({"eos_token_id": null}), json!({"eos_token_id": [-1, "x", 1.5, 7]}), None, &[], &[7]);
    assert!(stop_ids(StopIdSources::default()).is_empty());
}

#[test]
fn turn_ends_are_the_control_tokens_that_exist() {
    assert_eq!(turn_end_ids(&common::dolma2()), [100_265]);
}
