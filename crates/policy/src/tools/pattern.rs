//! Text patterns: `*` within a segment between `/`, `**` for any number of segments.

use std::fmt;

use kitbag_base::text::shown;

use crate::http::glob::glob;
use crate::http::lenient::decode_wholly;
use crate::http::path::has_dots;

/// A text pattern.
///
/// A pattern without a wildcard matches exactly one string. A pattern with a wildcard compares
/// strings as written and refuses those that a program could interpret differently; [`Misfit`] has
/// the reasons. A pattern that starts with a scheme and `://` is a URL pattern: its wildcards do
/// not match beyond the named host, and only a pattern that ends in `**` matches a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPattern {
    text: String,
    /// `None` if the pattern has no wildcard.
    wildcards: Option<Wildcards>,
}

/// The parts of a pattern with wildcards.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wildcards {
    segments: Vec<Segment>,
    /// The query and fragment of a URL pattern, including the character that starts them.
    tail: Option<String>,
    is_url: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    /// `**`: any number of segments.
    Any,
    /// One segment.
    One(Vec<Part>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// `*`: any characters.
    Star,
    Char(char),
}

/// The error for a string that is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a pattern: {problem}", shown(text))]
pub struct TextPatternError {
    /// The invalid string.
    pub text: String,
    /// The problem.
    pub problem: TextPatternProblem,
}

/// A problem with a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextPatternProblem {
    /// The pattern is too long.
    #[error("it has more than {} bytes", TextPattern::PATTERN_BYTES)]
    Long,
    /// `**` next to other characters in a segment.
    #[error("`**` matches whole segments: write `a/**/b`, not `a**`")]
    Stars,
    /// The pattern matches nothing.
    #[error(
        "a pattern with a wildcard must not have segments `.` and `..`, control characters or, \
         in a URL, backslashes and encoded slashes, since no value with them matches"
    )]
    Nothing,
    /// The scheme of a URL pattern has a wildcard.
    #[error("a scheme must not have a wildcard")]
    Scheme,
    /// The host has a wildcard with other characters than those of hosts.
    #[error(
        "a host with a wildcard may have only letters, digits, `.`, `_`, `-` and one `:`, and \
         `**` only at the end of the pattern"
    )]
    Host,
    /// The query has a wildcard.
    #[error(
        "a query must not have a wildcard, which would match other parameters; end with `/**` to match every query"
    )]
    Query,
}

/// Why a value does not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// The value differs.
    #[error("it does not match")]
    Differs,
    /// The argument is absent.
    #[error("it is absent")]
    Absent,
    /// The value is an object, which cannot be compared.
    #[error("it is an object; a condition can name its members, as `/key/…`")]
    Object,
    /// The value is null.
    #[error("it is null")]
    Null,
    /// The value is an empty array, which tools interpret as "all" or as "none".
    #[error("it is an empty array")]
    Empty,
    /// The string is too long for a pattern with a wildcard.
    #[error("it has more than 8 KiB, the limit for wildcards")]
    Long,
    /// Control characters, encoded or not.
    #[error("it has control characters, or `%` codes of control characters or invalid UTF-8")]
    Control,
    /// Segments `.` or `..`, also encoded or with backslashes.
    #[error("it has a segment `.` or `..`")]
    Dots,
    /// A character that a server may treat as a slash, in a URL.
    #[error("it has a backslash or an encoded slash")]
    Slash,
}

impl TextPattern {
    /// The longest pattern, in bytes.
    pub const PATTERN_BYTES: usize = 1024;

    /// The longest string that a wildcard matches, in bytes: 8 KiB.
    pub const TEXT_BYTES: usize = 8 << 10;

    /// Parses a pattern. A literal `*` cannot be written.
    ///
    /// # Errors
    ///
    /// [`TextPatternError`] if the pattern is not valid.
    pub fn new(text: impl Into<String>) -> Result<Self, TextPatternError> {
        let text = text.into();
        let wildcards = match text.len() > Self::PATTERN_BYTES {
            true => Err(TextPatternProblem::Long),
            false => text.contains('*').then(|| Wildcards::new(&text)).transpose(),
        };
        match wildcards {
            Ok(wildcards) => Ok(Self { text, wildcards }),
            Err(problem) => Err(TextPatternError { text, problem }),
        }
    }

    /// Returns the pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true if the pattern has a wildcard.
    pub fn has_wildcard(&self) -> bool {
        self.wildcards.is_some()
    }

    /// Checks that a string matches.
    ///
    /// # Errors
    ///
    /// [`Misfit`] with the reason.
    pub fn check(&self, text: &str) -> Result<(), Misfit> {
        match &self.wildcards {
            None if self.text == text => Ok(()),
            None => Err(Misfit::Differs),
            Some(wildcards) => wildcards.check(text),
        }
    }

    /// Returns true if every string that matches `other` matches. False if this cannot be decided
    /// segment by segment.
    pub fn holds(&self, other: &Self) -> bool {
        match (&self.wildcards, &other.wildcards) {
            (_, None) => self.check(&other.text).is_ok(),
            (None, Some(_)) => false,
            (Some(own), Some(other)) => own.holds(other),
        }
    }
}

impl Wildcards {
    fn new(text: &str) -> Result<Self, TextPatternProblem> {
        // RFC 3986, 3.1.
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '*');
        let (head, tail, is_url) = match text.split_once("://") {
            Some((scheme, _)) if scheme.chars().all(is_scheme) => {
                if scheme.contains('*') {
                    return Err(TextPatternProblem::Scheme);
                }
                let (head, tail) = without_tail(text);
                (head, tail.map(str::to_owned), true)
            }
            _ => (text, None, false),
        };
        if tail.as_ref().is_some_and(|tail| tail.contains('*')) {
            return Err(TextPatternProblem::Query);
        }
        let plain = text.replace('*', "a");
        if check_written(&plain, is_url).is_err() {
            return Err(TextPatternProblem::Nothing);
        }
        let segment = |text: &str| match text {
            "**" => Ok(Segment::Any),
            text if text.contains("**") => Err(TextPatternProblem::Stars),
            text => Ok(Segment::One(parts(text))),
        };
        let mut segments = head.split('/').map(segment).collect::<Result<Vec<_>, _>>()?;
        // Repeated `**` are equal to one.
        segments.dedup_by(|a, b| (&*a, &*b) == (&Segment::Any, &Segment::Any));
        if is_url {
            let has_host = match &segments[HOST] {
                Segment::Any => segments.len() == HOST + 1 && tail.is_none(),
                host => !host.has_star() || host.is_plain_host(),
            };
            if !has_host {
                return Err(TextPatternProblem::Host);
            }
        }
        Ok(Self { segments, tail, is_url })
    }

    fn check(&self, text: &str) -> Result<(), Misfit> {
        if text.len() > TextPattern::TEXT_BYTES {
            return Err(Misfit::Long);
        }
        check_written(text, self.is_url)?;
        let (head, tail) = if self.is_url { without_tail(text) } else { (text, None) };
        let segments: Vec<_> = head.split('/').map(Segment::exactly).collect();
        // Some clients treat the text between a host without a path and an `@` as a user.
        let is_path = tail.is_none() || segments.len() > HOST + 1;
        let fits_tail = tail == self.tail.as_deref() || self.ends_openly();
        match is_path && fits_tail && self.holds_segments(&segments) {
            true => Ok(()),
            false => Err(Misfit::Differs),
        }
    }

    /// Returns true if any query matches.
    fn ends_openly(&self) -> bool {
        self.tail.is_none() && self.segments.last() == Some(&Segment::Any)
    }

    fn holds(&self, other: &Self) -> bool {
        let holds_tail = match self.is_url {
            true => self.ends_openly() || self.tail == other.tail && !other.ends_openly(),
            // Another pattern restricts a string less than a URL pattern, which has all of it in
            // segments.
            false => other.tail.is_none(),
        };
        holds_tail && self.holds_segments(&other.segments)
    }

    fn holds_segments(&self, other: &[Segment]) -> bool {
        let is_any = |segment: &Segment| *segment == Segment::Any;
        let holds = glob(&self.segments, other, is_any, |own, other| match (own, other) {
            (Segment::One(own), Segment::One(other)) => {
                // `*` does not match an empty segment, as in URL patterns.
                own.is_empty() == other.is_empty()
                    && glob(
                        own,
                        other,
                        |part| *part == Part::Star,
                        |own, other| *own != Part::Star && own == other,
                    )
            }
            _ => false,
        });
        // A user, a port or a character that a client folds changes the destination.
        let is_host = || match (&self.segments[HOST], other.get(HOST)) {
            (host, Some(other)) if host.has_star() => {
                other.is_plain_host() && host.colons() == other.colons()
            }
            _ => true,
        };
        holds && (!self.is_url || is_host())
    }
}

/// The index of the host among the segments of a URL.
const HOST: usize = 2;

impl Segment {
    fn exactly(text: &str) -> Self {
        Self::One(text.chars().map(Part::Char).collect())
    }

    fn parts(&self) -> &[Part] {
        match self {
            Self::Any => &[],
            Self::One(parts) => parts,
        }
    }

    fn has_star(&self) -> bool {
        self.parts().contains(&Part::Star)
    }

    /// Returns true if the segment has only characters of a host and a port.
    fn is_plain_host(&self) -> bool {
        let is_plain = |part: &Part| match part {
            Part::Star => true,
            Part::Char(c) => c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':'),
        };
        *self != Self::Any && self.parts().iter().all(is_plain) && self.colons() <= 1
    }

    fn colons(&self) -> usize {
        self.parts().iter().filter(|part| **part == Part::Char(':')).count()
    }
}

fn parts(text: &str) -> Vec<Part> {
    let part = |c| if c == '*' { Part::Star } else { Part::Char(c) };
    text.chars().map(part).collect()
}

/// Splits off the query or fragment.
fn without_tail(text: &str) -> (&str, Option<&str>) {
    match text.find(['?', '#']) {
        Some(at) => (&text[..at], Some(&text[at..])),
        None => (text, None),
    }
}

/// Refuses a string that could be interpreted as a different one.
pub(super) fn check_written(text: &str, is_url: bool) -> Result<(), Misfit> {
    let decoded = decode_wholly(text.bytes());
    let Ok(decoded) = str::from_utf8(&decoded) else { return Err(Misfit::Control) };
    if text.contains(char::is_control) || decoded.contains(char::is_control) {
        return Err(Misfit::Control);
    }
    if has_dots(decoded) {
        return Err(Misfit::Dots);
    }
    if is_url {
        let (head, _) = without_tail(text);
        let decoded = decode_wholly(head.bytes());
        let slashes = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'/').count();
        if decoded.contains(&b'\\') || slashes(&decoded) > slashes(head.as_bytes()) {
            return Err(Misfit::Slash);
        }
    }
    Ok(())
}

impl fmt::Display for TextPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
