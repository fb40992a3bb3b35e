//! `query_data`: JSONPath of RFC 9535, and jq filters.

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
use crate::source::Source;
use crate::validate::cut;
use crate::write::ANSWER_BYTES;

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
}

fn results() -> usize {
    100
}

/// What was found, as JSON texts.
struct Results {
    limit: usize,
    found: Vec<String>,
    bytes: usize,
    has_more: bool,
    /// How many bytes the first result has, where it is too long.
    too_long: Option<usize>,
}

/// A filter of jq.
type Filter = jaq_core::Filter<data::JustLut<Val>>;

/// Runs a call.
pub(crate) fn run(call: &Call, arguments: &Arguments) -> Result<String, ErrorInfo> {
    let Arguments { query, path, text, from, limit } = arguments;
    let mut results =
        Results { limit: *limit, found: Vec::new(), bytes: 0, has_more: false, too_long: None };
    let (path, text) = (path.as_deref(), text.as_deref());
    let source = Source { path, text, from: *from, delimiter: None };
    let mut notes = Notes::default();
    // No filter begins so but with a variable, and the only ones are of the program itself.
    if query.trim_start().starts_with('$') {
        let path = JsonPath::parse(query.trim()).map_err(|error| {
            let (position, message) = (error.position(), error.message());
            ErrorInfo::new(format!("invalid JSONPath at character {}: {message}", position + 1))
        })?;
        source.each(call, &mut notes, &mut |document| {
            let nodes = path.query(&document.value);
            Ok(nodes.iter().all(|node| results.add(node.to_string())))
        })?;
    } else {
        let filter = compile(query)?;
        source.each(call, &mut notes, &mut |document| apply(&filter, document, &mut results))?;
    }
    if let Some(bytes) = results.too_long {
        return Err(ErrorInfo::new(format!(
            "the first result has {bytes} bytes, more than {ANSWER_BYTES}; select a part of it, \
             as `.a[0:100]` and `$.a[0:100]` do"
        )));
    }
    let found = results.found.join(",");
    let more = if results.has_more { ",\"more\":true" } else { "" };
    let notes = match notes.sentences() {
        notes if notes.is_empty() => String::new(),
        notes => format!(",\"notes\":{}", json!(notes)),
    };
    Ok(format!("{{\"results\":[{found}]{more}{notes}}}"))
}

impl Results {
    /// Adds a result, and says whether more are wanted.
    fn add(&mut self, json: String) -> bool {
        self.has_more = self.found.len() == self.limit || self.bytes + json.len() > ANSWER_BYTES;
        if self.found.is_empty() && self.has_more {
            self.too_long = Some(json.len());
        }
        if !self.has_more {
            self.bytes += json.len();
            self.found.push(json);
        }
        !self.has_more
    }
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
            format!("`{}`", part.split_whitespace().next().unwrap_or(&first.to_string()))
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
                failed(module, format!("there is no module `{module}`; a filter includes none"))
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
                failed(name, format!("there is no {} `{name}` here", undefined.as_str()))
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
                    return Err(ErrorInfo::new(format!("jq, on {name}{before}: {error}")));
                }
                // `halt`.
                Err(_) => return Ok(false),
            },
        };
        let json = output.to_string();
        if serde_json::from_str::<&RawValue>(&json).is_err() {
            let shown = cut(&json);
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
