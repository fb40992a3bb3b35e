//! The tools `remember`, `recall`, `forget`, `list_memories` and `todo`, and the export and import
//! of their data.
//!
//! Each memory and each task is one value of the standard `wasi:keyvalue` under a random id:
//! concurrent writers lose nothing, and an id has the same meaning in the store of another
//! workspace. The host decides which memories a call can access: it opens a different store for
//! each caller. This crate stores, finds and exports the memories.

#![forbid(unsafe_code)]

mod answer;
#[cfg(target_family = "wasm")]
mod bindings;
mod date;
mod entry;
mod excerpt;
mod memories;
mod rank;
mod store;
#[cfg(test)]
mod tests;
mod todo;
mod transfer;
mod visible;
mod words;

use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Tool};
use serde::de::IgnoredAny;

use crate::store::{Clock, Store};

/// The component.
struct Memory;

kitbag_sdk::export!(Memory);

/// The component's own description, also in its section.
const DESCRIPTION: &str = include_str!("../describe.json");

kitbag_sdk::describe_section!(DESCRIPTION);

impl Tool for Memory {
    // Each tool has its own arguments.
    type Arguments = IgnoredAny;

    fn describe() -> Description {
        Description::from_json(DESCRIPTION)
    }

    fn run(call: &Call, _: IgnoredAny) -> Result<String, Stop> {
        let (store, clock) = store::open()?;
        Ok(run(call, &store, &clock)?)
    }
}

/// Runs a call with a store. The last two names are not tools: the host calls them for a person at
/// the command line.
fn run(call: &Call, store: &impl Store, clock: &impl Clock) -> Result<String, ErrorInfo> {
    match call.name() {
        "remember" => memories::remember(call.arguments()?, store, clock),
        "recall" => memories::recall(call.arguments()?, store),
        "forget" => memories::forget(call.arguments()?, store),
        "list_memories" => memories::list(call.arguments()?, store),
        "todo" => todo::todo(call.arguments()?, store, clock),
        "memory/export" => transfer::export(call.arguments()?, store),
        "memory/import" => transfer::import(call.arguments()?, store, clock),
        name => Err(ErrorInfo::new(format!("this component has no tool `{name}`"))),
    }
}
