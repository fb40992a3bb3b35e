//! Servers that flood, hang, lie or die.

use std::time::{Duration, Instant};

use kitbag_policy::server::Era;
use serde_json::{Value, json};

use crate::fake::{Fixture, content, text, tool};

#[tokio::test]
async fn a_flood_of_notifications_ends_the_connection() {
    let fixture = Fixture::calls(async |mut peer, _| {
        let params = json!({ "level": "info", "data": "x" });
        let line = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params });
        let lines = format!("{line}\n").repeat(1000);
        for _ in 0..1000 {
            peer.write(&lines).await;
        }
        peer
    });
    let expected = "failed: the server `fake` ended during the call: it sent more than 20000 \
                    messages that no request caused";
    assert_eq!(fixture.say(json!({})).await, expected);
}

#[tokio::test]
async fn a_server_that_reads_nothing_does_not_grow() {
    let fixture = Fixture::calls(async |mut peer, _| {
        for id in 0..1_000_000 {
            peer.send(json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })).await;
        }
        peer
    });
    let said = fixture.say(json!({})).await;
    assert!(
        said.contains("left 1024 messages unread") || said.contains("more than 20000"),
        "{said}"
    );
}

#[tokio::test]
async fn a_long_line_ends_the_connection() {
    let fixture = Fixture::calls(async |mut peer, _| {
        let part = "a".repeat(1 << 20);
        for _ in 0..20 {
            peer.write(&part).await;
        }
        peer
    });
    let expected = "failed: the server `fake` ended during the call: it sent a message of more \
                    than 16 MiB";
    assert_eq!(fixture.say(json!({})).await, expected);
}

#[tokio::test]
async fn lines_that_are_not_messages_are_ignored() {
    let fixture = Fixture::calls(async |mut peer, call| {
        for line in ["Listening…", "{\"jsonrpc\":", "[]", "null", "{}", "\u{1b}[2J", "\0"] {
            peer.write(&format!("{line}\n")).await;
        }
        let wrong = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": 1 });
        peer.send(wrong).await;
        peer.answer(&call, content("hi")).await;
        peer
    });
    assert_eq!(fixture.say(json!({})).await, "hi");
}

#[tokio::test]
async fn forged_answers_are_ignored() {
    let fixture = Fixture::calls(async |mut peer, call| {
        let id = call["id"].as_i64().unwrap();
        for forged in [json!(id + 1), json!(-1), json!("x"), json!(i64::MAX), Value::Null] {
            peer.answer(&json!({ "id": forged }), content("forged")).await;
        }
        let params = json!({ "progressToken": 999, "progress": 1 });
        let method = "notifications/progress";
        peer.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
        peer.answer(&call, content("own")).await;
        peer.answer(&call, content("again")).await;
        peer
    });
    assert_eq!(fixture.say(json!({})).await, "own");
    assert_eq!(fixture.say(json!({})).await, "own");
    assert!(fixture.events.0.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_server_that_dies_fails_its_call() {
    let fixture = Fixture::new(Some(Era::Initialize), async |mut peer| {
        peer.initialize(&json!([tool("echo")])).await?;
        peer.wait_for("tools/call").await?;
        None
    });
    let expected = "failed: the server `fake` ended during the call: it closed the connection";
    assert_eq!(fixture.say(json!({})).await, expected);
}

#[tokio::test]
async fn a_silent_server_delays_no_other() {
    let silent = Fixture::calls(async |peer, _| {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        peer
    });
    let other = Fixture::calls(async |mut peer, call| {
        peer.answer(&call, content("hi")).await;
        peer
    });
    let mut call = silent.call(json!({}));
    let run = silent.run(&mut call, Value::Null);
    let said = async {
        let start = Instant::now();
        let said = other.say(json!({})).await;
        (said, start.elapsed() < Duration::from_secs(5))
    };
    tokio::select! {
        _ = run => panic!("it is silent"),
        said = said => assert_eq!(said, ("hi".into(), true)),
    }
}

#[tokio::test]
async fn endless_lists_are_refused() {
    let endless = Fixture::new(Some(Era::Initialize), async |mut peer| {
        peer.initialize(&json!([])).await;
        loop {
            let list = peer.wait_for("tools/list").await?;
            let result = json!({ "tools": [tool("echo")], "nextCursor": "more" });
            peer.answer(&list, result).await;
        }
    });
    // The first list is short.
    let said = endless.say(json!({})).await;
    assert!(said.contains("no longer has a tool `echo`"), "{said}");
    let check = async |page: Value, expected: &str| {
        let fixture = Fixture::new(Some(Era::Initialize), move |mut peer| {
            let page = page.clone();
            async move {
                loop {
                    let message = peer.receive().await?;
                    match message["method"].as_str() {
                        Some("initialize") => {
                            let result = json!({
                                "protocolVersion": "2025-06-18",
                                "capabilities": { "tools": {} },
                                "serverInfo": { "name": "fake", "version": "1" },
                            });
                            peer.answer(&message, result).await;
                        }
                        Some("tools/list") => peer.answer(&message, page.clone()).await,
                        _ => {}
                    }
                }
            }
        });
        let said = text(fixture.run(&mut fixture.call(json!({})), Value::Null).await);
        assert_eq!(said, format!("failed: the server `fake` did not start: it {expected}"));
    };
    let more = json!({ "tools": [tool("echo")], "nextCursor": "more" });
    check(more, "lists its tools on more than 50 pages").await;
    let tools: Vec<_> = (0..1001).map(|at| tool(&at.to_string())).collect();
    check(json!({ "tools": tools }), "lists more than 1000 tools").await;
    let mut large = tool("echo");
    large["description"] = "x".repeat(9 << 20).into();
    check(json!({ "tools": [large] }), "lists definitions of more than 8 MiB").await;
    let named = tool(&"n".repeat(257));
    check(json!({ "tools": [named] }), "has a tool whose name exceeds 256 bytes").await;
}

#[tokio::test]
async fn questions_without_one_call_are_refused() {
    let fixture = Fixture::calls(async |mut peer, first| {
        let second = peer.wait_for("tools/call").await.unwrap();
        let schema = json!({ "type": "object", "properties": {} });
        let params = json!({ "mode": "form", "message": "Who?", "requestedSchema": schema });
        let method = "elicitation/create";
        peer.send(json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })).await;
        let reply = peer.receive().await.unwrap();
        let said = content(reply["error"]["message"].as_str().unwrap_or("asked"));
        peer.answer(&first, said.clone()).await;
        peer.answer(&second, said).await;
        peer
    });
    let said = futures_util::future::join(fixture.say(json!({})), fixture.say(json!({}))).await;
    let expected = "no call, or more than one, could have caused the question";
    assert_eq!(said, (expected.into(), expected.into()));
}
