//! Reverts a change in a text that was edited since.

use std::ops::Range;

use similar::{Algorithm, DiffTag, capture_diff_slices};

/// Returns `current` with the change from `before` to `after` reverted. `None`: an edit touches
/// the change.
pub(super) fn reverted(before: &str, after: &str, current: &str) -> Option<String> {
    let [before, after, current] = [before, after, current].map(lines);
    let (reversal, edits) = (hunks(&after, &before), hunks(&after, &current));
    let touches = |hunk: &Hunk<'_>| {
        edits.iter().any(|edit| edit.at.start <= hunk.at.end && hunk.at.start <= edit.at.end)
    };
    if reversal.iter().any(touches) {
        return None;
    }
    let mut hunks: Vec<_> = reversal.into_iter().chain(edits).collect();
    hunks.sort_by_key(|hunk| hunk.at.start);
    let (mut text, mut at) = (String::new(), 0);
    for hunk in hunks {
        text.extend(after[at..hunk.at.start].iter().copied());
        text.extend(hunk.lines.iter().copied());
        at = hunk.at.end;
    }
    text.extend(after[at..].iter().copied());
    Some(text)
}

/// Lines that replace others.
struct Hunk<'a> {
    at: Range<usize>,
    lines: Vec<&'a str>,
}

fn hunks<'a>(old: &[&str], new: &[&'a str]) -> Vec<Hunk<'a>> {
    let changes = capture_diff_slices(Algorithm::Myers, old, new);
    let changes = changes.into_iter().filter(|change| change.tag() != DiffTag::Equal);
    changes
        .map(|change| Hunk { at: change.old_range(), lines: new[change.new_range()].to_vec() })
        .collect()
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_elsewhere_are_kept() {
        let before = "{\n  a\n  b\n  c\n  d\n  e\n}\n";
        let after = "{\n  a\n  kitbag\n  d\n  e\n}\n";
        let check = |current: &str, expected: Option<&str>| {
            assert_eq!(reverted(before, after, current).as_deref(), expected);
        };
        check(after, Some(before));
        check("{\n  a\n  kitbag\n  d\n  e\n  f\n}\n", Some("{\n  a\n  b\n  c\n  d\n  e\n  f\n}\n"));
        check("{\n  a\n  kitbag 2\n  d\n  e\n}\n", None);
        check("", None);
    }
}
