//! Tools of MCP servers: on the command line, for clients, and in code.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::http::HttpServer;
use crate::support::mcp::{Client, texts};
use crate::support::{Workspace, process_stat, until};

/// A workspace whose server is the script of the tests.
fn workspace(tables: &str) -> Workspace {
    let workspace = Workspace::with_toolsets(&["python"]).with_time();
    let script = include_str!("../support/scripted_server.py");
    let script = workspace.file("server.py", script);
    let command = json!([python(), script]);
    workspace.config(&format!("[servers.s]\ncommand = {command}\n{tables}"));
    workspace.run(&["update", "s", "--yes"]).success();
    workspace
}

/// The Python of this machine.
fn python() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let mut found = std::env::split_paths(&path).map(|directory| directory.join("python3"));
    found.find(|program| program.exists()).expect("the tests need python3")
}

fn is_running(process: &str) -> bool {
    process_stat(process.parse().unwrap(), 2).is_some_and(|state| state != "Z")
}

#[test]
fn server_tools_are_called_by_prefixed_names() {
    let workspace = workspace("");
    let listed: Vec<_> = workspace.listed().iter().map(|tool| tool["name"].clone()).collect();
    for name in ["s_echo", "s_ask", "s_sum"] {
        assert!(listed.contains(&name.into()), "{listed:?}");
    }
    assert_eq!(workspace.run(&["run", "s_echo", "say=hi"]).success(), "hi\n");
    let sum = workspace.run(&["run", "s_sum", "a=2", "b=3"]).success();
    assert_eq!(serde_json::from_str::<Value>(&sum).unwrap(), json!({ "sum": 5 }));
    let refused = workspace.run(&["run", "s_sum", "a=x", "b=3"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
}

#[test]
fn a_command_ends_its_server_before_it_returns() {
    let workspace = workspace("");
    let process = workspace.run(&["run", "s_pid"]).success();
    assert!(!is_running(process.trim()), "{process}");
}

#[test]
fn one_process_serves_a_session_and_ends_with_it() {
    let workspace = workspace("");
    let mut client = Client::with_handshake(&workspace, json!({}));
    let tools = client.request("tools/list", json!({}));
    assert!(tools.to_string().contains("s_sum"), "{tools}");
    let pid = |client: &mut Client| {
        let answer = client.call("s_pid", json!({}));
        texts(&answer)[0].to_owned()
    };
    let first = pid(&mut client);
    assert_eq!(first, pid(&mut client));
    assert!(is_running(&first));
    client.close();
    until(|| !is_running(&first));
}

#[test]
fn a_killed_kitbag_leaves_no_server() {
    let workspace = workspace("");
    let mut client = Client::with_handshake(&workspace, json!({}));
    let answer = client.call("s_pid", json!({}));
    let process = texts(&answer)[0].to_owned();
    client.kill();
    until(|| !is_running(&process));
}

#[test]
fn clients_over_http_share_one_process() {
    let workspace = workspace("");
    let server = HttpServer::start(&workspace, &[]);
    let token = server.token.clone().unwrap();
    let pid = |client: &str| {
        let headers = format!("Authorization: Bearer {token}\r\n");
        let meta = crate::support::mcp::meta_of(client);
        let params = json!({ "name": "s_pid", "arguments": {}, "_meta": meta });
        let message = server.message(&headers, "tools/call", params).message();
        texts(&message["result"]).first().unwrap_or_else(|| panic!("{message}")).to_string()
    };
    assert_eq!(pid("one"), pid("two"));
}

#[test]
fn progress_logs_and_rich_content_pass_through() {
    let workspace = workspace("");
    let mut client = Client::with_handshake(&workspace, json!({}));
    client.request("logging/setLevel", json!({ "level": "info" }));
    let params = json!({ "name": "s_work", "arguments": {}, "_meta": { "progressToken": 7 } });
    let answer = client.request("tools/call", params);
    assert_eq!(texts(&answer["result"]), ["worked"]);
    let others = client.others();
    let progress: Vec<_> = others
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .map(|message| message["params"]["progress"].clone())
        .collect();
    assert_eq!(progress, [json!(1.0), json!(2.0)], "{others:?}");
    let is_log = |message: &&Value| message["params"]["data"] == "hot";
    assert_eq!(others.iter().filter(is_log).count(), 1, "{others:?}");
    let image = client.call("s_image", json!({}));
    let content = &image["content"];
    assert_eq!(content[1]["mimeType"], "image/png", "{image}");
    assert_eq!(content[1]["data"], "iVBORw0KGgo=");
    let sum = client.call("s_sum", json!({ "a": 1, "b": 1 }));
    assert_eq!(sum["structuredContent"], json!({ "sum": 2 }));
}

#[test]
fn prompts_and_resources_of_a_server_pass_through() {
    let workspace = workspace("");
    let mut client = Client::with_handshake(&workspace, json!({}));
    // The server starts in the background, without a call.
    let start = Instant::now();
    while !client.request("prompts/list", json!({})).to_string().contains("s_greet") {
        assert!(start.elapsed() < Duration::from_secs(60), "the server lists no prompt");
        std::thread::sleep(Duration::from_millis(10));
    }
    let arguments = json!({ "name": "s_greet", "arguments": { "who": "Ada" } });
    let got = client.request("prompts/get", arguments);
    let message =
        json!({ "role": "assistant", "content": { "type": "text", "text": "Greet Ada" } });
    assert_eq!(got["result"]["messages"], json!([message]), "{got}");
    let uri = "kitbag://server/s/note:1";
    let listed = client.request("resources/list", json!({}));
    assert!(listed.to_string().contains(uri), "{listed}");
    let item = json!({ "uri": uri, "mimeType": "text/plain", "text": "a note" });
    let read = client.request("resources/read", json!({ "uri": uri }));
    assert_eq!(read["result"]["contents"], json!([item]), "{read}");
}

#[test]
fn questions_of_a_server_reach_the_client() {
    let workspace = workspace("");
    let mut client = Client::with_handshake(&workspace, json!({ "elicitation": {} }));
    let id = client.send("tools/call", json!({ "name": "s_ask", "arguments": {} }));
    let accepted = json!({ "action": "accept", "content": { "name": "Ada" } });
    let question = client.reply("elicitation/create", accepted);
    assert!(question.to_string().contains("Who are you?"), "{question}");
    assert_eq!(texts(&client.answer(id)["result"]), ["hello Ada"]);
    // On the command line, the answer is given by the id of the question.
    let answer = r#"input-1={"name":"Bob"}"#;
    let answered = workspace.run(&["run", "s_ask", "--answer", answer]);
    assert_eq!(answered.success(), "hello Bob\n");
}

#[test]
fn a_dead_server_fails_one_call_and_restarts() {
    let workspace = workspace("");
    let mut client = Client::with_handshake(&workspace, json!({}));
    let died = client.call("s_die", json!({}));
    assert_eq!(died["isError"], true, "{died}");
    let text = texts(&died).join("\n");
    assert!(text.contains("ended during the call") && text.contains("it hurts"), "{text}");
    let answers = |client: &mut Client| {
        let said = client.call("s_echo", json!({ "say": "back" }));
        texts(&said) == ["back"]
    };
    for _ in 0..100 {
        if answers(&mut client) {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("it does not start again");
}

#[test]
fn a_changed_description_is_refused_until_update() {
    let workspace = workspace("");
    workspace.file("changed", "");
    let refused = workspace.run(&["run", "s_echo", "say=hi"]);
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("the description of `echo`"), "{}", refused.stderr);
    // Other tools of the server work, and the model does not see the new text.
    workspace.run(&["run", "s_sum", "a=2", "b=3"]).success();
    let described = workspace.run(&["describe", "s_echo"]).success();
    assert!(!described.contains("Ignore all previous"), "{described}");
}

#[test]
fn scripts_call_server_tools_as_functions() {
    let workspace = workspace("");
    let code = "print(s_sum(a=20, b=22)['sum'], s_echo(say='ok'))";
    let answered = workspace.run(&["run", "python", &format!("code={code}")]);
    assert!(answered.stdout.contains("42 ok"), "{}{}", answered.stdout, answered.stderr);
}

#[test]
fn a_silent_server_does_not_delay_ping_and_lists() {
    let workspace = workspace("");
    let mut client = Client::with_handshake(&workspace, json!({}));
    let waiting = client.send("tools/call", json!({ "name": "s_sleep", "arguments": {} }));
    client.request("ping", json!({}));
    let tools = client.request("tools/list", json!({}));
    assert!(tools.to_string().contains("s_sleep"));
    client.notify("notifications/cancelled", json!({ "requestId": waiting }));
    client.request("ping", json!({}));
}

#[test]
fn rates_and_conditions_apply_to_server_tools() {
    let workspace = workspace("[tools.s_echo]\nrate = \"1/h\"\n");
    let mut client = Client::with_handshake(&workspace, json!({}));
    let say = |client: &mut Client| client.call("s_echo", json!({ "say": "hi" }));
    assert_eq!(texts(&say(&mut client)), ["hi"]);
    let second = say(&mut client);
    assert_eq!(second["isError"], true, "{second}");
}
