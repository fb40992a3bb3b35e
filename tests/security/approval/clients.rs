//! Several clients of one server over HTTP: one tries to use approvals for another client.

use std::fs;

use serde_json::{Value, json};

use super::server::{REFUSED, Session, accept, forms, resumed, text};
use super::{content, probe, write};
use crate::support::Workspace;
use crate::support::http::HttpServer;
use crate::support::mcp::meta;

/// A workspace with two tools that share a component and need approval for each call.
fn workspace() -> Workspace {
    let workspace = Workspace::new();
    let probe = probe("approve = \"always\"\n");
    let other = probe.replace("[tools.probe]", "[tools.other]");
    workspace.own_config(&format!("{probe}{other}"));
    workspace
}

/// Sends a call of the stateless revision, over its own connection.
fn send(server: &HttpServer, tool: &str, mut params: Value) -> Value {
    params["name"] = tool.into();
    params["_meta"] = meta(forms());
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let headers = format!(
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
    );
    server.send("POST", "/mcp", &headers, &message.to_string()).message()
}

/// The state and the ID of the question about a call.
#[track_caller]
fn asked(answer: &Value) -> (Value, String) {
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    let requests = answer["result"]["inputRequests"].as_object().unwrap();
    let id = requests.keys().next().unwrap().clone();
    (answer["result"]["requestState"].clone(), id)
}

#[test]
fn a_state_is_valid_once_for_the_same_call() {
    let workspace = workspace();
    let server = HttpServer::start(&workspace, &["--no-token"]);
    let arguments = write("a.txt", "1");
    let (state, id) = asked(&send(&server, "probe", json!({ "arguments": arguments })));
    let yes = |arguments: &Value| resumed(arguments, &state, &id, accept("yes"));
    // Before its use: for another tool, and with other arguments.
    let answer = send(&server, "other", yes(&arguments));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let answer = send(&server, "probe", yes(&write("b.txt", "1")));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    // It is valid for the shown call.
    let answer = send(&server, "probe", yes(&arguments));
    assert_eq!(text(&answer), "write a.txt: 1 byte");
    // Afterwards it is invalid.
    fs::remove_file(workspace.path("a.txt")).unwrap();
    asked(&send(&server, "probe", yes(&arguments)));
    for (tool, arguments) in [("other", &arguments), ("probe", &write("b.txt", "1"))] {
        let answer = send(&server, tool, yes(arguments));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    assert_eq!((content(&workspace, "a.txt"), content(&workspace, "b.txt")), (None, None));
}

#[test]
fn a_foreign_state_makes_the_server_ask_again() {
    let workspace = workspace();
    let server = HttpServer::start(&workspace, &["--no-token"]);
    let arguments = write("a.txt", "1");
    let (state, id) = asked(&send(&server, "probe", json!({ "arguments": arguments })));
    let yes = |arguments: &Value| resumed(arguments, &state, &id, accept("yes"));
    let session = Session::begin(&server);
    let mut forms = 0;
    let mut params = yes(&arguments);
    params["name"] = "probe".into();
    let said = session.call_with(params, |form| {
        forms += 1;
        let no = json!({ "jsonrpc": "2.0", "id": form, "result": accept("no") });
        assert_eq!(session.send(&no), 202);
    });
    assert_eq!((forms, &*said), (1, REFUSED));
    // The attempt has used up the state, so that its owner is asked again.
    asked(&send(&server, "probe", yes(&arguments)));
    assert_eq!(content(&workspace, "a.txt"), None);
}

#[test]
fn one_of_several_concurrent_uses_of_a_state_succeeds() {
    let workspace = workspace();
    let server = HttpServer::start(&workspace, &["--no-token"]);
    let arguments = json!({ "do": "append", "path": "a.txt", "text": "x" });
    let (state, id) = asked(&send(&server, "probe", json!({ "arguments": arguments })));
    let answers: Vec<_> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..16)
            .map(|_| {
                let yes = resumed(&arguments, &state, &id, accept("yes"));
                scope.spawn(|| send(&server, "probe", yes))
            })
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    let served = answers.iter().filter(|answer| answer["result"]["resultType"] != "input_required");
    let served: Vec<_> = served.map(text).collect();
    assert_eq!(served, ["append a.txt: 1 byte"]);
    assert_eq!(content(&workspace, "a.txt").as_deref(), Some("x"));
}

#[test]
fn a_client_cannot_answer_the_form_of_another_client() {
    let workspace = workspace();
    let server = HttpServer::start(&workspace, &["--no-token"]);
    let (first, second) = (Session::begin(&server), Session::begin(&server));
    let params = json!({ "name": "probe", "arguments": write("a.txt", "1") });
    let said = first.call_with(params, |form| {
        // With the ID of the form in another session, and with similar IDs.
        for id in [form.clone(), json!(0), json!(1), json!(2), json!(form.to_string())] {
            for answer in ["yes", "always"] {
                second.send(&json!({ "jsonrpc": "2.0", "id": id, "result": accept(answer) }));
            }
        }
        // Without a session.
        let yes = json!({ "jsonrpc": "2.0", "id": form, "result": accept("yes") });
        let headers = "Content-Type: application/json\r\n\
                       Accept: application/json, text/event-stream\r\n\
                       MCP-Protocol-Version: 2025-11-25\r\n";
        let sent = server.send("POST", "/mcp", headers, &yes.to_string());
        assert!(sent.status >= 400, "{sent:?}");
        assert_eq!(content(&workspace, "a.txt"), None);
        let no = json!({ "jsonrpc": "2.0", "id": form, "result": accept("no") });
        assert_eq!(first.send(&no), 202);
    });
    assert_eq!(said, REFUSED);
    assert_eq!(content(&workspace, "a.txt"), None);
}
