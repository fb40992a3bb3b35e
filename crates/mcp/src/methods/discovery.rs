//! The tools that find and call other tools, for clients that do not list all of them.

use std::fmt::Write as _;
use std::sync::Arc;

use kitbag_base::json::{self, JsonBudget};
use kitbag_base::text::shown;
use kitbag_config::Config;
use rmcp::model::{self, CallToolRequestParams, CallToolResult, ContentBlock, MetaObject};
use serde_json::{Map, Value, json};

use crate::methods::catalog::{ALWAYS_LOAD, Catalog};

/// The names of the server's own tools, which differ from those of all configured tools.
#[derive(Clone, Debug)]
pub(crate) struct OwnTools {
    pub(crate) find: String,
    pub(crate) call: String,
    pub(crate) read: String,
}

/// The default and the maximum number of hits.
const HITS: u64 = 5;
const MOST_HITS: u64 = 20;

/// Maximum length of the arguments and of the description in a hit, in characters.
const SIGNATURE: usize = 300;
const SUMMARY: usize = 200;

impl OwnTools {
    /// Chooses names that no tool has, also none that is not offered: the names would reveal it.
    pub(crate) fn new(config: &Config) -> Self {
        let free = |name: &str| {
            let mut name = name.to_owned();
            while config.tools.contains_key(name.as_str()) {
                name.insert_str(0, "kitbag_");
            }
            name
        };
        Self { find: free("find_tools"), call: free("call_tool"), read: free("read_result") }
    }
}

/// Returns the definitions of the tools that find and call `count` tools.
pub(crate) fn search_tools(own: &OwnTools, count: usize) -> [model::Tool; 2] {
    let OwnTools { find, call, .. } = own;
    let found = definition(
        find,
        "Find tools",
        format!(
            "Search the {count} tools of this server by what they do. Returns the best with their \
             arguments; call one with `{call}`. An exact name returns its full definition. \
             Example: {{\"query\":\"create calendar event\"}}"
        ),
        json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "Words, or the name of a tool" },
                "limit": { "type": "integer", "minimum": 1, "maximum": MOST_HITS, "default": HITS },
            },
            "required": ["query"],
            "additionalProperties": false,
        }),
    );
    let found = found.annotate(model::ToolAnnotations::new().read_only(true).open_world(false));
    let called = definition(
        call,
        "Call a tool",
        format!(
            "Call a tool that `{find}` returned. Example: \
             {{\"name\":\"a_tool\",\"arguments\":{{\"path\":\"a.txt\"}}}}"
        ),
        json!({
            "type": "object",
            "properties": { "name": { "type": "string" }, "arguments": { "type": "object" } },
            "required": ["name"],
            "additionalProperties": false,
        }),
    );
    [found, called]
}

/// Returns the definition of one of the server's own tools, which clients always load.
pub(crate) fn definition(
    name: &str,
    title: &str,
    description: String,
    schema: Value,
) -> model::Tool {
    let Value::Object(schema) = schema else { unreachable!("the schemas are objects") };
    let mut tool = model::Tool::new(name.to_owned(), description, Arc::new(schema));
    tool.title = Some(title.to_owned());
    tool.meta = Some(MetaObject(Map::from_iter([(ALWAYS_LOAD.to_owned(), true.into())])));
    tool
}

/// Answers a call of `find_tools`.
pub(crate) fn find(catalog: &Catalog, arguments: Map<String, Value>) -> CallToolResult {
    let (find, call) = (&catalog.own.find, &catalog.own.call);
    let query = match arguments.get("query") {
        Some(Value::String(query)) if !query.trim().is_empty() => query.trim(),
        _ => return failure(format!("`{find}` needs a `query` with words, such as `read a file`")),
    };
    if let Some(tool) = catalog.tool(query) {
        return success(full(tool));
    }
    let limit = match arguments.get("limit") {
        None | Some(Value::Null) => HITS,
        Some(limit) => match limit.as_u64().filter(|limit| (1..=MOST_HITS).contains(limit)) {
            Some(limit) => limit,
            None => return failure(format!("`limit` must be a number from 1 to {MOST_HITS}")),
        },
    };
    let hits = catalog.search(query, usize::try_from(limit).unwrap_or(usize::MAX));
    if hits.is_empty() {
        let query = shown(query);
        return success(format!("No tool fits `{query}`. Search again with other words."));
    }
    let mut text = String::new();
    for tool in hits {
        let _ = writeln!(text, "{}({})", tool.name, signature(&tool.input_schema));
        let summary = summary(tool);
        if !summary.is_empty() {
            let _ = writeln!(text, "  {summary}");
        }
    }
    let _ = write!(
        text,
        "\nCall one: `{call}` {{\"name\": …, \"arguments\": {{…}}}}. Its full definition: `{find}` \
         with its exact name."
    );
    success(text)
}

/// Replaces a call of `call_tool` by the call that it contains.
///
/// # Errors
///
/// The result for a model whose arguments do not fit.
pub(crate) fn unwrap(
    own: &OwnTools,
    request: &mut CallToolRequestParams,
) -> Result<(), Box<CallToolResult>> {
    let call = &own.call;
    let example = "{\"name\": \"a_tool\", \"arguments\": {…}}";
    let mut outer = request.arguments.take().unwrap_or_default();
    let name = match outer.remove("name") {
        Some(Value::String(name)) if name == *call => {
            return Err(refused(format!("`{call}` cannot call itself")));
        }
        Some(Value::String(name)) => name,
        _ => return Err(refused(format!("`{call}` needs the `name` of a tool: {example}"))),
    };
    let Some(mut arguments) = object(outer.remove("arguments")) else {
        return Err(refused(format!("`arguments` of `{call}` must be an object: {example}")));
    };
    // A model may put the answers beside the arguments.
    if let Some(answers) = outer.remove("_answers") {
        arguments.entry("_answers").or_insert(answers);
    }
    // Hosts add keys that start with `_`.
    if let Some(unknown) = outer.keys().find(|key| !key.starts_with('_')) {
        let unknown = shown(unknown);
        return Err(refused(format!(
            "`{call}` has no argument `{unknown}`: put the arguments of the tool into `arguments`: \
             {example}"
        )));
    }
    request.name = name.into();
    request.arguments = Some(arguments);
    Ok(())
}

fn refused(text: String) -> Box<CallToolResult> {
    Box::new(failure(text))
}

/// Returns the arguments in a call of `call_tool`. Some models write the object as text.
fn object(arguments: Option<Value>) -> Option<Map<String, Value>> {
    match arguments {
        None | Some(Value::Null) => Some(Map::new()),
        Some(Value::Object(arguments)) => Some(arguments),
        Some(Value::String(text)) if text.trim().is_empty() => Some(Map::new()),
        Some(Value::String(text)) => {
            match json::parse(text.as_bytes(), JsonBudget::ARGUMENTS).ok()? {
                Value::Object(arguments) => Some(arguments),
                _ => None,
            }
        }
        Some(_) => None,
    }
}

fn full(tool: &model::Tool) -> String {
    let mut text = tool.name.to_string();
    if let Some(description) = &tool.description {
        let _ = write!(text, "\n{description}");
    }
    let schema = Value::Object((*tool.input_schema).clone());
    let _ = write!(text, "\nArguments: {schema}");
    if let Some(schema) = &tool.output_schema {
        let _ = write!(text, "\nResult: {}", Value::Object((**schema).clone()));
    }
    text
}

/// Returns the parameters with their types; the optional ones have a `?`.
fn signature(schema: &Map<String, Value>) -> String {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
    let Some(Value::Object(properties)) = schema.get("properties") else { return String::new() };
    let mut names: Vec<_> = properties.iter().collect();
    names.sort_by_key(|(name, _)| !is_required(name));
    let mut text = String::new();
    for (name, property) in names {
        let separator = if text.is_empty() { "" } else { ", " };
        let mark = if is_required(name) { "" } else { "?" };
        let kind = kind(property).map(|kind| format!(": {kind}")).unwrap_or_default();
        let parameter = format!("{separator}{}{mark}{kind}", shown(name));
        if text.chars().count() + parameter.chars().count() > SIGNATURE {
            return text + separator + "…";
        }
        text.push_str(&parameter);
    }
    text
}

fn kind(property: &Value) -> Option<String> {
    if let Some(Value::Array(values)) = property.get("enum") {
        let values: Vec<_> = values.iter().take(8).map(Value::to_string).collect();
        return Some(values.join("|"));
    }
    property["type"].as_str().map(str::to_owned)
}

/// Returns the start of a description, in one line.
fn summary(tool: &model::Tool) -> String {
    let text = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(SUMMARY) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

pub(crate) fn success(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

pub(crate) fn failure(text: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}
