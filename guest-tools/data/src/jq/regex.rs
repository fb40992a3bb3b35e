//! Regular expressions of `fancy-regex`, which has the syntax of Oniguruma. The number of
//! backtracking steps is limited.

use fancy_regex::{Captures, Regex, RegexBuilder};
use jaq_core::ValR;
use jaq_json::Val;

use super::functions::text;

type Error = jaq_core::Error<Val>;

/// Maximum number of backtracking steps of a match.
const STEPS: usize = 1_000_000;

/// Maximum size of a compiled expression in bytes.
const PATTERN_BYTES: usize = 4 << 20;

/// The requested parts of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Parts {
    Matches,
    Between,
    /// The matches and the text between them, in order.
    Both,
}

/// jq's flags other than the options of the expression.
#[derive(Default)]
struct Flags {
    is_global: bool,
    drops_empty: bool,
}

/// Applies an expression to a text.
pub(super) fn apply(value: &Val, pattern: &Val, flags: &Val, wanted: Parts) -> ValR<Val> {
    let whole = text(value)?;
    let (regex, flags) = compile(text(pattern)?, text(flags)?)?;
    let names: Vec<_> = regex.capture_names().map(|name| name.map(str::to_owned)).collect();
    let mut position = Position { text: whole, byte: 0, character: 0 };
    let mut found = Vec::new();
    let mut end = 0;
    for captures in regex.captures_iter(whole) {
        let captures = captures.map_err(|error| {
            Error::str(format_args!("the regular expression {pattern} cannot be applied: {error}"))
        })?;
        let Some(all) = captures.get(0) else { continue };
        if flags.drops_empty && all.range().is_empty() {
            continue;
        }
        if wanted != Parts::Matches {
            found.push(Val::from(whole[end..all.start()].to_owned()));
            end = all.end();
        }
        if wanted != Parts::Between {
            found.push(groups(&captures, &names, &mut position));
        }
        if !flags.is_global {
            break;
        }
    }
    if wanted != Parts::Matches {
        found.push(Val::from(whole[end..].to_owned()));
    }
    Ok(found.into_iter().collect())
}

fn compile(pattern: &str, flags: &str) -> Result<(Regex, Flags), Error> {
    let mut builder = RegexBuilder::new(pattern);
    builder
        .backtrack_limit(STEPS)
        .delegate_size_limit(PATTERN_BYTES)
        .delegate_dfa_size_limit(PATTERN_BYTES);
    let mut own = Flags::default();
    for flag in flags.chars() {
        match flag {
            'g' => own.is_global = true,
            'n' => own.drops_empty = true,
            'i' => drop(builder.case_insensitive(true)),
            'x' => drop(builder.verbose_mode(true)),
            'p' => drop(builder.dot_matches_new_line(true)),
            // No effect: the start and end are always those of the text.
            's' => {}
            flag => {
                return Err(Error::str(format_args!(
                    "`{flag}` is not a flag here; the flags are g, i, n, p, s and x"
                )));
            }
        }
    }
    match builder.build() {
        Ok(regex) => Ok((regex, own)),
        Err(error) => {
            let error = error.to_string();
            Err(match error.contains("size limit") || error.contains("building NFA") {
                true => Error::str(format_args!(
                    "the regular expression `{pattern}` takes more than {} MiB: repeat less, such \
                     as `x+` for `x{{1,1000}}`",
                    PATTERN_BYTES >> 20
                )),
                false => {
                    Error::str(format_args!("`{pattern}` is not a regular expression: {error}"))
                }
            })
        }
    }
}

/// A byte position in a text and its character position.
struct Position<'a> {
    text: &'a str,
    byte: usize,
    character: usize,
}

impl Position<'_> {
    /// Returns the position of the character that starts at a byte.
    fn character(&mut self, byte: usize) -> usize {
        if byte < self.byte {
            // A group that starts before the previous one.
            return self.character - self.text[byte..self.byte].chars().count();
        }
        self.character += self.text[self.byte..byte].chars().count();
        self.byte = byte;
        self.character
    }
}

/// Returns the match and its groups as objects.
fn groups(
    captures: &Captures<'_, str>,
    names: &[Option<String>],
    position: &mut Position<'_>,
) -> Val {
    let group = |(number, name): (usize, &Option<String>)| {
        let (offset, length, string) = match captures.get(number) {
            Some(found) => (
                Val::from(position.character(found.start())),
                Val::from(found.as_str().chars().count()),
                Val::from(found.as_str().to_owned()),
            ),
            None => (Val::from(-1_isize), Val::from(0_usize), Val::Null),
        };
        let fields = [("offset", offset), ("length", length), ("string", string)];
        let name = name.as_ref().map_or(Val::Null, |name| Val::from(name.clone()));
        let name = (number > 0).then_some(("name", name));
        let field = |(key, value)| (Val::utf8_str(key), value);
        Val::obj(fields.into_iter().chain(name).map(field).collect())
    };
    names.iter().enumerate().map(group).collect()
}
