//! `list_dir`.

use std::collections::{BinaryHeap, VecDeque};
use std::fs;
use std::ops::ControlFlow;

use kitbag_sdk::{Call, ErrorInfo, Stop, json};
use kitbag_workspace::{Kind, Location, explain, list, quoted, stat, stat_link};
use serde::Deserialize;

use crate::leftover::is_leftover;
use crate::numbers::{count, size};

/// Directories whose content is not shown in listings of their parents.
const CLOSED: [&str; 4] = [".git", ".hg", ".jj", ".svn"];

/// The minimum number of entries that are shown of each nested directory, while there is room.
const SHARE: usize = 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default = "here")]
    path: String,
    #[serde(default = "depth")]
    depth: usize,
    #[serde(default)]
    details: bool,
    #[serde(default = "limit")]
    limit: usize,
    after: Option<String>,
}

fn here() -> String {
    ".".into()
}

fn depth() -> usize {
    1
}

pub(crate) fn limit() -> usize {
    300
}

pub(crate) fn run(call: &Call) -> Result<String, Stop> {
    let arguments: Arguments = call.arguments()?;
    let top = Location::new(call, &arguments.path)?;
    let page =
        page(&top, arguments.after.as_deref(), arguments.limit).map_err(|error| {
            match stat(&top.path) {
                Ok(found) if found.kind == Kind::File => ErrorInfo::new(format!(
                    "`{}` is a file; `read_file` reads it, `file_info` describes it",
                    top.given
                )),
                _ => explain(&top, "listed", &error),
            }
        })?;
    let mut left_out = LeftOut::default();
    let tree = grow(&arguments, &top, page, &mut left_out);
    let mut answer = String::new();
    tree.write(&arguments, 0, &mut answer);
    if tree.more > 0
        && let Some(last) = tree.entries.last()
    {
        answer.push_str(&format!("[{} more; after={} reads on]\n", tree.more, json!(last.name)));
    }
    answer.push_str(&left_out.shown());
    if answer.is_empty() {
        answer.push_str("[empty]\n");
    }
    Ok(answer)
}

/// The displayed part of a directory.
struct Directory {
    location: Location,
    entries: Vec<Entry>,
    /// The number of further entries.
    more: u64,
}

struct Entry {
    name: String,
    kind: Kind,
    /// The content, for a directory that is shown.
    inside: Option<Directory>,
    /// The reason why the content is not shown.
    note: &'static str,
}

/// The entries that listings skip.
#[derive(Default)]
struct LeftOut {
    secrets: u64,
    unnamed: u64,
}

impl LeftOut {
    fn add(&mut self, page: &Page) {
        self.secrets += page.secrets;
        self.unnamed += page.unnamed;
    }

    fn shown(&self) -> String {
        let mut parts = Vec::new();
        if self.secrets > 0 {
            parts.push(count(self.secrets, "looks like a secret", "look like secrets"));
        }
        if self.unnamed > 0 {
            parts.push(count(self.unnamed, "name is not Unicode", "names are not Unicode"));
        }
        match parts.as_slice() {
            [] => String::new(),
            parts => format!("[omitted: {}]\n", parts.join(", ")),
        }
    }
}

/// Some entries of a directory, sorted by name.
struct Page {
    entries: Vec<(String, Kind)>,
    more: u64,
    secrets: u64,
    unnamed: u64,
}

/// Reads the first entries of a directory after a name. Memory use is limited to these entries.
fn page(location: &Location, after: Option<&str>, limit: usize) -> std::io::Result<Page> {
    let mut first: BinaryHeap<(String, Kind)> = BinaryHeap::new();
    let (mut more, mut secrets) = (0, 0);
    let listed = list(&location.path, |name, kind| {
        if is_leftover(name) || after.is_some_and(|after| name <= after) {
            return ControlFlow::Continue(());
        }
        if kind == Kind::Secret {
            secrets += 1;
            return ControlFlow::Continue(());
        }
        if first.len() < limit {
            first.push((name.to_owned(), kind));
            return ControlFlow::Continue(());
        }
        more += 1;
        if let Some(mut last) = first.peek_mut()
            && name < last.0.as_str()
        {
            *last = (name.to_owned(), kind);
        }
        ControlFlow::Continue(())
    })?;
    Ok(Page { entries: first.into_sorted_vec(), more, secrets, unnamed: listed.unnamed })
}

/// Lists nested directories level by level while there is room. Directories of a level share the
/// remaining room.
fn grow(arguments: &Arguments, top: &Location, page: Page, left_out: &mut LeftOut) -> Directory {
    left_out.add(&page);
    let mut room = arguments.limit.saturating_sub(page.entries.len());
    let mut root = Directory::new(top.clone(), page);
    for level in 1..arguments.depth {
        let mut closed = VecDeque::new();
        root.collect(level, &mut closed);
        if closed.is_empty() {
            break;
        }
        let mut left = closed.len();
        for entry in closed {
            let (location, entry) = entry;
            let share = (room / left).max(SHARE).min(room);
            left -= 1;
            if room == 0 {
                entry.note = " …";
                continue;
            }
            match self::page(&location, None, share) {
                Ok(page) => {
                    left_out.add(&page);
                    room -= page.entries.len();
                    entry.inside = Some(Directory::new(location, page));
                }
                Err(_) => entry.note = " (cannot be listed)",
            }
        }
    }
    root
}

impl Directory {
    fn new(location: Location, page: Page) -> Self {
        let entry = |(name, kind)| Entry { name, kind, inside: None, note: "" };
        Self { location, entries: page.entries.into_iter().map(entry).collect(), more: page.more }
    }

    /// Collects the directories of a level relative to this one.
    fn collect<'a>(&'a mut self, level: usize, closed: &mut VecDeque<(Location, &'a mut Entry)>) {
        for entry in &mut self.entries {
            if level > 1 {
                if let Some(inside) = &mut entry.inside {
                    inside.collect(level - 1, closed);
                }
            } else if entry.kind == Kind::Directory && !CLOSED.contains(&&*entry.name) {
                closed.push_back((self.location.join(&entry.name), entry));
            }
        }
    }

    fn write(&self, arguments: &Arguments, indent: usize, answer: &mut String) {
        for entry in &self.entries {
            let location = self.location.join(&entry.name);
            let name = quoted(&entry.name);
            let kind = match entry.kind {
                Kind::Directory => "/".to_owned(),
                Kind::Link => match fs::read_link(&location.path) {
                    Ok(target) => format!(" -> {}", quoted(&target.to_string_lossy())),
                    Err(_) => " -> ?".to_owned(),
                },
                Kind::Other => " (FIFO, socket or device)".to_owned(),
                Kind::File | Kind::Secret => String::new(),
            };
            let details = match arguments.details {
                true => details(&location, entry.kind),
                false => String::new(),
            };
            let note = entry.note;
            answer.push_str(&format!("{:indent$}{name}{kind}{details}{note}\n", ""));
            if let Some(inside) = &entry.inside {
                inside.write(arguments, indent + 2, answer);
                if inside.more > 0 {
                    answer.push_str(&format!("{:indent$}  [{} more]\n", "", inside.more));
                }
            }
        }
    }
}

fn details(location: &Location, kind: Kind) -> String {
    // The file may have been removed.
    let Ok(found) = stat_link(&location.path) else { return String::new() };
    let time = found.modified.map(|time| humantime::format_rfc3339_seconds(time).to_string());
    let time = time.unwrap_or_default();
    match kind {
        Kind::File => format!("  {}  {time}", size(found.size)),
        _ => format!("  {time}"),
    }
}
