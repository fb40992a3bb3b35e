//! Equality of values, as in RFC 6902 for `test`: numbers are compared by value, not by notation.

use serde_json::{Number, Value};

/// Returns true if two values are equal.
pub(crate) fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || decimal(one).is_some_and(|it| Some(it) == decimal(other))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(key, value)| other.get(key).is_some_and(|other| equal(value, other));
            one.len() == other.len() && one.iter().all(has)
        }
        _ => one == other,
    }
}

/// Returns sign, digits without leading and trailing zeros, and the power of ten. `None` if the
/// exponent exceeds 64 bits: such numbers are equal only if their notation is equal.
fn decimal(number: &Number) -> Option<(bool, String, i64)> {
    let text = number.as_str();
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Some((false, String::new(), 0));
    }
    let zeros = digits.len() - digits.trim_end_matches('0').len();
    let exponent = exponent.parse::<i64>().ok()?;
    let exponent = exponent.checked_sub(fraction.len() as i64)?.checked_add(zeros as i64)?;
    Some((is_negative, significant.to_owned(), exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(one: &str, other: &str, expected: bool) {
        let parse = |text| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(equal(&parse(one), &parse(other)), expected);
        assert_eq!(equal(&parse(other), &parse(one)), expected);
    }

    #[test]
    fn numbers_are_compared_by_value() {
        check("1.0", "1", true);
        check("100", "1e2", true);
        check("0.010", "1E-2", true);
        check("-0.0", "0e7", true);
        check("12345678901234567890123", "12345678901234567890123.0", true);
        check("12345678901234567890123", "12345678901234567890124", false);
        check("1", "-1", false);
        check("1", "10", false);
        check("1e99999999999999999999", "1e99999999999999999999", true);
        check("1e99999999999999999999", "1", false);
    }

    #[test]
    fn objects_and_arrays_are_compared_by_content() {
        check(r#"{"a":[1,{"b":2.0}],"c":0}"#, r#"{"c":0.0,"a":[1e0,{"b":2}]}"#, true);
        check(r#"{"a":1}"#, r#"{"a":1,"b":null}"#, false);
        check(r#"{"a":1}"#, r#"{"b":1}"#, false);
        check("[1,2]", "[2,1]", false);
        check("\"1\"", "1", false);
        check("null", "false", false);
    }
}
