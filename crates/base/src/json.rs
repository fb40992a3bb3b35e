//! Strict JSON parsing with a budget, for JSON from outside.
//!
//! Duplicate keys and integers that would be rounded are refused. Other parsers accept them, but
//! the tool would then see a different value than its author. A value takes up to a hundred times
//! the memory of its text, so the parser counts values and stops at the budget.

mod digits;

use std::cell::Cell;
use std::fmt;
use std::io::{self, Write};

use memchr::memchr2;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

pub use self::digits::{Digits, parse_exact};
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

/// The error for text that is not valid JSON or that breaks the rules of [`parse`].
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

/// Reads one JSON value, nested no deeper than serde_json's 128 levels.
///
/// # Errors
///
/// [`JsonError`] gives the position of invalid UTF-8, invalid JSON, a duplicate key, a number that
/// no type can hold, or the value that exceeds the budget.
pub fn parse(text: &[u8], budget: JsonBudget) -> Result<Value, JsonError> {
    let (value, text) = parse_number_free(text, budget)?;
    match digits::numbers(text).find(|(_, number)| digits::is_rounded(number)) {
        Some((offset, number)) => {
            let problem = format!(
                "the whole number `{}` has more than 64 bits; write it as a string, or with a \
                 decimal point if it may be rounded",
                shown(number)
            );
            Err(JsonError::at(&text.as_bytes()[..offset], problem))
        }
        None => Ok(value),
    }
}

fn parse_number_free(text: &[u8], budget: JsonBudget) -> Result<(Value, &str), JsonError> {
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
    fn at(before: &[u8], problem: String) -> Self {
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

/// Estimates the memory of a parsed JSON text, in bytes, from the text alone.
///
/// The factors are measured with the shortest lists and objects, which cost most per byte.
pub fn cost(text: &[u8]) -> u64 {
    const VALUE_BYTES: u64 = 160;
    const CONTAINER_BYTES: u64 = 400;
    let (mut values, mut containers, mut at) = (0, 0, 0);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                at = string_end(text, at);
                continue;
            }
            b',' | b':' => values += 1,
            b'[' | b'{' => containers += 1,
            _ => {}
        }
        at += 1;
    }
    // Twice the text: the text itself and the strings parsed from it.
    2 * text.len() as u64 + values * VALUE_BYTES + containers * CONTAINER_BYTES
}

/// Returns the length of a value as JSON without formatting it into a buffer.
pub fn length(value: &Value) -> usize {
    struct Length(usize);
    impl Write for Length {
        fn write(&mut self, part: &[u8]) -> io::Result<usize> {
            self.0 += part.len();
            Ok(part.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut length = Length(0);
    serde_json::to_writer(&mut length, value).expect("every key is a string");
    length.0
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn parse(text: &[u8]) -> Result<Value, JsonError> {
        super::parse(text, JsonBudget::ARGUMENTS)
    }

    fn check_error(text: &[u8], expected: &str) {
        assert_eq!(parse(text).unwrap_err().to_string(), expected);
    }

    #[test]
    fn string_cost_is_bounded_by_length() {
        let with = |string: &str| {
            let text = format!(r#"{{"a":{string}{}}}"#, " ".repeat(600));
            cost(text.as_bytes())
        };
        let plain = with(r#""xxxxxxxx""#);
        for string in [r#"",,[[{{::""#, r#""\"[,\\{{""#, r#""\\\",[[[""#] {
            assert_eq!(with(string), plain, "{string}");
        }
        assert!(with(r#""x",[],1,2""#) > plain);
        // Unterminated, once with half an escape at the end.
        let open = |text: &str| cost(format!("{}{text}", " ".repeat(600)).as_bytes());
        assert_eq!(open(r#"["\"#), open(r#"["x"#));
    }

    #[test]
    fn valid_json_is_read_unchanged() {
        let text = br#"{"a":[1,-2,2.5,1e3,"x\"9",true,null],"b":{"a":18446744073709551615}}"#;
        let expected = json!({
            "a": [1, -2, 2.5, 1000.0, "x\"9", true, null],
            "b": { "a": u64::MAX },
        });
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn duplicate_keys_are_refused_at_any_depth() {
        check_error(br#"{"a":1,"a":2}"#, "duplicate key `a` at line 1 column 10");
        check_error(b"{\"a\":[{\"b\":1,\n\"b\":1}]}", "duplicate key `b` at line 2 column 3");
        check_error(br#"{"a":1,"\u0061":2}"#, "duplicate key `a` at line 1 column 15");
    }

    #[test]
    fn numbers_that_would_change_are_refused() {
        let rest = "has more than 64 bits; write it as a string, or with a decimal point if it may \
                    be rounded";
        let number = "123456789012345678901234567890";
        check_error(
            format!("{{\"a\":\n [1, {number}]}}").as_bytes(),
            &format!("the whole number `{number}` {rest} at line 2 column 6"),
        );
        check_error(b"1e400", "number out of range at line 1 column 5");
        assert_eq!(parse(b"\"99999999999999999999999\"").unwrap(), "99999999999999999999999");
    }

    #[test]
    fn invalid_utf8_is_refused_with_its_position() {
        check_error(b"{\"a\":\n\"\xff\"}", "invalid UTF-8 at line 2 column 2");
    }

    #[test]
    fn depth_is_bounded() {
        let nest = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nest(127).as_bytes()).is_ok());
        check_error(nest(100_000).as_bytes(), "recursion limit exceeded at line 1 column 128");
    }

    #[test]
    fn bytes_are_checked_before_values() {
        let budget = JsonBudget { bytes: 20, values: 4 };
        let check = |text: &str, expected: Result<(), &str>| {
            let read = super::parse(text.as_bytes(), budget).map(drop);
            assert_eq!(read.map_err(|error| error.to_string()), expected.map_err(str::to_owned));
        };
        check("[1,2,3]", Ok(()));
        check("[1,2,3,4]", Err("there are more than 4 values at line 1 column 7"));
        check(r#"{"a":[{}],"b":0}"#, Ok(()));
        check(r#"{"a":[{}],"b":[0]}"#, Err("there are more than 4 values at line 1 column 15"));
        check("                   1", Ok(()));
        check("                    1", Err("it has 21 bytes, more than the limit of 20 bytes"));
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(".*", inner, 0..6)
                    .prop_map(|entries| entries.into_iter().collect::<Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn written_json_is_read_back(value in values()) {
            prop_assert_eq!(parse(value.to_string().as_bytes()).unwrap(), value);
        }

        #[test]
        fn length_matches_the_written_text(value in values()) {
            prop_assert_eq!(length(&value), value.to_string().len());
        }

        #[test]
        fn no_input_panics(text in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = parse(&text);
        }
    }
}
