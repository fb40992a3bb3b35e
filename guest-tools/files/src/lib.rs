//! The tools that read and change the files of a workspace.
//!
//! Each tool is a module with a function `run`. `file` opens files for reading.

#![forbid(unsafe_code)]

mod apply;
mod change;
mod diff;
mod edit;
mod file;
mod info;
mod leftover;
mod list;
mod lookalikes;
mod media;
mod mismatch;
mod numbers;
mod patch;
mod paths;
mod place;
mod read;
mod text;
mod write;

use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Tool, serde_json::Value};
use serde::de::IgnoredAny;

/// The component: one tool for each entry of [`TOOLS`].
struct Files;

kitbag_sdk::export!(Files);

/// The component's own description, also in its section.
const DESCRIPTION: &str = include_str!("../describe.json");

kitbag_sdk::describe_section!(DESCRIPTION);

/// A tool: its name and the function that serves a call.
type Served = (&'static str, fn(&Call) -> Result<String, Stop>);

const TOOLS: [Served; 10] = [
    ("read_file", read::run),
    ("list_dir", list::run),
    ("file_info", info::run),
    ("read_media", media::run),
    ("write_file", write::run),
    ("edit_file", edit::run),
    ("apply_patch", apply::run),
    ("make_dir", paths::make),
    ("move_path", paths::rename),
    ("remove_path", paths::remove),
];

impl Tool for Files {
    // Each tool parses its own arguments.
    type Arguments = IgnoredAny;

    fn describe() -> Description {
        Description::from_json(DESCRIPTION)
    }

    fn run(call: &Call, _: IgnoredAny) -> Result<String, Stop> {
        match TOOLS.iter().find(|(name, _)| *name == call.name()) {
            Some((_, run)) => run(call),
            None => Err(ErrorInfo::new(format!("no tool is named `{}` here", call.name())).into()),
        }
    }

    fn format_arguments(call: &Call, _: IgnoredAny) -> String {
        let rendered = match call.name() {
            "edit_file" => edit::rendered(call),
            "apply_patch" => apply::rendered(call),
            _ => None,
        };
        rendered.unwrap_or_else(|| {
            let arguments: Value = call.arguments().unwrap_or_default();
            format!("{} {arguments}", call.name())
        })
    }
}

#[cfg(test)]
mod tests;
