//! Paths of requests and path patterns, by segment.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode_byte};

use crate::http::glob::glob;
use crate::http::lenient::{self, decode_wholly};

/// Bytes that a pattern writes encoded: everything except `pchar` of RFC 3986, and also `*`.
const WRITTEN_ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PathPattern(Vec<SegmentPattern>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum SegmentPattern {
    /// `**`: any number of segments.
    Any,
    /// One segment.
    One(Vec<Part>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    /// `*`: any characters.
    Star,
    /// A byte, decoded.
    Byte(u8),
}

/// The decoded segments of a request's path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Segments(Vec<Vec<u8>>);

/// Why a path is refused under every grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A character that RFC 3986 does not allow in a path, or a control character, space or
    /// backslash, encoded or not.
    #[error("a path must not have control characters, spaces, backslashes or non-ASCII characters")]
    Character,
    /// `%` without two hexadecimal digits.
    #[error("`%` in a path must be followed by two hexadecimal digits")]
    Percent,
    /// A segment `.` or `..`, encoded or not.
    #[error("a path must not have segments `.` and `..`, encoded or not")]
    Dots,
    /// `**` next to other characters in a segment.
    #[error("`**` matches whole segments: write `/**/`, not `/a**/`")]
    Stars,
}

/// Refuses paths that a server could interpret differently. `path` starts with `/`.
pub(crate) fn check(path: &str) -> Result<(), PathError> {
    if path.bytes().any(|byte| !(0x21..0x7f).contains(&byte) || byte == b'\\') {
        return Err(PathError::Character);
    }
    let digits = |rest: &str| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !path.split('%').skip(1).all(digits) {
        return Err(PathError::Percent);
    }
    // A server that decodes again, treats backslashes as slashes or drops text after `;` finds the
    // same path.
    let decoded = decode_wholly(path.bytes());
    if decoded.iter().any(u8::is_ascii_control) || decoded.contains(&b'\\') {
        return Err(PathError::Character);
    }
    // Some servers treat bytes that are not UTF-8, or wide forms of a dot, as a dot.
    let Ok(text) = str::from_utf8(&decoded) else { return Err(PathError::Character) };
    match has_dots(text) {
        true => Err(PathError::Dots),
        false => Ok(()),
    }
}

/// Returns true if a fully decoded string has a segment that a server may treat as `.` or `..`.
pub(crate) fn has_dots(decoded: &str) -> bool {
    // Some servers treat `+` as a space and drop spaces at the end of a name.
    let is_dots = |segment: &[u8]| {
        let name = without_parameters(segment);
        let end = name.iter().rposition(|byte| !matches!(byte, b' ' | b'+'));
        matches!(&name[..end.map_or(0, |end| end + 1)], b"." | b"..")
    };
    let has_dots =
        |text: &str| text.as_bytes().split(|byte| matches!(byte, b'/' | b'\\')).any(is_dots);
    has_dots(&lenient::visible(decoded)) || has_dots(decoded)
}

impl Segments {
    /// Decodes the segments of a checked path.
    pub(crate) fn new(path: &str) -> Self {
        let path = path.strip_prefix('/').unwrap_or(path);
        Self(path.split('/').map(|segment| percent_decode_str(segment).collect()).collect())
    }

    /// Returns true if a segment contains an encoded slash.
    pub(crate) fn has_encoded_slash(&self) -> bool {
        self.0.iter().any(|segment| decode_wholly(segment.iter().copied()).contains(&b'/'))
    }
}

impl PathPattern {
    /// Matches every path.
    pub(crate) fn any() -> Self {
        Self(vec![SegmentPattern::Any])
    }

    /// Parses a pattern that starts with `/`.
    pub(crate) fn parse(text: &str) -> Result<Self, PathError> {
        check(text)?;
        let text = text.strip_prefix('/').unwrap_or(text);
        let segment = |text: &str| match text {
            "**" => Ok(SegmentPattern::Any),
            text if text.contains("**") => Err(PathError::Stars),
            text => Ok(SegmentPattern::One(parts(text))),
        };
        let mut segments = text.split('/').map(segment).collect::<Result<Vec<_>, _>>()?;
        // Repeated `**` are equal to one.
        segments.dedup_by(|a, b| (&*a, &*b) == (&SegmentPattern::Any, &SegmentPattern::Any));
        Ok(Self(segments))
    }

    /// Matches only the path of a request.
    pub(crate) fn exactly(path: &Segments) -> Self {
        let one = |segment: &Vec<u8>| {
            SegmentPattern::One(segment.iter().copied().map(Part::Byte).collect())
        };
        Self(path.0.iter().map(one).collect())
    }

    /// Returns true if every matching path has an encoded slash.
    pub(crate) fn needs_encoded_slash(&self) -> bool {
        self.0.iter().any(|segment| match segment {
            SegmentPattern::Any => false,
            SegmentPattern::One(parts) => {
                let bytes = parts.iter().map(|part| match part {
                    Part::Byte(byte) => *byte,
                    Part::Star => b'*',
                });
                decode_wholly(bytes).contains(&b'/')
            }
        })
    }

    pub(crate) fn matches(&self, path: &Segments) -> bool {
        glob(&self.0, &path.0, SegmentPattern::is_any, |pattern, segment| pattern.matches(segment))
    }

    /// Returns true if a server could take a checked path for a matching one.
    pub(crate) fn matches_widely(&self, path: &str) -> bool {
        if self.matches(&Segments::new(path)) {
            return true;
        }
        let own: Vec<_> = self.0.iter().flat_map(SegmentPattern::widely).collect();
        lenient::paths(path).iter().any(|path| {
            let is_any =
                |readings: &Vec<SegmentPattern>| readings.iter().any(SegmentPattern::is_any);
            glob(&own, path, is_any, |own, segment| {
                own.iter().any(|own| segment.iter().any(|it| own.matches(it.as_bytes())))
            })
        })
    }

    /// Returns true if every path of `other` matches. False if this cannot be decided segment by
    /// segment.
    pub(crate) fn holds(&self, other: &Self) -> bool {
        glob(&self.0, &other.0, SegmentPattern::is_any, |own, other| match (own, other) {
            (SegmentPattern::One(own), SegmentPattern::One(other)) => {
                own.is_empty() == other.is_empty()
                    && glob(
                        own,
                        other,
                        |part| *part == Part::Star,
                        |own, other| *own != Part::Star && own == other,
                    )
            }
            _ => false,
        })
    }
}

impl SegmentPattern {
    fn is_any(&self) -> bool {
        *self == Self::Any
    }

    /// Returns true if the pattern matches a segment.
    fn matches(&self, segment: &[u8]) -> bool {
        let Self::One(parts) = self else { return false };
        let is_byte = |part: &Part, byte: &u8| *part == Part::Byte(*byte);
        // `*` does not match an empty segment: `/repos/*` does not match `/repos/`.
        parts.is_empty() == segment.is_empty()
            && glob(parts, segment, |part| *part == Part::Star, is_byte)
    }

    /// Returns the segments that a lenient server may see: without case, with `+` as space, and
    /// without parameters.
    fn widely(&self) -> Vec<Vec<Self>> {
        let Self::One(parts) = self else { return vec![vec![Self::Any]] };
        let byte = |part: &Part| match part {
            Part::Byte(byte) => Some(*byte),
            Part::Star => None,
        };
        let runs = parts.split(|part| *part == Part::Star).map(|run| {
            let decoded = decode_wholly(run.iter().filter_map(byte));
            let folded = lenient::fold(&String::from_utf8_lossy(&decoded));
            folded.bytes().map(Part::Byte).collect::<Vec<_>>()
        });
        let folded = runs.collect::<Vec<_>>().join(&Part::Star);
        let segments = folded.split(|part| *part == Part::Byte(b'/'));
        let readings = |parts: &[Part]| {
            let spaced = parts.iter().map(|part| match part {
                Part::Byte(b'+') => Part::Byte(b' '),
                part => *part,
            });
            let cut = parts.split(|part| *part == Part::Byte(b';')).next().unwrap_or_default();
            let readings = [parts.to_vec(), spaced.collect(), cut.to_vec()].into_iter();
            readings.filter(|parts| !parts.is_empty()).map(Self::One).collect()
        };
        segments.filter(|parts| !parts.is_empty()).map(readings).collect()
    }
}

fn parts(text: &str) -> Vec<Part> {
    let literal = |text: &str| percent_decode_str(text).map(Part::Byte).collect::<Vec<_>>();
    let literals: Vec<_> = text.split('*').map(literal).collect();
    literals.join(&Part::Star)
}

fn without_parameters(segment: &[u8]) -> &[u8] {
    segment.split(|byte| *byte == b';').next().unwrap_or_default()
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.0 {
            f.write_str("/")?;
            match segment {
                SegmentPattern::Any => f.write_str("**")?,
                SegmentPattern::One(parts) => {
                    for part in parts {
                        match *part {
                            Part::Star => f.write_str("*")?,
                            Part::Byte(byte) if byte.is_ascii() => {
                                let char = [byte];
                                let char = std::str::from_utf8(&char).unwrap_or_default();
                                percent_encoding::utf8_percent_encode(char, WRITTEN_ENCODED)
                                    .fmt(f)?;
                            }
                            Part::Byte(byte) => f.write_str(percent_encode_byte(byte))?,
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
