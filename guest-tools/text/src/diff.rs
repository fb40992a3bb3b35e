//! `diff_text`.

use std::time::Duration;

use kitbag_sdk::{Call, ErrorInfo};
use serde::Deserialize;
use similar::TextDiff;

use crate::input::Source;

/// Time limit of the diff. After that, the diff may be longer than necessary.
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    old: Option<String>,
    old_path: Option<String>,
    new: Option<String>,
    new_path: Option<String>,
    #[serde(default = "three")]
    context: usize,
    #[serde(default = "crate::page::max_bytes")]
    max_bytes: usize,
}

fn three() -> usize {
    3
}

/// Compares two strings line by line and returns a unified diff.
pub(crate) fn diff_text(call: &Call, arguments: Arguments) -> Result<String, ErrorInfo> {
    let Arguments { old, old_path, new, new_path, context, max_bytes } = arguments;
    let names = (old_path.clone(), new_path.clone());
    let old = Source::new(old, old_path).text(call, ("old", "old_path"))?;
    let new = Source::new(new, new_path).text(call, ("new", "new_path"))?;
    if old.text == new.text {
        return Ok(match (old.bytes == new.bytes, old.encoding == new.encoding) {
            (true, true) => "no differences".to_owned(),
            _ => "no differences except in the encoding".to_owned(),
        });
    }
    if let Some(difference) = of_line_endings(&old.text, &new.text) {
        return Ok(difference);
    }
    let diff = TextDiff::configure().timeout(TIMEOUT).diff_lines(&old.text, &new.text);
    let mut unified = diff.unified_diff();
    unified.context_radius(context.min(1_000_000));
    let mut answer = String::new();
    if names.0.is_some() || names.1.is_some() {
        let shown = |name: Option<String>, other: &str| {
            kitbag_workspace::quoted(name.as_deref().unwrap_or(other))
        };
        answer = format!("--- {}\n+++ {}\n", shown(names.0, "old"), shown(names.1, "new"));
    }
    for hunk in unified.iter_hunks() {
        let text = hunk.to_string();
        if answer.len() + text.len() > max_bytes {
            let left = max_bytes.saturating_sub(answer.len());
            answer.push_str(kitbag_workspace::cut(&text, left));
            let (removed, added) = totals(&diff);
            answer.push_str(&format!(
                "[truncated: {removed} lines removed and {added} added in total; raise max_bytes \
                 for the rest]\n"
            ));
            return Ok(answer);
        }
        answer.push_str(&text);
    }
    Ok(answer)
}

/// Reports strings that differ only in their line endings, which a diff would not show.
fn of_line_endings(old: &str, new: &str) -> Option<String> {
    let lines = |text| str::lines(text);
    if !lines(old).eq(lines(new)) || old.ends_with('\n') != new.ends_with('\n') {
        return None;
    }
    let count = |text: &str| text.matches("\r\n").count();
    Some(format!(
        "no differences except in line endings: {} of {} lines end in CRLF in the old text, {} in \
         the new one",
        count(old),
        old.lines().count(),
        count(new)
    ))
}

/// Returns the number of removed and added lines.
fn totals(diff: &TextDiff<'_, '_, str>) -> (usize, usize) {
    diff.ops().iter().fold((0, 0), |(removed, added), operation| match operation.tag() {
        similar::DiffTag::Equal => (removed, added),
        _ => (removed + operation.old_range().len(), added + operation.new_range().len()),
    })
}
