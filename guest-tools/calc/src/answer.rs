//! The answer: a decimal number, and how much of it is certain.

use dashu_base::{Abs, Sign, UnsignedAbs};
use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;
use serde::Serialize;

use crate::budget::{Budget, MOST_BYTES, MOST_DIGITS, MOST_INEXACT_DIGITS, power_of_ten};
use crate::evaluate::Evaluation;
use crate::fail::Fail;
use crate::interval::{Interval, Precise};
use crate::number::{Context, Number};

/// Maximum number of digits of an exact result, unless the caller requests fewer.
const EXACT_DIGITS: usize = 1_000;

/// Maximum length of a fraction that is added to its decimal number, in bytes.
const FRACTION_BYTES: usize = 200;

/// The answer of the tool.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Answer {
    /// A decimal number.
    result: String,
    /// True if nothing was rounded.
    exact: bool,
    /// The number of certain significant digits, if the result is not exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    digits: Option<usize>,
    /// The exact result, if its decimal expansion is infinite.
    #[serde(skip_serializing_if = "Option::is_none")]
    fraction: Option<String>,
    /// The interpretation of the expression, or another remark.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// Evaluates an expression with this many significant digits if the result is not exact.
pub(crate) fn answer(expression: &str, digits: usize) -> Result<Answer, String> {
    if expression.len() > MOST_BYTES {
        return Err(format!(
            "the expression has {} bytes; the limit is {MOST_BYTES}",
            expression.len()
        ));
    }
    if !(1..=MOST_DIGITS).contains(&digits) {
        return Err(format!("`digits` is {digits}, but must be from 1 to 100000"));
    }
    // Only exact results are worth more digits.
    let wanted = digits.min(MOST_INEXACT_DIGITS);
    let most = 8 * wanted + 1_200;
    let mut precision = wanted + 15;
    let mut budget = Budget::default();
    loop {
        let is_last = precision * 2 > most;
        let context = Context { precise: Precise::new(precision), budget };
        match Evaluation::run(expression, context) {
            Ok((number, evaluation)) => {
                budget = evaluation.context.budget;
                let answer = match number {
                    Number::Exact(number) => Some(exact(&number, digits)),
                    Number::Near(interval) => near(&interval, wanted, digits, is_last),
                };
                if let Some(mut answer) = answer {
                    let notes = evaluation.notes.into_iter().map(str::to_owned).chain(answer.note);
                    let notes: Vec<String> = notes.collect();
                    answer.note = (!notes.is_empty()).then(|| notes.join("; "));
                    return Ok(answer);
                }
            }
            Err(Fail::Error(message)) => return Err(message),
            Err(Fail::Undecided(message)) if is_last => return Err(message),
            Err(Fail::Undecided(_)) => budget = Budget::default(),
        }
        precision *= 2;
    }
}

/// Writes an exact number.
fn exact(number: &RBig, digits: usize) -> Answer {
    let plain = |result| Answer { result, exact: true, digits: None, fraction: None, note: None };
    let most = digits.max(EXACT_DIGITS);
    if let Some(places) = places(number.denominator()) {
        let scaled = number.numerator() * IBig::from(power_of_ten(places))
            / IBig::from(number.denominator().clone());
        let text = scaled.clone().unsigned_abs().to_string();
        // Zeros at the end of a large number, and trailing zeros after the point, are also digits.
        if text.len().max(places) <= most {
            return plain(signed(number, &with_point(&text, places)));
        }
        let count = text.len().max(places);
        let Rounded { text: result, digits: kept, is_exact } =
            rounded(number, digits.min(EXACT_DIGITS));
        if is_exact {
            return plain(result);
        }
        let note = match count <= MOST_DIGITS {
            true => format!("the exact result has {count} digits; `digits`: {count} gives them"),
            false => format!("the exact result has {count} digits"),
        };
        return Answer {
            result,
            exact: false,
            digits: Some(kept),
            fraction: None,
            note: Some(note),
        };
    }
    let Rounded { text: result, digits: kept, .. } = rounded(number, digits);
    let fraction = number.to_string();
    Answer {
        result,
        exact: false,
        digits: Some(kept),
        fraction: (fraction.len() <= FRACTION_BYTES).then_some(fraction),
        note: None,
    }
}

/// Formats a number in an interval with the digits on which both rounded ends agree. `None` if more
/// precision may give more digits.
fn near(interval: &Interval, wanted: usize, asked: usize, is_last: bool) -> Option<Answer> {
    let (low, high) = interval.ends();
    let answer = |result, digits, note| {
        Some(Answer { result, exact: false, digits: Some(digits), fraction: None, note })
    };
    let note = (asked > wanted).then(|| format!("`digits` is at most {wanted} here"));
    let Rounded { text: result, digits, .. } = rounded(&low, wanted);
    if result == rounded(&high, wanted).text {
        return answer(result, digits, note);
    }
    if !is_last {
        return None;
    }
    if interval.sign().is_none() {
        let bound = if low.clone().abs() > high { low.abs() } else { high };
        let note = format!("the result is within {} of 0; it may be 0", rounded(&bound, 1).text);
        return answer("0".into(), 0, Some(note));
    }
    // The maximum number of digits on which both ends agree.
    for digits in (1..wanted).rev() {
        let Rounded { text: result, digits, .. } = rounded(&low, digits);
        if result == rounded(&high, digits).text {
            return answer(result, digits, Some(format!("only {digits} digits are certain")));
        }
    }
    let note = "no digit is certain: the calculation loses all of them".to_owned();
    answer(rounded(&low, 1).text, 0, Some(note))
}

/// Returns the number of decimal places, if finite.
fn places(denominator: &UBig) -> Option<usize> {
    let twos = denominator.trailing_zeros().unwrap_or(0);
    let odd = denominator >> twos;
    // 5 to the power of n has 2.32 bits for each n.
    let five = UBig::from(5u8);
    let fives = odd.ilog(&five);
    (five.pow(fives) == odd).then_some(twos.max(fives))
}

/// A number that was rounded.
struct Rounded {
    /// The number in decimal notation.
    text: String,
    /// The number of significant digits after rounding.
    digits: usize,
    /// True if the number had no further digits.
    is_exact: bool,
}

/// Rounds a number to this many significant digits, half away from zero.
fn rounded(number: &RBig, digits: usize) -> Rounded {
    if number.is_zero() {
        return Rounded { text: "0".into(), digits, is_exact: true };
    }
    let absolute = number.clone().abs();
    // The exponent of the first digit, or one less, which is corrected below.
    let length = |number: &UBig| number.ilog(&UBig::from(10u8)) as isize;
    let numerator = absolute.numerator().clone().unsigned_abs();
    let mut exponent = length(&numerator) - length(absolute.denominator());
    if absolute < power(exponent) {
        exponent -= 1;
    }
    let shift = digits as isize - 1 - exponent;
    let scaled = absolute * power(shift);
    let is_exact = scaled.is_int();
    let mut mantissa = scaled.round();
    // 9.99 rounded to two digits is 10.
    if mantissa >= IBig::from(power_of_ten(digits)) {
        mantissa /= IBig::from(10);
        exponent += 1;
    }
    let text = mantissa.to_string();
    let shown = match exponent {
        exponent if exponent >= 0 && (exponent as usize) < digits => {
            trimmed(&with_point(&text, digits - 1 - exponent as usize))
        }
        -6..0 => {
            let zeros = "0".repeat(exponent.unsigned_abs() - 1);
            trimmed(&format!("0.{zeros}{text}"))
        }
        _ => format!("{}e{exponent}", trimmed(&with_point(&text, digits - 1))),
    };
    Rounded { text: signed(number, &shown), digits, is_exact }
}

/// Returns ten to a power, which may be negative.
fn power(exponent: isize) -> RBig {
    let power = power_of_ten(exponent.unsigned_abs());
    match exponent < 0 {
        true => RBig::from_parts(IBig::ONE, power),
        false => RBig::from(power),
    }
}

fn signed(number: &RBig, absolute: &str) -> String {
    match number.numerator().sign() == Sign::Negative && !number.is_zero() {
        true => format!("-{absolute}"),
        false => absolute.to_owned(),
    }
}

/// Inserts a point before the last digits.
fn with_point(digits: &str, places: usize) -> String {
    if places == 0 {
        return digits.to_owned();
    }
    let padded = format!("{digits:0>width$}", width = places + 1);
    let (whole, fraction) = padded.split_at(padded.len() - places);
    format!("{whole}.{fraction}")
}

/// Removes trailing zeros after the point.
fn trimmed(text: &str) -> String {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    }
}
