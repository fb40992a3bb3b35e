//! A minimal client of `kitbag serve --http`, without an HTTP library.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::Workspace;
use super::mcp::meta;

const PATIENCE: Duration = Duration::from_secs(60);

/// A server for one test.
pub(crate) struct HttpServer {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    /// The generated token that it printed before it listened, if any.
    pub(crate) token: Option<String>,
    stderr: BufReader<std::process::ChildStderr>,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl HttpServer {
    pub(crate) fn start(workspace: &Workspace, arguments: &[&str]) -> Self {
        Self::start_at(workspace, "127.0.0.1:0", arguments)
    }

    pub(crate) fn start_at(workspace: &Workspace, address: &str, arguments: &[&str]) -> Self {
        let mut child = workspace
            .command()
            .args(["serve", "--http", address])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut token = None;
        let address = loop {
            let mut line = String::new();
            let read = stderr.read_line(&mut line).unwrap();
            assert!(read > 0, "the server did not start");
            if let Some(made_up) = line.strip_prefix("token: ") {
                token = Some(made_up.trim().to_owned());
            } else if let Some(url) = line.strip_prefix("listening at http://") {
                break url.trim().strip_suffix("/mcp").unwrap().parse().unwrap();
            }
        };
        Self { child, address, token, stderr }
    }

    /// Sends a request with these headers and reads the whole answer.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Reply {
        send(self.address, method, path, headers, body)
    }

    /// Sends a message of the stateless revision. Adds `_meta` if `params` lacks it.
    pub(crate) fn message(&self, headers: &str, method: &str, params: Value) -> Reply {
        let (headers, body) = stateless(headers, method, params);
        self.send("POST", "/mcp", &headers, &body)
    }

    /// Sends such a message without waiting for the answer.
    pub(crate) fn begin(&self, headers: &str, method: &str, params: Value) -> TcpStream {
        let (headers, body) = stateless(headers, method, params);
        begin(self.address, "POST", "/mcp", &headers, &body)
    }

    /// Opens the stream of a session, on which the server sends its own messages. `None`: the
    /// session has ended.
    pub(crate) fn open_stream(&self, session: &str) -> Option<TcpStream> {
        let mut stream = begin(self.address, "GET", "/mcp", session, "");
        let mut status = [0; "HTTP/1.1 200".len()];
        stream.read_exact(&mut status).unwrap();
        (&status == b"HTTP/1.1 200").then_some(stream)
    }

    /// The rest of standard error, read until the end of the process.
    pub(crate) fn rest(&mut self) -> String {
        let mut text = String::new();
        self.stderr.read_to_string(&mut text).unwrap();
        text
    }
}

/// The headers and the body of a message of the stateless revision.
fn stateless(headers: &str, method: &str, mut params: Value) -> (String, String) {
    if params.get("_meta").is_none() {
        params["_meta"] = meta(json!({}));
    }
    let name = params.get("name").or(params.get("uri")).and_then(Value::as_str);
    let name = name.map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let headers = format!(
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}{headers}"
    );
    (headers, message.to_string())
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a request on a new connection.
fn begin(address: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let host = match headers.contains("Host:") {
        true => String::new(),
        false => format!("Host: {address}\r\n"),
    };
    let head = format!(
        "{method} {path} HTTP/1.1\r\n{host}Connection: close\r\nContent-Length: {}\r\n{headers}\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // A server that has refused a body does not read all of it.
    let _ = stream.write_all(body.as_bytes());
    stream
}

/// Sends one request on a new connection, and reads the complete answer.
pub(crate) fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Reply {
    let mut stream = begin(address, method, path, headers, body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let body = match head.to_lowercase().contains("transfer-encoding: chunked") {
        true => unchunked(body),
        false => body.to_owned(),
    };
    Reply { status, head: head.to_owned(), body }
}

fn unchunked(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || rest.len() < size {
            break;
        }
        text.push_str(&rest[..size]);
        body = rest[size..].trim_start_matches("\r\n");
    }
    text
}

impl Reply {
    /// The last message of an answer that is JSON or a stream of events.
    pub(crate) fn message(&self) -> Value {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        let mut texts = data.filter(|data| !data.trim().is_empty());
        let text = texts.next_back().unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
