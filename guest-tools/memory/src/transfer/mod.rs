//! Export and import of all entries, as Markdown or JSON that a person can read and edit.
//!
//! An import checks the whole file before it writes anything, and then writes everything
//! atomically. It adds and changes entries, and never removes one. Unchanged entries are not
//! written, so a second import of the same file has no effect.

pub(crate) mod json;
pub(crate) mod markdown;

use std::collections::{HashMap, HashSet};
use std::fs;

use kitbag_sdk::ErrorInfo;
use serde::{Deserialize, Serialize};

use crate::answer::counted;
use crate::date::Moment;
use crate::entry::{self, Content, Entry, Hidden, Kind, Stored};
use crate::store::{Clock, MOST_WRITTEN, Store};

/// Maximum number of problems of a file that are named.
const PROBLEMS: usize = 20;

/// The format of a file.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    Markdown,
    Json,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Export {
    format: Format,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Import {
    format: Format,
    /// The name of the file in errors.
    name: String,
    /// The path at which the host provides the file.
    path: String,
}

/// The result of an import.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Imported {
    added: usize,
    changed: usize,
    unchanged: usize,
}

/// An entry of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Draft {
    /// Its offset in the file, in bytes.
    pub(crate) at: usize,
    /// The id. `None` for an entry that a person added.
    pub(crate) id: Option<String>,
    pub(crate) created: Option<Moment>,
    pub(crate) content: Content,
    pub(crate) text: String,
}

/// The problems of a file: the first ones, and their total number.
pub(crate) struct Problems<'a> {
    file: &'a str,
    /// The first problems, each with its offset in bytes.
    first: Vec<(usize, String)>,
    count: usize,
}

impl<'a> Problems<'a> {
    pub(crate) fn new(file: &'a str) -> Self {
        Self { file, first: Vec::new(), count: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a problem at a byte of the file.
    pub(crate) fn add(&mut self, at: usize, message: impl Into<String>) {
        self.count += 1;
        if self.first.len() < PROBLEMS {
            self.first.push((at, message.into()));
        }
    }

    /// Returns the start of a part of the file.
    pub(crate) fn at(&self, part: &str) -> usize {
        part.as_ptr() as usize - self.file.as_ptr() as usize
    }

    /// Returns a value, or adds the problem why it is invalid.
    pub(crate) fn ok<T>(&mut self, at: usize, value: Result<T, String>) -> Option<T> {
        value.map_err(|message| self.add(at, message)).ok()
    }

    /// Checks the text of an entry at an offset of the file. `place` returns the offset of a byte
    /// of the text.
    pub(crate) fn text(
        &mut self,
        kind: Kind,
        text: &str,
        at: usize,
        place: impl FnOnce(usize) -> usize,
    ) -> Option<()> {
        if let Some(Hidden { character, at }) = entry::hidden(kind, text) {
            self.add(place(at), entry::explained(kind, character));
            return None;
        }
        self.ok(at, entry::size(kind, text))
    }

    /// # Errors
    ///
    /// The file has problems: one line for each, which starts with its position in the format of
    /// compilers.
    fn check(mut self, name: &str) -> Result<(), ErrorInfo> {
        if self.is_empty() {
            return Ok(());
        }
        self.first.sort_by_key(|(at, _)| *at);
        let line = |(at, message): &(usize, String)| {
            let before = &self.file[..self.file.floor_char_boundary(*at)];
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            format!("{name}:{line}:{column}: {message}")
        };
        let mut lines: Vec<_> = self.first.iter().map(line).collect();
        lines.push(match self.count - self.first.len() {
            0 => "nothing was imported".to_owned(),
            more => format!("and {}; nothing was imported", counted(more, "more", "more")),
        });
        Err(ErrorInfo::new(lines.join("\n")))
    }
}

impl Format {
    fn write(self, entries: &[Entry]) -> String {
        match self {
            Self::Markdown => markdown::write(entries),
            Self::Json => json::write(entries),
        }
    }

    fn read(self, text: &str, problems: &mut Problems<'_>) -> Vec<Draft> {
        match self {
            Self::Markdown => markdown::read(text, problems),
            Self::Json => json::read(text, problems),
        }
    }
}

/// Exports all entries, oldest first.
pub(crate) fn export(Export { format }: Export, store: &impl Store) -> Result<String, ErrorInfo> {
    let mut entries = Vec::new();
    for kind in [Kind::Memory, Kind::Task] {
        let ids = kind.ids(store)?;
        kind.each(store, &ids, |index, stored| entries.push(stored.entry(kind, &ids[index])))?;
    }
    entries.sort_by(|one: &Entry, other| {
        (one.kind(), one.created, &one.id).cmp(&(other.kind(), other.created, &other.id))
    });
    Ok(format.write(&entries))
}

/// Imports a file.
pub(crate) fn import(
    Import { format, name, path }: Import,
    store: &impl Store,
    clock: &impl Clock,
) -> Result<String, ErrorInfo> {
    let failed = |error| ErrorInfo::new(format!("`{name}` cannot be read")).caused_by(error);
    let text = String::from_utf8(fs::read(path).map_err(failed)?).map_err(|error| {
        let lines = error.as_bytes()[..error.utf8_error().valid_up_to()].split(|it| *it == b'\n');
        ErrorInfo::new(format!("{name}:{}: this line is not UTF-8", lines.count()))
    })?;
    import_text(format, &name, &text, store, clock)
}

/// Imports the content of a file.
pub(crate) fn import_text(
    format: Format,
    name: &str,
    text: &str,
    store: &impl Store,
    clock: &impl Clock,
) -> Result<String, ErrorInfo> {
    let file = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut problems = Problems::new(file);
    let drafts = format.read(file, &mut problems);
    let drafts = with_ids(drafts, &mut problems);
    let (entries, imported) = compared(drafts, store, clock.now(), &mut problems)?;
    problems.check(name)?;
    if entries.len() > MOST_WRITTEN {
        let message = format!(
            "{} entries of `{name}` are new or changed; the limit is {MOST_WRITTEN}: nothing was \
             imported",
            entries.len()
        );
        return Err(ErrorInfo::new(message));
    }
    if !entries.is_empty() {
        store.set(&entries)?;
    }
    serde_json::to_string(&imported).map_err(|error| ErrorInfo::new(error.to_string()))
}

/// Assigns an id to each entry. A missing id is derived from the text, so that a repeated import
/// has the same result.
fn with_ids(drafts: Vec<Draft>, problems: &mut Problems<'_>) -> Vec<(String, Draft)> {
    let mut known: HashSet<String> = HashSet::new();
    let mut identified = Vec::with_capacity(drafts.len());
    for draft in drafts {
        let id = draft
            .id
            .clone()
            .unwrap_or_else(|| draft.content.kind().id(digest(draft.created, &draft.text)));
        // A repeated text without an id is the same entry.
        match known.insert(id.clone()) {
            true => identified.push((id, draft)),
            false if draft.id.is_none() => {}
            false => problems.add(draft.at, format!("`{id}` is already used above")),
        }
    }
    identified
}

/// Compares entries with the stored ones. Returns the entries to write, and the result of the
/// import.
#[expect(clippy::type_complexity, reason = "keys and values")]
fn compared(
    drafts: Vec<(String, Draft)>,
    store: &impl Store,
    now: Moment,
    problems: &mut Problems<'_>,
) -> Result<(Vec<(String, Vec<u8>)>, Imported), ErrorInfo> {
    let mut imported = Imported::default();
    let mut found: HashMap<String, (Moment, Vec<u8>)> = HashMap::new();
    let ids: Vec<String> = drafts.iter().map(|(id, _)| id.clone()).collect();
    for ids in ids.chunks(crate::store::AT_ONCE) {
        for (id, value) in ids.iter().zip(store.get(ids)?) {
            if let Some(value) = value {
                let kind = if Kind::Memory.has(id) { Kind::Memory } else { Kind::Task };
                // An unreadable entry is overwritten.
                let created = Stored::read(kind, id, &value).map(|stored| stored.created).ok();
                found.insert(id.clone(), (created.unwrap_or(now), value));
            }
        }
    }
    let mut entries = Vec::new();
    for (id, Draft { at, created, content, text, .. }) in drafts {
        let known = found.get(&id);
        if let (Some((before, _)), Some(created)) = (known, created)
            && *before != created
        {
            let noun = content.kind().noun();
            problems.add(
                at,
                format!(
                    "`{id}` is another {noun} here, of {before}; omit the id to import this one as \
                 well"
                ),
            );
            continue;
        }
        let created = created.or(known.map(|(created, _)| *created)).unwrap_or(now);
        let entry = Entry { id, created, content, text }.kept();
        match known {
            Some((_, value)) if *value == entry.1 => imported.unchanged += 1,
            Some(_) => {
                imported.changed += 1;
                entries.push(entry);
            }
            None => {
                imported.added += 1;
                entries.push(entry);
            }
        }
    }
    Ok((entries, imported))
}

/// Returns the 64-bit FNV-1a hash of a text and its time.
fn digest(created: Option<Moment>, text: &str) -> u64 {
    let date = created.map(|created| created.to_string()).unwrap_or_default();
    let bytes = date.bytes().chain([0]).chain(text.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
