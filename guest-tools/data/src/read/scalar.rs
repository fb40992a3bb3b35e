//! Plain scalars of YAML according to the core schema of YAML 1.2.

use serde_json::{Number, Value};

use crate::notes::Notes;

const NAN: &str = "NaN is read as null";
const INFINITY: &str = "an infinity is read as text";

/// Returns the value of a plain scalar.
///
/// # Errors
///
/// The number does not exist in JSON.
pub(super) fn resolve(text: &str) -> Result<Value, Special> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Ok(Value::Null),
        "true" | "True" | "TRUE" => Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => Ok(Value::Bool(false)),
        ".nan" | ".NaN" | ".NAN" => Err(Special::Nan),
        _ => match text.strip_prefix(['+', '-']).unwrap_or(text) {
            ".inf" | ".Inf" | ".INF" => Err(Special::Infinity),
            _ => Ok(number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number)),
        },
    }
}

/// A number that JSON does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Nan,
    Infinity,
}

impl Special {
    /// Returns the replacement value, null or the string, and adds a note.
    pub(super) fn value(self, text: &str, notes: &mut Notes, line: usize) -> Value {
        match self {
            Self::Nan => {
                notes.place(NAN, line);
                Value::Null
            }
            Self::Infinity => {
                notes.named(INFINITY, &format!("`{text}`"), line);
                Value::from(text)
            }
        }
    }
}

/// Parses a number and keeps its digits. A number with leading zeros is a string, since a postal
/// code would lose them.
pub(super) fn number(text: &str) -> Option<Number> {
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let is_plain = !digits.starts_with('+');
            let value = u128::from_str_radix(digits, radix).ok().filter(|_| is_plain)?;
            return value.to_string().parse().ok();
        }
    }
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], &rest[at..]),
        None => (rest, ""),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let has_digits = !whole.is_empty() || fraction.is_some_and(|digits| !digits.is_empty());
    if !has_digits {
        return None;
    }
    let whole = if whole.is_empty() { "0" } else { whole };
    let fraction = match fraction {
        None => String::new(),
        Some("") => ".0".to_owned(),
        Some(digits) => format!(".{digits}"),
    };
    // The grammar of JSON refuses everything else, and leading zeros.
    format!("{sign}{whole}{fraction}{exponent}").parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(resolve(text).unwrap().to_string(), expected);
    }

    #[test]
    fn numbers_keep_their_digits() {
        check("1.10", "1.10");
        check("12345678901234567890123", "12345678901234567890123");
        check("+5", "5");
        check("-.5", "-0.5");
        check("5.", "5.0");
        check("0x1F", "31");
        check("0o17", "15");
        check("2e-3", "2e-3");
    }

    #[test]
    fn number_look_alikes_are_strings() {
        for text in
            ["007", "1_000", "1:30", "0x", "0x+1", "+", "-", ".", "e5", "1e", "1.2.3", "yes"]
        {
            assert_eq!(resolve(text), Ok(json!(text)));
        }
        for text in [".inf", "-.INF"] {
            assert_eq!(resolve(text), Err(Special::Infinity), "{text}");
        }
        assert_eq!(resolve(".nan"), Err(Special::Nan));
    }
}
