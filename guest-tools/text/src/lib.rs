//! The tools `html_to_markdown`, `diff_text`, `count_text`, `hash_text`, `encode_text` and
//! `decode_text`. Each takes its text as an argument or from a file.

#![forbid(unsafe_code)]

mod code;
mod count;
mod diff;
mod hash;
mod input;
mod page;
#[cfg(test)]
mod tests;

use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Tool};
use serde::de::IgnoredAny;

/// The component.
struct Text;

kitbag_sdk::export!(Text);

/// The component's own description, also in its section.
const DESCRIPTION: &str = include_str!("../describe.json");

kitbag_sdk::describe_section!(DESCRIPTION);

impl Tool for Text {
    // Each tool has its own arguments.
    type Arguments = IgnoredAny;

    fn describe() -> Description {
        Description::from_json(DESCRIPTION)
    }

    fn run(call: &Call, _: IgnoredAny) -> Result<String, Stop> {
        Ok(run(call)?)
    }
}

fn run(call: &Call) -> Result<String, ErrorInfo> {
    match call.name() {
        "html_to_markdown" => page::html_to_markdown(call, call.arguments()?),
        "diff_text" => diff::diff_text(call, call.arguments()?),
        "count_text" => count::count_text(call, call.arguments()?),
        "hash_text" => hash::hash_text(call, call.arguments()?),
        "encode_text" => code::encode_text(call, call.arguments()?),
        "decode_text" => code::decode_text(call, call.arguments()?),
        name => Err(ErrorInfo::new(format!("this component has no tool `{name}`"))),
    }
}
