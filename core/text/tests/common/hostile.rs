//! Bytes from strangers as tokenizer metadata and as chat templates: an error or a result, never a panic or a hang.
//! The fuzz targets and the corpus test share this.

use samara_text::{
    AddSpecial, ChatTemplate, CivilTime, Message, RenderOptions, ShowSpecial, TemplateTokens, Tokenizer, Vocab,
};

const SEPARATOR: &str = "\n---\n";
const TEXTS: [&str; 3] = ["Hello  world 123\n\n<a> don't", "日本語😀 \u{2581}x\0", "<|im_start|>aab<0x41>"];

/// A `tokenizer.json` (first byte `{`), or a vocabulary in four sections: settings, tokens, merges, a text.
pub fn check_vocab(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (tokenizer, own_text) = match text.starts_with('{') {
        true => (Tokenizer::from_json(data), ""),
        false => vocab_of(&text),
    };
    let Ok(tokenizer) = tokenizer else { return };
    for text in TEXTS.into_iter().chain([own_text]) {
        check_tokenizer(&tokenizer, text);
    }
}

fn check_tokenizer(tokenizer: &Tokenizer, text: &str) {
    let Ok(ids) = tokenizer.encode(text, AddSpecial::Yes) else { return };
    let whole = tokenizer.decode(&ids, ShowSpecial::Yes);
    let mut stream = tokenizer.stream_with(ShowSpecial::Yes);
    let mut parts: String = ids.iter().filter_map(|id| stream.push(*id)).collect();
    parts.push_str(&stream.finish());
    assert_eq!(parts, whole);
    for id in ids.into_iter().take(8).chain([0, u32::MAX]) {
        let _ = (tokenizer.token(id), tokenizer.token_bytes(id), tokenizer.is_special(id));
    }
}

/// Settings are `model pre flags`; a line of tokens is its type (one digit), its score (one digit) and its text.
fn vocab_of(text: &str) -> (Result<Tokenizer, samara_text::TextError>, &str) {
    let mut sections = text.splitn(4, SEPARATOR);
    let mut section = || sections.next().unwrap_or_default();
    let mut settings = section().split(' ');
    let mut setting = || settings.next().unwrap_or_default();
    let (model, pre, flags) = (setting().to_owned(), setting(), setting());
    let flag =
        |c: char| flags.contains(c).then_some(true).or_else(|| flags.contains(c.to_ascii_lowercase()).then_some(false));
    let id = |c: char| flags.find(c).and_then(|at| u32::try_from(at).ok());
    let lines: Vec<&str> = section().lines().collect();
    let digit = |line: &str, at: usize| line.as_bytes().get(at).map_or(0, |b| u32::from(b.wrapping_sub(b'0')));
    let scores = lines.iter().map(|line| f32::from_bits(digit(line, 1).wrapping_mul(0x4020_0000)));
    let vocab = Vocab {
        model,
        pre: (!pre.is_empty()).then(|| pre.to_owned()),
        tokens: lines.iter().map(|line| line.get(2..).unwrap_or_default().to_owned()).collect(),
        scores: if flags.contains('x') { Vec::new() } else { scores.collect() },
        token_types: if flags.contains('y') { Vec::new() } else { lines.iter().map(|line| digit(line, 0)).collect() },
        merges: section().lines().map(str::to_owned).collect(),
        bos: id('0'),
        eos: id('1'),
        unk: id('2'),
        pad: id('3'),
        add_bos: flag('B'),
        add_eos: flag('E'),
        add_space_prefix: flag('S'),
    };
    (Tokenizer::from_vocab(vocab), section())
}

/// A Jinja source, rendered for a conversation with everything in it.
pub fn check_template(data: &[u8]) {
    let source = String::from_utf8_lossy(data);
    let end = Some("<|endoftext|>".to_owned());
    let tokens = TemplateTokens { bos: end.clone(), eos: end, pad: None, unk: None };
    let Ok(template) = ChatTemplate::new(&source, tokens) else { return };
    let messages =
        ["system", "user", "assistant", "environment"].map(|role| Message::new(role, "text <think>a</think> b"));
    let now = CivilTime { year: 2025, month: 1, day: 2, hour: 3, minute: 4, second: 5 };
    let tool = serde_json::json!({"type": "function", "function": {"name": "f", "parameters": {"a": [1, 2.5, null]}}});
    let full =
        RenderOptions { add_generation_prompt: true, tools: vec![tool], now: Some(now), ..RenderOptions::default() };
    for (messages, options) in [(&messages[..], full), (&[], RenderOptions::default())] {
        if let Ok(text) = template.render(messages, &options) {
            assert!(text.len() <= 16 << 20);
        }
    }
}
