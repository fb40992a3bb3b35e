//! A text that is changed and keeps how its file writes it: encoding and line endings.

use std::ops::Range;

use kitbag_sdk::ErrorInfo;
use kitbag_workspace::{Decoded, Encoding, Location};

/// The text of a file. Its lines end with `\n` alone, however they do in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    text: String,
    endings: Endings,
    encoding: Encoding,
}

/// How the lines end in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Endings {
    /// All of them alike: `true` for CRLF.
    All(bool),
    /// Each in its own way.
    Each(Vec<bool>),
}

impl Text {
    /// A text of a new file, as it is.
    pub(crate) fn new(text: &str) -> Self {
        Self::from(Decoded { text: text.to_owned(), encoding: Encoding::UTF_8 })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Replaces parts, which are in order and apart. The endings of lines stay as they are; a
    /// line more than there was ends as most do.
    pub(crate) fn replace(&mut self, parts: &[(Range<usize>, &str)]) {
        let lines = |text: &str| text.matches('\n').count();
        let mut changed = String::with_capacity(self.text.len());
        let mut endings = match &self.endings {
            Endings::All(_) => None,
            Endings::Each(old) => {
                let usual = old.iter().filter(|crlf| **crlf).count() * 2 > old.len();
                Some((old.iter().copied(), Vec::with_capacity(old.len()), usual))
            }
        };
        let mut end = 0;
        for (range, new) in parts {
            let new = unix(new);
            let (kept, part) = (&self.text[end..range.start], &self.text[range.clone()]);
            changed.push_str(kept);
            changed.push_str(&new);
            if let Some((old, new_endings, usual)) = &mut endings {
                new_endings.extend(old.by_ref().take(lines(kept)));
                let mut replaced: Vec<_> = old.by_ref().take(lines(part)).collect();
                replaced.resize(lines(&new), *usual);
                new_endings.extend(replaced);
            }
            end = range.end;
        }
        changed.push_str(&self.text[end..]);
        if let Some((old, mut new_endings, _)) = endings {
            new_endings.extend(old);
            self.endings = Endings::Each(new_endings);
        }
        self.text = changed;
    }

    /// Replaces all of it. Lines end as in the file, where they all end alike there and the
    /// new text does not say otherwise.
    pub(crate) fn replace_all(&mut self, new: &str) {
        let all = match self.endings {
            Endings::All(true) if !new.contains("\r\n") => Some(Endings::All(true)),
            _ => None,
        };
        let new = Self::from(Decoded { text: new.to_owned(), encoding: self.encoding });
        *self = Self { endings: all.unwrap_or(new.endings), ..new };
    }

    /// Writes it in UTF-8 where its encoding does not have all of its characters.
    pub(crate) fn widen(&mut self) {
        if self.encoding.encode(&self.text).is_err() {
            self.encoding = Encoding::UTF_8;
        }
    }

    /// The content of the file.
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
                "`{}` is {}, which does not have `{char}`; `write_file` writes the whole file in \
                 UTF-8 then",
                location.given, self.encoding
            ))),
        }
    }
}

impl From<Decoded> for Text {
    fn from(Decoded { text, encoding }: Decoded) -> Self {
        let all = text.matches('\n').count();
        let crlf = text.matches("\r\n").count();
        let endings = match crlf {
            0 => Endings::All(false),
            crlf if crlf == all => Endings::All(true),
            _ => Endings::Each(
                text.split_inclusive('\n')
                    .filter(|line| line.ends_with('\n'))
                    .map(|line| line.ends_with("\r\n"))
                    .collect(),
            ),
        };
        let text = if crlf == 0 { text } else { unix(&text) };
        Self { text, endings, encoding }
    }
}

/// A text whose lines end with `\n`.
pub(crate) fn unix(text: &str) -> String {
    text.replace("\r\n", "\n")
}
