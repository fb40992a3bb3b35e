//! The tools, prompts and resources that the conformance suite of the Model Context Protocol
//! expects, over kitbag's ordinary contract.
//!
//! Only for tests, not part of kitbag. Features that the contract does not support are omitted:
//! sampling and roots.

#![forbid(unsafe_code)]

mod media;
mod prompts;
mod resources;
mod tools;

use kitbag_sdk::host::{self, Content};
use kitbag_sdk::serde_json::Value;
use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Target, Tool};

/// The component: many tools, some prompts and resources.
struct Conformance;

kitbag_sdk::export!(Conformance);

/// Serves one fixture.
type Fixture = fn(&Call, &Value) -> Result<String, Stop>;

impl Tool for Conformance {
    type Arguments = Value;

    fn describe() -> Description {
        let description = Description::tools(tools::describe());
        let description = prompts::describe().into_iter().fold(description, Description::prompt);
        resources::describe(description)
    }

    fn run(call: &Call, arguments: Value) -> Result<String, Stop> {
        let (kind, name, fixture) = match call.target() {
            Target::Tool(name) => ("tool", name, tools::find(name)),
            Target::Prompt(name) => ("prompt", name, prompts::find(name)),
            Target::Resource => ("resource", "", Some(resources::read as Fixture)),
        };
        match fixture {
            Some(fixture) => fixture(call, &arguments),
            None => Err(ErrorInfo::new(format!("there is no {kind} `{name}` here")).into()),
        }
    }
}

/// Emits content.
fn emit(content: &Content) -> Result<(), ErrorInfo> {
    host::emit(content).map_err(ErrorInfo::new)
}

/// Returns an argument that the host has checked.
fn text<'a>(arguments: &'a Value, key: &str) -> &'a str {
    arguments[key].as_str().unwrap_or_default()
}
