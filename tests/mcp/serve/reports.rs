//! Reports and content of a tool besides its text.

use kitbag::base::json::{self, JsonBudget};
use serde_json::{Value, json};

use super::texts;
use crate::support::mcp::Client;
use crate::support::{Workspace, guest, probe, snapshot};

#[test]
fn all_content_of_a_tool_becomes_content_blocks() {
    let workspace = Workspace::with_probe("");
    let old = Client::with_handshake(&workspace, json!({}));
    let new = Client::stateless(&workspace, json!({}));
    for (mut client, name) in [(old, "handshake"), (new, "stateless")] {
        let result = client.call("probe", json!({ "do": "emit", "kind": "all", "title": "A" }));
        snapshot!(&format!("content-{name}"), &format!("{result:#}\n"));
    }
}

#[test]
fn progress_rises_and_is_sent_to_its_requester() {
    let workspace = Workspace::with_probe("");
    let old = Client::with_handshake(&workspace, json!({}));
    let new = Client::stateless(&workspace, json!({}));
    for mut client in [old, new] {
        let steps = json!({ "do": "progress", "steps": ["1", "NaN", "3", "2", "3.5"], "total": 4 });
        let call = json!({ "name": "probe", "arguments": steps });
        let quiet = client.request("tools/call", call.clone());
        assert_eq!(texts(&quiet["result"]), ["progress: 5 steps"]);
        assert_eq!(client.others(), Vec::<Value>::new());
        let mut asking = call;
        asking["_meta"] = json!({ "progressToken": "mine" });
        client.request("tools/call", asking);
        let messages = client.others();
        assert!(messages.iter().all(|m| m["method"] == "notifications/progress"), "{messages:?}");
        assert!(messages.iter().all(|m| m["params"]["progressToken"] == "mine"), "{messages:?}");
        let done: Vec<_> =
            messages.iter().map(|m| m["params"]["progress"].as_f64().unwrap()).collect();
        assert_eq!(done, [1.0, 3.0, 3.5], "{messages:?}");
    }
}

#[test]
fn compile_progress_precedes_the_progress_of_the_tool() {
    let workspace = Workspace::with_own_cache();
    workspace.config(&probe(""));
    workspace.run(&["run", "probe", "do=echo", "text=x"]).success();
    let claim = workspace.claim();
    let mut client = Client::with_handshake(&workspace, json!({}));
    let mut call = |token: &str| {
        let params = json!({
            "name": "probe",
            "arguments": { "do": "progress", "steps": ["0", "0.5", "2"] },
            "_meta": { "progressToken": token },
        });
        client.send("tools/call", params)
    };
    // The second call waits for the first.
    let ids = ["one", "two"].map(&mut call);
    let size = std::fs::metadata(guest("probe")).unwrap().len().div_ceil(1024);
    let line = format!("compiling kitbag_probe.wasm ({size} KiB)");
    for expected in [line.clone(), format!("{line} 1 s")] {
        for token in ["one", "two"] {
            let messages = client.wait(|message| message["params"]["progressToken"] == token);
            assert_eq!(messages["method"], "notifications/progress");
            assert_eq!(messages["params"]["message"], *expected, "{messages}");
            assert!(messages["params"].get("total").is_none(), "{messages}");
        }
    }
    drop(claim);
    for id in ids {
        assert_eq!(texts(&client.answer(id)["result"]), ["progress: 3 steps"]);
    }
    let messages = client.others();
    for token in ["one", "two"] {
        let mine = messages.iter().filter(|message| message["params"]["progressToken"] == token);
        let done: Vec<_> = mine.map(|m| m["params"]["progress"].as_f64().unwrap()).collect();
        // Two reports preceded it.
        assert!(done[0] > 0.0 && done.is_sorted_by(|one, next| one < next), "{messages:?}");
        assert_eq!(done.last(), Some(&2.0), "{messages:?}");
    }
}

#[test]
fn a_flood_of_reports_is_bounded_and_ends_no_session() {
    let workspace = Workspace::with_probe("");
    let mut client = Client::with_handshake(&workspace, json!({}));
    let flood = json!({ "do": "log", "bytes": 1000, "repeat": 100_000 });
    client.call("probe", flood);
    let messages = client.others();
    assert!(messages.len() <= 1_001, "{}", messages.len());
    let bytes: usize = messages.iter().map(|message| message.to_string().len()).sum();
    assert!(bytes < 1 << 20, "{bytes}");
    let flood = json!({
        "name": "probe",
        "arguments": { "do": "progress", "steps": ["0"], "more": 1_000_000 },
        "_meta": { "progressToken": 1 },
    });
    client.request("tools/call", flood);
    assert_eq!(texts(&client.call("probe", json!({ "do": "echo", "text": "x" }))), ["x"]);
}

#[test]
fn a_tool_trap_is_not_logged_as_a_warning() {
    for (level, is_logged) in [("warn", false), ("info", true)] {
        let workspace = Workspace::with_probe("");
        let mut client = Client::start(&workspace, &["--log", level]);
        let begin = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        client.request("initialize", begin);
        let answer = client.call("probe", json!({ "do": "panic", "message": "of the call" }));
        assert!(texts(&answer)[0].contains("of the call"), "{answer}");
        let (_, stderr) = client.close();
        assert!(stderr.contains("broke off"), "{stderr}");
        assert_eq!(stderr.contains("of the call"), is_logged, "{stderr}");
    }
}

#[test]
fn each_log_line_is_an_object_with_unique_keys() {
    let workspace = Workspace::with_probe("");
    let mut client = Client::start(&workspace, &["--log", "debug", "--log-format", "json"]);
    client.request(
        "initialize",
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        }),
    );
    for action in ["echo", "fail", "trap"] {
        client.request(
            "tools/call",
            json!({ "name": "probe", "arguments": { "do": action, "text": "x" } }),
        );
    }
    let (_, stderr) = client.close();
    let lines: Vec<_> = stderr
        .lines()
        // The strict parser refuses duplicate keys.
        .map(|line| {
            json::parse(line.as_bytes(), JsonBudget::OUTPUT)
                .unwrap_or_else(|e| panic!("{e}: {line}"))
        })
        .collect();
    let error = lines.iter().find(|line| line["fields"]["message"] == "error");
    let error = error.unwrap_or_else(|| panic!("{stderr}"));
    assert_eq!(error["level"], "INFO", "{error}");
    assert_eq!(error["fields"]["tool"], "probe", "{error}");
    assert!(error["fields"]["error"].is_string(), "{error}");
}
