//! Function calls as Olmo 3 writes them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use samara_text::parse_calls;
use serde_json::json;

#[test]
fn nested_quotes_and_commas_are_read() {
    let calls = parse_calls(r#"f(a="x, y", b=[1,{"k":"v"}], c='it\'s')"#).unwrap();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].name, "f");
    assert_eq!(json!(calls[0].arguments), json!({"a": "x, y", "b": [1, {"k": "v"}], "c": "it's"}));
}

#[test]
fn two_calls_on_two_lines_are_two_calls() {
    let calls =
        parse_calls("get_weather(city=\"Paris\", unit=\"C\")\nother.tool(x=1, ok=True, none=None, f=-1.5e3,)\n")
            .unwrap();
    let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["get_weather", "other.tool"]);
    assert_eq!(json!(calls[1].arguments), json!({"x": 1, "ok": true, "none": null, "f": -1500.0}));
    assert_eq!(parse_calls(" \n").unwrap(), []);
}

#[test]
fn escapes_are_those_of_python_and_json() {
    let calls = parse_calls(r#"f(a="\n\t\\ \x41 \u00e9 \ud83d\ude00 \ud83d \q", b=(1, []), c={})"#).unwrap();
    assert_eq!(json!(calls[0].arguments), json!({"a": "\n\t\\ A é 😀 \u{FFFD} \\q", "b": [1, []], "c": {}}));
}

#[test]
fn a_broken_call_is_an_error_that_names_the_byte() {
    let cases = [
        ("f(a=", "function call, byte 4: expected a literal value, found the end"),
        ("f(a=\"x", "function call, byte 6: expected the closing quote, found the end"),
        ("f(1)", "function call, byte 3: expected '=', found \")\""),
        ("f(a=1 b=2)", "function call, byte 6: expected ',' or ')', found \"b=2)\""),
        ("日本(a=@)", "function call, byte 9: expected a literal value, found \"@)\""),
        ("= 1", "function call, byte 0: expected the name of a function, found \"= 1\""),
    ];
    for (text, expected) in cases {
        assert_eq!(parse_calls(text).unwrap_err().to_string(), expected, "{text}");
    }
    let deep = format!("f(a={}", "[".repeat(100_000));
    assert!(parse_calls(&deep).unwrap_err().to_string().contains("64 levels"));
}
