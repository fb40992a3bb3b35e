//! A command with a configured command line: the arguments of a call fill its places.

use std::borrow::Cow;

use kitbag_base::json::Digits;
use kitbag_config::ToolSource;
use serde_json::{Map, Value};

/// Returns the arguments with which the component of a tool is run: those of the caller, unless the
/// command line of a command is configured.
pub(crate) fn arguments(
    source: &ToolSource,
    own: Map<String, Value>,
    digits: &mut Digits,
) -> Map<String, Value> {
    let call = source.component_call();
    let Some(command) = call.and_then(|call| call.command.as_ref()) else { return own };
    let exact = std::mem::take(digits);
    let value = |name: &str| match own.get(name)? {
        Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(&**text)),
        // Names of parameters have no character that a JSON pointer escapes.
        value => Some(Cow::Owned(exact.below(&format!("/{name}")).text(value))),
    };
    let filled = command.value.arguments.iter().filter_map(|template| template.fill(value));
    let args = filled.map(Value::String).collect();
    let stdin = command.value.stdin.as_ref().and_then(|template| template.fill(value));
    let arguments = [("args", Some(Value::Array(args))), ("stdin", stdin.map(Value::String))];
    let arguments = arguments.into_iter();
    arguments.filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}
