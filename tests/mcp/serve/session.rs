//! A session from its first line to its last, and what may go wrong in between.

use std::path::Path;

use serde_json::{Value, json};

use super::texts;
use crate::support::Workspace;
use crate::support::mcp::Client;

#[test]
fn every_one_of_sixty_four_calls_at_once_is_answered() {
    let workspace = Workspace::with_probe("");
    let mut client = Client::with_handshake(&workspace, json!({}));
    for round in 0..100 {
        let calls: Vec<_> = (0..64)
            .map(|number| {
                let arguments = json!({ "do": "echo", "text": format!("{round}/{number}") });
                client.send("tools/call", json!({ "name": "probe", "arguments": arguments }))
            })
            .collect();
        for (number, id) in calls.into_iter().enumerate() {
            let answer = client.answer(id);
            assert_eq!(texts(&answer["result"]), [format!("{round}/{number}")]);
        }
    }
    assert_eq!(client.others(), Vec::<Value>::new());
}

#[test]
fn a_message_that_cannot_be_read_is_answered_and_the_next_one_too() {
    let workspace = Workspace::with_probe("");
    let mut client = Client::with_handshake(&workspace, json!({}));
    let code = |answer: Value| answer["error"]["code"].clone();
    client.write("no json");
    assert_eq!(code(client.wait(|message| message.get("error").is_some())), -32700);
    client.write(r#"{"jsonrpc":"2.0","id":"twice","method":"tools/list","method":"ping"}"#);
    assert_eq!(code(client.wait(|message| message["id"] == "twice")), -32600);
    client.write(r#"{"jsonrpc":"2.0","id":"none","method":"tools/shuffle"}"#);
    assert_eq!(code(client.wait(|message| message["id"] == "none")), -32601);
    client.write(r#"{"jsonrpc":"2.0","id":"odd","method":"resources/read","params":{}}"#);
    assert_eq!(code(client.wait(|message| message["id"] == "odd")), -32602);
    // The id comes after 17 MiB of arguments.
    let text = "x".repeat(17 << 20);
    let arguments = json!({ "do": "echo", "text": text });
    client.write(&format!(
        r#"{{"jsonrpc":"2.0","method":"tools/call","params":{{"name":"probe","arguments":{arguments}}},"id":"long"}}"#
    ));
    let answer = client.wait(|message| message["id"] == "long");
    assert_eq!(answer["error"]["message"], "the message is longer than 16 MiB");
    assert_eq!(texts(&client.call("probe", json!({ "do": "echo", "text": "a" }))), ["a"]);
}

#[test]
fn what_is_wrong_before_a_session_is_said_with_what_would_be_right() {
    let workspace = Workspace::new();
    let mut client = Client::start(&workspace, &[]);
    let mut check = |message: &str, parts: &[&str]| {
        client.write(message);
        let answer = client.wait(|message| message.get("error").is_some());
        let text = answer["error"]["message"].as_str().unwrap();
        assert!(parts.iter().all(|part| text.contains(part)), "{message}: {text}");
    };
    let no_session =
        ["belongs to no session", "`initialize`", "io.modelcontextprotocol/protocolVersion"];
    for method in ["tools/list", "tools/call", "tools/shuffle"] {
        let message =
            json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "name": "x" } });
        check(&message.to_string(), &[&[method], &no_session[..]].concat());
    }
    let initialize = |params: Value| {
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string()
    };
    let form = "{\"protocolVersion\": \"2025-11-25\"";
    check(&initialize(json!({ "protocolVersion": 7 })), &["integer `7`", form]);
    check(
        &initialize(json!({ "protocolVersion": "2025-11-25", "capabilities": {} })),
        &["missing field `clientInfo`", form],
    );
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    let message =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } });
    check(&message.to_string(), &["io.modelcontextprotocol/clientCapabilities"]);
    check("no json", &["line 1 column 2"]);
    // A session can begin all the same.
    client.after_handshake(json!({}));
}

#[test]
fn a_client_that_has_gone_is_still_answered_what_was_wrong() {
    let workspace = Workspace::new();
    let run = workspace.run_with(&["serve"], "no json\n{\"id\":1}\n", &[]);
    assert_eq!(run.code, 0, "{}", run.shown());
    assert_eq!(run.stdout.lines().count(), 2, "{}", run.shown());
}

#[test]
fn a_call_that_is_given_up_ends_and_others_go_on() {
    let workspace = Workspace::with_probe("");
    // However long this takes, no loop ends for want of time.
    workspace.own_config("[tools.probe.limits]\ntime = \"1h\"\n");
    let mut client = Client::with_handshake(&workspace, json!({}));
    // More loops than there are places for calls: only when they end do the
    // others come to run.
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
    // What was given up is not answered.
    let others = client.others();
    let is_of_a_loop =
        |message: &Value| message["id"].as_u64().is_some_and(|id| loops.contains(&id));
    assert!(!others.iter().any(is_of_a_loop), "{others:?}");
}

#[test]
fn a_closed_input_ends_the_process_whatever_runs() {
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
fn what_was_asked_before_the_input_is_closed_is_answered() {
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
fn what_comes_before_the_first_request_ends_no_session() {
    let workspace = Workspace::with_probe("");
    let mut client = Client::start(&workspace, &[]);
    client.notify("notifications/cancelled", json!({ "requestId": 7 }));
    client.write(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#);
    client.write("");
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    assert!(client.request("initialize", hello)["result"].is_object());
}

#[test]
fn a_client_that_says_nothing_is_no_error() {
    let workspace = Workspace::new();
    let run = workspace.run(&["serve"]);
    assert_eq!((run.code, &*run.stdout, &*run.stderr), (0, "", ""));
}

#[test]
fn a_wrong_option_is_told_before_the_first_message() {
    let workspace = Workspace::new();
    let run = workspace.run(&["serve", "--tools", "nothing"]);
    assert_eq!(run.code, 4);
    assert_eq!(run.stdout, "");
    assert!(run.stderr.contains("`nothing` matches no tool"), "{}", run.shown());
}

#[test]
fn an_endless_flood_of_calls_is_told_to_wait() {
    let workspace = Workspace::with_probe("");
    let mut client = Client::with_handshake(&workspace, json!({}));
    let spin = json!({ "name": "probe", "arguments": { "do": "spin" } });
    let ids: Vec<_> = (0..1_200).map(|_| client.send("tools/call", spin.clone())).collect();
    let busy = client.wait(|message| message["result"]["isError"] == true);
    let text = texts(&busy["result"]).join(" ");
    assert!(text.starts_with("busy: ") && text.ends_with("Trying again may help."), "{text}");
    for id in ids {
        client.notify("notifications/cancelled", json!({ "requestId": id }));
    }
    assert_eq!(texts(&client.call("probe", json!({ "do": "echo", "text": "x" }))), ["x"]);
}

#[test]
fn instructions_explain_why_file_tools_are_off_in_the_home_directory() {
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
    let expected = "Note: the tools for files are disabled: no tool reads `<home>`, which holds your \
                    home directory; `--workspace DIRECTORY` names another, and `[toolsets] files = \
                    true` in your own `<home>/.config/kitbag/config.toml` turns `files` on \
                    everywhere.\n";
    assert_eq!(instructions(&workspace.home()), expected);
    assert_eq!(instructions(&workspace.root()), "");
}
