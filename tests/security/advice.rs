//! Advice in errors depends on the cause and on its reader.

use kitbag_test_servers::{Behaviour, Server};
use serde_json::{Value, json};

use crate::support::crafted::describing_and_trapping;
use crate::support::mcp::Client;
use crate::support::{Workspace, guest};

const MISSING: &str = "requests a grant that it does not have";

fn text(result: &Value) -> String {
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
}

#[test]
fn a_missing_grant_is_named_only_if_it_was_refused() {
    let workspace = Workspace::with_toolsets(&["fetch"]);
    workspace.own_config("[tools.fetch]\nenable = true\n");
    let describes = json!({
        "name": "lab",
        "grants": {
            "filesystem": [{ "guest": "/data" }],
            "http": ["https://a.example/**"],
            "env": ["LANG"],
            "storage": true,
            "tools": { "search": "Searches." },
        },
    });
    let lab = describing_and_trapping(&describes.to_string());
    workspace.file(".kitbag/tools/lab.wasm", lab);
    let check = workspace.run(&["check"]).stderr;
    assert!(check.contains(MISSING), "{check}");
    let trapped = workspace.run(&["run", "lab"]);
    assert_eq!(trapped.code, 7, "{}", trapped.shown());
    assert!(!trapped.stderr.contains(MISSING), "{}", trapped.shown());
    let no_url = workspace.run(&["run", "fetch", "url=nothing"]);
    assert_eq!(no_url.code, 1, "{}", no_url.shown());
    assert!(!no_url.stderr.contains("grant"), "{}", no_url.shown());
    let refused = workspace.run(&["run", "fetch", "url=https://docs.rs/serde"]);
    assert_eq!(refused.code, 1, "{}", refused.shown());
    let line = format!("tool `fetch` {MISSING}; to give it, add `\"https://docs.rs/**\"` to");
    assert!(refused.stderr.contains(&line), "{}", refused.shown());
}

#[test]
fn an_inner_call_without_a_grant_is_a_refusal() {
    let workspace = Workspace::with_toolsets(&["calc"]);
    workspace
        .own_config(&format!("[tools.relay]\nsource = \"local\"\nwasm = {:?}\n", guest("relay")));
    let calls = |alias: &str| {
        let call = json!({ "tool": alias, "arguments": { "expression": "1" } });
        let arguments = json!({ "steps": [{ "call": call }] }).to_string();
        workspace.run(&["run", "relay", "--args", &arguments]).shown()
    };
    assert!(calls("calculate").contains("the tool has no grant to call other tools"));
    workspace.add_to_own_config("[tools.relay.grants]\ntools = { sum = \"calculate\" }\n");
    let other = calls("calculate");
    let line = "to allow it, add `calculate = \"calculate\"` to `tools.relay.grants.tools` of your";
    assert!(other.contains(line), "{other}");
    let mut client = Client::with_handshake(&workspace, json!({}));
    let call = json!({ "tool": "calculate", "arguments": { "expression": "1" } });
    let other = client.call("relay", json!({ "steps": [{ "call": call }] })).to_string();
    let line = "ask the user to add `calculate = ";
    assert!(other.contains(line) && !other.contains("your own"), "{other}");
}

#[test]
fn a_model_gets_the_request_and_the_log_has_the_details() {
    let workspace = Workspace::with_probe("");
    workspace.own_config("[tools.probe]\napprove = { when = { do = \"write\" } }\n");
    let mut client = Client::with_handshake(&workspace, json!({}));
    let unapproved =
        text(&client.call("probe", json!({ "do": "write", "path": "a", "text": "a" })));
    assert!(unapproved.ends_with("but no person can be asked; nothing was done"), "{unapproved}");
    client.logged("To allow it without a question, set `approve = \"never\"`");
    let over =
        text(&client.call("probe", json!({ "do": "allocate", "bytes": 1 << 30, "abort": true })));
    let line = "; ask the user to add `memory = \"128 MiB\"` to `tools.probe.limits` of their user config `";
    assert!(
        over.starts_with("limit: memory (64 MiB): give it less data, or a part of it")
            && over.contains(line),
        "{over}"
    );
}

#[test]
fn a_blocked_request_is_shown_if_the_tool_continues() {
    let server = Server::start(Behaviour::Echo);
    let workspace = Workspace::new();
    workspace.own_config(&format!(
        "[tools.request]\nsource = \"local\"\nwasm = {:?}\n\
         grants.http = [{{ url = \"{}/**\", methods = [\"POST\"] }}]\n",
        guest("request"),
        server.url()
    ));
    let token = format!("ghp_{}", "notARealToken01234567890123456789012");
    let arguments = json!({ "url": server.url(), "method": "POST", "body": token }).to_string();
    let run = workspace.run(&["run", "request", "--args", &arguments]);
    assert_eq!(run.code, 0, "{}", run.shown());
    let warning = format!("warning: a request was blocked: `POST {}/` is refused: ", server.url());
    assert!(run.stderr.starts_with(&warning), "{}", run.shown());
    assert!(run.stderr.contains("the body contains what looks like"), "{}", run.shown());
    assert!(!run.shown().contains(&token), "{}", run.shown());
    assert!(server.seen().requests.is_empty());
}

#[test]
fn a_granted_secret_that_does_not_exist_fails_the_call() {
    let workspace = Workspace::new();
    let config = |grants: &str| {
        workspace.own_config(&format!(
            "[tools.request]\nsource = \"local\"\nwasm = {:?}\n[tools.request.grants]\n{grants}\n",
            guest("request")
        ));
    };
    let arguments = json!({ "url": "https://a.example/" });
    let args = arguments.to_string();
    for (grants, to) in [
        ("secrets = { github = {} }\nhttp = [\"https://a.example/**\"]", "https://a.example/**"),
        ("env = [{ name = \"TOKEN\", secret = \"github\" }]", "https://HOST/**"),
        (
            "secrets = { github = {} }\nhttp = [\"https://a.example/it's\"]",
            r"https://a.example/it'\''s",
        ),
    ] {
        config(grants);
        let run = workspace.run(&["run", "request", "--args", &args]);
        let error = format!(
            "error: `request` is granted the secret `github`, which does not exist; set it with \
             `kitbag secret set github --to '{to}'`\n"
        );
        assert!(run.code == 6 && run.stderr.ends_with(&error), "{grants}: {}", run.shown());
        let mut client = Client::with_handshake(&workspace, json!({}));
        let said = text(&client.call("request", arguments.clone()));
        assert!(said.contains("; ask the user to run `kitbag secret set github --to "), "{said}");
    }
}
