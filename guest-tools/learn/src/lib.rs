//! The tool `learn`: reads a knowledge base piece by piece, so that the prompt stays small.
//!
//! A **topic** is a directory of documents, a **subject** is one document in it. The host resolves
//! the topic, passes it in the argument `_topic`, and grants its directory, read-only, as
//! `/subjects`. This tool decides which files are subjects, and determines their names, access and
//! formatting.
//!
//! It does not use `std`, which imports standard streams, a terminal, the environment and an exit
//! only to report a panic. These imports would be half of the code that is decoded and linked at
//! every start.
//!
//! Everything except `wasi.rs` uses the small trait in `files.rs`, so that it is tested natively on
//! a directory in memory.

#![forbid(unsafe_code)]
#![cfg_attr(target_family = "wasm", no_std)]

extern crate alloc;

#[cfg(target_family = "wasm")]
extern crate kitbag_alone as _;

mod answer;
mod arguments;
mod catalog;
mod document;
mod files;
mod fold;
mod include;
mod nearest;
mod notes;
mod pattern;
mod query;
mod select;
mod skill;
mod subject;
#[cfg(test)]
mod tests;
mod wasi;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Tool};

use crate::arguments::{Arguments, Topic, View};
use crate::catalog::{Catalog, missing};
use crate::files::Files;
use crate::wasi::Preopen;

/// The tool.
struct Learn;

kitbag_sdk::export!(Learn);

/// The component's own description, also in its section.
const DESCRIPTION: &str = include_str!("../describe.json");

kitbag_sdk::describe_section!(DESCRIPTION);

impl Tool for Learn {
    type Arguments = Arguments;

    fn describe() -> Description {
        Description::from_json(DESCRIPTION)
    }

    fn run(call: &Call, arguments: Arguments) -> Result<String, Stop> {
        // Before the directory: a missing topic is a host error, and its directory would also be
        // missing.
        let topic = arguments.resolved()?;
        let files = Preopen::open("/subjects").ok_or_else(|| missing(topic))?;
        Ok(run(call.name(), &arguments, topic, &files)?)
    }

    fn format_arguments(call: &Call, arguments: Arguments) -> String {
        let subjects = match (&arguments.query, arguments.subjects.as_slice()) {
            (Some(query), []) => format!("search {query}"),
            (Some(query), subjects) => format!("search {query} in {}", subjects.join(", ")),
            (None, []) => "list".to_owned(),
            (None, subjects) => subjects.join(", "),
        };
        notes::one_line(&format!("{} {}: {subjects}", call.name(), arguments.topic)).into_owned()
    }
}

/// Answers a call with the files of its topic. `name` is the name of the tool.
fn run(
    name: &str,
    arguments: &Arguments,
    topic: &Topic,
    files: &impl Files,
) -> Result<String, ErrorInfo> {
    let catalog = Catalog::read(files, topic)?;
    match arguments.view {
        View::Prompt => return Ok(answer::prompt(files, topic, &catalog)),
        View::Names => return Ok(answer::names(topic, &catalog, |subject| &subject.slug)),
        View::Paths => return Ok(answer::names(topic, &catalog, |subject| &subject.path)),
        View::Call => {}
    }
    let selection = match arguments.subjects.as_slice() {
        [] => None,
        patterns => Some(select::select(topic, files, &catalog, patterns)?),
    };
    let (selection, budget) = (selection.as_ref(), arguments.budget(topic));
    if let Some(query) = &arguments.query {
        return query::ranked(name, topic, files, &catalog, (query, selection), budget);
    }
    match selection {
        Some(selection) if !selection.positions.is_empty() => {
            answer::load(files, &catalog, selection, budget)
        }
        selection => Ok(answer::listing(name, topic, files, &catalog, selection, budget)),
    }
}
