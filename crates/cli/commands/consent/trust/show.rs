//! The trust request of a workspace: its requests, and the changes of its files since they were
//! trusted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use kitbag::TrustQuestion;
use kitbag::base::ContentDigest;
use kitbag::base::text::shown;
use kitbag::config::TrustChanges;
use kitbag::toolbox::consent::{
    Attachment, Consent, RequestChange, RequestItem, Requester, quoted,
};
use kitbag::trust::{TrustRecord, TrustedContent};
use similar::{Algorithm, ChangeTag, TextDiff};

/// Maximum time for comparing two versions of a file. After that they are shown as completely
/// different.
const DIFF_TIME: Duration = Duration::from_secs(1);

/// Lines of context around a change in the complete view.
const CONTEXT: usize = 3;

pub(crate) fn consent(question: &TrustQuestion<'_>) -> Consent {
    let TrustQuestion { record, shown: now, before, items, changes, .. } = question;
    let (old, then) = match before {
        Some((record, shown)) => (Some(record), shown.clone()),
        None => (None, TrustedContent::default()),
    };
    let workspace = quoted(&record.workspace);
    let is_new =
        |change: RequestChange| matches!(change, RequestChange::Added | RequestChange::Loosened);
    let heading = match old {
        None => format!("{workspace} requests trust:"),
        Some(_) if items.iter().any(|item| is_new(item.change)) => {
            format!("{workspace} requests more than you trusted:")
        }
        Some(_) if changes.as_ref().is_some_and(TrustChanges::is_within) => {
            format!("{workspace} was edited, but requests no more than you trusted:")
        }
        Some(_) => format!("{workspace} has changed since you trusted it:"),
    };
    // The command lines come first: a server runs outside of the sandbox.
    let mut parts: Vec<_> = servers(items).into_iter().collect();
    parts.extend(components(record, old));
    parts.extend(files(record, now, old, &then));
    let more = "`kitbag trust --all`".to_owned();
    Consent { heading, parts, items: items.clone(), more }
}

/// Returns the command line or the URL of each server.
fn servers(items: &[RequestItem]) -> Option<Attachment> {
    let mut lines: Vec<&str> = Vec::new();
    let mut last = None;
    for item in items.iter().filter(|item| item.change != RequestChange::Removed) {
        if let Requester::Server(name) = &item.requester
            && last != Some(name)
        {
            last = Some(name);
            lines.push(&item.line);
        }
    }
    let lines: Vec<_> = lines.into_iter().map(cut).collect();
    (!lines.is_empty()).then(|| Attachment::ours("MCP servers, which it starts:", lines))
}

/// Cuts a long line, and counts the rest.
fn cut(line: &str) -> String {
    /// The most characters of a line.
    const MOST: usize = 1000;
    match line.char_indices().nth(MOST) {
        None => line.to_owned(),
        Some((at, _)) => {
            let more = line[at..].chars().count();
            format!("{}… ({more} more characters; `--all` shows them)", &line[..at])
        }
    }
}

/// Returns the components that differ from the trusted ones.
fn components(record: &TrustRecord, old: Option<&TrustRecord>) -> Option<Attachment> {
    let none = BTreeMap::new();
    let before = old.map_or(&none, |old| &old.components);
    let paths: BTreeSet<_> = record.components.keys().chain(before.keys()).collect();
    let mut lines = Vec::new();
    for path in paths {
        let (now, then) = (record.components.get(path), before.get(path));
        if old.is_some() && now == then {
            continue;
        }
        let name = shown(path);
        lines.push(match (now, then) {
            (Some(now), None) => format!("{name}: {}", digest(now.as_ref())),
            (Some(now), Some(then)) => {
                format!("{name}: {}, was {}", digest(now.as_ref()), digest(then.as_ref()))
            }
            (None, _) => format!("{name}: removed"),
        });
    }
    (!lines.is_empty()).then(|| Attachment::ours("Components, with their digests:", lines))
}

fn digest(digest: Option<&ContentDigest>) -> String {
    match digest {
        Some(digest) => digest.to_string()[..16].to_owned(),
        None => "not found".into(),
    }
}

/// Returns the files that differ from the trusted ones: a list, and their contents.
fn files(
    record: &TrustRecord,
    now: &TrustedContent,
    old: Option<&TrustRecord>,
    then: &TrustedContent,
) -> Vec<Attachment> {
    let none = BTreeMap::new();
    let before = old.map_or(&none, |old| &old.files);
    let paths: BTreeSet<_> = record.files.keys().chain(before.keys()).collect();
    let (mut list, mut contents) = (Vec::new(), Vec::new());
    for path in paths {
        let (digest, trusted) = (record.files.get(path), before.get(path));
        if digest == trusted {
            continue;
        }
        let content = |shown: &TrustedContent, digest: Option<&ContentDigest>| {
            digest.and_then(|digest| shown.texts.get(digest).cloned()).unwrap_or_default()
        };
        let (then_text, now_text) = (content(then, trusted), content(now, digest));
        let is_kept = trusted.is_some_and(|trusted| then.texts.contains_key(trusted));
        let change = match (digest, trusted) {
            (Some(_), None) => "new",
            (None, _) => "removed",
            (Some(_), Some(_)) if is_kept => "changed",
            (Some(_), Some(_)) => {
                "changed; the trusted content was not kept, so this is the whole file"
            }
        };
        let name = shown(path);
        let count = match now_text.lines().count() {
            1 => "1 line".to_owned(),
            count => format!("{count} lines"),
        };
        list.push(match digest {
            Some(_) => format!("{name}: {change}, {count}"),
            None => format!("{name}: {change}"),
        });
        // Only a diff is short enough to be shown before the summary.
        let short = if is_kept { diff(&then_text, &now_text, 0) } else { Vec::new() };
        let full = diff(&then_text, &now_text, CONTEXT);
        contents.push(Attachment {
            title: format!("{name} ({change}):"),
            short,
            full,
            is_theirs: true,
        });
    }
    if list.is_empty() {
        return Vec::new();
    }
    [vec![Attachment::ours("Files:", list)], contents].concat()
}

/// Returns the changed lines of a file, with context.
fn diff(old: &str, new: &str, context: usize) -> Vec<String> {
    let diff = TextDiff::configure()
        .algorithm(Algorithm::Myers)
        .deadline(Instant::now() + DIFF_TIME)
        .diff_lines(old, new);
    let mut lines = Vec::new();
    for (index, group) in diff.grouped_ops(context).iter().enumerate() {
        if index > 0 && context > 0 {
            lines.push("…".to_owned());
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let mark = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            let line = change.value();
            // A line ending that only one version has is also a difference.
            let end = if line.ends_with('\n') { "" } else { "  (no line ending)" };
            lines.push(format!("{mark} {}{end}", line.trim_end_matches('\n')));
        }
    }
    lines
}
