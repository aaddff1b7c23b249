//! What is changed in a template's source before it is compiled, token by token.
//!
//! - `{% generation %}` marks what an assistant wrote, for training masks. It prints nothing, and the engine does not know it:
//!   it becomes a condition that is always true.
//! - The engine multiplies constants while it compiles, before any limit applies (`'x' * 99999999`). A filter that returns its input
//!   before each `*` leaves the product to run time.

use std::ops::Range;

use minijinja::machinery::{Span, Token, WhitespaceConfig, tokenize};

/// Returns its input; it keeps the engine from seeing a constant.
pub(super) const SAME: &str = "samara_same";

/// The source to compile. One that cannot be split into tokens is left as it is, for the compiler to complain about.
pub(super) fn prepared(source: &str) -> String {
    let tokens: Result<Vec<(Token<'_>, Span)>, _> =
        tokenize(source, false, Default::default(), WhitespaceConfig::default()).collect();
    let Ok(tokens) = tokens else { return source.to_owned() };
    let before = std::iter::once(None).chain(tokens.iter().map(Some));
    let mut out = String::with_capacity(source.len());
    let mut done = 0;
    for (before, (token, span)) in before.zip(&tokens) {
        if let Some((place, text)) = edit(before.map(|(token, _)| token), token, span) {
            out.push_str(source.get(done..place.start).unwrap_or_default());
            out.push_str(&text);
            done = place.end;
        }
    }
    out.push_str(source.get(done..).unwrap_or_default());
    out
}

/// What stands in place of a range of bytes because of this token.
fn edit(before: Option<&Token<'_>>, token: &Token<'_>, span: &Span) -> Option<(Range<usize>, String)> {
    let (start, end) = (span.start_offset as usize, span.end_offset as usize);
    match (before, token) {
        (Some(Token::BlockStart), Token::Ident("generation")) => Some((start..end, "if true".to_owned())),
        (Some(Token::BlockStart), Token::Ident("endgeneration")) => Some((start..end, "endif".to_owned())),
        (Some(Token::ParenOpen | Token::Comma), Token::Mul) => None,
        (_, Token::Mul) => Some((start..start, format!("|{SAME} "))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::prepared;

    fn check(source: &str, expected: &str) {
        assert_eq!(prepared(source), expected);
    }

    #[test]
    fn generation_tags_become_conditions() {
        let source = "{%- generation -%}a{% endgeneration %}{% if generation %}{{ '{%' }}{% raw %}{% generation %}{% endraw %}{% endif %}";
        let expected =
            "{%- if true -%}a{% endif %}{% if generation %}{{ '{%' }}{% raw %}{% generation %}{% endraw %}{% endif %}";
        check(source, expected);
    }

    #[test]
    fn products_are_left_to_run_time() {
        check(
            "* {{ 'x' * 9 }}{{ f(*a, *b) * 2 ** 3 }}",
            "* {{ 'x' |samara_same * 9 }}{{ f(*a, *b) |samara_same * 2 ** 3 }}",
        );
        check("{{ 'open", "{{ 'open");
    }
}
