//! Many tools and large results through the program.

use serde_json::{Value, json};

use crate::support::Workspace;
use crate::support::http::HttpServer;
use crate::support::mcp::{Client, texts};

const SEARCH: &str = "[serve]\ndiscovery = \"search\"\npinned = [\"calc*\"]\n";

fn names(client: &mut Client) -> Vec<String> {
    let list = client.request("tools/list", json!({}));
    let tools = list["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn call(client: &mut Client, name: &str, arguments: &Value) -> Value {
    let params = json!({ "name": name, "arguments": arguments });
    client.request("tools/call", params)["result"].clone()
}

#[test]
fn excluded_tools_are_not_found() {
    let workspace = Workspace::with_toolsets(&["calc", "text", "data"]);
    workspace.add_to_own_config(SEARCH);
    let mut client = Client::start(&workspace, &["--tools", "calc*,*_text,learn"]);
    client = client.after_handshake(json!({}));
    assert_eq!(names(&mut client), ["calculate", "call_tool", "find_tools"]);
    let found = call(&mut client, "find_tools", &json!({ "query": "hash text", "limit": 20 }));
    assert!(texts(&found)[0].starts_with("hash_text("), "{found}");
    let found = call(&mut client, "find_tools", &json!({ "query": "query json", "limit": 20 }));
    assert!(!found.to_string().contains("query_data"), "{found}");
    let arguments = json!({ "name": "hash_text", "arguments": { "text": "a" } });
    let hashed = call(&mut client, "call_tool", &arguments);
    assert_ne!(hashed["isError"], true, "{hashed}");
    let params = json!({ "name": "call_tool", "arguments": { "name": "query_data" } });
    assert_eq!(client.request("tools/call", params)["error"]["code"], -32602);
}

#[test]
fn python_reads_a_kept_result() {
    let workspace = Workspace::with_toolsets(&["python", "files"]);
    workspace.add_to_own_config("[limits]\noutput = \"8MiB\"\n");
    // More than the arguments of a message may have.
    let text: String = (0..200_000).map(|number| format!("line {number}\n")).collect();
    workspace.file("large.txt", &text);
    let mut client = Client::with_handshake(&workspace, json!({}));
    let arguments = json!({ "path": "large.txt", "max_bytes": 4_000_000 });
    let result = call(&mut client, "read_file", &arguments);
    let start = texts(&result)[0];
    assert!(result.to_string().len() < 4_000, "{result}");
    let at = start.find("kitbag://result/").unwrap();
    let uri: String = start[at..].chars().take_while(|c| !matches!(c, '"' | ' ')).collect();
    let arguments = json!({ "code": "len(text.splitlines())", "inputs": { "text": uri } });
    let counted = call(&mut client, "python", &arguments);
    let lines: usize = texts(&counted)[0].trim().parse().unwrap_or_else(|_| panic!("{counted}"));
    assert!(lines >= 200_000, "{lines}");
    let read = call(&mut client, "read_result", &json!({ "uri": uri, "start_line": -1 }));
    assert!(texts(&read)[0].contains("line 199999"), "{read}");
}

#[test]
fn people_neither_find_tools_nor_read_results_of_others() {
    let workspace = Workspace::with_toolsets(&["files", "calc"]);
    workspace.add_to_own_config("[serve]\ndiscovery = \"search\"\n");
    let text = "a line of text\n".repeat(20_000);
    workspace.file("large.txt", &text);
    let token = |arguments: &[&str]| {
        let token = workspace.run(&[&["token", "add"], arguments].concat()).success();
        format!("Authorization: Bearer {}\r\n", token.trim())
    };
    let (ann, ben) = (token(&["ann"]), token(&["ben", "--tools", "calculate,read_file"]));
    let server = HttpServer::start(&workspace, &[]);
    let call = |person: &str, name: &str, arguments: Value| {
        let params = json!({ "name": name, "arguments": arguments });
        server.message(person, "tools/call", params).message()
    };
    let find = json!({ "query": "list a directory", "limit": 20 });
    assert!(call(&ann, "find_tools", find.clone()).to_string().contains("list_dir("));
    assert!(!call(&ben, "find_tools", find).to_string().contains("list_dir("));
    let list = json!({ "name": "list_dir", "arguments": {} });
    assert_eq!(call(&ben, "call_tool", list)["error"]["code"], -32602);
    let read = json!({ "path": "large.txt", "max_bytes": 1_000_000 });
    let kept = call(&ann, "call_tool", json!({ "name": "read_file", "arguments": read }));
    let start = texts(&kept["result"])[0].to_owned();
    let at = start.find("kitbag://result/").unwrap_or_else(|| panic!("{kept}"));
    let uri: String = start[at..].chars().take_while(|c| !matches!(c, '"' | ' ')).collect();
    let on = json!({ "uri": uri, "start_line": 2, "end_line": 2 });
    assert_ne!(call(&ann, "read_result", on.clone())["result"]["isError"], true);
    assert_eq!(call(&ben, "read_result", on)["result"]["isError"], true);
    let params = json!({ "uri": uri });
    assert!(server.message(&ben, "resources/read", params).message()["error"].is_object());
}

#[test]
fn list_shows_the_cost_of_tools() {
    let workspace = Workspace::with_toolsets(&["calc", "text"]);
    let cost = workspace.run(&["list", "--cost", "--json"]).json();
    let tools = cost["tools"].as_array().unwrap();
    let tokens = |tool: &Value| tool["tokens"].as_u64().unwrap();
    assert_eq!(tools.iter().map(tokens).sum::<u64>(), cost["tokens"].as_u64().unwrap());
    assert!(tools.is_sorted_by(|one, other| tokens(one) >= tokens(other)));
    assert!(tools.iter().all(|tool| tokens(tool) > 20), "{cost}");
    let text = workspace.run(&["list", "calc", "--cost"]).success();
    assert!(text.contains("calculate") && !text.contains("hash_text"), "{text}");
}
