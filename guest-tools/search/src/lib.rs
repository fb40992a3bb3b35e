//! The tools `search_files` and `find_files`: ripgrep's own libraries on granted directories.
//!
//! [`walk`] walks a tree like ripgrep, [`search`] searches in files, and [`find`] lists paths. The
//! answers are short: results without room are only counted.

#![forbid(unsafe_code)]

mod answer;
mod arguments;
mod entry;
#[cfg_attr(target_family = "wasm", path = "files_wasi.rs")]
#[cfg_attr(not(target_family = "wasm"), path = "files_native.rs")]
mod files;
mod find;
mod folded;
mod hits;
mod ignore_files;
mod long;
mod pattern;
mod place;
mod search;
#[cfg(test)]
mod tests;
mod text;
mod walk;

use kitbag_sdk::serde_json::Value;
use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Tool};

/// The component.
struct Search;

kitbag_sdk::export!(Search);

/// The component's own description, also in its section.
const DESCRIPTION: &str = include_str!("../describe.json");

kitbag_sdk::describe_section!(DESCRIPTION);

impl Tool for Search {
    type Arguments = Value;

    fn describe() -> Description {
        Description::from_json(DESCRIPTION)
    }

    fn run(call: &Call, _: Value) -> Result<String, Stop> {
        let answer = match call.name() {
            "search_files" => search::run(call, &call.arguments()?)?,
            "find_files" => find::run(call, &call.arguments()?)?,
            name => return Err(ErrorInfo::new(format!("no tool is named `{name}` here")).into()),
        };
        Ok(answer)
    }
}
