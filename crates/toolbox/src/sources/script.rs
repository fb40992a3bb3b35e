//! A script as a tool: a call of it is a call of the built-in `python`, with the text of the script
//! and the caller's arguments as its variables.

use kitbag_base::json::Digits;
use kitbag_config::{ScriptTool, ToolSource};
use kitbag_contract::ToolDescription;
use serde_json::{Map, Value, json};

/// Returns the script's own description, without the parts that configuration has taken from its
/// header.
pub(crate) fn description(script: &ScriptTool) -> ToolDescription {
    let ScriptTool { asks, .. } = script;
    let grants = (!asks.is_empty()).then(|| asks.clone());
    ToolDescription { grants, ..ToolDescription::default() }
}

/// Returns the arguments with which the component of a tool is run: those of the caller, unless the
/// tool is a script. An argument that the caller omits is `None` in a script.
pub(crate) fn arguments(
    source: &ToolSource,
    mut own: Map<String, Value>,
    digits: &mut Digits,
) -> Map<String, Value> {
    let ToolSource::Script(script) = source else { return own };
    let exact = std::mem::take(digits);
    digits.put("/inputs", exact);
    for (name, _) in &script.parameters.entries {
        own.entry(name).or_insert(Value::Null);
    }
    let arguments = [("code", json!(*script.code)), ("inputs", Value::Object(own))];
    arguments.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
