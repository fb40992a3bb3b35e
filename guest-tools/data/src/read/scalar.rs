//! What a plain scalar of YAML is, by the core schema of YAML 1.2.

use serde_json::{Number, Value};

/// The value that a plain scalar stands for.
///
/// # Errors
///
/// For an infinity and for what is no number, which JSON has not.
pub(super) fn resolve(text: &str) -> Result<Value, ()> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Ok(Value::Null),
        "true" | "True" | "TRUE" => Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => Ok(Value::Bool(false)),
        ".nan" | ".NaN" | ".NAN" => Err(()),
        _ => match text.strip_prefix(['+', '-']).unwrap_or(text) {
            ".inf" | ".Inf" | ".INF" => Err(()),
            _ => Ok(number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number)),
        },
    }
}

/// A number, with the digits that it has. One with zeros in front is a text, since those of
/// a postal code would be lost.
fn number(text: &str) -> Option<Number> {
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
    // The grammar of JSON refuses everything else, and zeros in front.
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
    fn what_only_looks_like_a_number_is_a_text() {
        for text in
            ["007", "1_000", "1:30", "0x", "0x+1", "+", "-", ".", "e5", "1e", "1.2.3", "yes"]
        {
            assert_eq!(resolve(text), Ok(json!(text)));
        }
        for text in [".inf", "-.INF", ".nan"] {
            assert_eq!(resolve(text), Err(()), "{text}");
        }
    }
}
