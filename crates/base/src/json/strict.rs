//! The strict reader of JSON: its budget, its errors and their positions.

use std::cell::Cell;
use std::fmt;

use memchr::memchr2;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::ByteSize;
use crate::text::shown;

/// The largest arguments of a call, in bytes of JSON.
pub const ARGUMENTS_BYTES: usize = 1 << 20;

/// The deepest nesting of arrays and objects in the arguments of a call.
pub const ARGUMENTS_DEPTH: usize = 128;

/// Limits on the length of a JSON text and on the number of its values.
///
/// The length is checked before parsing, and parsing stops at the limit of values. A value takes at
/// most about 0.5 KiB: an object with one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonBudget {
    /// The length of the text, in bytes.
    pub bytes: usize,
    /// The number of values. Each array, object and entry is one value.
    pub values: usize,
}

/// The error for text that is not valid JSON or that breaks the rules of [`parse`](super::parse).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}{}", ErrorPosition(self))]
pub struct JsonError {
    /// The problem, without its position.
    pub problem: String,
    /// The line, from 1; 0 if the problem concerns the whole text.
    pub line: usize,
    /// The column in bytes, from 1; 0 is the newline before the line.
    pub column: usize,
}

/// The position of an error, formatted as the end of a sentence.
struct ErrorPosition<'a>(&'a JsonError);

impl JsonBudget {
    /// The budget for the arguments of a call and the answer to a question. A list of 100,000
    /// numbers fits.
    pub const ARGUMENTS: Self = Self { bytes: ARGUMENTS_BYTES, values: 100_000 };

    /// The budget for a component's description. The largest servers of the Model Context Protocol
    /// describe a hundred tools in less than 100 KiB.
    pub const DESCRIPTION: Self = Self { bytes: 256 << 10, values: 40_000 };

    /// The budget for an answer that an output schema describes and that is already cut to the
    /// call's output limit.
    pub const OUTPUT: Self = Self { bytes: usize::MAX, values: 100_000 };

    /// The budget for a client's message: arguments, answers to questions, and their metadata. The
    /// transport bounds its length.
    pub const MESSAGE: Self = Self { bytes: usize::MAX, values: 120_000 };
}

/// Reads one JSON value. Integers may be rounded.
pub(super) fn parse_number_free(
    text: &[u8],
    budget: JsonBudget,
) -> Result<(Value, &str), JsonError> {
    if text.len() > budget.bytes {
        let [size, limit] = [text.len(), budget.bytes].map(|size| ByteSize::bytes(size as u64));
        let problem = format!("it has {size}, more than the limit of {limit}");
        return Err(JsonError { problem, line: 0, column: 0 });
    }
    let text = std::str::from_utf8(text).map_err(|error| {
        let valid = &text[..error.valid_up_to()];
        JsonError::at(valid, "invalid UTF-8".into())
    })?;
    let mut reader = serde_json::Deserializer::from_str(text);
    let left = Cell::new(budget.values);
    let value = Strict { left: &left, limit: budget.values }.deserialize(&mut reader);
    let value = value.and_then(|value| reader.end().map(|()| value)).map_err(|error| {
        let message = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        JsonError {
            problem: message.strip_suffix(&place).unwrap_or(&message).to_owned(),
            line: error.line(),
            column: error.column(),
        }
    })?;
    Ok((value, text))
}

/// Formats a key as one segment of a JSON pointer (RFC 6901).
pub fn pointer(key: &str) -> String {
    format!("/{}", key.replace('~', "~0").replace('/', "~1"))
}

impl fmt::Display for ErrorPosition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            JsonError { line: 0, .. } => Ok(()),
            JsonError { line, column, .. } => write!(f, " at line {line} column {column}"),
        }
    }
}

impl JsonError {
    /// Returns the JSON pointer of the value that contains the error. `text` is the parsed text.
    pub fn pointer(&self, text: &[u8]) -> String {
        let mut lines = text.split_inclusive(|byte| *byte == b'\n');
        let before: usize = lines.by_ref().take(self.line.saturating_sub(1)).map(<[u8]>::len).sum();
        pointer_at(&text[..text.len().min(before + self.column)])
    }

    /// Creates an error at the end of `before`.
    pub(super) fn at(before: &[u8], problem: String) -> Self {
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Self { problem, line, column: before.len() - line_start + 1 }
    }
}

/// Returns the JSON pointer (RFC 6901) of the value at the end of a JSON prefix.
pub fn pointer_at(text: &[u8]) -> String {
    enum Level<'t> {
        /// The last key that was read, in quotes.
        Object(Option<&'t [u8]>),
        Array(usize),
    }
    let (mut levels, mut at) = (Vec::new(), 0);
    while at < text.len() {
        match text[at] {
            b'"' => {
                let end = string_end(text, at);
                if let Some(Level::Object(key @ None)) = levels.last_mut() {
                    *key = Some(&text[at..end]);
                }
                at = end;
                continue;
            }
            b'{' => levels.push(Level::Object(None)),
            b'[' => levels.push(Level::Array(0)),
            b'}' | b']' => drop(levels.pop()),
            b',' => match levels.last_mut() {
                Some(Level::Object(key)) => *key = None,
                Some(Level::Array(index)) => *index += 1,
                None => {}
            },
            _ => {}
        }
        at += 1;
    }
    let parts = levels.iter().map_while(|level| match level {
        Level::Object(key) => {
            let key = serde_json::from_slice::<String>((*key)?).ok()?;
            Some(format!("/{}", key.replace('~', "~0").replace('/', "~1")))
        }
        Level::Array(index) => Some(format!("/{index}")),
    });
    parts.collect()
}

/// Returns the offset after the JSON string that begins at `start`. An unterminated string ends at
/// the end of the text.
pub fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(length) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += length;
        if text[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    text.len()
}

/// Builds a [`Value`]. Refuses duplicate keys and stops at the budget.
#[derive(Clone, Copy)]
struct Strict<'a> {
    /// The number of values left, and the total.
    left: &'a Cell<usize>,
    limit: usize,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        let left = self.left.get().checked_sub(1).ok_or_else(|| {
            de::Error::custom(format_args!("there are more than {} values", self.limit))
        })?;
        self.left.set(left);
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value);
        number.map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            // Room for one value: a vector's first allocation is for four.
            if array.is_empty() {
                array.reserve_exact(1);
            }
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.contains_key(&key) {
                let message = format!("duplicate key `{}`", shown(&key));
                return Err(de::Error::custom(message));
            }
            let value = entries.next_value_seed(self)?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}
