//! `query_data`: JSONPath of RFC 9535, and jq filters.

use std::collections::BTreeMap;

use kitbag_sdk::{Call, ErrorInfo};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use serde_json_path::JsonPath;

use crate::excerpt;
use crate::format::Format;
use crate::jq::{End, Filter, Input, quoted_key};
use crate::notes::Notes;
use crate::source::{Name, Source};
use crate::write::answer_bytes;

/// The arguments of `query_data`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    query: String,
    path: Option<String>,
    text: Option<String>,
    from: Option<Format>,
    #[serde(default = "results")]
    limit: usize,
    #[serde(default)]
    offset: usize,
    #[serde(default = "answer_bytes")]
    max_bytes: usize,
}

fn results() -> usize {
    100
}

/// The results as JSON text.
struct Results {
    offset: usize,
    limit: usize,
    max_bytes: usize,
    /// The number of results, including those before the offset.
    seen: usize,
    found: Vec<String>,
    bytes: usize,
    has_more: bool,
    /// The first result, if it is too long for the answer.
    too_long: Option<String>,
}

/// Runs a call.
pub(crate) fn run(call: &Call, arguments: &Arguments) -> Result<String, ErrorInfo> {
    let Arguments { query, path, text, from, limit, offset, max_bytes } = arguments;
    let mut results = Results {
        offset: *offset,
        limit: *limit,
        max_bytes: *max_bytes,
        seen: 0,
        found: Vec::new(),
        bytes: 0,
        has_more: false,
        too_long: None,
    };
    let (path, text) = (path.as_deref(), text.as_deref());
    let source = Source { path, text, from: *from, delimiter: None };
    let mut notes = Notes::default();
    // In jq, `$` starts the name of a variable.
    let is_name = |char: char| char.is_alphabetic() || char == '_';
    let is_path = |rest: &str| !rest.starts_with(is_name);
    if query.trim_start().strip_prefix('$').is_some_and(is_path) {
        let path = JsonPath::parse(query.trim()).map_err(|error| {
            let (position, message) = (error.position(), error.message());
            let hint = query.trim().char_indices().nth(position).and_then(|(at, _)| {
                let (before, rest) = query.trim().split_at(at);
                quoted_key(before, rest)
            });
            let hint = hint.map_or_else(String::new, |(char, key)| {
                let key = excerpt::value(&key);
                format!("; put a key with `{char}` in quotes: `$[\"{key}\"]`")
            });
            ErrorInfo::new(format!(
                "invalid JSONPath at character {}: {}{hint}",
                position + 1,
                excerpt::message(message)
            ))
        })?;
        source.each(call, &mut notes, &mut |document| {
            let nodes = path.query(&document.value);
            Ok(nodes.iter().all(|node| results.add(node.to_string())))
        })?;
    } else {
        let filter = Filter::new(query)?;
        source.inputs(call, &mut notes, &mut |name, input| {
            apply(&filter, name, input, &mut results)
        })?;
    }
    if let Some(json) = results.too_long {
        return Err(too_long(&json, *offset, *max_bytes));
    }
    let found = results.found.join(",");
    let more = match results.has_more {
        true => format!(",\"more\":true,\"next_offset\":{}", offset + results.found.len()),
        false => String::new(),
    };
    let notes = match notes.sentences() {
        notes if notes.is_empty() => String::new(),
        notes => format!(",\"notes\":{}", json!(notes)),
    };
    Ok(format!("{{\"results\":[{found}]{more}{notes}}}"))
}

impl Results {
    /// Adds a result. Returns whether more are wanted.
    fn add(&mut self, json: String) -> bool {
        self.seen += 1;
        if self.seen <= self.offset {
            return true;
        }
        self.has_more = self.found.len() == self.limit || self.bytes + json.len() > self.max_bytes;
        if !self.has_more {
            self.bytes += json.len();
            self.found.push(json);
        } else if self.found.is_empty() {
            self.too_long = Some(json);
        }
        !self.has_more
    }
}

/// Returns the error for a result that exceeds the answer: its content, and how to request parts.
fn too_long(json: &str, offset: usize, max_bytes: usize) -> ErrorInfo {
    let bytes = json.len();
    let (what, part) = match serde_json::from_str::<Vec<&RawValue>>(json) {
        Ok(items) => {
            let mut room = max_bytes;
            let fit = items.iter().take_while(|item| {
                let rest = room.checked_sub(item.get().len() + 1);
                room = rest.unwrap_or_default();
                rest.is_some()
            });
            let fit = fit.count().max(1);
            let what = format!("an array of {} elements", items.len());
            (what, format!("the first {fit}, as `.a[0:{fit}]` and `$.a[0:{fit}]` do"))
        }
        Err(_) => match serde_json::from_str::<BTreeMap<String, &RawValue>>(json) {
            Ok(entries) => {
                let keys: Vec<_> = entries.keys().map(|key| format!("`{key}`")).collect();
                let what = format!("an object with the keys {}", excerpt::value(&keys.join(", ")));
                (what, "a part of it, as `.a.b` and `$.a.b` do".to_owned())
            }
            Err(_) => {
                ("a text".to_owned(), "a part of it, as the jq filter `.a[0:1000]` does".to_owned())
            }
        },
    };
    ErrorInfo::new(format!(
        "result {offset} has {bytes} bytes, more than `max_bytes` {max_bytes}: it is {what}; select \
         {part}, or raise `max_bytes`"
    ))
}

/// Applies a filter to one document.
fn apply(
    filter: &Filter,
    name: &Name<'_>,
    input: Input<'_>,
    results: &mut Results,
) -> Result<bool, ErrorInfo> {
    let ended = filter.run(input, &mut |output| {
        let json = output.to_string();
        if serde_json::from_str::<&RawValue>(&json).is_err() {
            let shown = excerpt::value(&json);
            return Err(ErrorInfo::new(format!(
                "jq, on {name}{}: a result is not JSON, which has no NaN, Infinity or bytes, and \
                 at most 127 levels: `{shown}`",
                after(results)
            )));
        }
        Ok(results.add(json))
    })?;
    match ended {
        Ok(wants_more) => Ok(wants_more),
        Err(End::Halted) => Ok(false),
        Err(End::Failed(error)) => {
            let error = excerpt::message(&error);
            Err(ErrorInfo::new(format!("jq, on {name}{}: {error}", after(results))))
        }
    }
}

/// Describes the results before an error.
fn after(results: &Results) -> String {
    match results.found.len() {
        0 => String::new(),
        count => format!(", after {count} results"),
    }
}
