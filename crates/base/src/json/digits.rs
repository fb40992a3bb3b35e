//! The digits of numbers that a 64-bit float does not keep: a file distinguishes `1.10` and `1.1`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{JsonBudget, JsonError, parse_number_free, pointer, string_end};
use crate::text::shown;

/// The most numbers in one text whose digits are kept, and the most bytes of their pointers.
const KEPT: usize = 1_000;
const KEPT_BYTES: usize = 256 << 10;

/// The most significant digits of a float that is written in full.
const FLOAT_DIGITS: usize = 17;

/// The text of each number that ends in zeros, by JSON pointer. Each text is equal in value to the
/// float at its pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digits(BTreeMap<String, String>);

/// Reads a JSON value as [`parse`](super::parse) does, and the digits that floats do not keep.
///
/// # Errors
///
/// As for [`parse`](super::parse). The message names the JSON pointer of a number that would
/// change: an integer of more than 64 bits, or a number of more than 17 digits that is not a float.
pub fn parse_exact(text: &[u8], budget: JsonBudget) -> Result<(Value, Digits), JsonError> {
    let (value, text) = parse_number_free(text, budget)?;
    let kept = find(text)?;
    if kept.is_empty() {
        return Ok((value, Digits::default()));
    }
    let offsets: Vec<_> = kept.iter().map(|(offset, _)| *offset).collect();
    let pointers = pointers(text, &offsets);
    let bytes: usize = pointers.iter().map(String::len).sum();
    if kept.len() > KEPT || bytes > KEPT_BYTES {
        let problem = format!(
            "more than {KEPT} numbers end in zeros, such as `{}`, which are kept for each; write \
             them without, or as strings",
            shown(kept[0].1)
        );
        return Err(JsonError { problem, line: 0, column: 0 });
    }
    let numbers = kept.into_iter().map(|(_, number)| number.to_owned());
    Ok((value, Digits(pointers.into_iter().zip(numbers).collect())))
}

impl Digits {
    /// Returns true if no number needs other digits than its float.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text of the number at a pointer if it differs from its formatted value.
    pub fn at(&self, pointer: &str) -> Option<&str> {
        self.0.get(pointer).map(String::as_str)
    }

    /// Returns the digits at and below `place`, with pointers relative to it.
    #[must_use]
    pub fn below(&self, place: &str) -> Self {
        let below = self.0.iter().filter_map(|(pointer, number)| {
            let rest = pointer.strip_prefix(place)?;
            let is_below = rest.is_empty() || rest.starts_with('/');
            is_below.then(|| (rest.to_owned(), number.clone()))
        });
        Self(below.collect())
    }

    /// Adds the digits of a value that is inserted at `place`.
    pub fn put(&mut self, place: &str, digits: Self) {
        let at =
            digits.0.into_iter().map(|(pointer, number)| (format!("{place}{pointer}"), number));
        self.0.extend(at);
    }

    /// Formats the value as JSON. Uses these digits where they equal the number.
    pub fn text(&self, value: &Value) -> String {
        if self.is_empty() {
            return value.to_string();
        }
        let mut text = String::new();
        self.write(value, &mut String::new(), &mut text);
        text
    }

    fn write(&self, value: &Value, at: &mut String, text: &mut String) {
        let within = at.len();
        match value {
            Value::Array(elements) => {
                text.push('[');
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    at.push_str(&format!("/{index}"));
                    self.write(element, at, text);
                    at.truncate(within);
                }
                text.push(']');
            }
            Value::Object(object) => {
                text.push('{');
                for (index, (key, value)) in object.iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    text.push_str(&Value::from(key.as_str()).to_string());
                    text.push(':');
                    at.push_str(&pointer(key));
                    self.write(value, at, text);
                    at.truncate(within);
                }
                text.push('}');
            }
            Value::Number(number) => {
                let kept = self.at(at).filter(|kept| kept.parse::<f64>().ok() == number.as_f64());
                match kept {
                    Some(kept) => text.push_str(kept),
                    None => text.push_str(&number.to_string()),
                }
            }
            value => text.push_str(&value.to_string()),
        }
    }
}

/// Finds the numbers of a JSON text that end in zeros, with their offsets.
///
/// # Errors
///
/// A number that would change, named by its JSON pointer.
fn find(text: &str) -> Result<Vec<(usize, &str)>, JsonError> {
    let mut kept = Vec::new();
    for (offset, number) in numbers(text) {
        if is_rounded(number) {
            let why = "has more than 64 bits; write it as a string";
            return Err(changed(text, offset, number, "whole number", why));
        }
        if is_whole(number) {
            continue;
        }
        let mantissa = number.split(['e', 'E']).next().unwrap_or(number);
        let fraction = mantissa.split_once('.').map_or("", |(_, fraction)| fraction);
        let ends_in_zero = fraction.len() > 1 && fraction.ends_with('0');
        // Longer text is not checked twice.
        if !ends_in_zero && mantissa.len() <= FLOAT_DIGITS && !number.contains('-') {
            continue;
        }
        let float = number.parse::<f64>().unwrap_or_default();
        let (own, read) = (decimal(number), decimal(&format!("{float:e}")));
        if own == read {
            if ends_in_zero {
                kept.push((offset, number));
            }
        } else if own.0.len() > FLOAT_DIGITS || float == 0.0 {
            let why = "would be rounded; write it as a string, or with at most 17 digits";
            return Err(changed(text, offset, number, "number", why));
        }
    }
    Ok(kept)
}

fn is_whole(number: &str) -> bool {
    !number.contains(['.', 'e', 'E'])
}

/// Returns true for an integer of more than 64 bits, which is read as a float.
pub(super) fn is_rounded(number: &str) -> bool {
    is_whole(number) && number.parse::<u64>().is_err() && number.parse::<i64>().is_err()
}

/// Iterates over the numbers of a JSON text and their offsets.
pub(super) fn numbers(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            match bytes[at] {
                b'"' => at = string_end(bytes, at),
                b'-' | b'0'..=b'9' => {
                    let is_part =
                        |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                    let length = bytes[at..].iter().take_while(|byte| is_part(byte)).count();
                    let start = at;
                    at += length;
                    return Some((start, &text[start..at]));
                }
                _ => at += 1,
            }
        }
        None
    })
}

fn changed(text: &str, offset: usize, number: &str, what: &str, why: &str) -> JsonError {
    let at = pointers(text, &[offset]).pop().unwrap_or_default();
    let place = if at.is_empty() { String::new() } else { format!(" in `{}`", shown(&at)) };
    let problem = format!("the {what} `{}`{place} {why}", shown(number));
    JsonError::at(&text.as_bytes()[..offset], problem)
}

/// Returns the significant digits of a number and the power of ten of the first digit.
fn decimal(number: &str) -> (String, i64) {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: String = [whole, fraction].concat().replace('-', "");
    let zeros = digits.len() - digits.trim_start_matches('0').len();
    let digits = digits.trim_matches('0').to_owned();
    if digits.is_empty() {
        return (digits, 0);
    }
    let sign = i64::from(mantissa.starts_with('-'));
    let whole = whole.len() as i64 - sign;
    // A number whose exponent exceeds 64 bits is zero, or was refused before.
    let exponent = exponent.parse::<i64>().unwrap_or(i64::MIN / 2);
    (digits, exponent.saturating_add(whole - zeros as i64))
}

/// An unclosed array or object.
enum Open {
    Array { index: usize },
    Object { key: String, is_key: bool },
}

/// Returns JSON pointers to the values at these offsets, which must be ascending.
fn pointers(text: &str, offsets: &[usize]) -> Vec<String> {
    let bytes = text.as_bytes();
    let (mut open, mut found) = (Vec::new(), Vec::new());
    let mut offsets = offsets.iter().copied().peekable();
    let mut at = 0;
    while at < bytes.len() {
        if offsets.next_if(|offset| *offset <= at).is_some() {
            let segments = open.iter().map(|open| match open {
                Open::Array { index } => format!("/{index}"),
                Open::Object { key, .. } => pointer(key),
            });
            found.push(segments.collect());
            if offsets.peek().is_none() {
                break;
            }
        }
        match bytes[at] {
            b'"' => {
                let end = string_end(bytes, at);
                if let Some(Open::Object { key, is_key: true }) = open.last_mut() {
                    *key = serde_json::from_str(&text[at..end]).unwrap_or_default();
                }
                at = end;
                continue;
            }
            b'[' => open.push(Open::Array { index: 0 }),
            b'{' => open.push(Open::Object { key: String::new(), is_key: true }),
            b']' | b'}' => drop(open.pop()),
            b':' | b',' => match open.last_mut() {
                Some(Open::Array { index }) => *index += 1,
                Some(Open::Object { is_key, .. }) => *is_key = bytes[at] == b',',
                None => {}
            },
            _ => {}
        }
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn exact(text: &str) -> Result<(Value, Digits), JsonError> {
        parse_exact(text.as_bytes(), JsonBudget::ARGUMENTS)
    }

    #[test]
    fn trailing_zeros_are_kept() {
        let text = r#"{"a/b":[1.10,{"~":-2.500e3}],"c":"1.10","d":[1.0,2e0,0.1,1.100]}"#;
        let (value, digits) = exact(text).unwrap();
        assert_eq!(value["d"], json!([1.0, 2.0, 0.1, 1.1]));
        let kept: Vec<_> = digits.0.iter().map(|(at, text)| (&**at, &**text)).collect();
        assert_eq!(kept, [("/a~1b/0", "1.10"), ("/a~1b/1/~0", "-2.500e3"), ("/d/3", "1.100")]);
        let expected = r#"{"a/b":[1.10,{"~":-2.500e3}],"c":"1.10","d":[1.0,2.0,0.1,1.100]}"#;
        assert_eq!(digits.text(&value), expected);
        // Digits of a different number are ignored.
        assert_eq!(digits.below("/a~1b").text(&json!([7])), "[7]");
    }

    #[test]
    fn numbers_that_would_change_are_named() {
        let check = |text: &str, expected: &str| {
            assert_eq!(exact(text).unwrap_err().problem, expected);
        };
        let rounded = "would be rounded; write it as a string, or with at most 17 digits";
        check(
            r#"{"merge":{"v":12345678901234567890.10}}"#,
            &format!("the number `12345678901234567890.10` in `/merge/v` {rounded}"),
        );
        check("[1,-1e-400]", &format!("the number `-1e-400` in `/1` {rounded}"));
        check(
            r#"{"a":[0,123456789012345678901]}"#,
            "the whole number `123456789012345678901` in `/a/1` has more than 64 bits; write it as a \
             string",
        );
        // Floats as programs write them in full.
        for float in ["0.10000000000000001", "3.1415926535897931", "1e+21", "1.5e-7", "0.0"] {
            let (_, digits) = exact(float).unwrap();
            assert!(digits.is_empty(), "{float}");
        }
    }

    #[test]
    fn kept_numbers_are_bounded() {
        let many = format!("[{}1.10]", "1.10,".repeat(KEPT));
        let error = exact(&many).unwrap_err().problem;
        assert!(
            error.starts_with("more than 1000 numbers end in zeros, such as `1.10`"),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn floats_in_full_length_are_accepted(float in any::<f64>().prop_filter("", |it| it.is_finite())) {
            for text in [json!(float).to_string(), format!("{float:.16e}")] {
                prop_assert_eq!(exact(&text).unwrap().0.as_f64(), Some(float), "{}", text);
            }
        }

        #[test]
        fn kept_digits_equal_the_number(whole in 0u32.., fraction in "[0-9]{1,20}", zeros in "0{0,4}") {
            let number = format!("{whole}.{fraction}{zeros}");
            if let Ok((value, digits)) = exact(&number) {
                let text = digits.text(&value);
                prop_assert!(text.parse::<f64>().ok() == value.as_f64());
                if digits.at("").is_some() {
                    prop_assert_eq!(text, number);
                }
            }
        }
    }
}
