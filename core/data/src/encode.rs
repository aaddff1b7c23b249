//! A row as a document: which tokens it has and which of them are to be predicted.

use samara_text::{AddSpecial, ChatTemplate, Message, RenderOptions, TextError, Tokenizer};
use serde_json::Value;

use crate::dataset::{DataOptions, TrainOn};
use crate::document::Document;
use crate::report::BadRow;
use crate::row::{Fault, Row};
use crate::turns::Conversation;

/// What turns rows into documents.
#[derive(Clone, Copy)]
pub(crate) struct Encoder<'a> {
    pub tokenizer: &'a Tokenizer,
    pub template: Option<&'a ChatTemplate>,
    pub options: &'a DataOptions,
}

impl Encoder<'_> {
    pub fn document(&self, row: &Row) -> Result<Document, Fault> {
        let document = match row {
            Row::Text(text) => self.text(text)?,
            Row::Completion { prompt, completion } => self.completion(prompt, completion)?,
            Row::Chat { messages, tools } => self.chat(messages, tools)?,
        };
        self.check(document)
    }

    fn check(&self, document: Document) -> Result<Document, Fault> {
        let vocab_size = self.options.vocab_size;
        if let Some(id) = document.ids.iter().find(|id| **id as usize >= vocab_size) {
            return Err(Fault::new(BadRow::TokenId, format!("token {id}, but the model has {vocab_size}")));
        }
        if document.n_trained() == 0 {
            return Err(Fault::new(BadRow::NothingToTrain, "no token is to be predicted"));
        }
        Ok(document)
    }

    fn text(&self, text: &str) -> Result<Document, Fault> {
        let mut ids = self.tokenizer.encode(text, AddSpecial::Yes).map_err(refused)?;
        if !ids.ends_with(&self.options.end_ids) {
            ids.extend(&self.options.end_ids);
        }
        Ok(Document::all_trained(ids))
    }

    fn completion(&self, prompt: &str, completion: &str) -> Result<Document, Fault> {
        let (asked, answered) = self.halves(prompt, completion)?;
        let asked = [self.tokenizer.ids_before(), &asked].concat();
        let answered = [answered.as_slice(), &self.options.end_ids].concat();
        let trains_prompt = self.options.train_on == TrainOn::All;
        let trained = [vec![trains_prompt; asked.len()], vec![true; answered.len()]].concat();
        Ok(Document { ids: [asked, answered].concat(), trained })
    }

    /// The tokens of both: as one text where a token ends with the prompt, since a tokenizer may treat a start of text
    /// in a special way; else each alone, since that is how a model meets a prompt.
    fn halves(&self, prompt: &str, completion: &str) -> Result<(Vec<u32>, Vec<u32>), Fault> {
        let whole = self.tokenizer.encode_with_ranges(&[prompt, completion].concat()).map_err(refused)?;
        let border = whole.partition_point(|(_, bytes)| bytes.end <= prompt.len());
        if whole.get(border).is_none_or(|(_, bytes)| bytes.start >= prompt.len()) {
            let (asked, answered) = whole.split_at(border);
            return Ok((asked.iter().map(|it| it.0).collect(), answered.iter().map(|it| it.0).collect()));
        }
        let alone = |text| self.tokenizer.encode(text, AddSpecial::No).map_err(refused);
        Ok((alone(prompt)?, alone(completion)?))
    }

    fn chat(&self, messages: &[Message], tools: &[Value]) -> Result<Document, Fault> {
        let template = self.template.ok_or_else(|| Fault::new(BadRow::Template, "the model has none for messages"))?;
        let tools = [&self.options.render.tools, tools].concat();
        let options = RenderOptions { tools, ..self.options.render.clone() };
        let conversation = Conversation::new(template, self.tokenizer, messages, options)?;
        match self.options.train_on {
            TrainOn::All => Ok(Document::all_trained(conversation.ids())),
            TrainOn::Assistant => {
                let trained = conversation.written_by_assistant()?;
                Ok(Document { ids: conversation.ids(), trained })
            }
        }
    }
}

fn refused(error: TextError) -> Fault {
    Fault::new(BadRow::Tokenizer, error.to_string())
}
