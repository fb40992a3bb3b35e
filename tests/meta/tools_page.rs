//! `docs/tools.md`: the built-in tools as a model sees them, and their cost in tokens.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use kitbag::config::{OFF_BY_DEFAULT, TOOLSETS};
use kitbag::toolbox::definitions::Format;
use kitbag_test_servers::{Answer, Behaviour, Server};
use serde_json::{Map, Value};
use tiktoken_rs::o200k_base_singleton;

use super::generated::assert_current;
use crate::support::{Workspace, repository};

/// Upper limit for the tokens of the definitions of all tools that are enabled by default.
const MOST: usize = 4_000;

/// A call of each tool with a typical answer, in the order of the page.
const EXAMPLES: &str = include_str!("tools_page/examples.json");

/// A web page, and the site that it represents.
const WEB_PAGE: &str = include_str!("tools_page/page.html");
const SITE: &str = "https://docs.rs";

/// A copy of the small project that the examples are called in.
fn project(on: &[&str]) -> Workspace {
    let workspace = Workspace::with_toolsets(on);
    copy(&repository().join("tests/meta/tools_page/project"), &workspace.root());
    workspace.config("[knowledge.team]\nsubjects = \"notes\"\ndescription = \"How we work.\"\n");
    workspace
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, target).unwrap();
        }
    }
}

fn tokens(text: &str) -> usize {
    o200k_base_singleton().encode_ordinary(text).len()
}

/// The definition of each tool for a model: its name, description and arguments.
fn definitions(workspace: &Workspace) -> Vec<Value> {
    let definitions = workspace.kitbag().toolbox().definitions(Format::Mcp).unwrap().value;
    let read = |tool: &Value| {
        let keys = ["name", "description", "inputSchema"];
        Value::Object(Map::from_iter(keys.map(|key| (key.to_owned(), tool[key].clone()))))
    };
    definitions["tools"].as_array().unwrap().iter().map(read).collect()
}

fn cost(definition: &Value) -> usize {
    tokens(&definition.to_string())
}

fn cost_by_default() -> usize {
    let mut on = TOOLSETS.to_vec();
    on.retain(|toolset| !OFF_BY_DEFAULT.contains(toolset));
    definitions(&project(&on)).iter().map(cost).sum()
}

#[test]
fn tools_on_by_default_cost_a_model_little() {
    let cost = cost_by_default();
    assert!(cost > 0 && cost <= MOST, "{cost} tokens, of {MOST} at most");
}

#[test]
fn the_page_of_tools_is_current() {
    assert_current("tools.md", &page());
}

fn page() -> String {
    let on = [&TOOLSETS[..], &["write"]].concat();
    // The server represents a web site.
    let server = Server::start(Behaviour::Answer(Answer::ok("text/html", WEB_PAGE)));
    let tidy = |text: &str| text.replace(&server.url(), SITE);
    let project = || {
        let workspace = project(&on);
        let grants = format!("[tools.fetch.grants]\nhttp = [\"{}/**\"]\n", server.url());
        workspace.own_config(&grants);
        workspace
    };
    let workspace = project();
    let (listed, definitions) = (workspace.listed(), definitions(&workspace));
    let named = |tools: &[Value], name: &str| {
        tools.iter().find(|tool| tool["name"] == name).cloned().unwrap_or_default()
    };
    let examples: Map<String, Value> = serde_json::from_str(EXAMPLES).unwrap();
    let mut missing = definitions.iter().filter_map(|tool| tool["name"].as_str());
    assert_eq!(missing.find(|name| !examples.contains_key(*name)), None, "has no example");
    let mut page = format!(
        "# Built-in tools\n\n\
         The built-in tools as a model reads them: the name, the description and the arguments,\n\
         with their cost in tokens of `o200k_base`. The tools that are on by default cost {}\n\
         tokens together. This page is generated from the tools' own descriptions; the examples\n\
         are calls in a small project.\n",
        cost_by_default()
    );
    let mut before = Value::Null;
    for (name, arguments) in &examples {
        let (definition, listed) = (named(&definitions, name), named(&listed, name));
        if listed["toolset"] != before {
            before = listed["toolset"].clone();
            let _ = write!(page, "\n## {}\n", before.as_str().unwrap());
        }
        // A fresh project, since some calls change it. Questions are answered with yes.
        let own = arguments.to_string().replace(SITE, &server.url());
        let own = serde_json::from_str(&own).unwrap();
        let project = project();
        if OFF_BY_DEFAULT.contains(&before.as_str().unwrap_or_default()) {
            let file = repository().join("tests/meta/tools_page/memory.md");
            project.run(&["memory", "import", file.to_str().unwrap()]).success();
        }
        let answer = tidy(&project.tool(name, &own, &["remove=true"]).success());
        let _ = write!(
            page,
            "\n### `{name}`\n\n{}; {} tokens, the answer to\n`{arguments}` {}.\n\n",
            tidy(listed["reach"].as_str().unwrap()),
            cost(&definition),
            tokens(&answer),
        );
        for line in tidy(definition["description"].as_str().unwrap()).lines() {
            page.push_str(format!("> {line}").trim_end());
            page.push('\n');
        }
        page.push_str(&arguments_of(&definition["inputSchema"]));
    }
    page
}

/// The arguments of a tool as a table.
fn arguments_of(schema: &Value) -> String {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut table = "\n| argument | | |\n|---|---|---|\n".to_owned();
    for (name, property) in schema["properties"].as_object().unwrap() {
        let kind = match (&property["type"], &property["enum"]) {
            (Value::String(kind), _) => kind.clone(),
            (_, Value::Array(values)) => {
                let values: Vec<_> = values.iter().map(|value| format!("`{value}`")).collect();
                values.join(", ")
            }
            _ => "one of several".to_owned(),
        };
        let is_required = required.iter().any(|required| required == name);
        let default = property.get("default").map(|default| format!("default `{default}`"));
        let described = property["description"].as_str().map(|text| text.replace('|', "\\|"));
        let parts = [is_required.then(|| "required".to_owned()), default, described];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        let _ = writeln!(table, "| `{name}` | {kind} | {} |", parts.join("; "));
    }
    table
}
