//! Every command through the real binary, on the embedded model and the CPU.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;

use serde_json::{Value, json};
use support::{arg, check_refused, copy_of_tiny, json, output, samara, text, tiny};

const GREEDY: [&str; 6] = ["generate", "--temperature", "0", "--max-tokens", "12", "--prompt"];

/// Without these the embedded model goes on as long as it may.
const NO_END: [&str; 4] = ["--logit-bias", "2044=-inf", "--logit-bias", "2046=-inf"];

fn greedy(more: &[&str]) -> Value {
    json(&[&GREEDY[..], &["Once upon a time", "--json"], more].concat())
}

#[test]
fn the_embedded_model_writes() {
    let text = text(&["generate", "--prompt", "Once upon a time", "--max-tokens", "24", "--seed", "1"]);
    assert!(text.ends_with('\n') && text.split_whitespace().count() > 5, "{text:?}");
}

#[test]
fn json_has_every_field() {
    let report = greedy(&[]);
    for field in ["text", "ids", "finish_reason", "stats"] {
        assert!(!report[field].is_null(), "{field} is missing");
    }
    let stats = &report["stats"];
    for field in ["prompt_tokens_per_s", "generated_tokens_per_s", "load_s", "weights_device_bytes", "kv_device_bytes"]
    {
        assert!(stats[field].as_f64().unwrap() > 0.0, "{field}: {stats}");
    }
    for field in ["launches_per_token", "submits_per_token", "readback_bytes_per_token"] {
        assert!(stats[field].is_number(), "{field}: {stats}");
    }
    assert!(stats["device"].is_string());
    assert_eq!(stats["generated_tokens"], report["ids"].as_array().unwrap().len());
    assert_eq!(report["finish_reason"], "length");
}

#[test]
fn the_same_seed_gives_the_same_text() {
    let run = |seed| {
        json(&["generate", "--prompt", "The cat", "--max-tokens", "12", "--temperature", "1", "--json", "--seed", seed])
            ["ids"]
            .clone()
    };
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7"), run("8"));
}

#[test]
fn prompts_come_from_files_and_pipes_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prompt.txt");
    fs::write(&path, "Once upon a time\r\n").unwrap();
    let expected = &greedy(&[])["ids"];
    let settings = ["generate", "--temperature", "0", "--max-tokens", "12", "--json"];
    assert_eq!(&json(&[&settings[..], &["--prompt-file", arg(&path)]].concat())["ids"], expected);
    let piped =
        samara(&[&settings[..], &["--prompt", "-"]].concat()).write_stdin("Once upon a time\n").output().unwrap();
    assert_eq!(&serde_json::from_slice::<Value>(&piped.stdout).unwrap()["ids"], expected);
}

#[test]
fn small_chunks_and_contexts_change_nothing() {
    let expected = &greedy(&[])["ids"];
    assert_eq!(&greedy(&["--prefill-chunk", "1"])["ids"], expected);
    assert_eq!(&greedy(&["--context", "40"])["ids"], expected);
}

#[test]
fn a_full_context_ends_the_text() {
    let report = greedy(&[&["--context", "8"][..], &NO_END].concat());
    assert_eq!(report["finish_reason"], "context");
}

#[test]
fn a_stop_string_ends_the_text_and_is_not_shown() {
    let whole = greedy(&[])["text"].as_str().unwrap().to_owned();
    let stop: String = whole.chars().skip(4).take(3).collect();
    let report = greedy(&["--stop", &stop]);
    assert_eq!(report["finish_reason"], "stop");
    assert_eq!(report["text"].as_str().unwrap(), &whole[..whole.find(&stop).unwrap()]);
}

#[test]
fn a_bias_bans_a_token() {
    let banned = greedy(&[])["ids"][0].to_string();
    let report = greedy(&["--logit-bias", &format!("{banned}=-inf")]);
    assert_ne!(report["ids"][0].to_string(), banned);
}

#[test]
fn a_folder_gives_what_the_embedded_copy_gives() {
    assert_eq!(greedy(&["--model", arg(&tiny())])["ids"], greedy(&[])["ids"]);
}

#[test]
fn tokenize_gives_ids_pieces_and_text() {
    let report = json(&["tokenize", "--json", "Once upon a time"]);
    let n_tokens = report["ids"].as_array().unwrap().len();
    assert!(n_tokens > 0);
    assert_eq!(report["pieces"].as_array().unwrap().len(), n_tokens);
    assert_eq!(report["text"], "Once upon a time");
    assert!(text(&["tokenize", "Once upon a time"]).ends_with(&format!("{n_tokens} tokens\n")));
}

#[test]
fn tokenize_renders_conversations() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("messages.json");
    fs::write(&path, json!([{ "role": "user", "content": "Hi" }]).to_string()).unwrap();
    let asking = json(&["tokenize", "--chat", arg(&path), "--json"])["text"].as_str().unwrap().to_owned();
    let ended = json(&["tokenize", "--chat", arg(&path), "--no-generation-prompt", "--json"])["text"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(ended, "<|im_start|>user\nHi<|im_end|>\n");
    assert_eq!(asking, format!("{ended}<|im_start|>assistant\n"));
}

#[test]
fn score_gives_log_probabilities_and_logits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("logits.safetensors");
    let report = json(&["score", "Once upon a time", "--json", "--logits", arg(&path)]);
    let ids = report["ids"].as_array().unwrap();
    let logprobs = report["logprobs"].as_array().unwrap();
    assert_eq!(logprobs.len(), ids.len());
    assert!(logprobs[0].is_null() && logprobs[1..].iter().all(|logprob| logprob.as_f64().unwrap() < 0.0));

    let total: f64 = logprobs[1..].iter().filter_map(Value::as_f64).sum();
    let perplexity = (-total / (ids.len() - 1) as f64).exp();
    assert!((report["perplexity"].as_f64().unwrap() - perplexity).abs() < 1e-9 * perplexity);
    assert!(report["bits_per_byte"].as_f64().unwrap() > 0.0);

    let bytes = fs::read(&path).unwrap();
    let logits = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(logits.tensor("logits").unwrap().shape(), [ids.len(), 2048]);
    let spelled = ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    assert_eq!(json(&["score", "--ids", &spelled, "--json"])["logprobs"], report["logprobs"]);
    assert!(text(&["score", "Once upon a time"]).contains("perplexity"));
}

#[test]
fn one_token_has_no_perplexity() {
    let report = json(&["score", "--ids", "5", "--json"]);
    assert!(report["perplexity"].is_null() && report["bits_per_byte"].is_null());
    assert!(text(&["score", "--ids", "5"]).contains("log-probability  0.0000\n"), "no minus before nothing");
}

#[test]
fn inspect_tells_what_a_model_is() {
    let report = json(&["inspect", "--json", "--context", "128"]);
    assert_eq!(report["config"]["vocab_size"], 2048);
    assert_eq!(report["config"]["sliding_window"], 64);
    assert_eq!(report["memory"]["context_tokens"], 128);
    assert!(report["memory"]["kv_device_bytes"].as_u64().unwrap() > 0);
    assert!(report["template"].as_str().unwrap().contains("im_start"));
    let n_bytes: u64 =
        report["tensors"].as_object().unwrap().values().filter_map(|of_type| of_type["bytes"].as_u64()).sum();
    assert!(n_bytes > 1_000_000);
    let told = text(&["inspect"]);
    for word in ["family", "tensors", "tokenizer", "template", "memory", "<|im_end|> (2046)"] {
        assert!(told.contains(word), "{word} is missing:\n{told}");
    }
    assert!(!told.contains("more than the model was made for"));
    assert!(text(&["inspect", "--context", "100000"]).contains("100000 tokens are more than the model was made for"));
}

#[test]
fn keys_and_values_take_the_memory_of_their_bits() {
    let taken = |kv: &str| greedy(&["--context", "128", "--kv", kv])["stats"]["kv_device_bytes"].as_u64().unwrap();
    // Bits of a channel, two for each of keys and values; heads are 32 wide.
    for (kv, bits) in [("f16", 32), ("q8", 18), ("q8/q4", 14), ("q4", 10)] {
        assert_eq!(64 * taken(kv), bits * taken("f32"), "{kv}");
    }
    for kv in ["f16", "f32", "q8", "q8/q4"] {
        let predicted = &json(&["inspect", "--json", "--context", "128", "--kv", kv])["memory"];
        assert_eq!((predicted["kv"].as_str(), predicted["kv_device_bytes"].as_u64()), (Some(kv), Some(taken(kv))));
    }
}

#[test]
fn what_inspect_predicts_is_what_generate_takes() {
    let predicted = &json(&["inspect", "--json", "--context", "128"])["memory"];
    let taken = &greedy(&["--context", "128"])["stats"];
    assert_eq!(predicted["kv_device_bytes"], taken["kv_device_bytes"]);
    let weights = |report: &Value| report["weights_device_bytes"].as_f64().unwrap();
    assert!((weights(predicted) / weights(taken) - 1.0).abs() < 0.01, "{predicted} {taken}");
}

#[test]
fn bench_model_measures_each_length() {
    let small = ["bench", "model", "--tokens", "2", "--repetitions", "1"];
    let report = json(&[&small[..], &["--prompts", "3", "--contexts", "0,5", "--json"]].concat());
    for (rates, lengths) in [("prompts", &[3][..]), ("generation", &[0, 5])] {
        let rates = report[rates].as_array().unwrap();
        assert_eq!(rates.iter().map(|rate| rate["n_tokens"].as_u64().unwrap()).collect::<Vec<_>>(), lengths);
        assert!(rates.iter().all(|rate| rate["tokens_per_s"].as_f64().unwrap() > 0.0), "{report}");
    }
    assert_eq!(report["readback_bytes_per_token"], 8.0);
    assert_eq!(report["generation_waiting"], serde_json::json!([]));
    check_refused(&[&small[..], &["--prompts", "100000"]].concat(), &["100002 tokens", "512"]);
    for nothing in ["--prompts", "--tokens", "--repetitions", "--prefill-chunk"] {
        assert_eq!(samara(&["bench", "model", nothing, "0"]).output().unwrap().status.code(), Some(2), "{nothing}");
    }
}

#[test]
fn bench_model_measures_both_ways_to_the_next_token() {
    let both =
        json(&["bench", "model", "--tokens", "4", "--repetitions", "1", "--prompts", "3", "--waiting-too", "--json"]);
    for rates in ["generation", "generation_waiting"] {
        assert!(both[rates][0]["tokens_per_s"].as_f64().unwrap() > 0.0, "{both}");
    }
    let is_gpu = !both["device"].as_str().unwrap().starts_with("CPU");
    assert_eq!(both["ahead_per_token"], if is_gpu { 1.0 } else { 0.0 }, "{both}");
}

#[test]
fn chat_answers_each_line_of_a_pipe() {
    let settings = ["chat", "--temperature", "0", "--max-tokens", "8"];
    let run = samara(&settings).write_stdin("Hello\n\nWhat is your name?\n").output().unwrap();
    assert!(run.status.success() && run.stderr.is_empty(), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(!String::from_utf8(run.stdout).unwrap().contains("> "), "no prompt in a pipe");

    let run = samara(&[&settings[..], &["--json"]].concat()).write_stdin("Hello\nWhat is your name?").output().unwrap();
    let answers: Vec<Value> =
        String::from_utf8(run.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 2);
    assert!(answers.iter().all(|answer| answer["finish_reason"].is_string()));
}

#[test]
fn chat_commands_work_through_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.json");
    let script = format!("First\n/undo\nSecond\n/system Be kind.\n/save {}\n/quit\nnever read\n", arg(&path));
    let run = samara(&["chat", "--temperature", "0", "--max-tokens", "4"]).write_stdin(script).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let saved: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let roles: Vec<_> =
        saved["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant"]);
    assert_eq!(saved["messages"][1]["content"], "Second");

    let run = samara(&["chat", "--load", arg(&path), "--max-tokens", "4"]).write_stdin("Third\n").output().unwrap();
    assert!(run.status.success());
}

#[test]
fn an_unknown_chat_command_is_an_error_in_a_pipe() {
    let run = samara(&["chat"]).write_stdin("/nonsense\n").output().unwrap();
    support::check_refusal(&run, &["/nonsense"]);
}

#[test]
fn help_is_there_for_every_command() {
    let bench = ["bench model", "bench ops", "bench check"];
    let others = ["devices", "inspect", "tokenize", "generate", "chat", "score", "pull", "merge", "export-adapter"];
    for command in others.into_iter().chain(bench) {
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = text(&words);
        assert!(help.contains("Examples:") && help.contains("--json"), "{command}");
    }
    assert!(text(&["--version"]).starts_with("samara "));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    use std::io::Read;
    use std::process::{Command, Stdio};
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("samara"))
        .args(["generate", "--device", "cpu", "--prompt", "Once", "--max-tokens", "400"])
        .args(NO_END)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
}

/// The flag is up before the seed is told, so the signal always finds a generation to cancel.
#[cfg(unix)]
#[test]
fn ctrl_c_ends_with_what_there_is() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("samara"))
        .args(["-v", "generate", "--device", "cpu", "--prompt", "Once", "--max-tokens", "400", "--json"])
        .args(NO_END)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(stderr.any(|line| line.unwrap().starts_with("seed ")));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    let report: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(report["finish_reason"], "cancelled");
}

#[test]
fn a_model_folder_may_have_any_name() {
    let folder = copy_of_tiny();
    let odd = folder.path().join("späte Ulme");
    fs::create_dir(&odd).unwrap();
    for entry in fs::read_dir(tiny()).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), odd.join(entry.file_name())).unwrap();
    }
    output(&["generate", "--model", arg(&odd), "--prompt", "Hi", "--max-tokens", "1"]);
}

#[test]
fn operations_are_measured_against_ceilings_and_burn() {
    let sizes = ["--sizes", "32x64", "--tokens", "1,5", "--formats", "f32,q4_k,q8_0", "--keys", "8", "-r", "1"];
    let report = json(&[&["bench", "ops", "--device", "cpu", "--json"], &sizes[..]].concat());
    assert!(
        report["copy_gb_per_s"].as_f64().unwrap() > 0.0 && report["multiply_add_gflop_per_s"].as_f64().unwrap() > 0.0
    );
    let cases = report["cases"].as_array().unwrap();
    // Rows of 64 values hold no block of q4_k.
    assert!(cases.iter().all(|case| case["format"] != "q4_k" && case["median_us"].as_f64().unwrap() > 0.0));
    let products: Vec<_> = cases.iter().filter(|case| case["times_burn"].is_number()).collect();
    assert_eq!(products.len(), 2 * 2 * 2, "formats, families and numbers of tokens: {products:?}");
}

#[test]
fn a_synthetic_model_is_benched_without_a_file() {
    let shape = ["--synthetic", "tiny", "--synthetic-type", "q4_0", "--prompts", "3", "-n", "2", "-r", "1"];
    let report = json(&[&["bench", "model", "--device", "cpu", "--json"], &shape[..]].concat());
    assert!(report["generation"][0]["tokens_per_s"].as_f64().unwrap() > 0.0, "{report}");
}

#[test]
fn the_cpu_agrees_with_itself() {
    let report = json(&["bench", "check", "--device", "cpu", "--json"]);
    assert_eq!(report["n_failed"], 0);
    assert!(report["n_cases"].as_u64().unwrap() > 100);
}
