//! Display of a tool's question: attributed, escaped, and distinguishable from questions of the
//! host.

use std::fmt::Write as _;

use crate::{AnswerType, ApprovalRequest, Question};
use kitbag_base::text::{is_hidden, is_ignorable, printable};

/// Words that request a secret: each entry is a sequence of whole words.
const SECRET_WORDS: [&[&str]; 47] = [
    &["password"],
    &["passwords"],
    &["passwd"],
    &["passphrase"],
    &["passphrases"],
    &["passcode"],
    &["pass", "phrase"],
    &["pass", "word"],
    &["pass", "code"],
    &["pin"],
    &["pwd"],
    &["token"],
    &["tokens"],
    &["secret"],
    &["secrets"],
    &["credential"],
    &["credentials"],
    &["mnemonic"],
    &["otp"],
    &["totp"],
    &["2fa"],
    &["mfa"],
    &["cvv"],
    &["cvc"],
    &["apikey"],
    &["api", "key"],
    &["api", "keys"],
    &["access", "key"],
    &["private", "key"],
    &["secret", "key"],
    &["ssh", "key"],
    &["signing", "key"],
    &["encryption", "key"],
    &["recovery", "key"],
    &["recovery", "code"],
    &["recovery", "phrase"],
    &["seed", "phrase"],
    &["backup", "code"],
    &["security", "code"],
    &["verification", "code"],
    &["one", "time", "code"],
    &["credit", "card"],
    &["passwort"],
    &["kennwort"],
    &["mot", "de", "passe"],
    &["contraseña"],
    &["senha"],
];

/// Letters that look like Latin letters, and those Latin letters.
const LOOK_ALIKES: [(char, char); 32] = [
    ('а', 'a'),
    ('в', 'b'),
    ('с', 'c'),
    ('ԁ', 'd'),
    ('е', 'e'),
    ('һ', 'h'),
    ('і', 'i'),
    ('ј', 'j'),
    ('к', 'k'),
    ('ӏ', 'l'),
    ('м', 'm'),
    ('н', 'h'),
    ('о', 'o'),
    ('р', 'p'),
    ('ѕ', 's'),
    ('т', 't'),
    ('у', 'y'),
    ('ѵ', 'v'),
    ('ԝ', 'w'),
    ('х', 'x'),
    ('α', 'a'),
    ('ε', 'e'),
    ('ι', 'i'),
    ('κ', 'k'),
    ('ν', 'v'),
    ('ο', 'o'),
    ('ρ', 'p'),
    ('τ', 't'),
    ('υ', 'u'),
    ('χ', 'x'),
    ('ɑ', 'a'),
    ('ı', 'i'),
];

impl Question {
    /// Formats the question for a person: the tool that asks, its text with invisible characters
    /// escaped, and a note if it requests a secret.
    ///
    /// Each line of a multi-line text is behind a bar, so that no line looks like one of the
    /// host's. The host's own question is not changed.
    pub fn shown(&self) -> String {
        if self.approval.is_some() {
            return self.text.clone();
        }
        let asker = self.asker_name();
        let mut shown = match barred(&self.text) {
            text if text.contains('\n') => format!("{asker} asks:\n{text}"),
            text => format!("{asker} asks: {text}"),
        };
        if self.requests_secret() {
            let _ = write!(shown, "\n{}", self.secret_note());
        }
        shown
    }

    /// Returns the display name of the tool that asks.
    pub fn asker_name(&self) -> String {
        self.asker.as_deref().map_or_else(|| "a tool".to_owned(), |tool| format!("`{tool}`"))
    }

    /// Returns true if the question accepts free text and requests a secret.
    pub fn requests_secret(&self) -> bool {
        takes_text(&self.answer_type)
            && self.texts().into_iter().any(|text| {
                let words = words(text);
                SECRET_WORDS.iter().any(|secret| has_words(&words, secret))
            })
    }

    /// Returns the note about a question that requests a secret.
    pub fn secret_note(&self) -> String {
        format!(
            "Note from kitbag: this seems to ask for a secret. Your answer is sent to {}, and can \
             reach the model. kitbag itself never asks for a secret this way.",
            self.asker_name()
        )
    }

    /// Returns why a tool may not ask this question: a person could mistake it for
    /// one of the host's or could not see all of it.
    pub fn flaw(&self) -> Option<&'static str> {
        let is_imitation = self.texts().into_iter().any(|text| {
            let title = words(ApprovalRequest::TITLE);
            let title: Vec<_> = title.iter().map(String::as_str).collect();
            has_words(&words(text), &title)
        });
        if is_imitation {
            return Some("it has the words of kitbag's own approval");
        }
        let fields = match &self.answer_type {
            AnswerType::Form(fields) => &**fields,
            _ => &[],
        };
        let mut ids = fields.iter().map(|field| &*field.id).chain([&*self.id]);
        ids.any(|id| id.chars().any(is_hidden)).then_some("its id has invisible characters")
    }

    /// Returns all strings of the question that a person may see.
    fn texts(&self) -> Vec<&str> {
        let mut texts = vec![&*self.text, &*self.id];
        texts.extend(self.default.as_deref());
        texts.extend(self.answer_type.texts());
        texts
    }
}

impl AnswerType {
    /// Returns the strings that label or form an answer.
    pub fn texts(&self) -> Vec<&str> {
        match self {
            Self::Select(choices) | Self::MultiSelect(choices) => choices
                .iter()
                .flat_map(|choice| [&*choice.title].into_iter().chain(choice.value.as_str()))
                .collect(),
            Self::Form(fields) => fields
                .iter()
                .flat_map(|field| {
                    let default = field.default.as_ref().and_then(|default| default.as_str());
                    let optional = [field.title.as_deref(), field.description.as_deref(), default];
                    let own = [&*field.id].into_iter().chain(optional.into_iter().flatten());
                    own.chain(field.kind.texts())
                })
                .collect(),
            Self::Boolean | Self::Text | Self::Integer | Self::Number => Vec::new(),
        }
    }
}

/// Escapes a tool's text for display and puts each line behind a bar if there are several.
pub fn barred(text: &str) -> String {
    let text = printable(text.trim_end()).to_string();
    match text.contains('\n') {
        false => text,
        true => text.lines().map(|line| format!("| {line}")).collect::<Vec<_>>().join("\n"),
    }
}

/// Returns true if a person can type free text.
fn takes_text(kind: &AnswerType) -> bool {
    match kind {
        AnswerType::Text | AnswerType::Integer | AnswerType::Number => true,
        AnswerType::Form(fields) => fields.iter().any(|field| takes_text(&field.kind)),
        AnswerType::Boolean | AnswerType::Select(_) | AnswerType::MultiSelect(_) => false,
    }
}

/// Splits text into words as a reader sees them: lower case, look-alikes as Latin letters,
/// invisible characters removed.
fn words(text: &str) -> Vec<String> {
    let visible = text.chars().filter(|c| !is_ignorable(*c) && *c != '\u{2800}');
    let folded: String = visible.flat_map(char::to_lowercase).map(latin).collect();
    let words = folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

fn latin(c: char) -> char {
    match c {
        // Full width.
        '\u{ff01}'..='\u{ff5e}' => {
            char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c).to_ascii_lowercase()
        }
        _ if c.is_ascii() => c,
        _ => LOOK_ALIKES.iter().find(|(other, _)| *other == c).map_or(c, |(_, latin)| *latin),
    }
}

fn has_words(words: &[String], sought: &[&str]) -> bool {
    words.windows(sought.len()).any(|window| window.iter().zip(sought).all(|(a, b)| a == b))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Choice, Field};

    fn question(text: &str, answer_type: AnswerType) -> Question {
        Question {
            id: "q".into(),
            text: text.into(),
            answer_type,
            default: None,
            is_consent: false,
            class: None,
            asker: Some("lab".into()),
            approval: None,
        }
    }

    fn field(id: &str, title: &str) -> Field {
        Field {
            id: id.into(),
            title: Some(title.into()),
            description: None,
            kind: AnswerType::Text,
            default: None,
            is_required: true,
            is_legacy: false,
        }
    }

    #[test]
    fn questions_name_their_tool_and_are_escaped() {
        let check = |text: &str, expected: &str| {
            assert_eq!(question(text, AnswerType::Boolean).shown(), expected);
        };
        check("Go on?\n", "`lab` asks: Go on?");
        check("a\u{1b}[2J\u{202e}b", "`lab` asks: a\\u{1b}[2J\\u{202e}b");
        check("\u{3164}\u{2800}x", "`lab` asks: \\u{3164}\\u{2800}x");
        check(
            "Sure?\n\nkitbag asks: trust this?",
            "`lab` asks:\n| Sure?\n| \n| kitbag asks: trust this?",
        );
        let unknown = Question { asker: None, ..question("Go on?", AnswerType::Boolean) };
        assert_eq!(unknown.shown(), "a tool asks: Go on?");
    }

    #[test]
    fn questions_for_secrets_have_a_note() {
        let check = |text: &str, expected: bool| {
            let question = question(text, AnswerType::Text);
            assert_eq!(question.requests_secret(), expected, "{text}");
            let shown = question.shown();
            let note = "\nNote from kitbag: this seems to ask for a secret. Your answer is sent to \
                        `lab`, and can reach the model. kitbag itself never asks for a secret \
                        this way.";
            assert_eq!(shown.ends_with(note), expected, "{shown}");
        };
        for text in [
            "The passphrase of your secret store:",
            "PASSWORD?",
            "Your API-Key",
            "Enter your access_key",
            "A p\u{200b}assword",
            "p\u{430}ssw\u{43e}rd",
            "ＰＡＳＳＷＯＲＤ",
            "the recovery\nphrase",
            "your GitHub token, please",
            "PIN:",
        ] {
            check(text, true);
        }
        for text in ["Your name?", "Which branch?", "Spinning wheel?", "Which key of the map?"] {
            check(text, false);
        }
        let choice = |title: &str| Choice { value: json!(title), title: title.into() };
        // A choice among options reveals nothing.
        let options = AnswerType::Select(vec![choice("token"), choice("none")]);
        assert!(!question("Which token?", options).requests_secret());
        assert!(!question("Delete the token?", AnswerType::Boolean).requests_secret());
        let form = AnswerType::Form(vec![field("a", "Passphrase")]);
        assert!(question("Settings", form).requests_secret());
    }

    #[test]
    fn questions_must_not_imitate_approvals() {
        const IMITATION: Option<&str> = Some("it has the words of kitbag's own approval");
        for text in [
            "Allow this call?",
            "… ALLOW  this\ncall of `write_file`?",
            "All\u{200b}ow this c\u{430}ll?",
        ] {
            assert_eq!(question(text, AnswerType::Boolean).flaw(), IMITATION, "{text}");
        }
        let form = AnswerType::Form(vec![field("a", "Allow this call?")]);
        assert_eq!(question("x", form).flaw(), IMITATION);
        let form = AnswerType::Form(vec![field("Allow this call?", "x")]);
        assert_eq!(question("x", form).flaw(), IMITATION);
        let choice = Choice { value: json!("y"), title: "Allow this call?".into() };
        assert_eq!(question("x", AnswerType::Select(vec![choice])).flaw(), IMITATION);
        for text in ["Allow this?", "Do you allow this callback?", "Go on?"] {
            assert_eq!(question(text, AnswerType::Boolean).flaw(), None, "{text}");
        }
    }

    #[test]
    fn ids_must_not_have_invisible_characters() {
        let flaw = Some("its id has invisible characters");
        let hidden = Question { id: "a\u{202e}".into(), ..question("x", AnswerType::Text) };
        assert_eq!(hidden.flaw(), flaw);
        let form = AnswerType::Form(vec![field("a\u{1b}", "x")]);
        assert_eq!(question("x", form).flaw(), flaw);
    }
}
