//! Patterns of texts: `*` within a segment of `/`, `**` for any number of segments.

use std::fmt;

use kitbag_contract::text::shown;

use crate::http::glob::glob;
use crate::http::path::has_dots;
use crate::http::wide::decode_wholly;

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
fn check_written(text: &str, is_url: bool) -> Result<(), Misfit> {
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
mod tests {
    use super::*;

    fn pattern(text: &str) -> TextPattern {
        TextPattern::new(text).unwrap()
    }

    #[track_caller]
    fn check(text: &str, fits: &[&str], others: &[(&str, Misfit)]) {
        for value in fits {
            assert_eq!(pattern(text).check(value), Ok(()), "{text} {value:?}");
        }
        for (value, misfit) in others {
            assert_eq!(pattern(text).check(value), Err(*misfit), "{text} {value:?}");
        }
    }

    #[test]
    fn a_pattern_without_a_wildcard_is_one_text() {
        use Misfit::Differs;
        check("a/../b", &["a/../b"], &[("b", Differs), ("a/../B", Differs), ("", Differs)]);
        check("", &[""], &[(" ", Differs)]);
        check("a\n", &["a\n"], &[("a", Differs)]);
        check("[a-z]?", &["[a-z]?"], &[("a", Differs)]);
    }

    #[test]
    fn a_star_stays_in_a_segment_and_two_stand_for_segments() {
        use Misfit::Differs;
        check("src/*.rs", &["src/a.rs", "src/.rs"], &[("src/a/b.rs", Differs), ("a.rs", Differs)]);
        check("src/*", &["src/a"], &[("src/", Differs), ("src", Differs), ("src/a/b", Differs)]);
        check("src/**", &["src", "src/", "src/a", "src/a/b"], &[("srca", Differs), ("", Differs)]);
        check("**/b", &["b", "a/b", "a/a/b"], &[("ab", Differs), ("b/a", Differs)]);
        check("**", &["", "a", "/etc/passwd"], &[]);
        check("*", &["a", "a b?c[d]"], &[("", Differs), ("a/b", Differs)]);
        check("a/**/**/b", &["a/b", "a/x/y/b"], &[("a", Differs)]);
        check("?[a]*", &["?[a]b"], &[("xab", Differs)]);
    }

    #[test]
    fn a_value_is_never_repaired() {
        use Misfit::{Control, Dots, Long};
        let long = format!("src/{}", "a".repeat(TextPattern::TEXT_BYTES - 3));
        check(
            "src/**",
            &[&long[..TextPattern::TEXT_BYTES], "src/a..b", "src/...", "src/100%", "src/a%zz"],
            &[
                (&long, Long),
                ("src/../a", Dots),
                ("src/./a", Dots),
                ("src/..", Dots),
                ("src\\..\\a", Dots),
                ("src/%2e%2e/a", Dots),
                ("src/%2E./a", Dots),
                ("src/..%2fa", Dots),
                ("src/..%5ca", Dots),
                ("src/%252e%252e/a", Dots),
                ("src/%25252e%25252e%25252fa", Dots),
                ("src/\u{ff0e}\u{ff0e}/a", Dots),
                ("src/..;x/a", Dots),
                ("src/.. /a", Dots),
                ("src/%c0%ae%c0%ae/a", Control),
                ("src/a\nb", Control),
                ("src/a\0", Control),
                ("src/a%00", Control),
                ("src/a%250a", Control),
                ("src/a\u{85}", Control),
            ],
        );
    }

    #[test]
    fn a_pattern_of_urls_keeps_its_host() {
        use Misfit::{Differs, Slash};
        check(
            "https://docs.rs/**",
            &["https://docs.rs", "https://docs.rs/", "https://docs.rs/a/b?q=/x#y"],
            &[
                ("http://docs.rs/a", Differs),
                ("https://docs.rs.evil.example/", Differs),
                ("https://docs.rs@evil.example/", Differs),
                ("https://docs.rs:8443/", Differs),
                ("https://user@docs.rs/", Differs),
                ("https:/docs.rs/", Differs),
                ("HTTPS://docs.rs/", Differs),
                ("https://docs.rs?@evil.example/", Differs),
                ("https://docs.rs#@evil.example/", Differs),
                ("https://docs.rs\\@evil.example/", Slash),
                ("https://docs.rs%2f@evil.example/", Slash),
                ("https://docs.rs/a\\b", Slash),
                ("https://docs.rs/a%252fb", Slash),
            ],
        );
        check(
            "https://*.docs.rs/**",
            &["https://a.docs.rs/x", "https://a.b.docs.rs"],
            &[
                ("https://evil.example?.docs.rs/", Differs),
                ("https://evil.example#.docs.rs/", Differs),
                ("https://evil.example/.docs.rs/", Differs),
                ("https://evil.example\\.docs.rs/", Slash),
                ("https://evil.example%2f.docs.rs/", Slash),
                ("https://evil.example%23.docs.rs/", Differs),
                ("https://u@evil.example:80.docs.rs/", Differs),
                ("https://evil.example:80.docs.rs/", Differs),
                ("https://evil.example\u{ff0f}.docs.rs/", Differs),
                ("https://evil.example .docs.rs/", Differs),
            ],
        );
        check(
            "https://docs.rs/*/latest",
            &["https://docs.rs/serde/latest"],
            &[
                ("https://docs.rs/evil?/latest", Differs),
                ("https://docs.rs/evil#/latest", Differs),
                ("https://docs.rs/a/latest?x", Differs),
                ("https://docs.rs//latest", Differs),
            ],
        );
        check(
            "https://api.example/*?v=1",
            &["https://api.example/a?v=1"],
            &[("https://api.example/a?v=1&x", Differs), ("https://api.example/a", Differs)],
        );
        check(
            "http://localhost:*/a",
            &["http://localhost:80/a"],
            &[("http://localhost/a", Differs), ("http://localhost:80:90/a", Differs)],
        );
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        use TextPatternProblem::{Host, Long, Nothing, Query, Scheme, Stars};
        let check = |text: &str, problem: TextPatternProblem| {
            assert_eq!(TextPattern::new(text).unwrap_err().problem, problem, "{text}");
        };
        check(&"a".repeat(TextPattern::PATTERN_BYTES + 1), Long);
        check("a**", Stars);
        check("***", Stars);
        check("src/../*", Nothing);
        check("src/%2e%2e/*", Nothing);
        check("a\n*", Nothing);
        check("https://a/%2f*", Nothing);
        check("*://docs.rs/a", Scheme);
        check("h*s://docs.rs/a", Scheme);
        check("https://u@*.docs.rs/", Host);
        check("https://**/a", Host);
        check("https://*:1:2/", Host);
        check("https://docs.rs/?q=*", Query);
        check("https://docs.rs/#**", Query);
        assert!(TextPattern::new("https://**").is_ok());
        assert!(TextPattern::new("**://a").is_err());
        assert!(TextPattern::new("a/*://b").is_ok(), "no scheme has a slash");
        assert!(TextPattern::new("a?b://*").is_ok(), "nor a question mark");
    }

    #[test]
    fn a_pattern_holds_what_it_has_all_of() {
        let check = |own: &str, other: &str, expected: bool| {
            assert_eq!(pattern(own).holds(&pattern(other)), expected, "{own} {other}");
        };
        check("a", "a", true);
        check("a", "*", false);
        check("*", "a", true);
        check("*", "a/b", false);
        check("**", "a/*/**", true);
        check("**", "https://a/**", true);
        check("**", "https://a/*?b", false);
        check("a/**", "a/../b", false);
        check("a/*", "a/b*", true);
        check("a/*", "a/**", false);
        check("https://*.a/**", "https://b.a/**", true);
        check("https://*.a/**", "https://c:1.a/**", false);
        check("https://*.a/**", "https://u@c.a/**", false);
        check("https://*.a/**", "https://*.b.a/*", true);
        check("https://a/**", "https://a/*?q", true);
        check("https://a/*", "https://a/*?q", false);
        check("https://a/*?q", "https://a/b?q", true);
        check("https://a/*/b", "https://a/**", false);
        check("https://**", "https://*/a", true);
        check("https://**", "**", false);
    }
}
