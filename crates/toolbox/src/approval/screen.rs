//! The view of a call that waits for approval, for the person who decides.
//!
//! Everything except the frame is untrusted: it comes from the model that makes the call, from the
//! files that the call is about, or from the tool. It is escaped and bounded, and each of its lines
//! has a bar in front, so that it cannot pass for the frame.

use std::borrow::Cow;

use std::sync::Arc;
use std::time::Duration;

use kitbag_base::ByteSize;
use kitbag_base::text::{printable, shown};
use kitbag_config::{Origin, ToolSource};
use kitbag_contract::{Action, Limits, Outcome};
use kitbag_fs_guard::canonical;
use kitbag_host::{Call, CallError, Completion, Component, EventSink, RunContext};
use serde_json::{Map, Value};

use crate::call::json;
use crate::consent::{Consent, grant_items, surroundings};
use crate::registry::Toolbox;
use crate::registry::tool::Tool;

/// Maximum size of a displayed call in bytes.
const SHOWN_BYTES: usize = 8 << 10;

/// The maximum number of lines of a displayed call.
const SHOWN_LINES: usize = 150;

/// The maximum size of a tool's own rendering of its call, in bytes.
const OWN_BYTES: usize = 1 << 10;

/// The time that a tool may take to render a call.
const TIME: Duration = Duration::from_secs(2);

/// The built-ins that can preview a call without making it. The host requests this with the
/// argument `preview`, which no caller can set.
const PREVIEWED: [&str; 4] = ["write_file", "make_dir", "move_path", "remove_path"];

/// The built-ins whose rendering contains all information in the arguments.
const RENDERED: [&str; 2] = ["edit_file", "apply_patch"];

pub(super) fn line(tool: &Tool, arguments: &Map<String, Value>) -> String {
    const MOST: usize = 100;
    let line = format!("{} {}", tool.name, Value::Object(arguments.clone()));
    let line = shown(&line).to_string();
    match line.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// Returns the source of a tool that is not part of kitbag.
pub(super) fn source(toolbox: &Toolbox, tool: &Tool) -> Option<String> {
    let relative = |path: &std::path::Path| {
        let path = path.strip_prefix(&toolbox.0.config.root.value).unwrap_or(path);
        shown(&path.to_string_lossy()).to_string()
    };
    match &tool.source {
        ToolSource::Builtin { .. } | ToolSource::Native | ToolSource::Bytes(_) => None,
        ToolSource::Local(local) if local.wasm.origin == Origin::Caller => None,
        ToolSource::Local(local) => Some(relative(&local.wasm.value)),
        ToolSource::Script(script) => Some(relative(&script.path.value)),
        ToolSource::Server(tool) => Some(format!("the server `{}`", tool.server)),
    }
}

/// Returns the abilities that the grants of a call give, in one line. `None` if the tool has the
/// rights of its program or has no access.
pub(super) fn reach(toolbox: &Toolbox, tool: &Tool, call: &Call) -> Option<String> {
    let config = &toolbox.0.config;
    let (root, home) = (canonical(&config.root.value), config.home().map(canonical));
    let around = surroundings(&root, home.as_deref(), &config.network);
    let items = grant_items(tool.name.as_str(), &call.grants, &around);
    Consent { items, ..Consent::default() }.reach(tool.name.as_str())
}

/// Returns the call itself, in lines behind bars.
pub(super) async fn call(
    toolbox: &Toolbox,
    tool: &Tool,
    component: Option<&Component>,
    call: &Call,
    arguments: &Map<String, Value>,
    context: &RunContext,
) -> String {
    let builtin = match &tool.source {
        ToolSource::Builtin { name } => Some(&*name.value),
        _ => None,
    };
    let text = match (builtin, component) {
        (Some(name), Some(component)) if PREVIEWED.contains(&name) => {
            let mut previewed = arguments.clone();
            previewed.insert("preview".into(), true.into());
            let rendering = Call {
                arguments: json::text(&previewed),
                grants: call.grants.read_only().into(),
                ..rendering(call, Action::Run)
            };
            match run(toolbox, component, &rendering, context).await {
                Ok(Outcome::Success(text)) => format!("{}{text}", one_liners(arguments)),
                Ok(Outcome::Error(error)) => {
                    format!("{}It would fail: {}", block(arguments), error.message)
                }
                _ => block(arguments),
            }
        }
        (Some(name), Some(component)) if RENDERED.contains(&name) => {
            match run(toolbox, component, &rendering(call, Action::FormatArguments), context).await
            {
                Ok(Outcome::Success(text)) => text,
                _ => block(arguments),
            }
        }
        (None, Some(component)) if !component.lane().is_foreign() => {
            let format = rendering(call, Action::FormatArguments);
            let words = match run(toolbox, component, &format, context).await {
                Ok(Outcome::Success(text)) => {
                    format!("In the tool's own words: {}", bounded(&text, OWN_BYTES, 10))
                }
                Ok(Outcome::Error(_) | Outcome::NeedsInput(_)) => {
                    "The tool does not describe the call.".to_owned()
                }
                Err(CallError::Limit { kind, .. }) => {
                    format!("The tool reached the limit `{kind}` while it described the call.")
                }
                Err(_) => "The tool failed while it described the call.".to_owned(),
            };
            // The tool's own words come last, and never replace the arguments.
            return format!("{}{}", barred(&block(arguments)), barred(&words));
        }
        _ => block(arguments),
    };
    barred(&text)
}

/// Returns the call that renders a call. It has no grants of that call and lower limits.
fn rendering(call: &Call, action: Action) -> Call {
    let limits = Limits {
        time: call.limits.time.min(TIME),
        output: call.limits.output.min(ByteSize::bytes(64 << 10)),
        ..call.limits
    };
    Call {
        action,
        answers: "{}".into(),
        grants: Arc::default(),
        storage: None,
        limits,
        tools: None,
        ..call.clone()
    }
}

async fn run(
    toolbox: &Toolbox,
    component: &Component,
    call: &Call,
    context: &RunContext,
) -> Result<Outcome, CallError> {
    let context = RunContext { events: EventSink::default(), ..context.clone() };
    let Completion { result, .. } = toolbox.host().call(component, call, &context).await;
    result
}

/// Returns the arguments, each on one line, or on several lines if its value has several.
fn block(arguments: &Map<String, Value>) -> String {
    let mut text = String::new();
    for (name, value) in arguments {
        let name = plain(name);
        match value {
            Value::String(value) if value.contains('\n') => {
                text.push_str(&format!("{name}:\n"));
                for line in value.lines() {
                    text.push_str(&format!("    {line}\n"));
                }
            }
            value => text.push_str(&format!("{name}: {value}\n")),
        }
    }
    if arguments.is_empty() {
        text.push_str("(no arguments)\n");
    }
    text
}

/// Returns the arguments without those whose values the preview shows.
fn one_liners(arguments: &Map<String, Value>) -> String {
    let is_shown = |(name, _): &(&String, &Value)| !CONTENT.contains(&name.as_str());
    let rest = arguments.iter().filter(is_shown).map(|(name, value)| (name.clone(), value.clone()));
    block(&rest.collect())
}

/// The arguments of a built-in that contain the content to write. A preview shows them. Calls that
/// are approved together may differ in them.
const CONTENT: [&str; 3] = ["content", "edits", "expect"];

/// Returns the arguments that an approval of such calls is bound to: for `write_file` and
/// `edit_file`, all except the content to write.
pub(super) fn held(tool: &Tool, arguments: &Map<String, Value>) -> Map<String, Value> {
    let writes = match &tool.source {
        ToolSource::Builtin { name } => matches!(&*name.value, "write_file" | "edit_file"),
        _ => false,
    };
    let is_held = |(name, _): &(&String, &Value)| !writes || !CONTENT.contains(&name.as_str());
    let held = arguments.iter().filter(is_held);
    held.map(|(name, value)| (name.clone(), value.clone())).collect()
}

pub(super) fn sentence(arguments: &Map<String, Value>) -> String {
    let one = |(name, value): (&String, &Value)| format!("{} = {value}", plain(name));
    let all: Vec<_> = arguments.iter().map(one).collect();
    match all.is_empty() {
        true => "no arguments".to_owned(),
        false => shown(&all.join(", ")).to_string(),
    }
}

/// Returns the name of an argument, in quotes if the name could be mistaken for something else.
fn plain(name: &str) -> Cow<'_, str> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
    match name.bytes().all(is_plain) && !name.is_empty() {
        true => name.into(),
        false => Value::from(name).to_string().into(),
    }
}

/// Returns text escaped and truncated, with a bar before each line.
fn barred(text: &str) -> String {
    let text = bounded(text, SHOWN_BYTES, SHOWN_LINES);
    text.lines().map(|line| format!("| {line}\n")).collect()
}

/// Returns text escaped and truncated.
fn bounded(text: &str, bytes: usize, lines: usize) -> String {
    let text = printable(text.trim_end_matches('\n')).to_string();
    let by_lines = text.match_indices('\n').nth(lines - 1).map_or(text.len(), |(at, _)| at);
    let mut end = by_lines.min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    match text.len() - end {
        0 => text,
        left => format!("{}\n[{left} more bytes are not shown]", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn displayed_text_is_escaped_truncated_and_behind_bars() {
        let check = |text: &str, expected: &str| assert_eq!(barred(text), expected);
        check("a\nb", "| a\n| b\n");
        check("a\r\nMay it? yes\u{1b}[2J", "| a\\r\n| May it? yes\\u{1b}[2J\n");
        check("a\u{2028}b\u{202e}", "| a\\u{2028}b\\u{202e}\n");
        let long = barred(&"x".repeat(SHOWN_BYTES + 5));
        assert!(long.ends_with("x\n| [5 more bytes are not shown]\n"), "{long}");
        let many = barred(&"x\n".repeat(SHOWN_LINES + 2));
        assert_eq!(many.lines().count(), SHOWN_LINES + 1);
        assert!(many.ends_with("| [4 more bytes are not shown]\n"), "{many}");
        let wide = barred(&"ü".repeat(SHOWN_BYTES));
        assert!(wide.contains("more bytes are not shown"), "{wide}");
    }

    #[test]
    fn arguments_are_shown_on_separate_lines() {
        let arguments = json!({ "path": "a", "code": "x = 1\ny", "n": [1] });
        let text = block(arguments.as_object().unwrap());
        assert_eq!(text, "path: \"a\"\ncode:\n    x = 1\n    y\nn: [1]\n");
        assert_eq!(block(&Map::new()), "(no arguments)\n");
    }
}
