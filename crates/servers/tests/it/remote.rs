//! Remote servers, over HTTP on loopback.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kitbag_http::{Client, ClientOptions, Nameservers};
use kitbag_policy::server::{Era, RemoteServer, ServerAddress, ServerName};
use kitbag_policy::{Placement, SecretGrant, SecretName, SecretPlace};
use kitbag_secrets::{CallEnd, ReadError, ReadSecret, SecretValue, Secrets};
use kitbag_servers::{
    CallEvents, ServerCall, ServerTarget, Servers, ServersOptions, TargetSecrets,
};
use kitbag_test_servers::Dns;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::fake::{Events, content, definition, text, tool};

const TOKEN: &str = "remote-token-0123456789";

struct Token;

impl ReadSecret for Token {
    fn read(&self, _: &SecretName, _: &CallEnd) -> Result<SecretValue, ReadError> {
        Ok(SecretValue::new(TOKEN.into()).unwrap())
    }
}

/// Reads one request: its head and its message. `None`: the connection ended.
async fn request(read: &mut (impl AsyncBufRead + Unpin)) -> Option<(String, Value)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if read.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    read.read_exact(&mut body).await.ok()?;
    Some((head, serde_json::from_slice(&body).unwrap_or_default()))
}

/// Answers one request of the older era. A call is answered by a stream of events.
async fn answer(mut stream: TcpStream, seen: Arc<Mutex<Vec<String>>>) -> Option<()> {
    let (read, mut write) = stream.split();
    let mut read = BufReader::new(read);
    loop {
        let (head, message) = request(&mut read).await?;
        let has_token = head.contains(&format!("Bearer {TOKEN}"));
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        seen.lock().unwrap().push(format!("{method} {has_token}"));
        let respond = |status: &str, kind: &str, body: &str| {
            format!(
                "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nMcp-Session-Id: s1\r\nContent-Length: \
                 {}\r\n\r\n{body}",
                body.len()
            )
        };
        let result = |result: Value| {
            json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string()
        };
        let response = match &*method {
            "initialize" => {
                let result = result(json!({
                    "protocolVersion": "2025-06-18",
                    "capabilities": { "tools": {} },
                    "serverInfo": { "name": "remote", "version": "1" },
                }));
                respond("200 OK", "application/json", &result)
            }
            "tools/list" => {
                let result = result(json!({ "tools": [tool("echo")] }));
                respond("200 OK", "application/json; charset=utf-8", &result)
            }
            "tools/call" => {
                let token = &message["params"]["_meta"]["progressToken"];
                let params = json!({ "progressToken": token, "progress": 1, "message": "on it" });
                let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
                // A server that echoes its token.
                let result = result(content(&format!("done by {TOKEN}")));
                let events = format!("data: {progress}\n\ndata: {result}\n\n");
                respond("200 OK", "text/event-stream", &events)
            }
            "server/discover" => respond("400 Bad Request", "text/plain", "no session"),
            "notifications/initialized" => respond("202 Accepted", "text/plain", ""),
            _ => respond("405 Method Not Allowed", "text/plain", ""),
        };
        write.write_all(response.as_bytes()).await.ok()?;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_server_is_called_with_its_secret() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let log = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, Arc::clone(&log)));
        }
    });
    let name = SecretName::new("remote").unwrap();
    let grant = SecretGrant {
        name: name.clone(),
        to: vec![SecretPlace::new(&url, false).unwrap()],
        within: None,
        added: Some(Placement::Bearer),
        variables: Vec::new(),
        in_query: false,
        in_body: false,
    };
    let headers = vec![("X-Org".to_owned(), "5".to_owned())];
    let remote = RemoteServer { url, secret: Some(name), headers, addresses: Vec::new() };
    let target = ServerTarget {
        name: ServerName::new("remote").unwrap(),
        address: Arc::new(ServerAddress::Remote(remote)),
        era: None,
        idle: ServerTarget::IDLE,
        secrets: TargetSecrets {
            source: Arc::new(Secrets::new(Token, Vec::new())),
            grants: vec![grant],
        },
        deny: Arc::default(),
    };
    let servers = Servers::new(ServersOptions::default());
    let events = Arc::new(Events::default());
    let sink: Arc<dyn CallEvents> = Arc::clone(&events) as _;
    let tool = Arc::new(definition("echo"));
    let mut call = ServerCall::new(&servers, target.clone(), tool, Map::new());
    let said = text(call.run(&Map::new(), &sink).await);
    assert_eq!(said, format!("done by {}", "*".repeat(TOKEN.len())));
    assert_eq!(*events.0.lock().unwrap(), ["1 on it"]);
    assert_eq!(servers.list(&target).await.unwrap().era, Era::Initialize);
    let seen = seen.lock().unwrap().clone();
    assert!(seen.contains(&"tools/call true".to_owned()), "{seen:?}");
    assert!(seen.iter().all(|request| request.ends_with("true")), "{seen:?}");
}

#[tokio::test]
async fn an_unreachable_server_is_named_with_the_reason() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let target = target(&url, &[]);
    let servers = Servers::new(ServersOptions::default());
    let error = servers.list(&target).await.unwrap_err().to_string();
    let expected =
        format!("the server `remote` did not start: cannot connect to `{}`", &url[..url.len() - 4]);
    assert!(error.starts_with(&expected), "{error}");
}

/// Returns a server without a secret.
fn target(url: &str, addresses: &[&str]) -> ServerTarget {
    let remote = RemoteServer {
        url: url.to_owned(),
        secret: None,
        headers: Vec::new(),
        addresses: addresses.iter().map(|block| block.parse().unwrap()).collect(),
    };
    ServerTarget {
        name: ServerName::new("remote").unwrap(),
        address: Arc::new(ServerAddress::Remote(remote)),
        era: None,
        idle: ServerTarget::IDLE,
        secrets: TargetSecrets::default(),
        deny: Arc::default(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_have_private_addresses_only_if_configured() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://mcp.corp.test:{}/mcp", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, Arc::default()));
        }
    });
    let dns = Dns::of(&[("mcp.corp.test", &[&["127.0.0.1"]])]);
    let http = || {
        let nameservers = Nameservers::These(vec![dns.address()]);
        Client::new(ClientOptions { nameservers, ..ClientOptions::default() })
    };
    let list = async |addresses: &[&str]| {
        let servers = Servers::new(ServersOptions { http: http(), ..ServersOptions::default() });
        servers.list(&target(&url, addresses)).await
    };
    for addresses in [&[][..], &["10.0.0.0/8"]] {
        let refused = list(addresses).await.unwrap_err().to_string();
        assert!(refused.contains("127.0.0.1"), "{refused}");
    }
    assert_eq!(list(&["127.0.0.0/8"]).await.unwrap().tools.len(), 1);
}

/// Answers requests of the newer era. Each list of prompts differs, and the stream of changes
/// reports it once. The first stream then ends, and the second one stays open.
async fn answer_stateless(
    mut stream: TcpStream,
    listed: Arc<AtomicUsize>,
    streams: Arc<AtomicUsize>,
) -> Option<()> {
    let (read, mut write) = stream.split();
    let mut read = BufReader::new(read);
    loop {
        let (_, message) = request(&mut read).await?;
        let mut result = match message["method"].as_str()? {
            "server/discover" => json!({
                "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": {}, "prompts": { "listChanged": true } },
                "serverInfo": { "name": "remote", "version": "1" },
            }),
            "tools/list" => json!({ "tools": [tool("echo")] }),
            "prompts/list" => {
                let at = listed.fetch_add(1, Ordering::SeqCst);
                json!({ "prompts": [{ "name": format!("p{at}") }] })
            }
            "subscriptions/listen" => {
                let meta = json!({ "io.modelcontextprotocol/subscriptionId": message["id"] });
                let accepted = &message["params"]["notifications"];
                let event = |method: &str, params: Value| {
                    let method = format!("notifications/{method}");
                    let event = json!({ "jsonrpc": "2.0", "method": method, "params": params });
                    format!("data: {event}\n\n")
                };
                let acknowledged = json!({ "_meta": meta, "notifications": accepted });
                let text = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: \
                     close\r\n\r\n{}{}",
                    event("subscriptions/acknowledged", acknowledged),
                    event("prompts/list_changed", json!({ "_meta": meta })),
                );
                write.write_all(text.as_bytes()).await.ok()?;
                if streams.fetch_add(1, Ordering::SeqCst) > 0 {
                    std::future::pending::<()>().await;
                }
                return None;
            }
            _ => json!({}),
        };
        let complete = json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private" });
        result.as_object_mut()?.extend(complete.as_object()?.clone());
        let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length:";
        let response = format!("{head} {}\r\n\r\n{body}", body.len());
        write.write_all(response.as_bytes()).await.ok()?;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stateless_remote_server_reports_changes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let streams = Arc::<AtomicUsize>::default();
    let opened = Arc::clone(&streams);
    tokio::spawn(async move {
        let listed = Arc::<AtomicUsize>::default();
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer_stateless(stream, Arc::clone(&listed), Arc::clone(&opened)));
        }
    });
    let (servers, target) = (Servers::new(ServersOptions::default()), target(&url, &[]));
    assert_eq!(servers.list(&target).await.unwrap().era, Era::Stateless);
    let name = || servers.items(&target).prompts.first().map(|prompt| prompt.name.clone());
    let start = Instant::now();
    while streams.load(Ordering::SeqCst) < 2 && start.elapsed() < Duration::from_secs(20) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(streams.load(Ordering::SeqCst), 2, "a stream that ended is opened again");
    while name().is_none_or(|name| name.as_str() < "p2")
        && start.elapsed() < Duration::from_secs(20)
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(name() >= Some("p2".to_owned()), "{:?}", name());
}
