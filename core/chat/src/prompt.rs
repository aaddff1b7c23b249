//! What is to be continued, and its token ids.

use samara_text::{AddSpecial, Message, RenderOptions, ThinkSplitter};

use crate::{ChatError, Dialect};

/// Something to continue.
#[derive(Debug, Clone)]
pub enum Prompt {
    /// Plain text, for a model as a predictor. The tokenizer adds what it puts around texts, such as a first token.
    Text(String),
    /// Token ids as they are.
    Ids(Vec<u32>),
    /// A conversation, through the checkpoint's chat template.
    Chat {
        messages: Vec<Message>,
        /// `add_generation_prompt` makes the model answer.
        options: RenderOptions,
    },
}

/// A prompt as the model gets it.
#[derive(Debug, Clone)]
pub struct Encoded {
    /// Token ids.
    pub ids: Vec<u32>,
    /// The rendered text; of ids, their text with special tokens shown.
    pub text: String,
    /// Ids that end the continuation.
    pub stop_ids: Vec<u32>,
    /// Tells reasoning from answer; `None` for a predictor, whose text is shown as it is.
    pub(crate) splitter: Option<ThinkSplitter>,
}

impl Prompt {
    /// A conversation that the model is to answer.
    pub fn answer(messages: Vec<Message>) -> Self {
        Self::Chat { messages, options: RenderOptions { add_generation_prompt: true, ..RenderOptions::default() } }
    }
}

impl Dialect {
    /// The token ids of a prompt.
    ///
    /// Special tokens written in a text or a message become their ids, as the reference implementation has it. A
    /// conversation is encoded as rendered: the template writes its own first token, and no second one is added.
    ///
    /// # Errors
    /// The text cannot be encoded, or the template is missing, broken, or refuses the messages.
    pub fn encode(&self, prompt: &Prompt) -> Result<Encoded, ChatError> {
        match prompt {
            Prompt::Text(text) => {
                let ids = self.ids(text, AddSpecial::Yes)?;
                Ok(self.continuation(ids, text.clone()))
            }
            Prompt::Ids(ids) => {
                let text = self.tokenizer().decode(ids, samara_text::ShowSpecial::Yes);
                Ok(self.continuation(ids.clone(), text))
            }
            Prompt::Chat { messages, options } => {
                let template = self.template(!options.tools.is_empty())?;
                let text = template.render(messages, options).map_err(|error| self.error(error))?;
                let ids = self.ids(&text, AddSpecial::No)?;
                let splitter = Some(ThinkSplitter::after_prompt(&text));
                Ok(Encoded { ids, text, stop_ids: self.turn_end_ids(), splitter })
            }
        }
    }

    fn ids(&self, text: &str, special: AddSpecial) -> Result<Vec<u32>, ChatError> {
        self.tokenizer().encode(text, special).map_err(|error| self.error(error))
    }

    fn continuation(&self, ids: Vec<u32>, text: String) -> Encoded {
        Encoded { ids, text, stop_ids: self.stop_ids().to_vec(), splitter: None }
    }
}
