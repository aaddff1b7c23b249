//! What was said, as data: messages that can be taken back, forgotten and written down.

use samara_text::Message;
use serde::{Deserialize, Serialize};

use crate::{ChatError, Prompt, Written};

const SYSTEM: &str = "system";
const USER: &str = "user";
const ASSISTANT: &str = "assistant";
/// The key under which published templates look for the reasoning of an earlier turn.
const REASONING: &str = "reasoning_content";

/// The messages of one conversation, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Saved")]
pub struct Conversation {
    messages: Vec<Message>,
}

/// What a file may hold: our object, or a bare list of messages as other tools write it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Saved {
    Object { messages: Vec<Message> },
    List(Vec<Message>),
}

impl From<Saved> for Conversation {
    fn from(saved: Saved) -> Self {
        let (Saved::Object { messages } | Saved::List(messages)) = saved;
        Self { messages }
    }
}

impl Conversation {
    /// Nothing said yet, under instructions if there are any.
    pub fn new(system: Option<&str>) -> Self {
        Self { messages: system.map(|text| Message::new(SYSTEM, text)).into_iter().collect() }
    }

    /// Every message, oldest first.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The instructions that the conversation opens with.
    pub fn system(&self) -> Option<&str> {
        self.messages.first().filter(|message| message.role == SYSTEM)?.content.as_deref()
    }

    /// Replaces the instructions, or takes them away; the rest of the conversation stays.
    pub fn set_system(&mut self, text: Option<&str>) {
        let n_old = usize::from(self.has_system());
        self.messages.splice(..n_old, text.map(|text| Message::new(SYSTEM, text)));
    }

    /// The user says something.
    pub fn say(&mut self, text: &str) {
        self.messages.push(Message::new(USER, text));
    }

    /// The model has answered. Its reasoning is kept beside the answer, where templates that want it look for it.
    pub fn answered(&mut self, written: &Written) {
        let mut message = Message::new(ASSISTANT, written.answer.as_str());
        if !written.reasoning.is_empty() {
            message.extra.insert(REASONING.into(), written.reasoning.as_str().into());
        }
        self.messages.push(message);
    }

    /// Takes back the last thing the user said and all that followed. Gives its text, `None` where there was none.
    pub fn undo(&mut self) -> Option<String> {
        let last = self.messages.iter().rposition(|message| message.role == USER)?;
        self.messages.drain(last..).next()?.content
    }

    /// Forgets everything but the instructions.
    pub fn reset(&mut self) {
        self.messages.truncate(usize::from(self.has_system()));
    }

    /// The conversation as a prompt that the model is to answer.
    pub fn prompt(&self) -> Prompt {
        Prompt::answer(self.messages.clone())
    }

    /// The conversation as JSON: `{"messages": [{"role", "content", ..}, ..]}`.
    ///
    /// # Errors
    /// None that is known; serialising is fallible by type.
    pub fn to_json(&self) -> Result<String, ChatError> {
        serde_json::to_string_pretty(self).map_err(|source| not_a_conversation("the conversation", source))
    }

    /// Reads what [`Self::to_json`] gives, or a bare list of messages. `place` stands for it in messages.
    ///
    /// # Errors
    /// It is neither.
    pub fn from_json(json: &str, place: &str) -> Result<Self, ChatError> {
        serde_json::from_str(json).map_err(|source| not_a_conversation(place, source))
    }

    fn has_system(&self) -> bool {
        self.messages.first().is_some_and(|message| message.role == SYSTEM)
    }
}

fn not_a_conversation(place: &str, source: serde_json::Error) -> ChatError {
    ChatError::ConversationJson { place: place.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(reasoning: &str, answer: &str) -> Written {
        Written { reasoning: reasoning.into(), answer: answer.into(), ids: vec![] }
    }

    fn talk() -> Conversation {
        let mut talk = Conversation::new(Some("Be kind."));
        talk.say("Hi");
        talk.answered(&written("", "Hello!"));
        talk.say("Why?");
        talk.answered(&written("Let me see.", "Because."));
        talk
    }

    fn check_contents(talk: &Conversation, expected: &[&str]) {
        let contents: Vec<_> = talk.messages().iter().filter_map(|m| m.content.as_deref()).collect();
        assert_eq!(contents, expected);
    }

    #[test]
    fn undo_takes_back_one_exchange_at_a_time() {
        let mut talk = talk();
        assert_eq!(talk.undo().as_deref(), Some("Why?"));
        check_contents(&talk, &["Be kind.", "Hi", "Hello!"]);
        talk.say("unanswered");
        assert_eq!(talk.undo().as_deref(), Some("unanswered"));
        assert_eq!(talk.undo().as_deref(), Some("Hi"));
        assert_eq!(talk.undo(), None);
        check_contents(&talk, &["Be kind."]);
    }

    #[test]
    fn reset_keeps_the_instructions() {
        let mut talk = talk();
        talk.reset();
        check_contents(&talk, &["Be kind."]);
        talk.set_system(None);
        talk.reset();
        check_contents(&talk, &[]);
    }

    #[test]
    fn instructions_can_be_replaced_taken_away_and_given() {
        let mut talk = talk();
        talk.set_system(Some("Be brief."));
        check_contents(&talk, &["Be brief.", "Hi", "Hello!", "Why?", "Because."]);
        talk.set_system(None);
        assert_eq!(talk.system(), None);
        check_contents(&talk, &["Hi", "Hello!", "Why?", "Because."]);
        talk.set_system(Some("Be kind."));
        assert_eq!(talk, self::talk());
    }

    #[test]
    fn json_keeps_everything() {
        let json = talk().to_json().unwrap();
        assert!(json.contains("\"reasoning_content\": \"Let me see.\""), "{json}");
        assert_eq!(Conversation::from_json(&json, "test").unwrap(), talk());
    }

    #[test]
    fn a_bare_list_and_null_content_are_read() {
        let json =
            r#"[{"role":"assistant","content":null,"function_calls":"f()"},{"role":"environment","content":"4"}]"#;
        let talk = Conversation::from_json(json, "test").unwrap();
        assert_eq!(talk.messages()[0].extra["function_calls"], "f()");
        check_contents(&talk, &["4"]);
    }

    #[test]
    fn other_json_is_refused_by_place() {
        for json in ["", "{}", "[1]", "{\"messages\": 3}", "[{\"content\": \"no role\"}]"] {
            let error = Conversation::from_json(json, "talk.json").unwrap_err();
            assert_eq!(error.to_string(), "talk.json: not a conversation", "{json}");
        }
    }
}
