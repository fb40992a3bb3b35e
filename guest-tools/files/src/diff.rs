//! Short descriptions of changes.

use std::time::Duration;

use kitbag_workspace::cut;
use similar::{ChangeTag, TextDiff};

use crate::numbers::count;

/// Number of context lines before and after a change.
const CONTEXT: usize = 2;

/// Maximum size of a displayed change in bytes.
const SHOWN_BYTES: usize = 6 << 10;

/// Maximum number of lines that are compared.
const COMPARED_LINES: usize = 20_000;

/// Maximum size of the compared text, since lines may be long.
const COMPARED_BYTES: usize = 1 << 20;

/// Time limit of a diff. At the limit the diff is longer than necessary.
const TIME: Duration = Duration::from_millis(500);

/// Returns the difference of two strings, as a unified diff without header.
pub(crate) fn diff(old: &str, new: &str) -> String {
    // Common lines at the start and the end are not compared. There may be millions.
    let lines = || old.split_inclusive('\n').zip(new.split_inclusive('\n'));
    let same = lines().take_while(|(one, other)| one == other);
    let (same_lines, same_bytes) =
        same.fold((0, 0), |(lines, bytes), (line, _)| (lines + 1, bytes + line.len()));
    let [old_rest, new_rest] = [old, new].map(|text| &text[same_bytes..]);
    let lines = || old_rest.split_inclusive('\n').rev().zip(new_rest.split_inclusive('\n').rev());
    let end: usize =
        lines().take_while(|(one, other)| one == other).map(|(line, _)| line.len()).sum();
    let [old_lines, new_lines] =
        [old_rest, new_rest].map(|rest| rest[..rest.len() - end].split_inclusive('\n').count());
    let context = || old[..same_bytes].split_inclusive('\n').rev().take(CONTEXT);
    let start = same_bytes - context().map(str::len).sum::<usize>();
    let tail = &old_rest[old_rest.len() - end..];
    let tail: usize = tail.split_inclusive('\n').take(CONTEXT).map(str::len).sum();
    let part = |text: &'_ str| text[start..text.len() - end + tail].to_owned();
    let size = old.len().max(new.len()) - start - end + tail;
    if old_lines.max(new_lines) > COMPARED_LINES || size > COMPARED_BYTES {
        let new_lines = count(new_lines as u64, "line", "lines");
        let (first, last) = (same_lines + 1, same_lines + old_lines);
        return format!("[lines {first}-{last} became {new_lines}]\n");
    }
    let shown = hunks(&part(old), &part(new), same_lines - context().count());
    let part = cut(&shown, SHOWN_BYTES);
    if part.len() == shown.len() {
        return shown;
    }
    let left = count(shown[part.len()..].lines().count() as u64, "line", "lines");
    let end = if part.ends_with('\n') { "" } else { "\n" };
    format!("{part}{end}[{left} of the diff omitted]\n")
}

/// Returns the hunks of two strings that follow this many lines.
fn hunks(old: &str, new: &str, before: usize) -> String {
    let diff = TextDiff::configure().timeout(TIME).diff_lines(old, new);
    let mut shown = String::new();
    for group in diff.grouped_ops(CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let range = |start: usize, end: usize| match end - start {
            1 => format!("{}", before + start + 1),
            0 => format!("{},0", before + start),
            lines => format!("{},{lines}", before + start + 1),
        };
        let old = range(first.old_range().start, last.old_range().end);
        let new = range(first.new_range().start, last.new_range().end);
        shown.push_str(&format!("@@ -{old} +{new} @@\n"));
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            shown.push(match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            });
            shown.push_str(change.value());
            if change.missing_newline() {
                shown.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    shown
}
