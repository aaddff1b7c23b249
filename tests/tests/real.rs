//! Real published files give the text that the official implementation gives.
//!
//! `tests/fetch.sh` brings the files into a cache folder and `tests/golden/real.py` made the golden values from the same
//! files. Without them these tests skip aloud; `REQUIRE_MODELS=1`, which `test.sh` sets, makes that a failure.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::PathBuf;

use pollster::block_on;
use samara_chat::{Dialect, Message, Model, Piece, Prompt, Session, SessionConfig, Settings, Source};
use samara_formats::Checkpoint;
use samara_ops::device::{DeviceChoice, Limits, OpenDevice, open};
use serde_json::Value;

/// Where `tests/fetch.sh` puts models.
fn models() -> PathBuf {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    folder("SAMARA_CACHE").or_else(|| Some(cache?.join("samara"))).unwrap_or_default().join("models")
}

/// A file of golden values.
fn golden(name: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden").join(name);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn devices() -> Vec<OpenDevice> {
    let cpu = block_on(open(DeviceChoice::Cpu, Limits::Default)).unwrap();
    match block_on(open(DeviceChoice::Gpu(0), Limits::Default)) {
        Ok(gpu) => vec![cpu, gpu],
        Err(error) => {
            assert!(std::env::var_os("REQUIRE_GPU").is_none(), "REQUIRE_GPU is set, but {error}");
            eprintln!("no GPU path: {error}");
            vec![cpu]
        }
    }
}

/// A real model file, or `None`, aloud, where it has not been fetched.
fn real(file: &str) -> Option<Source> {
    let path = models().join(file);
    if path.exists() {
        return Some(Source::Path(path));
    }
    assert!(std::env::var_os("REQUIRE_MODELS").is_none(), "{} is missing; run tests/fetch.sh", path.display());
    eprintln!("skipped: {} is missing; tests/fetch.sh brings it", path.display());
    None
}

fn dialect(file: &str) -> Option<Dialect> {
    Some(Dialect::from_checkpoint(&real(file)?.open().unwrap()).unwrap())
}

fn session(file: &str, device: &OpenDevice) -> Option<Session> {
    let model = Model::load(&real(file)?, device, &mut |_| {}).unwrap();
    let config = SessionConfig { context_tokens: Some(256), ..SessionConfig::default() };
    Some(Session::new(model, config).unwrap())
}

/// The greedy continuation of a prompt over `max_tokens`, ids and text.
fn continue_greedily(session: &mut Session, prompt: &Prompt, max_tokens: usize) -> (Vec<u32>, String) {
    let settings = Settings { max_tokens: Some(max_tokens), ..Settings::default() };
    let mut generation = session.generate(prompt, &settings).unwrap();
    let mut text = String::new();
    loop {
        match block_on(generation.next()).unwrap() {
            Some(Piece::Text { text: more, .. }) => text += &more,
            Some(Piece::Done(done)) => return (done.written.ids, text),
            Some(Piece::Progress { .. } | Piece::DeviceLost { .. }) => {}
            None => panic!("a generation ends with Done"),
        }
    }
}

fn ids(value: &Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).unwrap()
}

/// The three prompts of one file: ids of the prompt, 48 greedy ids after it, and the weights in the bytes of the file.
fn check(file: &str) {
    let cases = golden("real.json");
    for device in devices() {
        let Some(mut session) = session(file, &device) else { return };
        check_size(file, session.weights_bytes());
        for case in cases.as_array().unwrap().iter().filter(|case| case["model"] == file) {
            let place = format!("{file} on {}: {}", device.name, case["prompt"]);
            let prompt = Prompt::Text(case["prompt"].as_str().unwrap().to_owned());
            assert_eq!(session.dialect().encode(&prompt).unwrap().ids, ids(&case["prompt_ids"]), "{place}");
            // The golden ids run on past an end token, where ours stop.
            let expected = ids(&case["ids"]);
            let stop_ids = session.dialect().stop_ids().to_vec();
            let end = expected.iter().position(|id| stop_ids.contains(id)).map_or(expected.len(), |last| last + 1);
            let (written, _) = continue_greedily(&mut session, &prompt, expected.len());
            assert_eq!(written, expected[..end], "{place}");
        }
    }
}

/// Weights stay as they are in the file: at most a tenth more bytes on the device.
fn check_size(file: &str, device_bytes: u64) {
    check_bytes(&real(file).unwrap().open().unwrap(), device_bytes);
}

fn check_bytes(checkpoint: &Checkpoint, device_bytes: u64) {
    let file_bytes: u64 = checkpoint.tensors().map(|tensor| tensor.n_bytes() as u64).sum();
    let source = checkpoint.source();
    assert!(10 * device_bytes <= 11 * file_bytes, "{device_bytes} bytes on the device for {file_bytes} in {source}");
}

#[test]
fn a_bf16_model_takes_no_more_memory_than_its_file() {
    let checkpoint = Source::Embedded.open().unwrap();
    for device in devices() {
        let model = Model::from_checkpoint(&checkpoint, &device, &mut |_| {}).unwrap();
        let session = Session::new(model, SessionConfig::default()).unwrap();
        check_bytes(&checkpoint, session.weights_bytes());
    }
}

#[test]
fn smollm2_continues_as_the_official_implementation_does() {
    check("SmolLM2-135M-Instruct.Q4_1.gguf");
}

#[test]
fn gemma3_continues_as_the_official_implementation_does() {
    check("gemma-3-270m-q4_k_m.gguf");
}

#[test]
fn smollm2_answers_through_its_template() {
    let device = block_on(open(DeviceChoice::Cpu, Limits::Adapter)).unwrap();
    let Some(mut session) = session("SmolLM2-135M-Instruct.Q4_1.gguf", &device) else { return };
    let question: Message = serde_json::from_value(serde_json::json!({
        "role": "user", "content": "What is the capital of France?"
    }))
    .unwrap();
    let (_, answer) = continue_greedily(&mut session, &Prompt::answer(vec![question]), 40);
    assert!(answer.contains("Paris") && !answer.contains("<|im_end|>"), "{answer}");
}

/// How much a model's surprise over a text grows with other keys and values, as a share of it.
#[test]
fn keys_and_values_in_fewer_bits_hardly_change_the_perplexity() {
    let text = std::fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/genesis.txt")).unwrap();
    let Some(device) = devices().pop() else { return };
    let Some(source) = real("SmolLM2-135M-Instruct.Q4_1.gguf") else { return };
    let mean_logprob = |kv: &str| {
        let model = Model::load(&source, &device, &mut |_| {}).unwrap();
        let config = SessionConfig { context_tokens: Some(256), kv: kv.parse().unwrap(), ..SessionConfig::default() };
        let mut session = Session::new(model, config).unwrap();
        let ids = session.dialect().encode(&Prompt::Text(text.clone())).unwrap().ids;
        let logprobs = block_on(session.score(&ids[..96], |_, _| {})).unwrap();
        logprobs.iter().sum::<f64>() / logprobs.len() as f64
    };
    let exact = mean_logprob("f32");
    for (kv, allowed) in [("q8", 0.02), ("q8/q4", 0.1)] {
        let log_ratio = exact - mean_logprob(kv);
        assert!(log_ratio.abs() <= allowed, "perplexity is exp({log_ratio}) times as large in {kv}");
    }
}

#[test]
fn vocabularies_of_real_files_give_the_official_ids() {
    let cases = golden("tokens.json");
    for (name, file) in [("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"), ("gemma3", "gemma-3-270m-q4_k_m.gguf")] {
        let Some(dialect) = dialect(file) else { return };
        for case in cases["texts"].as_array().unwrap() {
            let text = case["text"].as_str().unwrap();
            let encoded = dialect.encode(&Prompt::Text(text.to_owned())).unwrap();
            assert_eq!(encoded.ids, ids(&case[name]), "{name}: {text:?}");
        }
    }
}

#[test]
fn conversations_of_a_real_file_render_and_encode_as_officially() {
    let cases = golden("tokens.json");
    let Some(dialect) = dialect("SmolLM2-135M-Instruct.Q4_1.gguf") else { return };
    for case in cases["chats"].as_array().unwrap() {
        let messages: Vec<Message> = serde_json::from_value(case["messages"].clone()).unwrap();
        let encoded = dialect.encode(&Prompt::answer(messages)).unwrap();
        assert_eq!(Value::from(encoded.text.clone()), case["text"]);
        assert_eq!(encoded.ids, ids(&case["ids"]));
    }
}
