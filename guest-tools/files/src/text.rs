//! Text that keeps the encoding and line endings of its file when it is changed.

use std::ops::Range;

use kitbag_sdk::ErrorInfo;
use kitbag_workspace::{Decoded, Encoding, Location};

/// The text of a file. Lines end with `\n`, regardless of the file's line endings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    text: String,
    endings: Endings,
    encoding: Encoding,
}

/// The line endings of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Endings {
    /// Uniform: `true` for CRLF.
    All(bool),
    /// Mixed, one per line.
    Each(Vec<bool>),
}

/// A replacement of a part of a text.
#[derive(Clone)]
pub(crate) struct Part<'a> {
    pub(crate) range: Range<usize>,
    pub(crate) new: &'a str,
    /// True if lines end as in `new`. Otherwise each line keeps the ending of the line that it
    /// replaces, and an added line has that of the line above.
    pub(crate) says_endings: bool,
}

impl Text {
    /// Creates the text of a new file.
    pub(crate) fn new(text: &str) -> Self {
        Self::from(Decoded { text: text.to_owned(), encoding: Encoding::UTF_8 })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Describes the line endings.
    pub(crate) fn endings(&self) -> &'static str {
        match self.endings {
            Endings::All(false) => "LF",
            Endings::All(true) => "CRLF",
            Endings::Each(_) => "mixed line endings",
        }
    }

    /// Replaces parts, which are in order and do not overlap.
    pub(crate) fn replace<'a>(&mut self, parts: impl Iterator<Item = Part<'a>> + Clone) {
        let lines = |text: &str| text.matches('\n').count();
        let mut changed = String::with_capacity(self.text.len());
        let mut endings = match &self.endings {
            Endings::All(_) if parts.clone().all(|part| !part.says_endings) => None,
            Endings::All(crlf) => Some(vec![*crlf; lines(&self.text)]),
            Endings::Each(each) => Some(each.clone()),
        }
        .map(|old| (old.into_iter(), Vec::new()));
        let mut end = 0;
        for Part { range, new, says_endings } in parts {
            let (kept, part) = (&self.text[end..range.start], &self.text[range.clone()]);
            let written = unix(new);
            changed.push_str(kept);
            changed.push_str(&written);
            if let Some((old, new_endings)) = &mut endings {
                new_endings.extend(old.by_ref().take(lines(kept)));
                let mut replaced: Vec<_> = old.by_ref().take(lines(part)).collect();
                if says_endings {
                    replaced = each_ending(new);
                }
                let above = replaced.last().or(new_endings.last()).copied();
                let below = old.as_slice().first().copied();
                // Within a split line, that line's own ending.
                let usual = match replaced.is_empty() && !written.ends_with('\n') {
                    true => below.or(above),
                    false => above.or(below),
                };
                let usual = usual.unwrap_or(false);
                replaced.resize(lines(&written), usual);
                new_endings.extend(replaced);
            }
            end = range.end;
        }
        changed.push_str(&self.text[end..]);
        if let Some((old, mut new_endings)) = endings {
            new_endings.extend(old);
            self.endings = Endings::new(new_endings);
        }
        self.text = changed;
    }

    /// Replaces the whole text. Lines end as in the file if its endings are uniform and the new
    /// text does not determine them.
    pub(crate) fn replace_all(&mut self, new: &str) {
        let all = match self.endings {
            Endings::All(true) if !new.contains("\r\n") => Some(Endings::All(true)),
            _ => None,
        };
        let new = Self::from(Decoded { text: new.to_owned(), encoding: self.encoding });
        *self = Self { endings: all.unwrap_or(new.endings), ..new };
    }

    /// Changes to UTF-8 if the encoding does not have all of the characters.
    pub(crate) fn widen(&mut self) {
        if self.encoding.encode(&self.text).is_err() {
            self.encoding = Encoding::UTF_8;
        }
    }

    /// Returns the content of the file.
    pub(crate) fn to_bytes(&self, location: &Location) -> Result<Vec<u8>, ErrorInfo> {
        let text = match &self.endings {
            Endings::All(false) => self.text.clone(),
            Endings::All(true) => self.text.replace('\n', "\r\n"),
            Endings::Each(endings) => {
                let mut endings = endings.iter();
                let lines = self.text.split_inclusive('\n').map(|line| {
                    match (line.strip_suffix('\n'), endings.next()) {
                        (Some(line), Some(true)) => format!("{line}\r\n"),
                        _ => line.to_owned(),
                    }
                });
                lines.collect()
            }
        };
        match self.encoding.encode(&text) {
            Ok(bytes) => Ok(bytes.into_owned()),
            Err(char) => Err(ErrorInfo::new(format!(
                "`{}` is {}, which does not have `{char}`; `write_file` can write the whole file \
                 in UTF-8",
                location.given, self.encoding
            ))),
        }
    }
}

impl From<Decoded> for Text {
    fn from(Decoded { text, encoding }: Decoded) -> Self {
        let all = text.matches('\n').count();
        let endings = match text.matches("\r\n").count() {
            0 => Endings::All(false),
            crlf if crlf == all => Endings::All(true),
            _ => Endings::Each(each_ending(&text)),
        };
        let text = if endings == Endings::All(false) { text } else { unix(&text) };
        Self { text, endings, encoding }
    }
}

impl Endings {
    /// Creates line endings from the ending of each line: `true` for CRLF.
    fn new(each: Vec<bool>) -> Self {
        match each.iter().all(|crlf| *crlf == each[0]) {
            true => Self::All(each.first().copied().unwrap_or(false)),
            false => Self::Each(each),
        }
    }
}

/// Returns the ending of each line: `true` for CRLF.
fn each_ending(text: &str) -> Vec<bool> {
    let ends = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    ends.map(|line| line.ends_with("\r\n")).collect()
}

/// Converts line endings to `\n`.
pub(crate) fn unix(text: &str) -> String {
    text.replace("\r\n", "\n")
}
