//! Listing and calling tools.

use serde_json::json;

use super::texts;
use crate::support::mcp::Client;
use crate::support::{Workspace, guest, snapshot, until};

const TYPED: &str = r#"
[tools.probe.parameters.do]
type = "string"
description = "What to do"
required = true

[tools.probe.parameters.text]
type = "string"
default = "nothing"
"#;

fn pretty(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}

#[test]
fn tools_are_listed_equally_in_both_eras() {
    let workspace = Workspace::with_probe(TYPED);
    let mut old = Client::with_handshake(&workspace, json!({}));
    let mut new = Client::stateless(&workspace, json!({}));
    let list = old.request("tools/list", json!({}))["result"]["tools"].clone();
    snapshot!("list", &pretty(&list));
    assert_eq!(new.request("tools/list", json!({}))["result"]["tools"], list);
    assert_eq!(old.request("tools/list", json!({}))["result"]["tools"], list);
    // The export without a server is the same, except for the hints for clients.
    let mut list = list;
    for tool in list.as_array_mut().unwrap() {
        tool.as_object_mut().unwrap().remove("_meta");
    }
    assert_eq!(workspace.run(&["export", "--format", "mcp"]).json()["tools"], list);
}

#[test]
fn a_server_identifies_itself_in_both_eras() {
    let workspace = Workspace::new();
    workspace.file("notes/a.md", "A\n");
    workspace.file("notes/b.md", "B\n");
    workspace.config("[knowledge.team]\nsubjects = \"notes\"\nlearned = [\"a\"]\n");
    let mut client = Client::stateless(&workspace, json!({}));
    let discovered = client.request("server/discover", json!({}));
    snapshot!("discover", &pretty(&discovered["result"]));
    let mut client = Client::start(&workspace, &[]);
    let initialized = client.request(
        "initialize",
        json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } }),
    );
    snapshot!("initialize", &pretty(&initialized["result"]));
}

#[test]
fn tool_errors_are_results_and_unknown_tools_are_errors() {
    let workspace = Workspace::with_probe(&format!(
        "{TYPED}\n[tools.hasty]\nsource = \"local\"\nwasm = {:?}\nlimits.time = \"200ms\"\n\
         [tools.off]\nsource = \"builtin\"\nbuiltin = \"learn\"\nenable = false\n",
        guest("probe"),
    ));
    let mut client = Client::with_handshake(&workspace, json!({}));
    let mut shown = String::new();
    for (tool, arguments) in [
        ("probe", json!({ "do": "fail", "text": "x" })),
        ("probe", json!({ "do": "panic" })),
        ("hasty", json!({ "do": "spin" })),
        ("probe", json!({ "do": "echo", "txt": "x" })),
        ("probe", json!({ "text": 7 })),
        ("prob", json!({})),
        ("off", json!({})),
    ] {
        let answer = client.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        let outcome = answer.get("result").or(answer.get("error")).unwrap();
        shown.push_str(&format!("{tool} {arguments}\n{outcome:#}\n\n"));
    }
    snapshot!("errors", &workspace.redact(&shown));
}

#[test]
fn temporary_errors_are_marked_and_traces_are_withheld() {
    let workspace = Workspace::with_probe("");
    let mut client = Client::start(&workspace, &["--log", "info"]);
    client.request(
        "initialize",
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } }),
    );
    let arguments =
        json!({ "do": "fail", "message": "full", "trace": ["a cause"], "transient": true });
    let result = client.call("probe", arguments);
    assert_eq!(texts(&result), ["full", "Trying again may help."]);
    assert_eq!(result["isError"], true);
    let (_, stderr) = client.close();
    assert!(stderr.contains("a cause"), "{stderr}");
}

#[test]
fn printed_output_is_not_a_protocol_message() {
    let workspace = Workspace::with_probe("");
    let mut client = Client::with_handshake(&workspace, json!({}));
    let forged = r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#;
    for to in ["stdout", "stderr", "both"] {
        let arguments = json!({ "do": "print", "text": format!("\n{forged}\n"), "to": to });
        let result = client.call("probe", arguments);
        assert!(texts(&result)[0].starts_with("print: "), "{result}");
    }
    assert_eq!(client.others(), Vec::<serde_json::Value>::new());
}

#[test]
fn a_tool_is_listed_again_with_its_description() {
    let workspace = compiled_probe();
    forget(&workspace);
    let compiled_by_another = workspace.claim();
    let mut client = Client::with_handshake(&workspace, json!({}));
    let list = client.request("tools/list", json!({}));
    assert_eq!(probe(&list).get("description"), None);
    assert_eq!(probe(&list)["inputSchema"], json!({ "type": "object" }));
    drop(compiled_by_another);
    client.notification("notifications/tools/list_changed");
    let list = client.request("tools/list", json!({}));
    assert!(probe(&list)["description"].is_string(), "{list}");
}

#[test]
fn cached_descriptions_are_listed_without_native_code() {
    let workspace = compiled_probe();
    let described = workspace.run(&["describe", "probe", "--json"]).json();
    // As if another version of kitbag had compiled it.
    let compiled_by_another = workspace.claim();
    let mut client = Client::with_handshake(&workspace, json!({}));
    let list = client.request("tools/list", json!({}));
    assert!(probe(&list)["description"].is_string(), "{list}");
    assert_eq!(probe(&list)["inputSchema"], described["inputSchema"]["value"]);
    assert_eq!(workspace.listed()[1]["description"], probe(&list)["description"]);
    // Without native code.
    assert_eq!(workspace.run(&["describe", "probe", "--json"]).json(), described);
    drop(compiled_by_another);
    // The description of another component is not known.
    forget(&workspace);
    assert_eq!(workspace.listed()[1]["description"], json!(null));
}

#[test]
fn a_server_compiles_its_tools_before_their_first_call() {
    let workspace = Workspace::with_own_cache();
    let wasm = std::fs::read(guest("probe")).unwrap();
    workspace.file(".kitbag/tools/probe.wasm", wasm);
    let client = Client::with_handshake(&workspace, json!({}));
    let is_entry = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name().to_string_lossy().ends_with(".kitbag"))
    };
    let is_compiled =
        || std::fs::read_dir(workspace.cache()).is_ok_and(|mut entries| entries.any(is_entry));
    until(is_compiled);
    drop(client);
    // Other commands do not compile ahead.
    std::fs::remove_file(workspace.cached()).unwrap();
    forget(&workspace);
    workspace.run(&["list"]).success();
    assert!(!is_compiled());
}

#[test]
fn a_server_without_tools_from_files_starts_no_compiler() {
    let is_started = |client: &Client| {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", client.process_id())).unwrap();
        let mut names = tasks.map(|it| std::fs::read_to_string(it.unwrap().path().join("comm")));
        names.any(|name| name.is_ok_and(|name| name.trim() == "compile-ahead"))
    };
    let client = Client::with_handshake(&Workspace::new(), json!({}));
    assert!(!is_started(&client));
    // The server waits for another process.
    let workspace = compiled_probe();
    let _compiled_by_another = workspace.claim();
    let client = Client::with_handshake(&workspace, json!({}));
    until(|| is_started(&client));
}

/// A tool that describes itself, in a workspace with its own cache that holds the compiled tool.
fn compiled_probe() -> Workspace {
    let workspace = Workspace::with_own_cache();
    workspace.file(".kitbag/tools/probe.wasm", std::fs::read(guest("probe")).unwrap());
    workspace.run(&["run", "probe", "do=echo", "text=x"]).success();
    workspace
}

/// Removes the stored descriptions of components from the cache.
fn forget(workspace: &Workspace) {
    for file in std::fs::read_dir(workspace.cache()).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "description") {
            std::fs::remove_file(path).unwrap();
        }
    }
}

fn probe(list: &serde_json::Value) -> serde_json::Value {
    let tools = list["result"]["tools"].as_array().unwrap();
    tools.iter().find(|tool| tool["name"] == "probe").unwrap().clone()
}
