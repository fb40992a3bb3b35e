//! Strict JSON parsing with a budget, for JSON from outside.
//!
//! Duplicate keys and integers that would be rounded are refused. Other parsers accept them, but
//! the tool would then see a different value than its author. A value takes up to a hundred times
//! the memory of its text, so the parser counts values and stops at the budget.

mod digits;
mod strict;

use std::io::{self, Write};

use serde_json::Value;

pub use self::digits::{Digits, parse_exact};
use self::strict::parse_number_free;
pub use self::strict::{
    ARGUMENTS_BYTES, ARGUMENTS_DEPTH, JsonBudget, JsonError, pointer, pointer_at, string_end,
};
use crate::text::shown;

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, json};

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
