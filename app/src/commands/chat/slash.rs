//! What can be typed in a chat besides messages.

use std::path::PathBuf;

use anyhow::bail;
use samara_chat::Conversation;

const HELP: &str = "\
/help           this list
/reset          forget the conversation, keep the instructions
/undo           take back your last message and its answer
/system TEXT    give instructions; /system alone shows them, /system off takes them away
/save [FILE]    write the conversation to FILE (samara-chat.json)
/quit           leave, as Ctrl-D does
A message that begins with a slash is written with two.";

const SAVE_AS: &str = "samara-chat.json";

/// One line that is for the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Slash {
    Help,
    Reset,
    Undo,
    ShowSystem,
    /// None takes the instructions away.
    SetSystem(Option<String>),
    Save(PathBuf),
    Quit,
    Unknown(String),
}

impl Slash {
    /// The command in this line; `None` when it is a message.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let command = line.trim().strip_prefix('/').filter(|rest| !rest.starts_with('/'))?;
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        Some(match (name, rest.trim()) {
            ("help" | "?", _) => Self::Help,
            ("reset", _) => Self::Reset,
            ("undo", _) => Self::Undo,
            ("system", "") => Self::ShowSystem,
            ("system", "off") => Self::SetSystem(None),
            ("system", text) => Self::SetSystem(Some(text.to_owned())),
            ("save", "") => Self::Save(SAVE_AS.into()),
            ("save", path) => Self::Save(path.into()),
            ("quit" | "exit" | "bye", _) => Self::Quit,
            (name, _) => Self::Unknown(name.to_owned()),
        })
    }

    /// Does it, and says what was done.
    ///
    /// # Errors
    /// There is no such command, or the file cannot be written.
    pub(super) fn run(&self, talk: &mut Conversation) -> anyhow::Result<String> {
        Ok(match self {
            Self::Help => HELP.to_owned(),
            Self::Reset => {
                talk.reset();
                "forgotten".to_owned()
            }
            Self::Undo => talk.undo().map_or("nothing to take back".to_owned(), |text| format!("taken back: {text}")),
            Self::ShowSystem => talk.system().unwrap_or("no instructions").to_owned(),
            Self::SetSystem(text) => {
                talk.set_system(text.as_deref());
                if text.is_some() { "instructions set" } else { "instructions taken away" }.to_owned()
            }
            Self::Save(path) => {
                talk.save(path)?;
                format!("saved to {}", path.display())
            }
            Self::Quit => String::new(),
            Self::Unknown(name) => bail!("there is no /{name}; /help lists what there is"),
        })
    }
}

/// The message in a line: two slashes at the start stand for one.
pub(super) fn message(line: &str) -> &str {
    if line.starts_with("//") { line.get(1..).unwrap_or(line) } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_messages_are_told_apart() {
        let cases = [
            ("/help", Some(Slash::Help)),
            ("  /undo ", Some(Slash::Undo)),
            ("/system", Some(Slash::ShowSystem)),
            ("/system off", Some(Slash::SetSystem(None))),
            ("/system  Be brief. ", Some(Slash::SetSystem(Some("Be brief.".to_owned())))),
            ("/save", Some(Slash::Save(SAVE_AS.into()))),
            ("/save a b.json", Some(Slash::Save("a b.json".into()))),
            ("/nonsense x", Some(Slash::Unknown("nonsense".to_owned()))),
            ("Is 1/2 a number?", None),
            ("//etc is a path", None),
        ];
        for (line, expected) in cases {
            assert_eq!(Slash::parse(line), expected, "{line:?}");
        }
        assert_eq!(message("//etc is a path"), "/etc is a path");
    }

    #[test]
    fn undo_and_reset_keep_the_instructions() {
        let mut talk = Conversation::new(Some("Be kind."));
        talk.say("Hi");
        Slash::Undo.run(&mut talk).unwrap();
        assert_eq!(Slash::Undo.run(&mut talk).unwrap(), "nothing to take back");
        Slash::Reset.run(&mut talk).unwrap();
        assert_eq!(talk.system(), Some("Be kind."));
    }

    #[test]
    fn an_unknown_command_is_not_sent_to_the_model() {
        let error = Slash::Unknown("foo".to_owned()).run(&mut Conversation::default()).unwrap_err();
        assert_eq!(error.to_string(), "there is no /foo; /help lists what there is");
    }
}
