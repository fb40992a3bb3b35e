//! Parts of messages that several modules use.

use std::path::Path;

use kitbag_base::text::{shown, shown_path};

use super::{DiagnosticKind, Problem};
use crate::format::key::KeyPath;

/// Returns the name of the user config for messages.
pub(crate) fn own_file(file: Option<&Path>) -> String {
    match file {
        Some(path) => format!("your user config `{}`", shown_path(path)),
        None => "your user config".to_owned(),
    }
}

pub(crate) fn unknown_key(key: &str, table: &str) -> String {
    format!("unknown key `{}` {}", shown(key), within(table))
}

pub(crate) fn missing_key(key: &str, table: &str) -> String {
    format!("missing key `{}` {}", shown(key), within(table))
}

fn within(table: &str) -> String {
    if table.is_empty() { "at the top level".to_owned() } else { format!("in `{table}`") }
}

/// Returns the message for a value of the wrong type. `expected` and `found` include their
/// articles.
pub(crate) fn wrong_type(key: &KeyPath<'_>, expected: &str, found: &str) -> String {
    format!("`{key}` takes {expected}, not {found}")
}

/// Returns the message for a value that is not in the list of allowed values. The values are
/// quoted.
pub(crate) fn unknown_value(key: &KeyPath<'_>, expected: &str, found: &str) -> String {
    wrong_type(key, expected, &format!("`{}`", shown(found)))
}

pub(crate) fn not_a_glob(glob: &str, reason: &str) -> String {
    format!("`{}` is not a glob: {reason}", shown(glob))
}

pub(crate) fn listed_twice(value: &str) -> String {
    format!("`{}` is listed twice", shown(value))
}

/// Returns the message for a relative path in the user config.
pub(crate) fn relative_path(path: &str) -> String {
    format!(
        "`{}` must be absolute or start with `~/`, because this file applies to all workspaces",
        shown(path)
    )
}

pub(crate) fn user_only(key: &str, user_file: Option<&Path>) -> Problem {
    let message =
        format!("a workspace may not set `{key}`: only {} may; remove it", own_file(user_file));
    Problem::new(DiagnosticKind::UserOnly, message)
}

/// Returns ``did you mean `x`?`` if there is a suggestion.
pub(crate) fn did_you_mean(word: Option<&str>) -> Option<String> {
    word.map(|word| format!("did you mean `{}`?", shown(word)))
}

/// Returns ``known keys: `a`, `b` `` if there are any.
pub(crate) fn known_words<'a>(what: &str, words: impl Iterator<Item = &'a str>) -> Option<String> {
    let words: Vec<_> = words.map(|word| format!("`{}`", shown(word))).collect();
    (!words.is_empty()).then(|| format!("known {what}: {}", words.join(", ")))
}
