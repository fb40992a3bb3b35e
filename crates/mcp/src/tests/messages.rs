//! Unreadable messages, and limits on messages.

use kitbag_base::ByteSize;
use kitbag_host::{HostOptions, ServerMemory};
use serde_json::{Value, json};

use super::client::{Client, initialize_params, texts};
use super::{server, start};

#[test]
fn an_unreadable_message_is_answered_and_the_session_continues() {
    let mut client = start().after_handshake(json!({}));
    let code = |answer: Value| answer["error"]["code"].clone();
    client.write("no json");
    assert_eq!(code(client.error()), -32700);
    client.write(r#"{"jsonrpc":"2.0","id":"twice","method":"tools/list","method":"ping"}"#);
    assert_eq!(code(client.wait(|message| message["id"] == "twice")), -32600);
    client.write(r#"{"jsonrpc":"2.0","id":"none","method":"tools/shuffle"}"#);
    assert_eq!(code(client.wait(|message| message["id"] == "none")), -32601);
    client.write(r#"{"jsonrpc":"2.0","id":"odd","method":"resources/read","params":{}}"#);
    assert_eq!(code(client.wait(|message| message["id"] == "odd")), -32602);
    // The id comes after 17 MiB of arguments.
    let arguments = json!({ "do": "echo", "text": "x".repeat(17 << 20) });
    client.write(&format!(
        r#"{{"jsonrpc":"2.0","method":"tools/call","params":{{"name":"probe","arguments":{arguments}}},"id":"long"}}"#
    ));
    let answer = client.wait(|message| message["id"] == "long");
    assert_eq!(answer["error"]["message"], "the message is longer than 16 MiB");
    assert_eq!(texts(&client.call(json!({ "do": "echo", "text": "a" }))), ["a"]);
}

#[test]
fn requests_before_a_session_are_answered_with_the_right_form() {
    let mut client = start();
    let mut check = |message: &str, parts: &[&str]| {
        client.write(message);
        let answer = client.error();
        let text = answer["error"]["message"].as_str().unwrap();
        assert!(parts.iter().all(|part| text.contains(part)), "{message}: {text}");
    };
    let request = |method: &str, params: Value| {
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
    };
    let no_session = ["needs a session", "`initialize`", "io.modelcontextprotocol/protocolVersion"];
    for method in ["tools/list", "tools/call", "tools/shuffle"] {
        check(&request(method, json!({ "name": "x" })), &[&[method], &no_session[..]].concat());
    }
    let form = "{\"protocolVersion\": \"2025-11-25\"";
    check(&request("initialize", json!({ "protocolVersion": 7 })), &["integer `7`", form]);
    check(
        &request("initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": {} })),
        &["missing field `clientInfo`", form],
    );
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    check(
        &request("tools/list", json!({ "_meta": meta })),
        &["io.modelcontextprotocol/clientCapabilities"],
    );
    check("no json", &["line 1 column 2"]);
    // A session can still be started.
    client.after_handshake(json!({}));
}

#[test]
fn messages_before_the_first_request_are_ignored() {
    let mut client = start();
    client.notify("notifications/cancelled", json!({ "requestId": 7 }));
    client.write(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#);
    client.write("");
    let answer = client.request("initialize", initialize_params("2025-11-25", json!({})));
    assert!(answer["result"].is_object(), "{answer}");
}

#[test]
fn ambiguous_ids_are_answered_without_an_id() {
    let mut client = start().after_handshake(json!({}));
    let ping = |id: u64| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    for line in
        [ping(3) + &ping(4), r#"{"jsonrpc":"2.0","id":5,"id":6,"method":"ping"}"#.to_owned()]
    {
        client.write(&line);
        let answer = client.error();
        assert!(answer.get("id").is_none_or(Value::is_null), "{answer}");
    }
}

#[test]
fn a_second_request_with_an_id_in_flight_is_refused() {
    let mut client = start().after_handshake(json!({}));
    let id = client.send_call(json!({ "do": "wait" }));
    client.write(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string());
    let refused = client.error();
    assert!(refused.get("id").is_none_or(Value::is_null), "{refused}");
    let expected = format!("a request with the id `{id}` is still in flight; use another id");
    assert_eq!(refused["error"]["message"], expected);
}

#[test]
fn requests_in_flight_are_limited() {
    let mut client = start().after_handshake(json!({}));
    // The queue refuses most of them as busy; subscriptions wait.
    let listen = json!({
        "notifications": { "toolsListChanged": true },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    });
    let ids: Vec<_> =
        (0..4_097).map(|_| client.send("subscriptions/listen", listen.clone())).collect();
    let refused = client.wait(|message| message["error"]["code"] == -32000);
    assert_eq!(
        refused["error"]["message"],
        "busy: 4096 requests are in flight (limit reached); try again in 1s"
    );
    for id in ids {
        client.notify("notifications/cancelled", json!({ "requestId": id }));
    }
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn a_message_larger_than_the_memory_for_all_is_refused() {
    let memory = ServerMemory::new(ByteSize::mib(384));
    let options = HostOptions { memory, ..HostOptions::default() };
    let mut client = Client::start(server(options)).after_handshake(json!({}));
    // The parsed message takes a hundred times as much memory as its text.
    let id = client.send_call(json!({ "do": "echo", "more": vec![json!([0]); 1_000_000] }));
    let answer = client.answer(id);
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("and the server has 72 MiB for all messages"), "{message}");
    assert_eq!(texts(&client.call(json!({ "do": "echo", "text": "a" }))), ["a"]);
}
