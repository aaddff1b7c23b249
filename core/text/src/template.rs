//! Chat templates: a conversation to the prompt that the model was trained on.
//!
//! The template is the checkpoint's own Jinja program, run as the reference runs it: blocks trimmed, Python methods on strings and maps,
//! `raise_exception`, `strftime_now`, and values printed as Python prints them. A template comes from a stranger,
//! so its steps and its output are limited ([`limits`]).

mod choose;
mod environment;
mod filters;
mod guard;
mod limits;
mod prepare;
mod slice;

use minijinja::{Error, ErrorKind, Value, context};

pub use choose::{TemplateSources, choose_template};

use crate::chat::{Message, RenderOptions, TemplateTokens};
use crate::error::TextError;
use environment::Refused;
use limits::{Limits, TooLarge};

/// A chat template that compiles.
#[derive(Debug, Clone)]
pub struct ChatTemplate {
    source: String,
    tokens: TemplateTokens,
    longest_text_bytes: usize,
}

impl ChatTemplate {
    /// The template of this Jinja source.
    ///
    /// # Errors
    /// The source is not valid Jinja; the error names the line.
    pub fn new(source: &str, tokens: TemplateTokens) -> Result<Self, TextError> {
        let source = prepare::prepared(source);
        let longest_text_bytes = compile(&source)?;
        Ok(Self { source, tokens, longest_text_bytes })
    }

    /// The Jinja source, as it is run.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The prompt for these messages. Encode it with [`crate::AddSpecial::No`]: the template has written the special tokens.
    ///
    /// # Errors
    /// The template refuses the messages, uses something that does not exist, or exceeds its limits of steps or bytes.
    pub fn render(&self, messages: &[Message], options: &RenderOptions) -> Result<String, TextError> {
        let limits = Limits::for_messages(messages).with_longest_text(self.longest_text_bytes);
        let env = environment::new(&limits, options.now);
        let rendered = guard::run(&env, &self.source, self.context(messages, options));
        rendered.map_err(|error| text_error(&error, &limits))
    }

    fn context(&self, messages: &[Message], options: &RenderOptions) -> Value {
        let tools = (!options.tools.is_empty()).then(|| Value::from_serialize(&options.tools));
        let tokens = [
            ("bos_token", &self.tokens.bos),
            ("eos_token", &self.tokens.eos),
            ("pad_token", &self.tokens.pad),
            ("unk_token", &self.tokens.unk),
        ];
        let tokens: Value = tokens.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?))).collect();
        context! {
            messages => Value::from_serialize(messages),
            tools => tools,
            documents => (),
            add_generation_prompt => options.add_generation_prompt,
            ..context! { ..Value::from_serialize(&options.variables), ..tokens }
        }
    }
}

/// Compiles the source to see that it can be; gives the length of its longest text between tags.
fn compile(source: &str) -> Result<usize, TextError> {
    let limits = Limits::for_messages(&[]);
    let env = environment::new(&limits, None);
    guard::longest_text_bytes(&env, source).map_err(|error| text_error(&error, &limits))
}

fn text_error(error: &Error, limits: &Limits) -> TextError {
    if let Some(Refused(reason)) = cause(error) {
        return TextError::TemplateRefused { reason: reason.clone() };
    }
    if cause::<TooLarge>(error).is_some() || error.kind() == ErrorKind::WriteFailure {
        return TextError::TemplateSize { limit: limits::MAX_TEXT_BYTES };
    }
    if error.kind() == ErrorKind::OutOfFuel {
        return TextError::TemplateSteps { limit: limits.fuel };
    }
    TextError::Template { line: error.line().unwrap_or(0), reason: error.to_string() }
}

/// The error of this type among the causes, if there is one.
fn cause<E: std::error::Error + 'static>(error: &Error) -> Option<&E> {
    let mut next: Option<&(dyn std::error::Error + 'static)> = std::error::Error::source(error);
    while let Some(inner) = next {
        if let Some(found) = inner.downcast_ref() {
            return Some(found);
        }
        next = inner.source();
    }
    None
}
