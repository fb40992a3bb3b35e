//! Formats `help()` about tools: a Python signature and the description.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kitbag_sdk::serde_json::{self, Value};
use kitbag_sdk::tools::ToolInfo;

/// The most characters of a description in the list.
const SUMMARY_CHARS: usize = 100;

/// All tools, one a line.
pub(crate) fn all(tools: &BTreeMap<String, ToolInfo>) -> String {
    if tools.is_empty() {
        return "there are no tools that this script can call\n".to_owned();
    }
    let mut text = String::new();
    for (name, tool) in tools {
        let schema = serde_json::from_str(&tool.input_schema).unwrap_or_default();
        let (required, optional) = properties(&schema);
        let more = (!optional.is_empty()).then_some("…");
        let arguments: Vec<_> = required.iter().map(|(name, _)| *name).chain(more).collect();
        let first = tool.description.lines().next().unwrap_or_default();
        let _ = writeln!(text, "{name}({}): {}", arguments.join(", "), summary(first));
    }
    text
}

/// One tool.
pub(crate) fn one(name: &str, tool: &ToolInfo) -> String {
    let schema = serde_json::from_str(&tool.input_schema).unwrap_or_default();
    let (required, optional) = properties(&schema);
    let by_name = |(name, schema): &(&str, &Value)| {
        let default = schema.get("default").map_or("...".to_owned(), literal);
        format!("{name}: {} = {default}", kind(schema))
    };
    let by_position = positional(&schema);
    let (first, others): (Properties<'_>, Properties<'_>) =
        optional.iter().copied().partition(|(name, _)| by_position.contains(name));
    let mut arguments: Vec<_> =
        required.iter().map(|(name, schema)| format!("{name}: {}", kind(schema))).collect();
    arguments.extend(first.iter().map(by_name));
    if !others.is_empty() {
        arguments.push("*".to_owned());
    }
    arguments.extend(others.iter().map(by_name));
    let output = tool.output_schema.as_deref().map(serde_json::from_str::<Value>);
    let output = output.and_then(Result::ok).map_or("str".to_owned(), |schema| kind(&schema));
    let mut text = format!("{name}({}) -> {output}\n", arguments.join(", "));
    for line in tool.description.lines() {
        let _ = writeln!(text, "    {line}");
    }
    for (name, schema) in required.into_iter().chain(optional) {
        if let Some(description) = schema["description"].as_str() {
            let _ = writeln!(text, "    {name}: {description}");
        }
    }
    text
}

/// Returns the names of the arguments that may be passed by position: the required ones in their
/// order. If none is required, the path, or the only argument that exists.
pub(crate) fn positional(schema: &Value) -> Vec<&str> {
    let (required, optional) = properties(schema);
    match (&required[..], &optional[..]) {
        ([], [(name, _)]) => vec![*name],
        ([], _) => optional.iter().map(|it| it.0).filter(|name| *name == "path").collect(),
        (required, _) => required.iter().map(|it| it.0).collect(),
    }
}

/// Arguments of a tool, each with its schema.
type Properties<'a> = Vec<(&'a str, &'a Value)>;

/// The arguments that are required, in their order, and the others.
fn properties(schema: &Value) -> (Properties<'_>, Properties<'_>) {
    static NONE: Value = Value::Null;
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let required: Vec<_> = required.iter().filter_map(Value::as_str).collect();
    let optional = schema["properties"].as_object().into_iter().flatten();
    let optional = optional.filter(|(name, _)| !required.contains(&name.as_str()));
    let optional = optional.map(|(name, schema)| (name.as_str(), schema)).collect();
    let named = |name| (name, schema["properties"].get(name).unwrap_or(&NONE));
    (required.into_iter().map(named).collect(), optional)
}

/// Returns the Python type of a schema.
fn kind(schema: &Value) -> String {
    let named = |name: &str| match name {
        "string" => "str".to_owned(),
        "integer" => "int".to_owned(),
        "number" => "float".to_owned(),
        "boolean" => "bool".to_owned(),
        "array" => match schema.get("items") {
            Some(items) if items.is_object() => format!("list[{}]", kind(items)),
            _ => "list".to_owned(),
        },
        "object" => "dict".to_owned(),
        "null" => "None".to_owned(),
        _ => "object".to_owned(),
    };
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(literal).collect::<Vec<_>>().join(" | ");
    }
    match (&schema["type"], schema["anyOf"].as_array().or(schema["oneOf"].as_array())) {
        (Value::String(name), _) => named(name),
        (Value::Array(names), _) => {
            let names: Vec<_> = names.iter().filter_map(Value::as_str).map(named).collect();
            names.join(" | ")
        }
        (_, Some(schemas)) => {
            let mut kinds: Vec<_> = schemas.iter().map(kind).collect();
            kinds.dedup();
            kinds.join(" | ")
        }
        _ => "object".to_owned(),
    }
}

/// A value as Python writes it.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        value => value.to_string(),
    }
}

/// The first sentence of a description, as far as there is room.
fn summary(text: &str) -> String {
    let sentence = text.split_inclusive(". ").next().unwrap_or_default().trim_end();
    match sentence.char_indices().nth(SUMMARY_CHARS) {
        Some((end, _)) => format!("{}…", sentence[..end].trim_end()),
        None => sentence.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use kitbag_sdk::json;

    use super::*;

    fn tool() -> ToolInfo {
        let input = json!({
            "type": "object",
            "properties": {
                "pattern": { "type": "string", "description": "A regex" },
                "case": { "enum": ["smart", "exact"], "default": "smart" },
                "globs": { "type": "array", "items": { "type": "string" } },
                "hidden": { "type": "boolean", "default": false },
                "limit": { "type": ["integer", "null"], "default": null },
                "where": { "anyOf": [{ "type": "string" }, { "type": "object" }] },
            },
            "required": ["pattern"],
        });
        ToolInfo {
            alias: "search".into(),
            description: "Search files. Slowly.\nDirectories: none".into(),
            input_schema: input.to_string(),
            output_schema: Some(json!({ "type": "array" }).to_string()),
        }
    }

    #[test]
    fn a_tool_has_a_signature_and_its_description() {
        assert_eq!(
            one("search", &tool()),
            "search(pattern: str, *, case: \"smart\" | \"exact\" = \"smart\", globs: list[str] = ..., \
             hidden: bool = False, limit: int | None = None, where: str | dict = ...) -> list\n    \
             Search files. Slowly.\n    Directories: none\n    pattern: A regex\n"
        );
    }

    #[test]
    fn all_tools_have_a_line_each() {
        let other = ToolInfo {
            alias: "now".into(),
            description: "x".repeat(200),
            input_schema: "{}".into(),
            output_schema: None,
        };
        let tools = [("search".to_owned(), tool()), ("now".to_owned(), other)].into();
        let expected = format!("now(): {}…\nsearch(pattern, …): Search files.\n", "x".repeat(100));
        assert_eq!(all(&tools), expected);
        assert_eq!(all(&BTreeMap::new()), "there are no tools that this script can call\n");
    }
}
