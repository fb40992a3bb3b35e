//! The tokens of an expression.

use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;

use crate::budget::{MOST_DIGITS, power_of_ten};
use crate::fail::{Fail, error};

/// A token of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token<'a> {
    Number(RBig),
    /// A function or a constant.
    Name(&'a str),
    /// A sign in normalized form: `×` is `*`.
    Sign(char),
    End,
}

/// Reads an expression from left to right.
pub(crate) struct Lexer<'a> {
    text: &'a str,
    /// The position of the next token in bytes.
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Creates a lexer at the position of another lexer.
    pub(crate) fn at(other: &Self) -> Self {
        Self { text: other.text, at: other.at }
    }

    /// Returns the next token and its position.
    pub(crate) fn next(&mut self) -> Result<(Token<'a>, usize), Fail> {
        let rest = &self.text[self.at..];
        let spaces = rest.len() - rest.trim_start().len();
        let start = self.at + spaces;
        let rest = &self.text[start..];
        let Some(first) = rest.chars().next() else { return Ok((Token::End, start)) };
        let second = rest[first.len_utf8()..].chars().next();
        let starts_number = first.is_ascii_digit()
            || (first == '.' && second.is_some_and(|second| second.is_ascii_digit()));
        if starts_number {
            let (number, length) = self.number(start)?;
            self.at = start + length;
            return Ok((Token::Number(number), start));
        }
        if first.is_alphabetic() || first == '_' {
            let is_part = |it: char| it.is_alphanumeric() || it == '_';
            let length = rest.find(|it| !is_part(it)).unwrap_or(rest.len());
            self.at = start + length;
            return Ok((Token::Name(&rest[..length]), start));
        }
        let (sign, length) = match (first, second) {
            ('*', Some('*')) => ('^', 2),
            ('/', Some('/')) => ('⌊', 2),
            ('+' | '-' | '*' | '/' | '^' | '!' | '%' | '(' | ')' | ',', _) => (first, 1),
            ('\u{d7}' | '\u{b7}' | '\u{22c5}', _) => ('*', first.len_utf8()),
            ('\u{f7}', _) => ('/', first.len_utf8()),
            // Dashes that typesetting substitutes for a minus sign.
            ('\u{2212}' | '\u{2013}', _) => ('-', first.len_utf8()),
            ('\u{221a}', _) => ('√', first.len_utf8()),
            ('[' | '{', _) => {
                return self.fail(start, &format!("`{first}` is not understood; write `(`"));
            }
            ('$' | '€' | '£' | '¥' | '°', _) => {
                return self.fail(start, &format!("`{first}` is a unit; omit units"));
            }
            ('=' | '<' | '>', _) => {
                return self.fail(
                    start,
                    &format!(
                        "`{first}` is not understood: comparisons and equations are not supported; \
                         subtract one side from the other"
                    ),
                );
            }
            _ => {
                return self
                    .fail(start, &format!("{} is not understood", quoted(&first.to_string())));
            }
        };
        self.at = start + length;
        Ok((Token::Sign(sign), start))
    }

    /// Returns an error with the position: the column in characters, from 1.
    pub(crate) fn fail<T>(&self, at: usize, message: &str) -> Result<T, Fail> {
        let column = self.text[..at].chars().count() + 1;
        error(format!("column {column}: {message}"))
    }

    /// Parses a number. Returns its value and length in bytes.
    fn number(&self, start: usize) -> Result<(RBig, usize), Fail> {
        let rest = &self.text.as_bytes()[start..];
        for (prefix, radix) in [(b"0x", 16), (b"0b", 2), (b"0o", 8)] {
            if rest.len() > 2 && rest[..2].eq_ignore_ascii_case(prefix) {
                let length = rest[2..]
                    .iter()
                    .take_while(|it| it.is_ascii_alphanumeric() || **it == b'_')
                    .count();
                let digits = self.text[start + 2..start + 2 + length].replace('_', "");
                return match UBig::from_str_radix(&digits, radix) {
                    Ok(number) => Ok((RBig::from(number), 2 + length)),
                    Err(_) => self.fail(
                        start,
                        &format!(
                            "{} is not a number",
                            quoted(&self.text[start..start + 2 + length])
                        ),
                    ),
                };
            }
        }
        let digits = |from: usize| {
            rest[from..].iter().take_while(|it| it.is_ascii_digit() || **it == b'_').count()
        };
        let whole = digits(0);
        let mut length = whole;
        let mut fraction = 0;
        if rest.get(length) == Some(&b'.') {
            fraction = digits(length + 1);
            length += 1 + fraction;
        }
        let mantissa = self.text[start..start + length].replace(['_', '.'], "");
        let places = self.text[start + length - fraction..start + length].replace('_', "").len();
        let exponent = self.exponent(&rest[length..]);
        if let Some((_, exponent)) = exponent {
            length += exponent;
        }
        let shown = &self.text[start..start + length];
        if rest.get(length) == Some(&b'.') {
            return self.fail(start, &format!("{} has two points", quoted(&format!("{shown}."))));
        }
        let exponent = exponent.map_or(0, |(exponent, _)| exponent) - places as i64;
        if mantissa.len() > MOST_DIGITS || exponent.unsigned_abs() > MOST_DIGITS as u64 {
            return self.fail(
                start,
                &format!("{} has more than 100,000 digits, the limit", quoted(shown)),
            );
        }
        let Ok(mantissa) = mantissa.parse::<UBig>() else {
            return self.fail(start, &format!("{} is not a number", quoted(shown)));
        };
        let scale = power_of_ten(exponent.unsigned_abs() as usize);
        let number = match exponent < 0 {
            true => RBig::from_parts(IBig::from(mantissa), scale),
            false => RBig::from(mantissa * scale),
        };
        Ok((number, length))
    }

    /// Parses an exponent such as `e-5` after a number. Returns its value and length in bytes. `2e`
    /// is a number and a name.
    fn exponent(&self, rest: &[u8]) -> Option<(i64, usize)> {
        if !matches!(rest.first()?, b'e' | b'E') {
            return None;
        }
        let sign = usize::from(matches!(rest.get(1), Some(b'+' | b'-')));
        let digits = rest[1 + sign..].iter().take_while(|it| it.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        let text = std::str::from_utf8(&rest[1..1 + sign + digits]).ok()?;
        // An exponent that overflows the type exceeds every limit.
        Some((text.parse().unwrap_or(i64::MAX / 2), 1 + sign + digits))
    }
}

/// Formats part of an expression for an error: short and on one line.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN: usize = 40;
    let mut shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    format!("`{}`", shown.replace("\\'", "'").replace("\\\"", "\""))
}
