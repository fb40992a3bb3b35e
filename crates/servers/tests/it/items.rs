//! Prompts, resources and completions of well-behaved and hostile servers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kitbag_contract::{Content, ResourceBody};
use kitbag_policy::server::Era;
use kitbag_servers::{Completed, ServerChange, ServerError, ServerItems};
use serde_json::{Map, Value, json};

use crate::fake::{Fixture, Peer, definition, tool};

/// The result of a request besides those for tools. `None`: no answer.
type Answer = fn(&Value) -> Option<Value>;

/// Serves one connection of a server with prompts and resources.
async fn serve(mut peer: Peer, answer: Answer) -> Option<()> {
    loop {
        let message = peer.receive().await?;
        match message["method"].as_str() {
            Some("initialize") => {
                let result = json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": { "tools": {}, "prompts": {}, "resources": {}, "completions": {} },
                    "serverInfo": { "name": "fake", "version": "1" },
                });
                peer.answer(&message, result).await;
            }
            Some("tools/list") => {
                peer.answer(&message, json!({ "tools": [tool("echo")] })).await;
            }
            Some("notifications/cancelled") => {
                let method = "notifications/prompts/list_changed";
                peer.send(json!({ "jsonrpc": "2.0", "method": method })).await;
            }
            Some(_) => {
                if let Some(result) = answer(&message) {
                    peer.answer(&message, result).await;
                }
            }
            None => {}
        }
    }
}

fn fixture(answer: Answer) -> Fixture {
    Fixture::new(Some(Era::Initialize), move |peer| serve(peer, answer))
}

fn plain(message: &Value) -> Option<Value> {
    Some(match message["method"].as_str()? {
        "prompts/list" => {
            json!({ "prompts": [{ "name": "greet", "arguments": [{ "name": "who" }] }] })
        }
        "resources/list" => json!({ "resources": [{ "uri": "note:1", "name": "one" }] }),
        "resources/templates/list" => {
            json!({ "resourceTemplates": [{ "uriTemplate": "note:{id}", "name": "any" }] })
        }
        "resources/read" => {
            let uri = &message["params"]["uri"];
            json!({ "contents": [{ "uri": uri, "text": "read" }, { "uri": "?", "blob": "!" }] })
        }
        "prompts/get" => {
            let who = message["params"]["arguments"]["who"].as_str()?;
            let text = |text: &str| json!({ "type": "text", "text": text });
            json!({ "messages": [
                { "role": "user", "content": text(&format!("Greet {who}.")) },
                { "role": "assistant", "content": text("Hello!") },
            ] })
        }
        "completion/complete" => json!({ "completion": { "values": ["Ada"] } }),
        _ => return None,
    })
}

/// Starts the server, and waits until its items are known.
async fn items(fixture: &Fixture) -> Arc<ServerItems> {
    fixture.servers.check(&fixture.target, [&definition("echo")]).await.unwrap();
    let start = Instant::now();
    loop {
        let items = fixture.servers.items(&fixture.target);
        if *items != ServerItems::default() || start.elapsed() > Duration::from_secs(20) {
            return items;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn items_are_known_without_a_request() {
    let fixture = fixture(plain);
    assert_eq!(*fixture.servers.items(&fixture.target), ServerItems::default());
    assert_eq!(fixture.starts(), 0);
    let items = items(&fixture).await;
    assert_eq!(items.prompts[0].arguments[0].name, "who");
    assert_eq!(
        (&*items.resources[0].uri, &*items.templates[0].uri_template),
        ("note:1", "note:{id}")
    );
    fixture.servers.end(Duration::from_secs(5));
    assert_eq!(fixture.servers.running(), []);
    let refused = fixture.servers.read_resource(&fixture.target, "note:1").await.unwrap_err();
    assert_eq!(refused.to_string(), "the server `fake` did not start: kitbag ends");
}

#[tokio::test]
async fn resources_and_prompts_are_read() {
    let fixture = fixture(plain);
    let read = fixture.servers.read_resource(&fixture.target, "note:7").await.unwrap();
    let Content::Resource(resource) = &read.contents[0] else { panic!("{read:?}") };
    assert_eq!((&*resource.uri, &resource.body), ("note:7", &ResourceBody::Text("read".into())));
    assert_eq!(read.omitted, ["content that is not base64"]);
    let arguments = Map::from_iter([("who".to_owned(), json!("Ada"))]);
    let rendered = fixture.servers.get_prompt(&fixture.target, "greet", arguments).await.unwrap();
    let roles: Vec<_> = rendered.messages.iter().map(|message| message.is_assistant).collect();
    assert_eq!(roles, [false, true]);
}

#[tokio::test]
async fn completions_start_no_server() {
    let fixture = fixture(plain);
    let complete = async || {
        let subject = Completed::Prompt("greet".into());
        fixture.servers.complete(&fixture.target, subject, ("who", "A"), None).await.unwrap()
    };
    assert_eq!(complete().await, [""; 0]);
    assert_eq!(fixture.starts(), 0);
    items(&fixture).await;
    assert_eq!(complete().await, ["Ada"]);
}

#[tokio::test]
async fn items_of_a_silent_server_are_empty_at_once() {
    let fixture = fixture(|_| None);
    fixture.servers.check(&fixture.target, [&definition("echo")]).await.unwrap();
    let start = Instant::now();
    assert_eq!(*fixture.servers.items(&fixture.target), ServerItems::default());
    assert!(start.elapsed() < Duration::from_secs(1));
    // A request without a waiting caller is cancelled, and the server still answers.
    let read = fixture.servers.read_resource(&fixture.target, "note:1");
    let waited = tokio::time::timeout(Duration::from_millis(50), read).await;
    assert!(waited.is_err());
    assert_eq!(fixture.servers.check(&fixture.target, [&definition("echo")]).await, Ok(vec![]));
}

#[tokio::test]
async fn endless_and_large_items_are_cut() {
    let endless = fixture(|message| {
        let prompts: Vec<_> = (0..30).map(|at| json!({ "name": format!("p{at}") })).collect();
        match message["method"].as_str()? {
            "prompts/list" => Some(json!({ "prompts": prompts, "nextCursor": "more" })),
            "resources/list" => {
                let large = "x".repeat(17 << 10);
                let resource = |name: &str| json!({ "uri": "note:1", "name": name });
                Some(json!({ "resources": [resource(&large), resource("small")] }))
            }
            "resources/templates/list" => Some(json!({ "resourceTemplates": [] })),
            _ => None,
        }
    });
    let items = items(&endless).await;
    assert_eq!(items.prompts.len(), 1000);
    let names: Vec<_> = items.resources.iter().map(|resource| &*resource.name).collect();
    assert_eq!(names, ["small"]);
}

#[tokio::test]
async fn results_of_another_kind_are_refused() {
    let fixture = fixture(|message| match message["method"].as_str()? {
        "resources/read" => Some(json!({ "content": [] })),
        _ => None,
    });
    let refused = fixture.servers.read_resource(&fixture.target, "note:1").await.unwrap_err();
    assert!(matches!(refused, ServerError::Protocol { .. }), "{refused}");
}

#[tokio::test]
async fn changed_lists_are_reported_once() {
    static LISTED: AtomicUsize = AtomicUsize::new(0);
    let fixture = fixture(|message| match message["method"].as_str()? {
        "prompts/list" => {
            let at = LISTED.fetch_add(1, Ordering::SeqCst);
            Some(json!({ "prompts": [{ "name": format!("p{at}") }] }))
        }
        "resources/list" => Some(json!({ "resources": [] })),
        "resources/templates/list" => Some(json!({ "resourceTemplates": [] })),
        _ => None,
    });
    let changes = Arc::<Mutex<Vec<_>>>::default();
    let heard = Arc::clone(&changes);
    fixture.servers.on_change(move |list| heard.lock().unwrap().push(list));
    assert_eq!(items(&fixture).await.prompts[0].name, "p0");
    assert_eq!(*changes.lock().unwrap(), [ServerChange::Prompts]);
    // The cancellation makes the server report a changed list.
    for _ in 0..3 {
        let read = fixture.servers.read_resource(&fixture.target, "note:1");
        let _ = tokio::time::timeout(Duration::from_millis(10), read).await;
    }
    let start = Instant::now();
    while changes.lock().unwrap().len() < 2 && start.elapsed() < Duration::from_secs(20) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(fixture.servers.items(&fixture.target).prompts[0].name, "p1");
    assert_eq!(*changes.lock().unwrap(), [ServerChange::Prompts, ServerChange::Prompts]);
}

#[tokio::test]
async fn a_stateless_server_is_asked_to_report_changes() {
    let fixture = Fixture::new(Some(Era::Stateless), async |mut peer| {
        let (mut listed, complete) =
            (0, json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private" }));
        let with = |result: Value| {
            let mut all = complete.clone();
            all.as_object_mut().unwrap().extend(result.as_object().unwrap().clone());
            all
        };
        loop {
            let message = peer.receive().await?;
            match message["method"].as_str() {
                Some("server/discover") => {
                    let result = json!({
                        "supportedVersions": ["2026-07-28"],
                        "capabilities": { "tools": {}, "prompts": { "listChanged": true } },
                        "serverInfo": { "name": "fake", "version": "1" },
                    });
                    peer.answer(&message, with(result)).await;
                }
                Some("tools/list") => {
                    peer.answer(&message, with(json!({ "tools": [tool("echo")] }))).await;
                }
                Some("prompts/list") => {
                    let prompts = json!({ "prompts": [{ "name": format!("p{listed}") }] });
                    listed += 1;
                    peer.answer(&message, with(prompts)).await;
                }
                Some("subscriptions/listen") => {
                    let meta = json!({ "io.modelcontextprotocol/subscriptionId": message["id"] });
                    let accepted = &message["params"]["notifications"];
                    assert_eq!(*accepted, json!({ "promptsListChanged": true }));
                    for (method, params) in [
                        (
                            "subscriptions/acknowledged",
                            json!({ "_meta": meta, "notifications": accepted }),
                        ),
                        ("prompts/list_changed", json!({ "_meta": meta })),
                    ] {
                        let method = format!("notifications/{method}");
                        peer.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
                            .await;
                    }
                }
                _ => {}
            }
        }
    });
    items(&fixture).await;
    let start = Instant::now();
    let name = || fixture.servers.items(&fixture.target).prompts[0].name.clone();
    while name() != "p1" && start.elapsed() < Duration::from_secs(20) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(name(), "p1");
}

/// Serves one connection of a server of the older era with subscriptions to resources: it refuses
/// `note:no`, and reports a change of the resource after each subscription, and of a second resource.
async fn serve_subscriptions(mut peer: Peer, seen: Seen) -> Option<()> {
    loop {
        let message = peer.receive().await?;
        let uri = &message["params"]["uri"];
        match message["method"].as_str() {
            Some("initialize") => {
                let result = json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": { "tools": {}, "resources": { "subscribe": true } },
                    "serverInfo": { "name": "fake", "version": "1" },
                });
                peer.answer(&message, result).await;
            }
            Some("tools/list") => {
                peer.answer(&message, json!({ "tools": [tool("echo")] })).await;
            }
            Some("resources/subscribe") if *uri == "note:no" => {
                peer.refuse(&message, -32602, "no such note").await;
            }
            Some(method @ ("resources/subscribe" | "resources/unsubscribe")) => {
                seen.lock().unwrap().push(format!("{method} {}", uri.as_str()?));
                peer.answer(&message, json!({})).await;
                for uri in [uri, &json!("note:other")] {
                    let method = "notifications/resources/updated";
                    let params = json!({ "uri": uri });
                    peer.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
                        .await;
                }
            }
            _ => {}
        }
    }
}

type Seen = Arc<Mutex<Vec<String>>>;

/// Waits until a list has this many entries.
async fn wait_for<T: Clone>(list: &Mutex<Vec<T>>, number: usize) -> Vec<T> {
    let start = Instant::now();
    while list.lock().unwrap().len() < number && start.elapsed() < Duration::from_secs(20) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    list.lock().unwrap().clone()
}

#[tokio::test]
async fn changes_of_subscribed_resources_are_reported() {
    let seen = Seen::default();
    let own = Arc::clone(&seen);
    let fixture = Fixture::new(Some(Era::Initialize), move |peer| {
        serve_subscriptions(peer, Arc::clone(&own))
    });
    let changes = Arc::<Mutex<Vec<_>>>::default();
    let heard = Arc::clone(&changes);
    fixture.servers.on_change(move |change| heard.lock().unwrap().push(change));
    let subscribe = async |uri: &str| fixture.servers.subscribe(&fixture.target, uri).await;
    let first = subscribe("note:1").await.unwrap();
    let second = subscribe("note:1").await.unwrap();
    let change = ServerChange::Resource { server: "fake".parse().unwrap(), uri: "note:1".into() };
    assert_eq!(wait_for(&changes, 1).await, [change]);
    let Err(refused) = subscribe("note:no").await else { panic!("subscribed") };
    assert_eq!(refused.to_string(), "no such note");
    drop(first);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(*seen.lock().unwrap(), ["resources/subscribe note:1"]);
    drop(second);
    let expected = ["resources/subscribe note:1", "resources/unsubscribe note:1"];
    assert_eq!(wait_for(&seen, 2).await, expected);
    // No caller subscribes to these any more.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(changes.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_subscription_keeps_its_server_running() {
    let seen = Seen::default();
    let own = Arc::clone(&seen);
    let mut fixture = Fixture::new(Some(Era::Initialize), move |peer| {
        serve_subscriptions(peer, Arc::clone(&own))
    });
    fixture.target.idle = Duration::from_millis(20);
    let held = fixture.servers.subscribe(&fixture.target, "note:1").await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(fixture.starts(), 1);
    assert_eq!(fixture.servers.running().len(), 1);
    drop(held);
    let start = Instant::now();
    while !fixture.servers.running().is_empty() && start.elapsed() < Duration::from_secs(20) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(fixture.servers.running(), []);
}

#[tokio::test]
async fn servers_without_subscriptions_refuse_them() {
    let fixture = fixture(plain);
    let Err(refused) = fixture.servers.subscribe(&fixture.target, "note:1").await else {
        panic!("subscribed");
    };
    let expected = "the server `fake` offers no subscriptions to resources";
    assert_eq!(refused.to_string(), expected);
}

/// Answers a request of the newer era.
fn stateless_answer(message: &Value, capabilities: Value) -> Option<Value> {
    let complete = json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private" });
    let own = match message["method"].as_str()? {
        "server/discover" => json!({
            "supportedVersions": ["2026-07-28"],
            "capabilities": capabilities,
            "serverInfo": { "name": "fake", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [tool("echo")] }),
        "resources/list" => json!({ "resources": [] }),
        "resources/templates/list" => json!({ "resourceTemplates": [] }),
        _ => return None,
    };
    let mut all = complete;
    all.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    Some(all)
}

#[tokio::test]
async fn stateless_servers_report_subscribed_resources() {
    let fixture = Fixture::new(Some(Era::Stateless), async |mut peer| {
        loop {
            let message = peer.receive().await?;
            if let Some(result) =
                stateless_answer(&message, json!({ "tools": {}, "resources": {} }))
            {
                peer.answer(&message, result).await;
            }
            if message["method"] != "subscriptions/listen" {
                continue;
            }
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": message["id"] });
            let asked = &message["params"]["notifications"]["resourceSubscriptions"];
            let accepted: Vec<_> =
                asked.as_array()?.iter().filter(|uri| **uri != "note:no").cloned().collect();
            let filter = json!({ "resourceSubscriptions": accepted });
            let acknowledged = json!({ "_meta": meta, "notifications": filter });
            let mut messages = vec![("subscriptions/acknowledged", acknowledged)];
            for uri in &accepted {
                messages.push(("resources/updated", json!({ "_meta": meta, "uri": uri })));
            }
            for (method, params) in messages {
                let method = format!("notifications/{method}");
                peer.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
            }
        }
    });
    let changes = Arc::<Mutex<Vec<_>>>::default();
    let heard = Arc::clone(&changes);
    fixture.servers.on_change(move |change| heard.lock().unwrap().push(change));
    let _first = fixture.servers.subscribe(&fixture.target, "note:1").await.unwrap();
    let change =
        |uri: &str| ServerChange::Resource { server: "fake".parse().unwrap(), uri: uri.into() };
    assert_eq!(wait_for(&changes, 1).await, [change("note:1")]);
    let _second = fixture.servers.subscribe(&fixture.target, "note:2").await.unwrap();
    // The stream was opened again for both.
    let all = [change("note:1"), change("note:1"), change("note:2")];
    assert_eq!(wait_for(&changes, 3).await, all);
    let Err(refused) = fixture.servers.subscribe(&fixture.target, "note:no").await else {
        panic!("subscribed");
    };
    assert_eq!(refused.to_string(), "the server `fake` does not accept the subscription");
}
