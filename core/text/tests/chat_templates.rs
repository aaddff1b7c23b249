//! Chat templates: what the published ones render, and what a bad one gives.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use samara_text::{
    ChatTemplate, CivilTime, Message, RenderOptions, TemplateSources, TemplateTokens, TextError, choose_template,
};
use serde_json::{Value, json};

const TULU: &str = include_str!("templates/tulu.jinja");
const OLMO: &str = include_str!("templates/olmo.jinja");
const OLMO3_INSTRUCT: &str = include_str!("templates/olmo3_instruct.jinja");
const OLMO_THINKER: &str = include_str!("templates/olmo_thinker.jinja");

fn tokens() -> TemplateTokens {
    let end = Some("<|endoftext|>".to_owned());
    TemplateTokens { bos: end.clone(), eos: end, pad: Some("<|pad|>".to_owned()), unk: None }
}

fn generate() -> RenderOptions {
    RenderOptions { add_generation_prompt: true, ..RenderOptions::default() }
}

fn messages(json: Value) -> Vec<Message> {
    serde_json::from_value(json).unwrap()
}

fn render(source: &str, list: Value, options: &RenderOptions) -> Result<String, TextError> {
    ChatTemplate::new(source, tokens())?.render(&messages(list), options)
}

fn check_render(source: &str, list: Value, options: &RenderOptions, expected: &str) {
    assert_eq!(render(source, list, options).unwrap(), expected);
}

const NO_FUNCTIONS: &str = "<|im_start|>system\nYou are a helpful function-calling AI assistant. \
    You do not currently have access to any functions. <functions></functions><|im_end|>\n";

#[test]
fn think_prompt_ends_inside_the_reasoning() {
    let expected = "<|im_start|>system\nYou are a helpful AI assistant.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>";
    check_render(OLMO_THINKER, json!([{"role": "user", "content": "Hi"}]), &generate(), expected);
}

#[test]
fn earlier_reasoning_is_left_out_of_the_next_prompt() {
    let list = json!([
        {"role": "system", "content": "S"},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "hm</think>\n\nHello"},
        {"role": "user", "content": "More"},
    ]);
    let expected = "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello<|im_end|>\n\
        <|im_start|>user\nMore<|im_end|>\n<|im_start|>assistant\n<think>";
    check_render(OLMO_THINKER, list, &generate(), expected);
}

#[test]
fn content_null_with_function_calls_and_environment_turns_render() {
    let list = json!([
        {"role": "system", "content": "S", "functions": "[{\"name\":\"f\"}]"},
        {"role": "user", "content": "U"},
        {"role": "assistant", "content": null, "function_calls": "f(a=1)"},
        {"role": "environment", "content": "42"},
        {"role": "assistant", "content": "done"},
    ]);
    let expected = "<|im_start|>system\nS <functions>[{\"name\":\"f\"}]</functions><|im_end|>\n<|im_start|>user\nU<|im_end|>\n\
        <|im_start|>assistant\n<function_calls>f(a=1)</function_calls><|im_end|>\n<|im_start|>environment\n42<|im_end|>\n\
        <|im_start|>assistant\ndone<|endoftext|><|im_start|>assistant\n";
    check_render(OLMO, list, &generate(), expected);
}

#[test]
fn empty_messages_give_only_the_default_system_turn() {
    check_render(OLMO, json!([]), &generate(), NO_FUNCTIONS);
}

#[test]
fn functions_on_a_user_message_follow_it() {
    let list = json!([{"role": "user", "content": "U", "functions": "[]"}]);
    let expected = format!("{NO_FUNCTIONS}<|im_start|>user\nU\n<functions>[]</functions><|im_end|>\n");
    check_render(OLMO, list, &RenderOptions::default(), &expected);
}

#[test]
fn only_a_system_message_or_empty_content_renders() {
    let expected = "<|im_start|>system\n You do not currently have access to any functions. <functions></functions><|im_end|>\n<|im_start|>assistant\n";
    check_render(OLMO, json!([{"role": "system", "content": ""}]), &generate(), expected);
}

#[test]
fn tulu_ends_the_last_answer_without_a_line_break() {
    let list = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "A"}]);
    let plain = TemplateTokens { bos: None, ..tokens() };
    let template = ChatTemplate::new(TULU, plain).unwrap();
    let text = template.render(&messages(list.clone()), &generate()).unwrap();
    assert_eq!(text, "<|user|>\nHi\n<|assistant|>\nA<|endoftext|><|assistant|>\n");
    let more = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "A"}, {"role": "user", "content": "B"}]);
    check_render(
        TULU,
        more,
        &generate(),
        "<|endoftext|><|user|>\nHi\n<|assistant|>\nA<|endoftext|>\n<|user|>\nB\n<|assistant|>\n",
    );
}

#[test]
fn tools_are_written_as_python_writes_json_in_the_callers_key_order() {
    let tool = json!({"type": "function", "function": {"name": "get", "parameters": {"b": 1, "a": [true, null, 1.0, "é<\"'"]}}});
    let options = RenderOptions { tools: vec![tool], ..generate() };
    let text = render(OLMO3_INSTRUCT, json!([{"role": "user", "content": "Hi"}]), &options).unwrap();
    let functions = "<functions>[{\"type\": \"function\", \"function\": {\"name\": \"get\", \"parameters\": {\"b\": 1, \"a\": [true, null, 1.0, \"é<\\\"'\"]}}}]</functions><|im_end|>\n";
    assert!(text.contains(functions), "{text}");
    assert!(text.ends_with("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"), "{text}");
    check_render(OLMO3_INSTRUCT, json!([]), &RenderOptions::default(), NO_FUNCTIONS);
}

#[test]
fn values_print_as_in_python() {
    let source = "{{ true }} {{ none }} {{ [1, 'a', none] }} {{ {'k': 1.0} }} {{ 'x' ~ none ~ true }} {{ missing }}|{{ 7 // 2 }} {{ 2 * 3 + 1 - 2 ** 2 * 2 }} {{ 'ab' * 2 }} {{ ([1] + [2]) | length }}";
    check_render(
        source,
        json!([]),
        &RenderOptions::default(),
        "True None [1, 'a', None] {'k': 1.0} xNoneTrue |3 -1 abab 2",
    );
}

#[test]
fn python_methods_and_tags_that_templates_use_work() {
    let source = "{%- generation %}{{ ' a,b '.strip().split(',')[-1].upper() }}{% endgeneration %}\
        {% for m in messages[::-1] %}{% if loop.index0 == 1 %}{% continue %}{% endif %}{{ m.role[0] }}{% endfor %}\
        {{ 'x'.startswith('x') }}{{ {'a': 1}.items() | list }}{{ messages | map(attribute='role') | join('+') }}\
        {{ 'abc'[1:] }}{{ 'a' in 'abc' and 'z' not in ['y'] }}{% set x %}{{ 'kept' }}{% endset %}{{ x | trim }}";
    let list = json!([{"role": "user", "content": ""}, {"role": "assistant", "content": ""}, {"role": "system", "content": ""}]);
    check_render(source, list, &RenderOptions::default(), "BsuTrue[['a', 1]]user+assistant+systembcTruekept");
}

#[test]
fn an_empty_list_can_be_reversed() {
    check_render(
        "{{ messages[::-1] | length }}{{ ''[::-1] }}{{ 'ab'[::-1] }}{{ [1, 2, 3][-2:] }}",
        json!([]),
        &generate(),
        "0ba[2, 3]",
    );
}

#[test]
fn ranges_and_tests_are_those_of_python() {
    let source = "{{ range(3) | list }}{{ range(2, -1, -1) | list }}{{ range(-1) | list }}\
        {{ none is iterable }}{{ 'a' is iterable }}{{ 'a' is sequence }}{{ {} is sequence }}{{ tools is iterable }}{{ nothing is iterable }}";
    check_render(source, json!([]), &generate(), "[0, 1, 2][2, 1, 0][]FalseTrueTrueTrueFalseFalse");
}

#[test]
fn the_date_is_data_and_undefined_without_it() {
    let source = "{% if strftime_now is defined %}{{ strftime_now('%d %b %Y %H:%M') }}{% else %}none{% endif %}";
    let now = CivilTime { year: 2025, month: 2, day: 3, hour: 4, minute: 5, second: 6 };
    check_render(source, json!([]), &RenderOptions { now: Some(now), ..RenderOptions::default() }, "03 Feb 2025 04:05");
    check_render(source, json!([]), &RenderOptions::default(), "none");
}

#[test]
fn further_variables_reach_the_template() {
    let variables = json!({"enable_thinking": false}).as_object().unwrap().clone();
    let options = RenderOptions { variables, ..RenderOptions::default() };
    check_render(
        "{{ enable_thinking }}{{ add_generation_prompt }}{{ tools is none }}",
        json!([]),
        &options,
        "FalseFalseTrue",
    );
}

fn choose(file: Option<&str>, field: Option<&Value>, has_tools: bool) -> Option<String> {
    choose_template(TemplateSources { file, field, has_tools }).unwrap().map(str::to_owned)
}

#[test]
fn the_file_wins_over_the_field_and_lists_are_searched_by_name() {
    let list = json!([{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"}]);
    let text = json!("F");
    assert_eq!(choose(Some("J"), Some(&list), true).as_deref(), Some("J"));
    assert_eq!(choose(None, Some(&text), true).as_deref(), Some("F"));
    assert_eq!(choose(None, Some(&list), false).as_deref(), Some("D"));
    assert_eq!(choose(None, Some(&list), true).as_deref(), Some("T"));
    assert_eq!(choose(None, Some(&json!([{"name": "x", "template": "X"}])), true).as_deref(), Some("X"));
    assert_eq!(choose(None, Some(&json!(null)), true), None);
    assert_eq!(choose(None, Some(&json!([])), true), None);
    assert_eq!(choose(None, None, false), None);
    for field in
        [json!(1), json!([{"name": "a"}]), json!([{"name": "a", "template": ""}, {"name": "b", "template": ""}])]
    {
        let error = choose_template(TemplateSources { field: Some(&field), ..TemplateSources::default() }).unwrap_err();
        assert!(matches!(error, TextError::TemplateField { .. }), "{error}");
    }
}

fn error_of(source: &str) -> TextError {
    render(source, json!([{"role": "user", "content": "Hi"}]), &generate()).unwrap_err()
}

#[test]
fn a_template_that_raises_says_why() {
    assert_eq!(
        error_of("{{ raise_exception('Conversation roles must alternate') }}").to_string(),
        "the chat template refused the messages: Conversation roles must alternate"
    );
    let error = render(OLMO_THINKER, json!([{"role": "tool", "content": "x"}]), &generate()).unwrap_err();
    assert_eq!(error.to_string(), "the chat template refused the messages: unknown role tool");
}

#[test]
fn a_template_that_loops_is_stopped() {
    let sources = [
        "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}{% endfor %}",
        "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    ];
    for source in sources {
        let error = error_of(source);
        assert!(matches!(error, TextError::TemplateSteps { .. } | TextError::Template { .. }), "{source}: {error}");
    }
}

#[test]
fn a_template_that_grows_is_stopped_before_memory_is_gone() {
    let double = |body: &str| format!("{{% set x = 'xxxxxxxx' %}}{}", body.repeat(60));
    let sources = [
        double("{% set x = x ~ x %}"),
        double("{% set x = x + x %}"),
        double("{% set x = x * 8 %}"),
        double("{% set x %}{{ x }}{{ x }}{% endset %}"),
        double("{% set x = x.replace('x', 'xxxxxxxx') %}"),
        double("{% set x = x | replace('x', 'xxxxxxxx') %}"),
        double("{% set x = x.join([x, x, x]) %}"),
        double("{% set x = [x, x] | join(x) %}"),
        "{{ 'a\nb' | indent(99999999) }}".to_owned(),
        format!("{}{{{{ x }}}}", double("{% set x = [x, x] %}")),
        format!("{}{{{{ x | tojson }}}}", double("{% set x = [x, x] %}")),
        format!("{}{{% set y = x | string %}}", double("{% set x = [x, x] %}")),
        format!("{{% set x = [1] %}}{}", "{% set x = x + x %}".repeat(60)),
        "{% set x = [1] * 1000000000000 %}{{ x | list | length }}".to_owned(),
        "{{ range(100000000) | list | length }}".to_owned(),
        "{{ 'x' * 99999999 }}".to_owned(),
        "{{ '%099999999d' | format(1) }}".to_owned(),
        "{{ '{:>99999999}'.format(1) }}".to_owned(),
        "{{ {'a': 1} | tojson(indent=99999999) }}{{ 'x' * 99999999 }}".to_owned(),
    ];
    for source in sources {
        let error = error_of(&source);
        assert!(matches!(error, TextError::TemplateSize { .. } | TextError::TemplateSteps { .. }), "{source}: {error}");
    }
}

#[test]
fn a_broken_template_names_the_line() {
    let error = error_of("line one\n{% if %}");
    assert!(matches!(error, TextError::Template { line: 2, .. }), "{error}");
    let error = error_of("a\nb\n{{ messages.nope() }}");
    assert!(matches!(error, TextError::Template { line: 3, .. }), "{error}");
    let error = error_of("{% include 'x' %}");
    assert!(matches!(error, TextError::Template { line: 1, .. }), "{error}");
}
