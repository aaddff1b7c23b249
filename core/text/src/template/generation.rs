//! `{% generation %}` marks what an assistant wrote, for training masks. It prints nothing, and Jinja engines do not know it.

/// The template with its generation tags replaced by a condition that is always true, which keeps white-space control as it is.
pub(super) fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some((before, tag, after)) = next_tag(rest) {
        out.push_str(before);
        out.push_str(&replaced(tag));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Text before the next `{% ... %}`, the tag itself, and what follows.
fn next_tag(text: &str) -> Option<(&str, &str, &str)> {
    let start = text.find("{%")?;
    let end = start + text.get(start..)?.find("%}")? + "%}".len();
    Some((text.get(..start)?, text.get(start..end)?, text.get(end..)?))
}

fn replaced(tag: &str) -> String {
    let word = tag.trim_start_matches("{%").trim_end_matches("%}").trim_matches(['-', '+']).trim();
    match word {
        "generation" => tag.replacen("generation", "if true", 1),
        "endgeneration" => tag.replacen("endgeneration", "endif", 1),
        _ => tag.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::without_generation_tags;

    #[test]
    fn only_generation_tags_change() {
        let source = "{%- generation -%}a{% endgeneration %}{% if generation %}{{ '{%' }}{% endif %}";
        let expected = "{%- if true -%}a{% endif %}{% if generation %}{{ '{%' }}{% endif %}";
        assert_eq!(without_generation_tags(source), expected);
    }
}
