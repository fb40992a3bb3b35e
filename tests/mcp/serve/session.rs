//! A session from its first line to its last, and the failures in between.

use std::path::Path;

use serde_json::{Value, json};

use super::texts;
use crate::support::Workspace;
use crate::support::mcp::Client;

#[test]
fn errors_are_written_after_the_input_has_ended() {
    let workspace = Workspace::new();
    let run = workspace.run_with(&["serve"], "no json\n{\"id\":1}\n", &[]);
    assert_eq!(run.code, 0, "{}", run.shown());
    assert_eq!(run.stdout.lines().count(), 2, "{}", run.shown());
}

#[test]
fn cancelled_calls_end_and_others_continue() {
    let workspace = Workspace::with_probe("");
    // A time limit that no loop reaches, however slow the machine is.
    workspace.own_config("[tools.probe.limits]\ntime = \"1h\"\n");
    let mut client = Client::with_handshake(&workspace, json!({}));
    // More loops than call slots: the next call only runs when they end.
    let loops: Vec<_> = (0..100)
        .map(|_| {
            client.send("tools/call", json!({ "name": "probe", "arguments": { "do": "spin" } }))
        })
        .collect();
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    assert!(client.request("tools/list", json!({}))["result"]["tools"].is_array());
    for id in &loops {
        client.notify("notifications/cancelled", json!({ "requestId": id, "reason": "enough" }));
    }
    let answer = client.call("probe", json!({ "do": "echo", "text": "after" }));
    assert_eq!(texts(&answer), ["after"]);
    // Cancelled calls are not answered.
    let others = client.others();
    let is_of_a_loop =
        |message: &Value| message["id"].as_u64().is_some_and(|id| loops.contains(&id));
    assert!(!others.iter().any(is_of_a_loop), "{others:?}");
}

#[test]
fn a_closed_input_ends_the_process_during_calls() {
    let workspace = Workspace::with_probe("[tools.probe.limits]\ntime = \"30s\"\n");
    let mut client = Client::with_handshake(&workspace, json!({}));
    let answered = client
        .send("tools/call", json!({ "name": "probe", "arguments": { "do": "echo", "text": "x" } }));
    client.answer(answered);
    for action in ["spin", "spin-hostcall", "sleep"] {
        for _ in 0..20 {
            let arguments = json!({ "do": action, "ms": 60_000 });
            client.send("tools/call", json!({ "name": "probe", "arguments": arguments }));
        }
    }
    client.request("ping", json!({}));
    let (status, stderr) = client.close();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

#[test]
fn requests_before_end_of_input_are_answered() {
    let workspace = Workspace::with_probe("");
    let request = |id: u64, method: &str, params: Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    };
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let call = json!({ "name": "probe", "arguments": { "do": "echo", "text": "piped" } });
    let input = [
        request(1, "initialize", hello),
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
        request(2, "tools/call", call),
    ];
    // Without a line end after the last one.
    let run = workspace.run_with(&["serve"], &input.join("\n"), &[]);
    let last: Value = serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(texts(&last["result"]), ["piped"], "{}", run.shown());
    assert_eq!(run.code, 0);
}

#[test]
fn a_call_that_ends_with_the_input_is_not_answered() {
    let workspace = Workspace::with_probe("[tools.probe.limits]\ntime = \"30s\"\n");
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let input = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "probe", "arguments": { "do": "sleep", "ms": 60_000 } } }),
    ];
    let run = workspace.run_with(&["serve"], &input.map(|it| it.to_string()).join("\n"), &[]);
    let answers: Vec<Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        answers.iter().map(|answer| &answer["id"]).collect::<Vec<_>>(),
        [1],
        "{}",
        run.shown()
    );
    assert_eq!(run.code, 0);
}

#[test]
fn a_silent_client_is_not_an_error() {
    let workspace = Workspace::new();
    let run = workspace.run(&["serve"]);
    assert_eq!((run.code, &*run.stdout, &*run.stderr), (0, "", ""));
}

#[test]
fn a_wrong_option_is_reported_before_the_first_message() {
    let workspace = Workspace::new();
    let run = workspace.run(&["serve", "--tools", "nothing"]);
    assert_eq!(run.code, 4);
    assert_eq!(run.stdout, "");
    assert!(run.stderr.contains("`nothing` matches no tool"), "{}", run.shown());
}

#[test]
fn instructions_explain_missing_file_tools_in_the_home() {
    let workspace = Workspace::with_toolsets(&["files", "search"]);
    let instructions = |directory: &Path| {
        let mut client = Client::start_at(&workspace, directory);
        let params = json!({
            "protocolVersion": "2025-11-25",
            "clientInfo": { "name": "test", "version": "1" },
            "capabilities": {},
        });
        let answer = client.request("initialize", params);
        let text = answer["result"]["instructions"].as_str().unwrap_or_default();
        workspace.redact(text)
    };
    let expected = "Note: the file tools are disabled: `<home>` contains your home directory; \
                    choose a workspace with `--workspace DIRECTORY`; to turn on `files` \
                    everywhere, set `[toolsets] files = true` in your user config \
                    `<home>/.config/kitbag/config.toml`.\n";
    assert_eq!(instructions(&workspace.home()), expected);
    assert_eq!(instructions(&workspace.root()), "");
}
