//! A server starts untrusted, reports it, and applies trust when it is given.

use serde_json::{Value, json};

use super::greedy;
use crate::support::Workspace;
use crate::support::mcp::Client;

/// A session, and the server's answer to `initialize` with its log at the start.
fn session(workspace: &Workspace) -> (Client, Value) {
    let mut client = Client::start(workspace, &[]);
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
                        "clientInfo": { "name": "test", "version": "1" } });
    let answer = client.request("initialize", hello)["result"].clone();
    client.notify("notifications/initialized", json!({}));
    (client, answer)
}

fn names(client: &mut Client) -> Vec<String> {
    let listed = client.request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap().clone();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn offers_planted(client: &mut Client) -> bool {
    names(client).iter().any(|name| name == "planted")
}

/// Waits until a server has reported the trust of the workspace and changed its tools.
fn changed(client: &mut Client, expected: &str) {
    let logged = client.notification("notifications/message");
    assert!(logged["data"].as_str().unwrap().contains(expected), "{logged}");
    client.notification("notifications/tools/list_changed");
}

#[test]
fn a_server_starts_untrusted_takes_trust_up_and_loses_it() {
    let workspace = greedy();
    let (mut client, answer) = session(&workspace);
    let instructions = answer["instructions"].as_str().unwrap();
    assert!(instructions.contains("is not trusted; until you run"), "{instructions}");
    assert!(instructions.contains("`kitbag trust`"), "{instructions}");
    let logged = client.notification("notifications/message");
    assert_eq!(logged["level"], "warning", "{logged}");
    assert!(logged["data"].as_str().unwrap().contains("`kitbag trust`"), "{logged}");
    assert!(!offers_planted(&mut client));
    let params = json!({ "name": "planted", "arguments": { "do": "echo", "text": "here" } });
    let refused = client.request("tools/call", params);
    assert!(refused.to_string().contains("`kitbag trust`"), "{refused}");

    workspace.trust();
    changed(&mut client, "now takes effect");
    assert!(offers_planted(&mut client));
    let here = json!({ "do": "echo", "text": "here" });
    let result = client.call("planted", here.clone());
    assert_eq!(result["content"][0]["text"], "here", "{result}");

    // A comment and a lower limit change no tool.
    let before = names(&mut client);
    let edited = format!("# changed\n[limits]\ntime = \"9s\"\n{}", super::CONFIG);
    workspace.config(&edited);
    let wider = edited.replace("evil.example", "worse.example");
    workspace.config(&wider);
    changed(
        &mut client,
        "`greedy` is off because `.kitbag/config.toml` changed since you trusted it; run `kitbag \
         trust`",
    );
    let mut now = before.clone();
    now.retain(|name| name != "greedy");
    assert_eq!(names(&mut client), now);
    workspace.config(&edited);
    changed(&mut client, "now takes effect");
    assert_eq!(names(&mut client), before);
    workspace.run(&["trust", "--revoke"]).success();
    changed(&mut client, "is not trusted; until you run");
    assert!(!offers_planted(&mut client));
}

#[test]
fn two_servers_take_trust_up_at_once() {
    let workspace = greedy();
    let mut clients = [session(&workspace).0, session(&workspace).0];
    for client in &mut clients {
        client.notification("notifications/message");
        assert!(!offers_planted(client));
    }
    workspace.trust();
    for client in &mut clients {
        changed(client, "now takes effect");
        assert!(offers_planted(client));
    }
    // A server that starts now is trusted from the start, and does not mention trust.
    let (mut late, answer) = session(&workspace);
    assert!(!answer["instructions"].to_string().contains("kitbag trust"), "{answer}");
    assert!(offers_planted(&mut late));
    workspace.run(&["trust", "--revoke"]).success();
    for client in clients.iter_mut().chain([&mut late]) {
        changed(client, "is not trusted; until you run");
        assert!(!offers_planted(client));
    }
}

#[test]
fn instructions_tell_stateless_clients_about_trust() {
    let workspace = greedy();
    let mut client = Client::stateless(&workspace, json!({}));
    let answer = client.request("server/discover", json!({}));
    let instructions = answer["result"]["instructions"].as_str().unwrap();
    assert!(instructions.contains("`kitbag trust`"), "{instructions}");
}
