//! JSON as configuration files and programs write it: JSON5, the comments and trailing commas of
//! JSONC, Python notation, and several documents in one file. Each construct has only one
//! interpretation, and a note names it.

use serde_json::{Map, Value};

use super::scalar::{self, Special};
use crate::format::Format;
use crate::mistake::{DEPTH, Mistake};
use crate::notes::Notes;
use crate::pointer;

/// The note about constructs of JSON5 that JSON does not have.
const JSON5: &str = "not strict JSON, read as JSON5";
const PYTHON: &str = "Python literals are read as JSON";

/// Reads the documents of a text one at a time.
pub(crate) struct Documents<'a> {
    text: &'a str,
    position: usize,
    /// The number of parsed documents.
    number: usize,
    /// An offset and its line.
    counted: (usize, usize),
    /// The line of the file at which the text starts, from 1.
    first_line: usize,
    keys: Vec<String>,
    /// The keys of the value whose position is requested.
    wanted: Vec<String>,
    /// The start of the last value on the path.
    found: usize,
    pub(crate) notes: Notes,
}

/// Returns the line and column at which a value of one document starts, from 1.
pub(crate) fn place(text: &str, first_line: usize, number: usize, pointer: &str) -> (usize, usize) {
    let mut documents = Documents::new(text, first_line);
    for _ in 0..number {
        let _ = documents.next();
    }
    documents.wanted = pointer::keys(pointer);
    let _ = documents.next();
    documents.line_and_column(documents.found)
}

impl<'a> Documents<'a> {
    pub(crate) fn new(text: &'a str, first_line: usize) -> Self {
        Self {
            text,
            position: 0,
            number: 0,
            counted: (0, first_line),
            first_line,
            keys: Vec::new(),
            wanted: Vec::new(),
            found: 0,
            notes: Notes::default(),
        }
    }

    /// Returns the next document. `None` at the end of the text.
    pub(crate) fn next(&mut self) -> Result<Option<Value>, Mistake> {
        self.skip()?;
        if self.rest().is_empty() {
            return Ok(None);
        }
        let start = self.position;
        let value =
            self.value().map_err(|mistake| match self.number > 0 && self.position == start {
                true => self.mistake(&format!("{} follows the end of the document", self.shown())),
                false => mistake,
            })?;
        self.number += 1;
        Ok(Some(value))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn line_and_column(&self, offset: usize) -> (usize, usize) {
        let (line, column) = pointer::line_and_column(self.text, offset);
        (self.first_line + line - 1, column)
    }

    /// Returns the line of the position. Positions in notes only move forward.
    fn line(&mut self) -> usize {
        self.line_at(self.position)
    }

    fn line_at(&mut self, offset: usize) -> usize {
        let (before, line) = self.counted;
        let passed = self.text.get(before..offset).unwrap_or_default();
        self.counted = (before.max(offset), line + passed.matches('\n').count());
        self.counted.1
    }

    fn mistake(&self, what: &str) -> Mistake {
        let at = self.line_and_column(self.position);
        let mistake = Mistake::syntax(Format::Json, what, at);
        Mistake { pointer: Some(pointer::written(&self.keys)), ..mistake }
    }

    /// Returns the character at the position, for an error.
    fn shown(&self) -> String {
        match self.peek() {
            None => "the end of the text".to_owned(),
            Some(_) => {
                let is_word = |char: char| char.is_alphanumeric() || "_$".contains(char);
                let word: String =
                    self.rest().chars().take_while(|it| is_word(*it)).take(30).collect();
                let first = || self.rest().chars().take(1).collect();
                format!("`{}`", if word.is_empty() { first() } else { word })
            }
        }
    }

    /// Skips whitespace and comments.
    fn skip(&mut self) -> Result<(), Mistake> {
        loop {
            let rest = self.rest();
            // A record separator of RFC 7464 is also whitespace.
            let is_blank = |char: char| char.is_whitespace() || "\u{feff}\u{1e}".contains(char);
            let blank = rest.len() - rest.trim_start_matches(is_blank).len();
            let rest = &rest[blank..];
            self.position += blank;
            let comment = if rest.starts_with("//") || rest.starts_with('#') {
                rest.find(['\n', '\r']).unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                match rest.find("*/") {
                    Some(end) => end + 2,
                    None => return Err(self.mistake("a comment is not closed")),
                }
            } else {
                return Ok(());
            };
            let line = self.line();
            self.notes.named(JSON5, "comments", line);
            self.position += comment;
        }
    }

    fn is_wanted(&self) -> bool {
        self.wanted.starts_with(&self.keys)
    }

    fn value(&mut self) -> Result<Value, Mistake> {
        if self.keys.len() > DEPTH {
            return Err(self.mistake("recursion limit exceeded"));
        }
        if self.is_wanted() {
            self.found = self.position;
        }
        match self.peek() {
            Some('{') => self.object(),
            Some('[') => self.array(),
            Some('"' | '\'') => self.string().map(Value::String),
            Some(char) if char.is_ascii_digit() || "+-.".contains(char) => self.number(),
            _ => self.word(),
        }
    }

    fn array(&mut self) -> Result<Value, Mistake> {
        self.position += 1;
        let mut items = Vec::new();
        let mut has_comma = false;
        loop {
            self.skip()?;
            if self.ends(']', has_comma) {
                return Ok(Value::Array(items));
            }
            self.keys.push(items.len().to_string());
            items.push(self.value()?);
            self.keys.pop();
            has_comma = self.separator(']')?;
        }
    }

    fn object(&mut self) -> Result<Value, Mistake> {
        self.position += 1;
        let mut map = Map::new();
        let mut has_comma = false;
        loop {
            self.skip()?;
            if self.ends('}', has_comma) {
                return Ok(Value::Object(map));
            }
            let key = self.key()?;
            self.skip()?;
            if self.peek() != Some(':') {
                let what = format!("expected `:` after a key, found {}", self.shown());
                return Err(self.mistake(&what));
            }
            self.position += 1;
            self.skip()?;
            self.keys.push(key);
            let value = self.value()?;
            if let Some(key) = self.keys.pop() {
                map.insert(key, value);
            }
            has_comma = self.separator('}')?;
        }
    }

    /// Skips the end of a list if it is at the position.
    fn ends(&mut self, close: char, has_comma: bool) -> bool {
        if self.peek() != Some(close) {
            return false;
        }
        if has_comma {
            let line = self.line();
            self.notes.named(JSON5, "trailing commas", line);
        }
        self.position += 1;
        true
    }

    /// Skips a comma and returns whether there was one. The end of the list is not skipped.
    fn separator(&mut self, close: char) -> Result<bool, Mistake> {
        self.skip()?;
        match self.peek() {
            Some(',') => {
                self.position += 1;
                Ok(true)
            }
            Some(char) if char == close => Ok(false),
            _ => {
                let what = format!("expected `,` or `{close}`, found {}", self.shown());
                Err(self.mistake(&what))
            }
        }
    }

    fn key(&mut self) -> Result<String, Mistake> {
        if matches!(self.peek(), Some('"' | '\'')) {
            return self.string();
        }
        let is_part = |char: char| char.is_alphanumeric() || "_$-".contains(char);
        let rest = self.rest();
        let length = rest.len() - rest.trim_start_matches(is_part).len();
        if length == 0 {
            let what = format!("expected a key, found {}", self.shown());
            return Err(self.mistake(&what));
        }
        let line = self.line();
        self.notes.named(JSON5, "keys without quotes", line);
        self.position += length;
        Ok(rest[..length].to_owned())
    }

    fn string(&mut self) -> Result<String, Mistake> {
        let (start, line) = (self.position, self.line());
        let quote = self.peek().unwrap_or_default();
        if quote == '\'' {
            self.notes.named(JSON5, "single quotes", line);
        }
        let mut value = String::new();
        let mut chars = self.rest().char_indices().skip(1).peekable();
        while let Some((at, char)) = chars.next() {
            match char {
                char if char == quote => {
                    self.position += at + char.len_utf8();
                    return Ok(value);
                }
                '\\' => match self.escape(start + at) {
                    Ok((length, escaped)) => {
                        value.push_str(&escaped);
                        while chars.next_if(|(next, _)| *next < at + length).is_some() {}
                    }
                    Err(mistake) => return Err(mistake),
                },
                char => {
                    if char < ' ' {
                        self.notes.named(JSON5, "line breaks or tabs in strings", line);
                    }
                    value.push(char);
                }
            }
        }
        Err(self.mistake("a string is not closed"))
    }

    /// Parses an escape. Returns its length and its text.
    fn escape(&mut self, at: usize) -> Result<(usize, String), Mistake> {
        let rest = &self.text[at + 1..];
        let Some(char) = rest.chars().next() else { return Ok((1, String::new())) };
        let simple = match char {
            '"' | '\\' | '/' => Some(char),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            _ => None,
        };
        if let Some(simple) = simple {
            return Ok((2, simple.to_string()));
        }
        let hex = |from: usize, length: usize| {
            let digits = rest.get(from..from + length)?;
            let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
        };
        if char == 'u' {
            let pair = || match rest.get(5..7) {
                Some("\\u") => hex(7, 4).filter(|low| (0xdc00..0xe000).contains(low)),
                _ => None,
            };
            let found = match hex(1, 4) {
                Some(high @ 0xd800..0xdc00) => {
                    pair().map(|low| (12, 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)))
                }
                code => code.map(|code| (6, code)),
            };
            let found = found.and_then(|(length, code)| Some((length, char::from_u32(code)?)));
            let Some((length, char)) = found else {
                self.position = at;
                return Err(self.mistake("an escape that is not a character"));
            };
            return Ok((length, char.to_string()));
        }
        let line = self.line_at(at);
        self.notes.named(JSON5, "escapes of JSON5", line);
        Ok(match char {
            // A string that continues on the next line.
            '\r' if rest.starts_with("\r\n") => (3, String::new()),
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => (1 + char.len_utf8(), String::new()),
            '0' if !rest[1..].starts_with(|it: char| it.is_ascii_digit()) => (2, "\0".into()),
            'v' => (2, "\u{b}".into()),
            '\'' => (2, "'".into()),
            'x' if let Some(char) = hex(1, 2).and_then(char::from_u32) => (4, char.into()),
            _ => {
                self.position = at;
                return Err(self.mistake(&format!("the escape `\\{char}`")));
            }
        })
    }

    fn number(&mut self) -> Result<Value, Mistake> {
        let rest = self.rest();
        let is_part = |char: char| char.is_ascii_alphanumeric() || "+-._".contains(char);
        let text = &rest[..rest.len() - rest.trim_start_matches(is_part).len()];
        let line = self.line();
        let sign = if text.starts_with('-') { "-" } else { "" };
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let value = match unsigned {
            "NaN" | "nan" => Special::Nan.value(text, &mut self.notes, line),
            "Infinity" | "inf" => {
                let name = format!("{sign}Infinity");
                Special::Infinity.value(&name, &mut self.notes, line)
            }
            _ => match text.parse() {
                Ok(number) => Value::Number(number),
                Err(_) => {
                    let number = scalar::number(&unsigned.replace('X', "x"))
                        .filter(|_| !unsigned.starts_with(['+', '-']))
                        .and_then(|number| format!("{sign}{number}").parse().ok());
                    let Some(number) = number else {
                        return Err(self.mistake(&format!("the number `{text}`")));
                    };
                    self.notes.named(JSON5, "numbers of JSON5", line);
                    Value::Number(number)
                }
            },
        };
        self.position += text.len();
        Ok(value)
    }

    fn word(&mut self) -> Result<Value, Mistake> {
        let rest = self.rest();
        let is_part = |char: char| char.is_alphanumeric() || "_$".contains(char);
        let word = &rest[..rest.len() - rest.trim_start_matches(is_part).len()];
        let line = self.line();
        let value = match word {
            "null" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "None" | "True" | "False" => {
                self.notes.named(PYTHON, &format!("`{word}`"), line);
                if word == "None" { Value::Null } else { Value::Bool(word == "True") }
            }
            "NaN" | "nan" => Special::Nan.value(word, &mut self.notes, line),
            "Infinity" | "inf" => Special::Infinity.value("Infinity", &mut self.notes, line),
            _ => {
                let what = format!("expected a value, found {}", self.shown());
                return Err(self.mistake(&what));
            }
        };
        self.position += word.len();
        Ok(value)
    }
}
