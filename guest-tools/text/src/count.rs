//! `count_text`.

use kitbag_sdk::{Call, ErrorInfo};
use serde::{Deserialize, Serialize};

use crate::input::Source;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    text: Option<String>,
    path: Option<String>,
}

#[derive(Serialize)]
struct Counts {
    lines: usize,
    words: usize,
    characters: usize,
    bytes: u64,
    tokens_o200k_estimated: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
}

/// Counts the parts of a text.
pub(crate) fn count_text(call: &Call, arguments: Arguments) -> Result<String, ErrorInfo> {
    let source = Source::new(arguments.text, arguments.path);
    let text = source.text(call, ("text", "path"))?;
    let counts = Counts {
        lines: text.text.lines().count(),
        words: text.text.split_whitespace().count(),
        characters: text.text.chars().count(),
        bytes: text.bytes,
        tokens_o200k_estimated: tokens(&text.text),
        encoding: text.encoding,
    };
    kitbag_sdk::serde_json::to_string(&counts)
        .map_err(|error| ErrorInfo::new("the answer cannot be written").caused_by(error))
}

/// The class of a run of characters.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Letters of ASCII.
    Latin,
    /// Letters of other alphabets.
    Letters,
    /// Characters that are separate words: Chinese, Japanese, Korean.
    Ideographs,
    Digits,
    Space,
    Break,
    Marks,
    /// Everything else: emoji, symbols, other planes.
    Others,
}

/// Estimates the number of o200k_base tokens of a text.
///
/// A tokenizer merges frequent sequences. This estimate assigns each run of one kind of character
/// its average cost. The rates are measured, and a test compares the estimate with the tokenizer.
pub(crate) fn tokens(text: &str) -> usize {
    let mut tokens = 0.0;
    let mut characters = text.chars().peekable();
    let mut before = Kind::Break;
    while let Some(first) = characters.next() {
        let kind = kind(first);
        let (mut length, mut humps, mut last) = (1usize, 0usize, first);
        while let Some(next) = characters.next_if(|next| self::kind(*next) == kind) {
            length += 1;
            // `camelCase` is two words.
            humps += usize::from(last.is_lowercase() && next.is_uppercase());
            last = next;
        }
        let parts = |each: f64| (length as f64 / each).ceil();
        tokens += match kind {
            Kind::Latin if length <= 6 => 1.0 + 0.9 * humps as f64,
            Kind::Latin => (1.0 + (length as f64 - 6.0) * 0.12).max(1.0 + 0.9 * humps as f64),
            Kind::Letters => 0.3 + length as f64 / 3.9,
            Kind::Ideographs => length as f64 * 0.75,
            // At most three digits form one token.
            Kind::Digits => parts(3.0),
            // A single space belongs to the next word.
            Kind::Space if length == 1 => 0.0,
            Kind::Space => 0.8,
            // A line break after punctuation belongs to it.
            Kind::Break if before == Kind::Marks => 0.45,
            Kind::Break => 1.0,
            Kind::Marks if length == 1 => 0.9,
            Kind::Marks => parts(3.0),
            Kind::Others => length as f64 * 1.6,
        };
        before = kind;
    }
    tokens.ceil() as usize
}

fn kind(character: char) -> Kind {
    match character {
        'a'..='z' | 'A'..='Z' => Kind::Latin,
        '0'..='9' => Kind::Digits,
        ' ' | '\t' => Kind::Space,
        '\n' | '\r' => Kind::Break,
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => {
            Kind::Ideographs
        }
        character if character.is_alphabetic() && character < '\u{10000}' => Kind::Letters,
        character if character.is_ascii() => Kind::Marks,
        _ => Kind::Others,
    }
}
