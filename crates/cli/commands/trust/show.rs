//! What a workspace asks, as a person reads it: what changed since it was trusted, and all of it
//! the first time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use kitbag::TrustQuestion;
use kitbag::contract::ContentDigest;
use kitbag::contract::text::shown;
use kitbag::trust::{Shown, TrustRecord};
use similar::{Algorithm, ChangeTag, TextDiff};

/// How long two versions of a file are compared before they are shown as wholly different.
const DIFF_TIME: Duration = Duration::from_secs(1);

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// The whole question.
pub(super) fn question(question: &TrustQuestion<'_>) -> String {
    let TrustQuestion { record, shown: now, before, .. } = question;
    let (old, then) = match before {
        Some((record, shown)) => (Some(record), shown.clone()),
        None => (None, Shown::default()),
    };
    let workspace = shown(&record.workspace);
    let mut text = match old {
        None => format!("`{workspace}` asks:\n"),
        Some(_) => format!("`{workspace}` asks for what was not trusted before:\n"),
    };
    asks(&mut text, now, &then, old.is_some());
    components(&mut text, record, old);
    files(&mut text, record, now, old, &then);
    text
}

/// What it asks, in words: all of it, with what is new and what is gone marked.
fn asks(text: &mut String, now: &Shown, then: &Shown, is_change: bool) {
    if now.asks.is_empty() {
        text.push_str("  no grants, secrets or places of yours\n");
    }
    for line in &now.asks {
        let mark = if is_change && !then.asks.contains(line) { "+" } else { " " };
        let _ = writeln!(text, "{mark} {line}");
    }
    for line in then.asks.iter().filter(|line| is_change && !now.asks.contains(line)) {
        let _ = writeln!(text, "- {line}");
    }
}

fn components(text: &mut String, record: &TrustRecord, old: Option<&TrustRecord>) {
    let none = BTreeMap::new();
    let before = old.map_or(&none, |old| &old.components);
    let paths: BTreeSet<_> = record.components.keys().chain(before.keys()).collect();
    let mut lines = String::new();
    for path in paths {
        let (now, then) = (record.components.get(path), before.get(path));
        if old.is_some() && now == then {
            continue;
        }
        let name = shown(path);
        let _ = match (now, then) {
            (Some(now), None) => writeln!(lines, "  {name}: {}", digest(now.as_ref())),
            (Some(now), Some(then)) => writeln!(
                lines,
                "  {name}: {}, which was {}",
                digest(now.as_ref()),
                digest(then.as_ref())
            ),
            (None, _) => writeln!(lines, "  {name}: gone"),
        };
    }
    if !lines.is_empty() {
        let _ = write!(text, "\nComponents, by the digests of what they hold:\n{lines}");
    }
}

fn digest(digest: Option<&ContentDigest>) -> String {
    match digest {
        Some(digest) => digest.to_string()[..16].to_owned(),
        None => "no such file yet".into(),
    }
}

fn files(
    text: &mut String,
    record: &TrustRecord,
    now: &Shown,
    old: Option<&TrustRecord>,
    then: &Shown,
) {
    let none = BTreeMap::new();
    let before = old.map_or(&none, |old| &old.files);
    let paths: BTreeSet<_> = record.files.keys().chain(before.keys()).collect();
    for path in paths {
        let (digest, trusted) = (record.files.get(path), before.get(path));
        if digest == trusted {
            continue;
        }
        let content = |shown: &Shown, digest: Option<&ContentDigest>| {
            digest.and_then(|digest| shown.texts.get(digest).cloned()).unwrap_or_default()
        };
        let says = match (digest, trusted) {
            (Some(_), None) => "new file",
            (None, _) => "file that is gone",
            (Some(_), Some(trusted)) if !then.texts.contains_key(trusted) => {
                "file that has changed; what was trusted is not kept, so this is all of it"
            }
            (Some(_), Some(_)) => "file that has changed",
        };
        let _ = writeln!(text, "\n{} ({says}):", shown(path));
        diff(text, &content(then, trusted), &content(now, digest));
    }
}

/// The lines of a file that differ, with some around them.
fn diff(text: &mut String, old: &str, new: &str) {
    let diff = TextDiff::configure()
        .algorithm(Algorithm::Myers)
        .deadline(Instant::now() + DIFF_TIME)
        .diff_lines(old, new);
    for (index, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if index > 0 {
            text.push_str("  …\n");
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let mark = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            let line = change.value();
            let _ = write!(text, "{mark} {}", line.trim_end_matches('\n'));
            // A line end that only one of both has is a difference, too.
            text.push_str(if line.ends_with('\n') { "\n" } else { "  (no line end)\n" });
        }
    }
}
