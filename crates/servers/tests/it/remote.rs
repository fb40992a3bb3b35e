//! Remote servers, over HTTP on loopback.

use std::sync::{Arc, Mutex};

use kitbag_http::{Client, ClientOptions, Nameservers};
use kitbag_policy::server::{Era, RemoteServer, ServerAddress, ServerName};
use kitbag_policy::{Placement, SecretGrant, SecretName, SecretPlace};
use kitbag_secrets::{CallEnd, ReadError, ReadSecret, SecretValue, Secrets};
use kitbag_servers::{
    CallEvents, ServerCall, ServerTarget, Servers, ServersOptions, TargetSecrets,
};
use kitbag_test_servers::Dns;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::fake::{Events, content, definition, text, tool};

const TOKEN: &str = "remote-token-0123456789";

struct Token;

impl ReadSecret for Token {
    fn read(&self, _: &SecretName, _: &CallEnd) -> Result<SecretValue, ReadError> {
        Ok(SecretValue::new(TOKEN.into()).unwrap())
    }
}

/// Answers one request of the older era. A call is answered by a stream of events.
async fn answer(mut stream: TcpStream, seen: Arc<Mutex<Vec<String>>>) -> Option<()> {
    let (read, mut write) = stream.split();
    let mut read = BufReader::new(read);
    loop {
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
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
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
