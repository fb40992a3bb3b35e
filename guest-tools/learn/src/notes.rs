//! Notes in addition to the subjects of an answer: missing parts and the reasons.

use alloc::borrow::Cow;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// Maximum displayed length of a caller's name in bytes.
const SHOWN_BYTES: usize = 200;

/// Maximum length of a list of names in an answer, since a model reads all of them.
const NAMES_BYTES: usize = 2 << 10;

/// The text at the end of a list in place of further names.
const MORE_BYTES: usize = " and 1000000 more".len();

/// The missing parts of an answer, by reason.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    notes: Vec<Note>,
    bytes: usize,
}

#[derive(Debug)]
struct Note {
    reason: String,
    names: Vec<String>,
}

impl Notes {
    /// Adds a name under a reason.
    pub(crate) fn add(&mut self, reason: &str, name: &str) {
        self.push(reason, format!("`{}`", one_line(name)));
    }

    /// Adds the name of a file under a reason, with its size.
    pub(crate) fn add_file(&mut self, reason: &str, name: &str, bytes: u64) {
        self.push(reason, format!("`{}` ({})", one_line(name), size(bytes)));
    }

    fn push(&mut self, reason: &str, name: String) {
        self.bytes += name.len() + ", ".len();
        match self.notes.iter_mut().find(|note| note.reason == reason) {
            Some(note) => note.names.push(name),
            None => {
                self.bytes += reason.len() + "\n\n: .".len() + MORE_BYTES;
                self.notes.push(Note { reason: reason.to_owned(), names: vec![name] });
            }
        }
    }

    /// Returns the maximum length, with every name.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Writes a line for each reason at the end of an answer, with as many names
    /// as fit.
    pub(crate) fn write(&self, answer: &mut String, limit: usize) {
        if !answer.is_empty() && !self.notes.is_empty() {
            answer.push_str(if answer.ends_with('\n') { "\n" } else { "\n\n" });
        }
        for (position, note) in self.notes.iter().enumerate() {
            // The minimum length of the later lines, without names.
            let behind = self.notes[position + 1..].iter();
            let behind: usize = behind.map(|note| note.reason.len() + 4 + MORE_BYTES).sum();
            let used = answer.len() + note.reason.len() + "\n: .".len() + behind;
            let names = list(&note.names, limit.saturating_sub(used).min(NAMES_BYTES));
            let gap = if position == 0 { "" } else { "\n" };
            answer.push_str(&format!("{gap}{}: {names}.", note.reason));
        }
    }
}

/// Formats a list of names in backticks for a sentence: as many as fit into this many bytes, and
/// the number of omitted ones.
pub(crate) fn quoted<T: AsRef<str>>(names: impl IntoIterator<Item = T>, limit: usize) -> String {
    list(names.into_iter().map(|name| format!("`{}`", one_line(name.as_ref()))), limit)
}

fn list<T: AsRef<str>>(names: impl IntoIterator<Item = T>, limit: usize) -> String {
    let mut list = String::new();
    let mut names = names.into_iter();
    let mut left_out = 0;
    for name in &mut names {
        let name = name.as_ref();
        let separator = if list.is_empty() { "" } else { ", " };
        if list.len() + separator.len() + name.len() + MORE_BYTES > limit {
            left_out = 1;
            break;
        }
        list.push_str(separator);
        list.push_str(name);
    }
    left_out += names.count();
    if left_out > 0 {
        let and = if list.is_empty() { "" } else { " and " };
        list.push_str(&format!("{and}{left_out} more"));
    }
    list
}

/// Shortens a name from the caller, which may have any length, to one line.
pub(crate) fn shortened(name: &str) -> String {
    let end = name.floor_char_boundary(SHOWN_BYTES);
    let ellipsis = if end < name.len() { "…" } else { "" };
    format!("{}{ellipsis}", one_line(&name[..end]))
}

/// Formats a name on one line: a file name may contain line breaks, which would add lines to the
/// answer.
pub(crate) fn one_line(name: &str) -> Cow<'_, str> {
    if name.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(name);
    }
    let mut line = String::with_capacity(name.len());
    for character in name.chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    Cow::Owned(line)
}

/// Formats a size for people: `12 bytes`, `3 KiB`, `1.5 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{}.{} MiB", bytes >> 20, (bytes >> 10) % 1024 * 10 / 1024),
    }
}
