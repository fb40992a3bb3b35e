//! Calls of well-behaved servers of both eras.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kitbag_policy::server::Era;
use kitbag_servers::Round;
use serde_json::{Value, json};

use crate::fake::{Fixture, content, text, tool};

#[tokio::test]
async fn one_connection_serves_all_calls() {
    let fixture = Fixture::calls(async |mut peer, call| {
        let said = call["params"]["arguments"]["say"].as_str().unwrap();
        peer.answer(&call, content(said)).await;
        peer
    });
    assert_eq!(fixture.starts(), 0);
    for said in ["a", "b", "c"] {
        assert_eq!(fixture.say(json!({ "say": said })).await, said);
    }
    assert_eq!(fixture.starts(), 1);
    let listing = fixture.servers.list(&fixture.target).await.unwrap();
    assert_eq!(listing.version, "2025-11-25");
    assert_eq!(listing.tools, [crate::fake::definition("echo")]);
}

#[tokio::test]
async fn progress_and_logs_arrive_before_the_answer() {
    let fixture = Fixture::calls(async |mut peer, call| {
        let token = &call["params"]["_meta"]["progressToken"];
        for done in 1..=3 {
            let params = json!({ "progressToken": token, "progress": done, "message": "on it" });
            let method = "notifications/progress";
            peer.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
        }
        let params = json!({ "level": "warning", "data": "careful" });
        peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params }))
            .await;
        peer.answer(&call, content("done")).await;
        peer
    });
    assert_eq!(fixture.say(json!({})).await, "done");
    let events = fixture.events.0.lock().unwrap().clone();
    assert_eq!(events, ["1 on it", "2 on it", "3 on it", "warning: careful"]);
}

#[tokio::test]
async fn a_dropped_call_is_cancelled() {
    let cancelled = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&cancelled);
    let fixture = Fixture::calls(move |mut peer, call| {
        let seen = Arc::clone(&seen);
        async move {
            let notified = peer.wait_for("notifications/cancelled").await;
            let is_own = notified.is_some_and(|it| it["params"]["requestId"] == call["id"]);
            seen.store(is_own, Ordering::SeqCst);
            // The late answer is ignored.
            peer.answer(&call, content("late")).await;
            peer
        }
    });
    let mut call = fixture.call(json!({}));
    let run = fixture.run(&mut call, Value::Null);
    assert!(tokio::time::timeout(Duration::from_millis(200), run).await.is_err());
    drop(call);
    for _ in 0..100 {
        if cancelled.load(Ordering::SeqCst) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(cancelled.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_server_of_the_older_era_asks_within_the_call() {
    let fixture = Fixture::calls(async |mut peer, call| {
        let schema = json!({
            "type": "object",
            "properties": { "name": { "type": "string" } },
            "required": ["name"],
        });
        let params = json!({ "mode": "form", "message": "Who?", "requestedSchema": schema });
        let method = "elicitation/create";
        peer.send(json!({ "jsonrpc": "2.0", "id": 77, "method": method, "params": params })).await;
        let reply = peer.receive().await.unwrap();
        peer.answer(&call, content(&reply["result"].to_string())).await;
        peer
    });
    let mut call = fixture.call(json!({}));
    let Ok(Round::Asks(question)) = fixture.run(&mut call, Value::Null).await else { panic!() };
    assert_eq!((question.id.as_str(), question.text.as_str()), ("input-1", "Who?"));
    // Without an answer, the question stays open.
    assert_eq!(text(fixture.run(&mut call, Value::Null).await), "asks input-1");
    let answered = fixture.run(&mut call, json!({ "input-1": { "name": "Ada" } })).await;
    assert_eq!(text(answered), r#"{"action":"accept","content":{"name":"Ada"}}"#);
}

#[tokio::test]
async fn a_stateless_server_is_called_again_with_answers() {
    let fixture = Fixture::new(None, async |mut peer| {
        peer.discover(&json!([tool("echo")])).await?;
        loop {
            let call = peer.wait_for("tools/call").await?;
            assert_eq!(
                call["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
                "2026-07-28"
            );
            let responses = &call["params"]["inputResponses"];
            if responses.is_null() {
                let schema = json!({
                    "type": "object",
                    "properties": { "ok": { "type": "boolean" } },
                });
                let params = json!({ "mode": "form", "message": "Go?", "requestedSchema": schema });
                let request = json!({ "method": "elicitation/create", "params": params });
                let result = json!({
                    "resultType": "input_required",
                    "inputRequests": { "go": request },
                    "requestState": "sealed",
                });
                peer.answer(&call, result).await;
                continue;
            }
            let said = format!("{} {responses}", call["params"]["requestState"]);
            let mut result = content(&said);
            result["resultType"] = "complete".into();
            peer.answer(&call, result).await;
        }
    });
    let mut call = fixture.call(json!({}));
    assert_eq!(text(fixture.run(&mut call, Value::Null).await), "asks go");
    let answered = fixture.run(&mut call, json!({ "go": { "ok": true } })).await;
    let expected = r#""sealed" {"go":{"action":"accept","content":{"ok":true}}}"#;
    assert_eq!(text(answered), expected);
    assert_eq!(fixture.servers.list(&fixture.target).await.unwrap().era, Era::Stateless);
}

#[tokio::test]
async fn sampling_is_refused_by_name() {
    let fixture = Fixture::calls(async |mut peer, call| {
        let params = json!({ "messages": [], "maxTokens": 1 });
        let method = "sampling/createMessage";
        peer.send(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).await;
        let reply = peer.receive().await.unwrap();
        peer.answer(&call, content(reply["error"]["message"].as_str().unwrap())).await;
        peer
    });
    let expected = "`sampling/createMessage` is refused: kitbag has no model";
    assert_eq!(fixture.say(json!({})).await, expected);
    assert_eq!(*fixture.events.0.lock().unwrap(), [format!("notice: {expected}")]);
}

#[tokio::test]
async fn errors_of_the_protocol_are_errors_of_the_call() {
    let fixture = Fixture::calls(async |mut peer, call| {
        peer.refuse(&call, -32602, "no such path").await;
        peer
    });
    assert_eq!(fixture.say(json!({})).await, "failed: no such path");
}

#[tokio::test]
async fn a_remembered_era_that_is_wrong_is_corrected() {
    let fixture = Fixture::new(Some(Era::Stateless), async |mut peer| {
        peer.initialize(&json!([tool("echo")])).await?;
        let call = peer.wait_for("tools/call").await?;
        peer.answer(&call, content("hi")).await;
        peer.receive().await.map(drop)
    });
    assert_eq!(fixture.say(json!({})).await, "hi");
    assert_eq!(fixture.starts(), 2);
}
