//! Errors describe a call without repeating its data: each has less than 4 KiB, and repeats at most
//! 200 characters of a value.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::support::Workspace;
use crate::support::mcp::Client;

/// A string that is longer than any message and has no repetitions.
fn long() -> String {
    (0..12_000).map(|n| format!("{n:05}x")).collect()
}

/// The longest part of the value that a message repeats, in characters.
fn repeated(message: &str, long: &str) -> usize {
    let beginning: String = long.chars().take(40).collect();
    let Some(at) = message.find(&beginning) else { return 0 };
    message[at..].chars().zip(long.chars()).take_while(|(found, given)| found == given).count()
}

/// A server with every built-in tool.
fn workspace() -> Workspace {
    let workspace = Workspace::with_toolsets(&[
        "write", "files", "search", "data", "text", "time", "calc", "python", "fetch", "memory",
    ]);
    workspace.own_config(
        "[tools.fetch.grants]\nhttp = [\"http://127.0.0.1:1/**\"]\n\
         [knowledge.team]\nsubjects = \"~/kb\"\n",
    );
    std::fs::create_dir(workspace.home().join("kb")).unwrap();
    std::fs::write(workspace.home().join("kb/habits.md"), "# Habits\n").unwrap();
    workspace.file("package.json", "{\"scripts\":{\"test\":\"x\"}}\n");
    workspace
}

/// Failing calls, and the problems of their errors.
#[derive(Default)]
struct Errors {
    failed: BTreeSet<String>,
    problems: Vec<String>,
}

impl Errors {
    fn check(&mut self, client: &mut Client, tool: &str, arguments: Value, long: &str) {
        let shown: String = arguments.to_string().chars().take(80).collect();
        let answer = client.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        let result = &answer["result"];
        let text: String = match (answer["error"]["message"].as_str(), &result["isError"]) {
            (Some(message), _) => message.to_owned(),
            (None, Value::Bool(true)) => {
                let blocks = result["content"].as_array().unwrap().iter();
                blocks.filter_map(|block| block["text"].as_str()).collect()
            }
            _ => return,
        };
        self.failed.insert(tool.to_owned());
        if text.len() >= 4_096 {
            self.problems.push(format!("{tool} {shown}: {} bytes", text.len()));
        }
        // A traceback repeats lines of a script.
        let most = if tool == "python" { 400 } else { 200 };
        if repeated(&text, long) > most {
            self.problems.push(format!("{tool} {shown}: {}", &text[..300]));
        }
    }
}

#[test]
fn every_error_of_a_built_in_tool_is_short() {
    let workspace = workspace();
    let examples: Value =
        serde_json::from_str(include_str!("../meta/tools_page/examples.json")).unwrap();
    let mut client = Client::with_handshake(&workspace, json!({}));
    let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let (long, mut errors) = (long(), Errors::default());
    let mut called = BTreeSet::new();
    for tool in tools.as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        called.insert(name.to_owned());
        let properties = tool["inputSchema"]["properties"].as_object().cloned().unwrap_or_default();
        let example = examples[name].as_object().cloned().unwrap_or_default();
        for (key, schema) in &properties {
            let of_type = match schema["type"].as_str() {
                Some("array") => json!([long]),
                Some("object") => json!({ &long: long }),
                _ => json!(long),
            };
            // A value of the type in the schema, and values of other types.
            for value in [of_type, json!({ &long: long }), json!([[long, { &long: long }]])] {
                let mut arguments: Map<String, Value> = example.clone();
                arguments.insert(key.clone(), value);
                errors.check(&mut client, name, Value::Object(arguments), &long);
            }
        }
    }
    let builtins: BTreeSet<_> = examples.as_object().unwrap().keys().cloned().collect();
    assert_eq!(called, builtins);
    assert_eq!(errors.failed, builtins);
    assert!(errors.problems.is_empty(), "{}", errors.problems.join("\n"));
}

#[test]
fn errors_about_long_data_are_short() {
    let workspace = workspace();
    let long = long();
    workspace.file("text.txt", &long);
    workspace.file("value.json", json!({ "a": [&long], (&*long): 1 }).to_string());
    workspace.file("broken.json", format!("{{\"a\": {long}"));
    workspace.file("broken.yaml", format!("a: [{long}\n"));
    workspace.file("broken.toml", format!("a = {long}\n"));
    workspace.file("broken.csv", format!("a,b\n\"{long}"));
    workspace.file("broken.jsonl", format!("{{}}\n{long}\n"));
    workspace.file("schema.json", json!({ "$ref": format!("#/{long}") }).to_string());
    let mut client = Client::with_handshake(&workspace, json!({}));
    let mut errors = Errors::default();
    let mut check = |tool: &str, arguments: Value| {
        errors.failed.clear();
        errors.check(&mut client, tool, arguments.clone(), &long);
        assert!(!errors.failed.is_empty(), "{tool} {arguments}");
    };
    for query in
        [".a.b", ". + 1", ".a[0] | tonumber", ".a | join(1)", "error", "keys[1] | fromjson"]
    {
        check("query_data", json!({ "path": "value.json", "query": query }));
    }
    for path in ["broken.json", "broken.yaml", "broken.toml", "broken.csv", "broken.jsonl"] {
        check("query_data", json!({ "path": path, "query": "." }));
        check("validate_data", json!({ "path": path, "schema": {} }));
        check("convert_data", json!({ "path": path, "to": "yaml" }));
        check("patch_data", json!({ "path": path, "merge": {} }));
    }
    let is_another = json!([{ "op": "test", "path": "/a/0", "value": long }]);
    check("patch_data", json!({ "path": "value.json", "patch": is_another }));
    check("convert_data", json!({ "path": "value.json", "to": "csv", "max_bytes": 100 }));
    check("validate_data", json!({ "path": "value.json", "schema_path": "schema.json" }));
    check("validate_data", json!({ "text": "1", "schema": { "type": long } }));
    check("validate_data", json!({ "text": "1", "schema": { "pattern": format!("({long}") } }));
    let edits = |old: &str| json!([{ "old_text": old, "new_text": "" }]);
    check("edit_file", json!({ "path": "text.txt", "edits": edits("x0") }));
    check("edit_file", json!({ "path": "text.txt", "edits": edits(&long.replace('1', "l")) }));
    let patch = format!("--- text.txt\n+++ text.txt\n@@ -1 +1 @@\n-{long}y\n+\n");
    check("apply_patch", json!({ "patch": patch }));
    check("search_files", json!({ "pattern": format!("({long}") }));
    check("find_files", json!({ "globs": [format!("[{long}")] }));
    check("calculate", json!({ "expression": long }));
    let script = "d = open('text.txt').read()\n";
    for code in ["raise ValueError(d)", "d + 1", "int(d)", "{}[d]", "read_file(path=d)"] {
        check("python", json!({ "code": format!("{script}{code}") }));
    }
    assert!(errors.problems.is_empty(), "{}", errors.problems.join("\n"));
}
