//! Patterns of texts: `*` within a segment of `/`, `**` for any number of segments.

use std::fmt;

use kitbag_base::text::shown;

use crate::http::glob::glob;
use crate::http::lenient::decode_wholly;
use crate::http::path::has_dots;

/// A pattern of texts.
///
/// Without a wildcard it is one text, as it is written. With one, a text is judged as it is
/// written, too, and refused where what reads it could take it for another one: [`Misfit`]
/// has the reasons. A pattern that starts with a scheme and `://` is one of URLs: its
/// wildcards leave the host that it names, and a query has only what ends in `**`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPattern {
    text: String,
    /// `None`: there is no wildcard.
    wildcards: Option<Wildcards>,
}

/// What a pattern with wildcards is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wildcards {
    segments: Vec<Segment>,
    /// The query and fragment of a pattern of URLs, with the character that starts it.
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

/// A part of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// `*`: any characters.
    Star,
    Char(char),
}

/// A text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a pattern: {problem}", shown(text))]
pub struct TextPatternError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub problem: TextPatternProblem,
}

/// What is wrong with a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextPatternProblem {
    /// It is long.
    #[error("it has more than {} bytes", TextPattern::PATTERN_BYTES)]
    Long,
    /// `**` beside something else.
    #[error("`**` stands for whole segments: `a/**/b`, not `a**`")]
    Stars,
    /// It matches nothing.
    #[error(
        "beside a wildcard there are no segments `.` and `..`, control characters or, in a URL, \
         backslashes and encoded slashes: no value with them is let in"
    )]
    Nothing,
    /// A wildcard in the scheme of a URL.
    #[error("a scheme has no wildcard; write it out")]
    Scheme,
    /// A wildcard in the place of a host and something else there.
    #[error(
        "a wildcard in a host stands beside letters, digits, `.`, `_`, `-` and one `:`, and `**` \
         in its place at the end alone"
    )]
    Host,
    /// A wildcard in a query.
    #[error("a query has no wildcard, which would let in others; end with `/**` to let in all")]
    Query,
}

/// Why a text or another value does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// It is another one.
    #[error("it does not fit")]
    Differs,
    /// The argument is not there.
    #[error("it is absent")]
    Absent,
    /// An object, of which no condition says anything.
    #[error("it is an object; a condition can name what is in it, as `/key/…`")]
    Object,
    /// `null`.
    #[error("it is null")]
    Null,
    /// An array without elements, which tools take for "all" as well as for "none".
    #[error("it is an empty array")]
    Empty,
    /// More text than a pattern with a wildcard is held against.
    #[error("it has more than 8 KiB, the most that fits a wildcard")]
    Long,
    /// Control characters, encoded too.
    #[error("it has control characters, or `%` codes of them or of no UTF-8")]
    Control,
    /// Segments `.` or `..`, encoded or behind backslashes too.
    #[error("it has a segment `.` or `..`")]
    Dots,
    /// What a server may take for a slash, in a URL.
    #[error("it has a backslash or an encoded slash")]
    Slash,
}

impl TextPattern {
    /// The longest pattern, in bytes.
    pub const PATTERN_BYTES: usize = 1024;

    /// The longest text that fits a wildcard, in bytes: 8 KiB.
    pub const TEXT_BYTES: usize = 8 << 10;

    /// Reads a pattern. There is no way to write a `*` that is no wildcard.
    ///
    /// # Errors
    ///
    /// [`TextPatternError`], where it is none.
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

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it has a wildcard.
    pub fn has_wildcard(&self) -> bool {
        self.wildcards.is_some()
    }

    /// Whether a text fits.
    ///
    /// # Errors
    ///
    /// [`Misfit`]: why not.
    pub fn check(&self, text: &str) -> Result<(), Misfit> {
        match &self.wildcards {
            None if self.text == text => Ok(()),
            None => Err(Misfit::Differs),
            Some(wildcards) => wildcards.check(text),
        }
    }

    /// Whether everything fits that fits another one. Where this cannot be seen from the
    /// segments one by one it is denied.
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
        // Once is any number of times.
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
        // Some clients take what stands between a host without a path and an `@` for a user.
        let is_path = tail.is_none() || segments.len() > HOST + 1;
        let fits_tail = tail == self.tail.as_deref() || self.ends_openly();
        match is_path && fits_tail && self.holds_segments(&segments) {
            true => Ok(()),
            false => Err(Misfit::Differs),
        }
    }

    /// Whether any query is let in.
    fn ends_openly(&self) -> bool {
        self.tail.is_none() && self.segments.last() == Some(&Segment::Any)
    }

    fn holds(&self, other: &Self) -> bool {
        let holds_tail = match self.is_url {
            true => self.ends_openly() || self.tail == other.tail && !other.ends_openly(),
            // It asks less of a text than a pattern of URLs, which has all of it in segments.
            false => other.tail.is_none(),
        };
        holds_tail && self.holds_segments(&other.segments)
    }

    fn holds_segments(&self, other: &[Segment]) -> bool {
        let is_any = |segment: &Segment| *segment == Segment::Any;
        let holds = glob(&self.segments, other, is_any, |own, other| match (own, other) {
            (Segment::One(own), Segment::One(other)) => {
                // `*` stands for no empty segment, as in patterns of URLs.
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
        // A user, a port or a character that a client folds leads elsewhere.
        let is_host = || match (&self.segments[HOST], other.get(HOST)) {
            (host, Some(other)) if host.has_star() => {
                other.is_plain_host() && host.colons() == other.colons()
            }
            _ => true,
        };
        holds && (!self.is_url || is_host())
    }
}

/// Which segment of a URL is its host.
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

    /// Whether it has nothing but what a host and a port are made of.
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

/// What stands before the query or the fragment, and these.
fn without_tail(text: &str) -> (&str, Option<&str>) {
    match text.find(['?', '#']) {
        Some(at) => (&text[..at], Some(&text[at..])),
        None => (text, None),
    }
}

/// Refuses a text that could be read as another one than is written.
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
