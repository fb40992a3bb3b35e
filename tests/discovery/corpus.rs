//! More than 1,600 tools of invented services in `tools.txt`, and the built-ins.
//!
//! The tests of `kitbag-toolbox` and of `kitbag-mcp` include this file.

use serde_json::{Value, json};

const TOOLS: &str = include_str!("tools.txt");

/// The descriptions of built-ins that resemble tools of MCP servers.
const BUILTINS: [&str; 5] = [
    include_str!("../../guest-tools/files/describe.json"),
    include_str!("../../guest-tools/search/describe.json"),
    include_str!("../../guest-tools/data/describe.json"),
    include_str!("../../guest-tools/time/describe.json"),
    include_str!("../../guest-tools/memory/describe.json"),
];

/// A tool of the corpus.
pub(crate) struct CorpusTool {
    /// The name in `questions.txt`: the service and the snake-case name.
    pub(crate) id: String,
    /// The name for calls, in the style of its service.
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: String,
    pub(crate) input_schema: Value,
}

/// Returns the tools, by name.
pub(crate) fn tools() -> Vec<CorpusTool> {
    let mut tools = builtins();
    let (mut service, mut title, mut style) = ("", "", "");
    for line in TOOLS.lines() {
        let (kind, rest) = line.split_at(1);
        let parts: Vec<_> = rest.split('|').map(str::trim).collect();
        match (kind, &parts[..]) {
            ("#", [name, shown, of]) => (service, title, style) = (name, shown, of),
            ("=", [noun, text, parameters]) => {
                let (words, id) = (noun.replace('_', " "), format!("{noun}_id"));
                let with_id = format!("{id}, {parameters}");
                let many = plural(noun);
                for (name, description, parameters) in [
                    (
                        format!("list_{many}"),
                        format!("Lists the {} in {title}", plural(&words)),
                        "limit, cursor",
                    ),
                    (format!("get_{noun}"), format!("Returns one {words} by its id: {text}"), &id),
                    (
                        format!("create_{noun}"),
                        format!("Creates a {words} in {title}: {text}"),
                        parameters,
                    ),
                    (
                        format!("update_{noun}"),
                        format!("Changes fields of a {words} in {title}"),
                        &with_id,
                    ),
                    (
                        format!("delete_{noun}"),
                        format!("Deletes a {words} from {title} for good"),
                        &id,
                    ),
                ] {
                    tools.push(tool(service, style, &name, &description, parameters));
                }
            }
            ("-", [name, description, parameters]) => {
                tools.push(tool(service, style, &name.replace('-', "_"), description, parameters));
            }
            (";", _) => {}
            _ => panic!("not a line of tools: {line}"),
        }
    }
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    tools
}

/// Returns the questions of `questions.txt`, each with the ids of the tools that answer it.
pub(crate) fn questions() -> Vec<(&'static str, Vec<&'static str>)> {
    let lines = include_str!("questions.txt").lines().filter(|line| !line.starts_with(';'));
    let split = lines.map(|line| line.split_once(" | ").unwrap());
    split.map(|(question, tools)| (question, tools.split(", ").collect())).collect()
}

fn tool(service: &str, style: &str, name: &str, description: &str, parameters: &str) -> CorpusTool {
    let parameters: Vec<_> =
        parameters.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let properties: serde_json::Map<_, _> =
        parameters.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
    let own = match style {
        "snake" => name.to_owned(),
        "kebab" => name.replace('_', "-"),
        "camel" => camel(name),
        style => panic!("not a style: {style}"),
    };
    CorpusTool {
        id: format!("{service}_{name}"),
        name: format!("{service}_{own}"),
        title: None,
        description: format!("{description}."),
        input_schema: json!({
            "type": "object",
            "properties": properties,
            "required": parameters.first().into_iter().collect::<Vec<_>>(),
        }),
    }
}

fn builtins() -> Vec<CorpusTool> {
    let files = BUILTINS.iter().map(|text| serde_json::from_str::<Value>(text).unwrap());
    let described = files.flat_map(|file| match file.get("tools") {
        Some(Value::Array(tools)) => tools.clone(),
        _ => vec![file],
    });
    let text = |tool: &Value, key: &str| tool[key].as_str().unwrap_or_default().to_owned();
    described
        .map(|tool| CorpusTool {
            id: text(&tool, "name"),
            name: text(&tool, "name"),
            title: tool["title"].as_str().map(str::to_owned),
            description: text(&tool, "description"),
            input_schema: tool["inputSchema"].clone(),
        })
        .collect()
}

fn plural(noun: &str) -> String {
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ if noun.ends_with(['s', 'x']) || noun.ends_with("ch") || noun.ends_with("sh") => {
            format!("{noun}es")
        }
        _ => format!("{noun}s"),
    }
}

fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (initial, rest) = word.split_at(1);
        name + &initial.to_uppercase() + rest
    })
}
