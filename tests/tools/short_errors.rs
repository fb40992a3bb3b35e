//! Errors are words about a call and not its data: each has less than 4 KiB, and repeats at most
//! 200 characters of a value.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::support::Workspace;
use crate::support::mcp::Client;

/// Longer than any message, and none of it twice in a row.
fn long() -> String {
    (0..12_000).map(|n| format!("{n:05}x")).collect()
}

/// How many characters of the long value a message has in a row.
fn repeated(message: &str, long: &str) -> usize {
    let beginning: String = long.chars().take(40).collect();
    let Some(at) = message.find(&beginning) else { return 0 };
    message[at..].chars().zip(long.chars()).take_while(|(found, given)| found == given).count()
}

#[test]
fn every_error_of_a_built_in_tool_is_short() {
    let workspace = Workspace::with_toolsets(&[
        "write", "files", "search", "data", "text", "time", "calc", "python", "fetch", "memory",
    ]);
    workspace.file("package.json", "{\"scripts\":{\"test\":\"x\"}}\n");
    let examples: Value =
        serde_json::from_str(include_str!("../meta/tools_page/examples.json")).unwrap();
    let mut client = Client::with_handshake(&workspace, json!({}));
    let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let (long, mut failed) = (long(), BTreeSet::new());
    let mut problems = Vec::new();
    for tool in tools.as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let properties = tool["inputSchema"]["properties"].as_object().cloned().unwrap_or_default();
        for (key, schema) in &properties {
            let value = match schema["type"].as_str() {
                Some("array") => json!([long]),
                Some("object") => json!({ &long: long }),
                _ => json!(long),
            };
            let mut arguments: Map<String, Value> =
                examples[name].as_object().cloned().unwrap_or_default();
            arguments.insert(key.clone(), value);
            let answer = client.call(name, Value::Object(arguments));
            if answer["isError"] != json!(true) {
                continue;
            }
            failed.insert(name.to_owned());
            let blocks = answer["content"].as_array().unwrap().iter();
            let text: String = blocks.filter_map(|block| block["text"].as_str()).collect();
            if text.len() >= 4_096 {
                problems.push(format!("{name} {key}: {} bytes", text.len()));
            }
            // A traceback shows lines of a script.
            let most = if name == "python" { 400 } else { 200 };
            if repeated(&text, &long) > most {
                problems.push(format!("{name} {key}: {}", &text[..300]));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(failed.len() > 20, "{failed:?}");
}
