//! The tools `query_data`, `validate_data`, `patch_data` and `convert_data`: they query a document,
//! validate it against a schema, change it, and convert it to another format.
//!
//! [`source`] finds the document and [`read`] parses it to a JSON value whose numbers keep their
//! digits and whose objects keep their order; [`document`] finds positions in its text.
//! [`write`](mod@write) formats a value.

#![forbid(unsafe_code)]

mod convert;
mod document;
mod equal;
mod excerpt;
mod format;
mod jq;
mod mistake;
mod notes;
mod patch;
mod pointer;
mod query;
mod read;
mod source;
#[cfg(test)]
mod tests;
mod validate;
mod write;

use kitbag_sdk::host::{self, Content, Resource, ResourceBody};
use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Tool};
use serde_json::Value;

/// The component.
struct Data;

kitbag_sdk::export!(Data);

/// The component's own description, also in its section.
const DESCRIPTION: &str = include_str!("../describe.json");

kitbag_sdk::describe_section!(DESCRIPTION);

impl Tool for Data {
    type Arguments = Value;

    fn describe() -> Description {
        Description::from_json(DESCRIPTION)
    }

    fn run(call: &Call, _: Value) -> Result<String, Stop> {
        let Answer { text, notes } = answer(call)?;
        if !notes.is_empty() {
            host::emit(&Content::Resource(Resource {
                uri: "kitbag:notes".into(),
                mime_type: Some("text/plain".into()),
                body: ResourceBody::Text(notes.join("\n")),
            }))
            .map_err(ErrorInfo::new)?;
        }
        Ok(text)
    }
}

/// The answer of a tool.
struct Answer {
    text: String,
    /// Notes that are not part of the text, since the text is a document.
    notes: Vec<String>,
}

impl Answer {
    fn new(text: String) -> Self {
        Self { text, notes: Vec::new() }
    }
}

fn answer(call: &Call) -> Result<Answer, ErrorInfo> {
    match call.name() {
        "query_data" => query::run(call, &call.arguments()?).map(Answer::new),
        "validate_data" => validate::run(call, &call.arguments()?).map(Answer::new),
        "patch_data" => patch::run(call, call.arguments()?),
        "convert_data" => convert::run(call, &call.arguments()?),
        name => Err(ErrorInfo::new(format!("no tool is named `{name}` here"))),
    }
}
