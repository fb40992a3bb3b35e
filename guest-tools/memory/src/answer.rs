//! Parts of answers.

use crate::entry::Stored;

/// Maximum number of displayed characters of a line.
const LINE_CHARS: usize = 160;

/// Formats a memory on one line: its id, day and tags, and `line` of its text.
pub(crate) fn line_of(id: &str, stored: &Stored<'_>, line: &str) -> String {
    format!("{}  {}", head(id, &stored.created.day(), stored.words()), cut(line, stored.text))
}

/// Formats an id, a date and tags.
pub(crate) fn head<'a>(id: &str, date: &str, tags: impl Iterator<Item = &'a str>) -> String {
    tags.fold(format!("{id} {date}"), |head, tag| format!("{head} #{tag}"))
}

/// Returns the first line of a text with content.
pub(crate) fn first_line(text: &str) -> &str {
    text.lines().find(|line| line.chars().any(char::is_alphanumeric)).unwrap_or(text)
}

/// Returns the shown part of a line. Ends with `…` if there is more text.
fn cut(line: &str, text: &str) -> String {
    let (line, text) = (line.trim(), text.trim());
    let end = line.char_indices().nth(LINE_CHARS).map_or(line.len(), |(at, _)| at);
    let mut shown: String =
        line[..end].chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    if end < text.len() {
        shown.push('…');
    }
    shown
}

/// Formats a number with its noun.
pub(crate) fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}
