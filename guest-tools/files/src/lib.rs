//! The tools that read and change the files of a workspace.
//!
//! Every tool is a module with its description and its `run`. `file` opens what they read.

#![forbid(unsafe_code)]

mod alike;
mod apply;
mod change;
mod diff;
mod edit;
mod file;
mod info;
mod leftover;
mod list;
mod media;
mod mismatch;
mod patch;
mod paths;
mod place;
mod read;
mod shown;
mod text;
mod write;

use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Tool, json, serde_json::Value};
use serde::de::IgnoredAny;

/// The component: one tool for each entry of [`TOOLS`].
struct Files;

kitbag_sdk::export!(Files);

/// A tool: its name, what it says of itself, and how it serves a call.
type Served = (&'static str, fn(&str) -> Description, fn(&Call) -> Result<String, Stop>);

const TOOLS: [Served; 10] = [
    ("read_file", read::describe, read::run),
    ("list_dir", list::describe, list::run),
    ("file_info", info::describe, info::run),
    ("read_media", media::describe, media::run),
    ("write_file", write::describe, write::run),
    ("edit_file", edit::describe, edit::run),
    ("apply_patch", apply::describe, apply::run),
    ("make_dir", paths::describe_make, paths::make),
    ("move_path", paths::describe_move, paths::rename),
    ("remove_path", paths::describe_remove, paths::remove),
];

impl Tool for Files {
    // Each tool reads its own.
    type Arguments = IgnoredAny;

    fn describe() -> Description {
        Description::tools(TOOLS.map(|(name, describe, _)| describe(name)))
    }

    fn run(call: &Call, _: IgnoredAny) -> Result<String, Stop> {
        match TOOLS.iter().find(|(name, ..)| *name == call.name()) {
            Some((_, _, run)) => run(call),
            None => Err(ErrorInfo::new(format!("there is no tool `{}` here", call.name())).into()),
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

/// A tool that changes the workspace.
fn writing(
    name: &str,
    title: &str,
    description: &str,
    properties: Value,
    required: &[&str],
) -> Description {
    Description::new(name)
        .title(title)
        .description(description)
        .arguments(properties, required)
        .annotations(json!({ "destructiveHint": true, "openWorldHint": false }))
        .grants(json!({ "filesystem": [{ "guest": "/workspace", "mode": "rw" }] }))
}

#[cfg(test)]
mod tests;
