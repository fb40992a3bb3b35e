//! `query_data`: JSONPath of RFC 9535, and jq filters.

use std::collections::BTreeMap;
use std::mem;

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Ctx, Vars, data};
use jaq_json::{Val, read};
use kitbag_sdk::{Call, ErrorInfo};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use serde_json_path::JsonPath;

use crate::document::Document;
use crate::format::Format;
use crate::notes::Notes;
use crate::pointer;
use crate::shown;
use crate::source::Source;
use crate::write::answer_bytes;

/// What `query_data` takes.
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

/// What was found, as JSON texts.
struct Results {
    offset: usize,
    limit: usize,
    max_bytes: usize,
    /// How many results there were, those before the offset included.
    seen: usize,
    found: Vec<String>,
    bytes: usize,
    has_more: bool,
    /// The first result, if it is too long for an answer.
    too_long: Option<String>,
}

/// A filter of jq.
type Filter = jaq_core::Filter<data::JustLut<Val>>;

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
    // No filter begins so but with a variable, and the only ones are of the program itself.
    if query.trim_start().starts_with('$') {
        let path = JsonPath::parse(query.trim()).map_err(|error| {
            let (position, message) = (error.position(), error.message());
            ErrorInfo::new(format!(
                "invalid JSONPath at character {}: {}",
                position + 1,
                shown::message(message)
            ))
        })?;
        source.each(call, &mut notes, &mut |document| {
            let nodes = path.query(&document.value);
            Ok(nodes.iter().all(|node| results.add(node.to_string())))
        })?;
    } else {
        let filter = compile(query)?;
        source.each(call, &mut notes, &mut |document| apply(&filter, document, &mut results))?;
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
    /// Adds a result, and says whether more are wanted.
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

/// The error for a result that is longer than an answer: what it holds and how to get parts.
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
                let what = format!("an object with the keys {}", shown::value(&keys.join(", ")));
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

/// Reads a filter. There is no `input`, which would be another document, and no module.
fn compile(code: &str) -> Result<Filter, ErrorInfo> {
    let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let arena = Arena::default();
    let failed = |part: &str, what: String| {
        // What is wrong is a part of the filter.
        let offset = (part.as_ptr() as usize).checked_sub(code.as_ptr() as usize);
        let offset = offset.filter(|offset| *offset <= code.len()).unwrap_or(code.len());
        let (line, column) = pointer::line_and_column(code, offset);
        ErrorInfo::new(format!("invalid jq filter: {what} (line {line}, column {column})"))
    };
    let shown = |part: &str| match part.chars().next() {
        Some(first) => {
            let word = part.split_whitespace().next().map_or(first.to_string(), shown::value);
            format!("`{word}`")
        }
        None => "the end".into(),
    };
    let modules = Loader::new(defs).load(&arena, File { code, path: () }).map_err(|errors| {
        use jaq_core::load::Error;
        match errors.into_iter().next().map(|(_, error)| error) {
            Some(Error::Lex(errors)) => errors.first().map(|(expected, found)| {
                failed(found, format!("expected {}, found {}", expected.as_str(), shown(found)))
            }),
            Some(Error::Parse(errors)) => errors.first().map(|(expected, found)| {
                failed(found, format!("expected {}, found {}", expected.as_str(), shown(found)))
            }),
            Some(Error::Io(errors)) => errors.first().map(|(module, _)| {
                failed(
                    module,
                    format!(
                        "there is no module `{}`; a filter includes none",
                        shown::value(module)
                    ),
                )
            }),
            None => None,
        }
        .unwrap_or_else(|| ErrorInfo::new("invalid jq filter"))
    })?;
    jaq_core::Compiler::default().with_funs(funs).compile(modules).map_err(|errors| {
        let first = errors.into_iter().next().and_then(|(_, errors)| errors.into_iter().next());
        first.map_or_else(
            || ErrorInfo::new("invalid jq filter"),
            |(name, undefined)| {
                failed(
                    name,
                    format!("there is no {} `{}` here", undefined.as_str(), shown::value(name)),
                )
            },
        )
    })
}

/// Applies a filter to one document.
fn apply(
    filter: &Filter,
    mut document: Document<'_>,
    results: &mut Results,
) -> Result<bool, ErrorInfo> {
    let name = mem::take(&mut document.name);
    // The memory of each is needed for what is made from it.
    let json = document.into_json();
    let input = read::parse_single(json.as_bytes())
        .map_err(|error| ErrorInfo::new(format!("{name} is not JSON: {error}")))?;
    drop(json);
    let context = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    for output in filter.id.run((context, input)) {
        let output = match output {
            Ok(output) => output,
            Err(stop) => match stop.get_err() {
                Ok(error) => {
                    let before = after(results);
                    return Err(ErrorInfo::new(format!(
                        "jq, on {name}{before}: {}",
                        shown::message(&error.to_string())
                    )));
                }
                // `halt`.
                Err(_) => return Ok(false),
            },
        };
        let json = output.to_string();
        if serde_json::from_str::<&RawValue>(&json).is_err() {
            let shown = shown::value(&json);
            return Err(ErrorInfo::new(format!(
                "jq, on {name}{}: a result is not JSON, which has no NaN, no Infinity and no \
                 bytes, and at most 127 levels: `{shown}`",
                after(results)
            )));
        }
        if !results.add(json) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// How many results there were before an error.
fn after(results: &Results) -> String {
    match results.found.len() {
        0 => String::new(),
        count => format!(", after {count} results"),
    }
}
