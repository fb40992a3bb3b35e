//! Initialization, listings, calls, cancellation and the end of a session.

use serde_json::{Value, json};

use super::client::{initialize_params, texts};
use super::{both_eras, start};

#[test]
fn each_era_gets_its_protocol_version() {
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        // For versions that are unknown or have no handshake, the newest version with a handshake
        // is offered.
        ("1999-01-01", "2025-11-25"),
    ] {
        let answer = start().request("initialize", initialize_params(asked, json!({})));
        assert_eq!(answer["result"]["protocolVersion"], answered, "{answer}");
        assert_eq!(answer["result"]["serverInfo"]["name"], "kitbag", "{answer}");
    }
    let discovered = start().stateless(json!({})).request("server/discover", json!({}));
    let versions = discovered["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")), "{discovered}");
    assert!(discovered["result"]["capabilities"]["tools"].is_object(), "{discovered}");
}

#[test]
fn tools_are_listed_and_called_in_both_eras() {
    let mut lists = Vec::new();
    for mut client in both_eras(json!({})) {
        let list = client.request("tools/list", json!({}))["result"]["tools"].clone();
        assert_eq!(list[0]["name"], "probe", "{list}");
        assert_eq!(list[0]["description"], "Tries things.", "{list}");
        lists.push(list);
        let result = client.call(json!({ "do": "echo", "text": "hello\u{1b}[2J" }));
        assert_eq!(texts(&result), ["hello\u{1b}[2J"]);
        assert_eq!(result["isError"], false);
    }
    assert_eq!(lists[0], lists[1]);
}

#[test]
fn tool_errors_are_results_and_unknown_names_errors() {
    for mut client in both_eras(json!({})) {
        let failed = client.call(json!({ "do": "fail", "text": "full", "transient": true }));
        assert_eq!(texts(&failed), ["full", "Trying again may help."]);
        assert_eq!(failed["isError"], true);
        let failed = client.call(json!({ "do": "fail" }));
        assert_eq!(texts(&failed), ["it failed"]);
        let invalid = client.call(json!({ "do": "echo", "number": "many" }));
        assert_eq!(invalid["isError"], true, "{invalid}");
        assert!(texts(&invalid)[0].contains("/number"), "{invalid}");
        for (name, hint) in [("prob", "probe"), ("none", "none")] {
            let params = json!({ "name": name, "arguments": {} });
            let answer = client.request("tools/call", params);
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            assert!(answer["error"]["message"].as_str().unwrap().contains(hint), "{answer}");
        }
    }
}

#[test]
fn foreign_cursor_is_refused() {
    let mut client = start().after_handshake(json!({}));
    for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list"] {
        let answer = client.request(method, json!({ "cursor": "7" }));
        assert_eq!(answer["error"]["code"], -32602, "{method}: {answer}");
    }
}

#[test]
fn prompts_and_resources_need_components() {
    let mut client = start().after_handshake(json!({}));
    for (method, key) in [
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ] {
        assert_eq!(client.request(method, json!({}))["result"][key], json!([]), "{method}");
    }
    let answer = client.request("prompts/get", json!({ "name": "other" }));
    assert_eq!(answer["error"]["message"], "there is no prompt `other`");
    let answer = client.request("resources/read", json!({ "uri": "file:///a" }));
    assert_eq!(answer["error"]["data"]["uri"], "file:///a", "{answer}");
}

#[test]
fn session_methods_require_a_session() {
    let mut client = start().stateless(json!({}));
    for (method, params) in [
        ("logging/setLevel", json!({ "level": "error" })),
        ("resources/subscribe", json!({ "uri": "kb://a/b" })),
        ("tools/shuffle", json!({})),
    ] {
        let answer = client.request(method, params);
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
}

#[test]
fn sixty_four_calls_at_once_are_each_answered() {
    let mut client = start().after_handshake(json!({}));
    for round in 0..20 {
        let calls: Vec<_> = (0..64)
            .map(|number| {
                client.send_call(json!({ "do": "echo", "text": format!("{round}/{number}") }))
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
fn cancelled_calls_end_and_are_not_answered() {
    let mut client = start().after_handshake(json!({}));
    // More calls than run at once: waiting calls run only after others have ended.
    let waiting: Vec<_> = (0..100).map(|_| client.send_call(json!({ "do": "wait" }))).collect();
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    for id in &waiting {
        client.notify("notifications/cancelled", json!({ "requestId": id, "reason": "enough" }));
    }
    assert_eq!(texts(&client.call(json!({ "do": "echo", "text": "after" }))), ["after"]);
    let others = client.others();
    let is_answer =
        |message: &Value| message["id"].as_u64().is_some_and(|id| waiting.contains(&id));
    assert!(!others.iter().any(is_answer), "{others:?}");
}

#[test]
fn a_flood_of_calls_is_refused_as_busy() {
    let mut client = start().after_handshake(json!({}));
    let ids: Vec<_> = (0..1_400).map(|_| client.send_call(json!({ "do": "wait" }))).collect();
    let busy = client.wait(|message| message["result"]["isError"] == true);
    let text = texts(&busy["result"]).join(" ");
    assert!(text.starts_with("busy: ") && text.ends_with("Trying again may help."), "{text}");
    for id in ids {
        client.notify("notifications/cancelled", json!({ "requestId": id }));
    }
    assert_eq!(texts(&client.call(json!({ "do": "echo", "text": "x" }))), ["x"]);
}

#[test]
fn closed_input_ends_calls_without_an_answer() {
    for mut client in both_eras(json!({})) {
        let ids: Vec<_> = (0..20).map(|_| client.send_call(json!({ "do": "wait" }))).collect();
        client.request("ping", json!({}));
        let (ended, messages) = client.close();
        ended.unwrap();
        let is_answer =
            |message: &Value| message["id"].as_u64().is_some_and(|id| ids.contains(&id));
        assert!(!messages.iter().any(is_answer), "{messages:?}");
    }
}

#[test]
fn a_client_without_a_message_is_not_an_error() {
    let (ended, messages) = start().close();
    ended.unwrap();
    assert_eq!(messages, Vec::<Value>::new());
}
