//! `remember`, `recall`, `forget` and `list_memories`.

use std::cmp::Reverse;
use std::collections::HashMap;

use kitbag_sdk::ErrorInfo;
use serde::Deserialize;

use crate::answer::{counted, first_line, head, line_of};
use crate::date::Moment;
use crate::entry::{self, Content, Entry, Kind, Stored};
use crate::rank::{Ranking, best_line};
use crate::store::{Clock, Store};
use crate::words;

/// Default and maximum number of memories in an answer.
pub(crate) const SHOWN: usize = 10;
pub(crate) const MOST_SHOWN: usize = 100;

/// Maximum number of ids of one call.
const IDS: usize = 100;

/// Maximum number of tags in a list.
const TAGS: usize = 30;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Remember {
    text: String,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recall {
    query: Option<String>,
    id: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    since: Option<String>,
    until: Option<String>,
    #[serde(default = "shown")]
    limit: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Forget {
    ids: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    after: Option<String>,
    #[serde(default = "shown")]
    limit: usize,
}

fn shown() -> usize {
    SHOWN
}

/// The conditions on memories.
struct Filter {
    tags: Vec<String>,
    since: Option<Moment>,
    until: Option<Moment>,
}

/// The time and id of a memory; a greater value is newer.
type Age<'a> = (Moment, &'a str);

/// Stores a text.
pub(crate) fn remember(
    Remember { text, tags }: Remember,
    store: &impl Store,
    clock: &impl Clock,
) -> Result<String, ErrorInfo> {
    let text = entry::text(Kind::Memory, &text).map_err(ErrorInfo::new)?;
    let content = Content::Memory(entry::tags(&tags).map_err(ErrorInfo::new)?);
    let id = Kind::Memory.new_id(store, clock)?;
    let memory = Entry { id, created: clock.now(), content, text };
    store.set(&[memory.kept()])?;
    Ok(format!("remembered {}", memory.id))
}

/// Finds memories: a line of each, or one complete memory.
pub(crate) fn recall(arguments: Recall, store: &impl Store) -> Result<String, ErrorInfo> {
    let Recall { query, id, tags, since, until, limit } = arguments;
    if let Some(id) = id {
        return whole(Kind::Memory.check(&id)?, store);
    }
    let filter = Filter {
        tags: entry::tags(&tags).map_err(ErrorInfo::new)?,
        since: since.as_deref().map(Moment::first).transpose().map_err(ErrorInfo::new)?,
        until: until.as_deref().map(Moment::last).transpose().map_err(ErrorInfo::new)?,
    };
    // An empty query requests the newest memories.
    let query = query.filter(|query| !query.trim().is_empty());
    let asked = query.as_deref().map(words::of_query).transpose().map_err(ErrorInfo::new)?;
    let asked = asked.unwrap_or_default();
    let ids = Kind::Memory.ids(store)?;
    let found: Vec<Age<'_>> = match asked.is_empty() {
        true => newest(store, &ids, |stored| filter.has(stored))?,
        false => {
            let mut ranking = Ranking::new(&asked);
            Kind::Memory.each(store, &ids, |index, stored| {
                if filter.has(&stored) {
                    let age = (stored.created, &*ids[index]);
                    ranking.add(age, stored.words().chain([stored.text]));
                }
            })?;
            ranking.best()
        }
    };
    if found.is_empty() {
        return Ok(match ids.is_empty() {
            true => "no memories are stored".to_owned(),
            false => format!("0 of {} match", counted(ids.len(), "memory", "memories")),
        });
    }
    let limit = limit.min(MOST_SHOWN);
    let mut answer = lines(store, &found, limit, &asked)?;
    if let Some(more @ 1..) = found.len().checked_sub(limit) {
        answer.push_str(&format!("\n{more} more match"));
    }
    Ok(answer)
}

/// Removes memories.
pub(crate) fn forget(Forget { ids }: Forget, store: &impl Store) -> Result<String, ErrorInfo> {
    match ids.len() {
        0 => return Err(ErrorInfo::new("`ids` is empty; name a memory")),
        1..=IDS => {}
        count => {
            let message = format!("`ids` names {count} memories; the limit is {IDS}");
            return Err(ErrorInfo::new(message));
        }
    }
    let mut checked: Vec<String> = Vec::new();
    for id in &ids {
        let id = Kind::Memory.check(id)?;
        if !checked.iter().any(|other| other == id) {
            checked.push(id.to_owned());
        }
    }
    let values = store.get(&checked)?;
    let unknown = checked.iter().zip(&values).filter(|(_, value)| value.is_none());
    let unknown: Vec<&str> = unknown.map(|(id, _)| &**id).collect();
    if !unknown.is_empty() {
        return Err(Kind::Memory.unknown(&unknown));
    }
    store.delete(&checked)?;
    Ok(format!("forgot {}", counted(checked.len(), "memory", "memories")))
}

/// Lists the newest memories, with the tags of all memories.
pub(crate) fn list(List { after, limit }: List, store: &impl Store) -> Result<String, ErrorInfo> {
    let after = match &after {
        None => None,
        Some(id) => {
            let id = Kind::Memory.check(id)?;
            let value = store.value(id)?.ok_or_else(|| Kind::Memory.unknown(&[id]))?;
            Some((Stored::read(Kind::Memory, id, &value)?.created, id))
        }
    };
    let ids = Kind::Memory.ids(store)?;
    let mut tags: HashMap<String, usize> = HashMap::new();
    let mut found = newest(store, &ids, |stored| {
        for tag in stored.words() {
            match tags.get_mut(tag) {
                Some(count) => *count += 1,
                None => drop(tags.insert(tag.to_owned(), 1)),
            }
        }
        true
    })?;
    if found.is_empty() {
        return Ok("no memories are stored".to_owned());
    }
    let mut answer = counted(found.len(), "memory", "memories");
    let mut tags: Vec<_> = tags.into_iter().collect();
    tags.sort_by(|(one, a), (other, b)| (Reverse(a), one).cmp(&(Reverse(b), other)));
    for (tag, count) in tags.iter().take(TAGS) {
        answer.push_str(&format!(" #{tag} {count}"));
    }
    if let Some(more @ 1..) = tags.len().checked_sub(TAGS) {
        answer.push_str(&format!(" and {}", counted(more, "more tag", "more tags")));
    }
    answer.push('\n');
    if let Some(after) = after {
        found.retain(|age| *age < after);
    }
    let limit = limit.min(MOST_SHOWN);
    answer.push_str(&lines(store, &found, limit, &[])?);
    if let (Some(more @ 1..), Some((_, last))) =
        (found.len().checked_sub(limit), limit.checked_sub(1).and_then(|it| found.get(it)))
    {
        answer.push_str(&format!("\n{more} older, after {last}"));
    }
    Ok(answer)
}

/// Returns a complete memory.
fn whole(id: &str, store: &impl Store) -> Result<String, ErrorInfo> {
    let value = store.value(id)?.ok_or_else(|| Kind::Memory.unknown(&[id]))?;
    let stored = Stored::read(Kind::Memory, id, &value)?;
    Ok(format!("{}\n{}", head(id, &stored.created.to_string(), stored.words()), stored.text))
}

/// Returns the memories that match a filter, newest first.
fn newest<'a>(
    store: &impl Store,
    ids: &'a [String],
    mut counts: impl FnMut(&Stored<'_>) -> bool,
) -> Result<Vec<Age<'a>>, ErrorInfo> {
    let mut found = Vec::new();
    Kind::Memory.each(store, ids, |index, stored| {
        if counts(&stored) {
            found.push((stored.created, &*ids[index]));
        }
    })?;
    found.sort_unstable_by(|one: &Age<'_>, other| other.cmp(one));
    Ok(found)
}

/// Returns one line for each of the first memories.
fn lines(
    store: &impl Store,
    found: &[Age<'_>],
    limit: usize,
    asked: &[String],
) -> Result<String, ErrorInfo> {
    let ids: Vec<String> = found.iter().take(limit).map(|(_, id)| (*id).to_owned()).collect();
    let mut lines = Vec::new();
    Kind::Memory.each(store, &ids, |index, stored| {
        let line = best_line(stored.text, asked).unwrap_or_else(|| first_line(stored.text));
        lines.push(line_of(&ids[index], &stored, line));
    })?;
    Ok(lines.join("\n"))
}

impl Filter {
    fn has(&self, stored: &Stored<'_>) -> bool {
        self.since.is_none_or(|since| stored.created >= since)
            && self.until.is_none_or(|until| stored.created <= until)
            && self.tags.iter().all(|tag| stored.words().any(|it| it == tag))
    }
}
