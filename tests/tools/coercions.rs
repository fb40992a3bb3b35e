//! Arguments as clients, models and tools write them are coerced once, before any decision depends
//! on them. The coercions themselves are tested in `crates/schema/cases/arguments.json`.

use serde_json::{Value, json};

use crate::support::Workspace;
use crate::support::http::HttpServer;
use crate::support::mcp::Client;

/// The arguments that n8n adds to every call.
fn with_host_keys(mut arguments: Value) -> Value {
    for key in ["toolCallId", "sessionId", "action", "chatInput"] {
        arguments[key] = json!("x");
    }
    arguments
}

/// Makes a call over MCP that succeeds, and returns its text.
#[track_caller]
fn called(client: &mut Client, tool: &str, arguments: Value) -> String {
    let result = client.call(tool, arguments);
    assert_eq!(result["isError"], json!(false), "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[track_caller]
fn refused(client: &mut Client, tool: &str, arguments: Value) -> String {
    let result = client.call(tool, arguments);
    assert_eq!(result["isError"], json!(true), "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

fn workspace() -> Workspace {
    let workspace = Workspace::with_toolsets(&["files", "search", "calc", "time", "data"]);
    workspace.file("a.txt", "one\ntwo\nthree\n");
    workspace
}

#[test]
fn calls_of_clients_and_bridges_are_accepted() {
    let workspace = workspace();
    let mut client = Client::with_handshake(&workspace, json!({}));
    let read = called(&mut client, "read_file", with_host_keys(json!({ "path": "a.txt" })));
    assert!(read.contains("two"), "{read}");
    let now = called(&mut client, "now", json!({ "toolCallId": "call_1", "zone": null }));
    assert!(!now.is_empty());
    let seven = called(&mut client, "calculate", json!({ "expression": 7 }));
    assert!(seven.contains('7'), "{seven}");
    called(&mut client, "list_dir", json!({ "path": ".", "depth": "2" }));
    called(&mut client, "list_dir", json!({ "path": ".", "depth": 2.0 }));
    let found = called(&mut client, "search_files", json!({ "pattern": "two", "globs": "*.txt" }));
    assert!(found.contains("a.txt"), "{found}");
    let globs = json!({ "pattern": "two", "globs": "[\"*.txt\"]", "context": "1" });
    assert!(called(&mut client, "search_files", globs).contains("a.txt"));
    let near = refused(&mut client, "read_file", json!({ "path": "a.txt", "numberd": true }));
    assert!(near.contains("did you mean `numbered`?"), "{near}");
}

#[test]
fn coercions_are_in_the_log_without_values() {
    let workspace = workspace();
    let client = Client::start(&workspace, &["--log", "debug"]);
    let mut client = client.after_handshake(json!({}));
    called(&mut client, "list_dir", json!({ "depth": "2", "sessionId": "private" }));
    let log = client.logged("were coerced").to_owned();
    let expected = "arguments of `list_dir` were coerced: `/depth`: text, read as a number; \
                    `/sessionId`: unknown, dropped";
    assert!(log.contains(expected), "{log}");
    assert!(!log.contains("private"), "{log}");
}

#[test]
fn digits_in_strings_are_numbers_over_http_and_in_inner_calls() {
    let workspace = Workspace::with_toolsets(&["files", "search", "calc", "python"]);
    workspace.file("a.txt", "one\ntwo\nthree\n404\n");
    let calls = [
        ("list_dir", json!({ "depth": "2" }), "list_dir(depth='2')", "a.txt"),
        ("search_files", json!({ "pattern": 404 }), "search_files(pattern=404)", "4:404"),
        (
            "search_files",
            json!({ "pattern": "two", "context": "1", "globs": "*.txt" }),
            "search_files(pattern='two', context='1', globs='*.txt')",
            "1-one",
        ),
        ("calculate", json!({ "expression": 7 }), "calculate(expression=7)", "7"),
    ];
    let server = HttpServer::start(&workspace, &["--no-token"]);
    let mut client = Client::with_handshake(&workspace, json!({}));
    for (tool, arguments, script, expected) in calls {
        let params = json!({ "name": tool, "arguments": arguments });
        let reply = server.message("", "tools/call", params);
        assert!(reply.body.contains(expected), "{tool}: {reply:?}");
        let answer = called(&mut client, "python", json!({ "code": script }));
        assert!(answer.contains(expected), "{script}: {answer}");
    }
}

#[test]
fn numbers_keep_their_digits_or_are_refused_by_name() {
    let workspace = workspace();
    let mut client = Client::with_handshake(&workspace, json!({}));
    let mut merge = |id: u64, merge: &str| {
        client.write(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\
             \"patch_data\",\"arguments\":{{\"text\":\"{{}}\",\"merge\":{merge}}}}}}}"
        ));
        client.answer(id)
    };
    let kept = merge(1001, r#"{"v":1.10,"w":[8.90]}"#);
    let text = kept["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("\"v\": 1.10") && text.contains("8.90"), "{kept}");
    let as_text = merge(1002, r#""{\"v\":1.10}""#);
    let text = as_text["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("\"v\": 1.10"), "{as_text}");
    let changed = merge(1003, r#"{"v":12345678901234567890.10}"#);
    let message = changed["error"]["message"].as_str().unwrap();
    assert!(
        message
            .contains("`12345678901234567890.10` in `/params/arguments/merge/v` would be rounded"),
        "{message}"
    );
    // Also if typed on a command line.
    let run = workspace.run(&["run", "patch_data", "text={}", "merge={\"v\":1.10}"]);
    assert!(run.success().contains("\"v\": 1.10"));
}

#[test]
fn unknown_arguments_are_refused_if_configured() {
    let workspace = workspace();
    // On a command line, a person sees the mistake.
    let run = workspace.run(&["run", "read_file", "path=a.txt", "sessionId=x"]);
    assert_eq!(run.code, 2, "{}", run.shown());
    assert!(run.stderr.contains("`/sessionId`: is unknown"), "{}", run.shown());
    workspace.own_config("[serve]\nunknown_arguments = \"error\"\n");
    let mut client = Client::with_handshake(&workspace, json!({}));
    let error = refused(&mut client, "read_file", with_host_keys(json!({ "path": "a.txt" })));
    assert!(error.contains("`/sessionId`: is unknown"), "{error}");
    called(&mut client, "read_file", json!({ "path": "a.txt", "numbered": "true" }));
}

#[test]
fn approval_rules_see_coerced_arguments() {
    let workspace = workspace();
    workspace
        .own_config("[tools.read_file]\napprove = { when = { path = \"7\", numbered = true } }\n");
    workspace.file("7", "seven\n");
    let mut client = Client::with_handshake(&workspace, json!({}));
    for arguments in [
        json!({ "path": 7, "numbered": "true" }),
        json!({ "path": "7", "numbered": true }),
        with_host_keys(json!({ "path": 7, "numbered": true })),
    ] {
        let answer = refused(&mut client, "read_file", arguments);
        assert!(!answer.contains("seven"), "{answer}");
    }
    let other = called(&mut client, "read_file", json!({ "path": 7, "numbered": "false" }));
    assert!(other.contains("seven"), "{other}");
}
