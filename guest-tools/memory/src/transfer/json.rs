//! The JSON format: an object with the lists `memories` and `todo`.

use serde::{Deserialize, Serialize};
use serde_json::Error;
use serde_json::value::RawValue;

use crate::date::Moment;
use crate::entry::{self, Content, Entry, Kind};
use crate::transfer::{Draft, Problems};

/// The error for a value of another type.
const NO_OBJECT: &str = "this is not a JSON object";

/// A file to write.
#[derive(Serialize)]
struct Written<'a> {
    memories: Vec<WrittenMemory<'a>>,
    todo: Vec<WrittenTask<'a>>,
}

#[derive(Serialize)]
struct WrittenMemory<'a> {
    id: &'a str,
    date: String,
    tags: &'a [String],
    text: &'a str,
}

#[derive(Serialize)]
struct WrittenTask<'a> {
    id: &'a str,
    date: String,
    done: bool,
    text: &'a str,
}

/// A parsed file. Its values are parsed later, at their positions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<'a> {
    #[serde(borrow, default)]
    memories: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    todo: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemoryFields<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    date: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tags: Vec<&'a RawValue>,
    #[serde(borrow)]
    text: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskFields<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    date: Option<&'a RawValue>,
    #[serde(default)]
    done: bool,
    #[serde(borrow)]
    text: &'a RawValue,
}

/// Writes a file.
pub(crate) fn write(entries: &[Entry]) -> String {
    let mut written = Written { memories: Vec::new(), todo: Vec::new() };
    for Entry { id, created, content, text } in entries {
        let date = created.to_string();
        match content {
            Content::Memory(tags) => {
                written.memories.push(WrittenMemory { id, date, tags, text });
            }
            Content::Task(done) => {
                written.todo.push(WrittenTask { id, date, done: *done, text });
            }
        }
    }
    let json = serde_json::to_string_pretty(&written);
    json.expect("every key is a string") + "\n"
}

/// Parses a file. Returns the valid entries.
pub(crate) fn read(text: &str, problems: &mut Problems<'_>) -> Vec<Draft> {
    if !is_object(text) {
        problems.add(0, NO_OBJECT);
        return Vec::new();
    }
    let file: File<'_> = match serde_json::from_str(text) {
        Ok(file) => file,
        Err(error) => {
            problems.add(place(text, &error), without_place(&error));
            return Vec::new();
        }
    };
    let mut drafts: Vec<_> = file.memories.iter().filter_map(|raw| memory(raw, problems)).collect();
    drafts.extend(file.todo.iter().filter_map(|raw| task(raw, problems)));
    drafts
}

fn memory(raw: &RawValue, problems: &mut Problems<'_>) -> Option<Draft> {
    let MemoryFields { id, date, tags: raw_tags, text } = object(raw, problems)?;
    let at = problems.at(raw.get());
    let id = self::id(Kind::Memory, id, problems);
    let created = self::date(date, problems);
    let (mut tags, mut is_wrong) = (Vec::new(), false);
    if raw_tags.len() > entry::TAGS {
        problems.add(at, entry::too_many_tags(raw_tags.len()));
        is_wrong = true;
    }
    for raw in raw_tags.into_iter().take(entry::TAGS) {
        let tag = value::<String>(raw, problems);
        match tag.and_then(|it| problems.ok(problems.at(raw.get()), entry::tag(&it))) {
            Some(tag) if !tags.contains(&tag) => tags.push(tag),
            Some(_) => {}
            None => is_wrong = true,
        }
    }
    let text = self::text(Kind::Memory, text, problems);
    let (id, created, text) = (id?, created?, text?);
    (!is_wrong).then_some(Draft { at, id, created, content: Content::Memory(tags), text })
}

fn task(raw: &RawValue, problems: &mut Problems<'_>) -> Option<Draft> {
    let TaskFields { id, date, done, text } = object(raw, problems)?;
    let id = self::id(Kind::Task, id, problems);
    let created = self::date(date, problems);
    let text = self::text(Kind::Task, text, problems);
    let (at, content) = (problems.at(raw.get()), Content::Task(done));
    Some(Draft { at, id: id?, created: created?, content, text: text? })
}

/// Parses an object.
fn object<'a, T: Deserialize<'a>>(raw: &'a RawValue, problems: &mut Problems<'_>) -> Option<T> {
    if !is_object(raw.get()) {
        problems.add(problems.at(raw.get()), NO_OBJECT);
        return None;
    }
    value(raw, problems)
}

/// Returns true if a JSON text is an object: a list of its values would be parsed in the same way.
fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Parses a value. Problems are reported at the value's position in the file.
fn value<'a, T: Deserialize<'a>>(raw: &'a RawValue, problems: &mut Problems<'_>) -> Option<T> {
    let value = serde_json::from_str(raw.get());
    value
        .map_err(|error| {
            let at = problems.at(raw.get());
            problems.add(at + place(raw.get(), &error), without_place(&error));
        })
        .ok()
}

#[expect(clippy::option_option, reason = "the outer one is a mistake")]
fn id(kind: Kind, raw: Option<&RawValue>, problems: &mut Problems<'_>) -> Option<Option<String>> {
    let Some(raw) = raw else { return Some(None) };
    let id: String = value(raw, problems)?;
    let checked = kind.check(&id).map(str::to_owned).map_err(|error| error.message);
    problems.ok(problems.at(raw.get()), checked).map(Some)
}

#[expect(clippy::option_option, reason = "the outer one is a mistake")]
fn date(raw: Option<&RawValue>, problems: &mut Problems<'_>) -> Option<Option<Moment>> {
    let Some(raw) = raw else { return Some(None) };
    let date: String = value(raw, problems)?;
    problems.ok(problems.at(raw.get()), Moment::first(&date)).map(Some)
}

fn text(kind: Kind, raw: &RawValue, problems: &mut Problems<'_>) -> Option<String> {
    let text: String = value(raw, problems)?;
    let text = match kind {
        Kind::Memory => text.replace("\r\n", "\n"),
        Kind::Task => text.trim().to_owned(),
    };
    // Escapes make positions inside a string inexact, so the position of the string is reported.
    let at = problems.at(raw.get());
    problems.text(kind, &text, at, |_| at)?;
    Some(text)
}

/// Returns the byte of a JSON text at which an error occurred.
fn place(text: &str, error: &Error) -> usize {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let before: usize = lines.map(str::len).sum();
    // Columns are bytes here, from 1.
    (before + error.column().saturating_sub(1)).min(text.len())
}

/// Formats an error without its position.
fn without_place(error: &Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((message, _)) => message.to_owned(),
        None => text,
    }
}
