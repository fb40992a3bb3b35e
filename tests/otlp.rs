//! Spans as an OpenTelemetry collector receives them. They require a build with the feature `otlp`.

#[allow(dead_code, unused_imports, unused_macros, reason = "a harness for more than these tests")]
mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::json;

use crate::support::Workspace;
use crate::support::http::HttpServer;
use crate::support::mcp::{Client, meta};

const TRACE: [u8; 16] = *b"\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c";
const PARENT: [u8; 8] = *b"\xb7\xad\x6b\x71\x69\x20\x33\x31";
const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A collector that answers every request with an empty response.
struct Collector {
    address: SocketAddr,
    requests: Receiver<(String, Vec<u8>)>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let (mut head, mut length) = (String::new(), 0);
                loop {
                    let from = head.len();
                    if stream.read_line(&mut head).unwrap() == 0 {
                        break;
                    }
                    let line = head[from..].to_lowercase();
                    if let Some(value) = line.strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    if line == "\r\n" {
                        break;
                    }
                }
                let mut body = vec![0; length];
                stream.read_exact(&mut body).unwrap();
                let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
                stream.get_mut().write_all(answer).unwrap();
                if sender.send((head, body)).is_err() {
                    return;
                }
            }
        });
        Self { address, requests }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn batch(&self) -> Batch {
        let (head, body) = self.requests.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
        Batch(body)
    }
}

/// Spans in the encoding of the protocol, in which strings are stored unchanged.
struct Batch(Vec<u8>);

impl Batch {
    fn holds(&self, part: impl AsRef<[u8]>) -> bool {
        self.0.windows(part.as_ref().len()).any(|window| window == part.as_ref())
    }

    /// Returns true if a span has this string attribute.
    fn has(&self, key: &str, value: &str) -> bool {
        let length = |text: &str| u8::try_from(text.len()).unwrap();
        let inner = [&[0x0a, length(value)], value.as_bytes()].concat();
        let value = [&[0x12, u8::try_from(inner.len()).unwrap()], &inner[..]].concat();
        self.holds([&[0x0a, length(key)], key.as_bytes(), &value].concat())
    }
}

/// A session with a successful call and a failed call.
fn session(workspace: &Workspace, arguments: &[&str]) {
    let mut client = Client::start(workspace, arguments);
    client.request(
        "initialize",
        json!({
            "protocolVersion": "2025-11-25",
            "clientInfo": { "name": "test", "version": "1" },
            "capabilities": {},
        }),
    );
    client.notify("notifications/initialized", json!({}));
    client.request("logging/setLevel", json!({ "level": "error" }));
    let echo = json!({
        "name": "probe",
        "arguments": { "do": "echo", "text": "an argument" },
        "_meta": { "traceparent": TRACEPARENT },
    });
    let answer = client.request("tools/call", echo);
    assert_eq!(answer["result"]["content"][0]["text"], "an argument");
    assert_eq!(client.call("probe", json!({ "do": "fail" }))["isError"], true);
    client.request("tools/call", json!({ "name": "no-such-tool" }));
    let (status, stderr) = client.close();
    assert!(status.success(), "{stderr}");
}

#[test]
fn a_span_of_each_request_follows_the_conventions() {
    let (workspace, collector) = (Workspace::with_probe(""), Collector::start());
    session(&workspace, &["--otlp", &collector.url()]);
    let batch = collector.batch();
    for name in ["initialize", "logging/setLevel", "tools/call probe", "tools/call no-such-tool"] {
        assert!(batch.holds(name), "{name}");
    }
    for (key, value) in [
        ("service.name", "kitbag"),
        ("mcp.method.name", "tools/call"),
        ("mcp.protocol.version", "2025-11-25"),
        ("jsonrpc.request.id", "3"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "probe"),
        ("network.transport", "pipe"),
        ("error.type", "tool_error"),
        ("rpc.response.status_code", "-32602"),
    ] {
        assert!(batch.has(key, value), "{key} = {value}");
    }
    // The client's trace is continued.
    assert!(batch.holds(TRACE) && batch.holds(PARENT));
}

#[test]
fn spans_omit_arguments_and_results_by_default() {
    let workspace = Workspace::with_probe("");
    for (arguments, is_there) in [(&[][..], false), (&["--otlp-content"], true)] {
        let collector = Collector::start();
        let url = collector.url();
        session(&workspace, &[&["--otlp", &url, "--log", "off"], arguments].concat());
        let batch = collector.batch();
        assert!(batch.holds("tools/call probe"));
        assert_eq!(batch.holds("an argument"), is_there);
        let arguments = r#"{"do":"echo","text":"an argument"}"#;
        assert_eq!(batch.has("gen_ai.tool.call.arguments", arguments), is_there);
        let result = r#"[{"type":"text","text":"an argument"}]"#;
        assert_eq!(batch.has("gen_ai.tool.call.result", result), is_there);
    }
}

#[test]
fn spans_of_http_calls_continue_the_trace_of_the_request() {
    let (workspace, collector) = (Workspace::with_probe(""), Collector::start());
    let server = HttpServer::start(&workspace, &["--no-token", "--otlp", &collector.url()]);
    let params = json!({ "name": "probe", "arguments": { "do": "echo", "text": "x" } });
    let header = format!("traceparent: {TRACEPARENT}\r\n");
    let reply = server.message(&header, "tools/call", params);
    assert_eq!(reply.status, 200, "{}", reply.body);
    let batch = collector.batch();
    assert!(batch.has("network.transport", "tcp") && batch.has("gen_ai.tool.name", "probe"));
    assert!(batch.holds(TRACE) && batch.holds(PARENT));
}

#[test]
fn the_opentelemetry_variables_configure_the_endpoint() {
    let (workspace, collector) = (Workspace::new(), Collector::start());
    let params = json!({ "_meta": meta(json!({})) });
    let message =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": params });
    let message = format!("{message}\n");
    let env = [("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.url()), ("OTEL_SERVICE_NAME", "team")];
    let run = workspace.run_with(&["serve", "--otlp"], &message, &env);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let batch = collector.batch();
    assert!(batch.holds("server/discover") && batch.has("service.name", "team"));
    // The other variables alone do not enable the export.
    let run = workspace.run_with(&["serve"], &message, &env);
    assert_eq!((run.code, &*run.stderr), (0, ""));
    assert!(collector.requests.try_recv().is_err());
}

#[test]
fn a_silent_collector_does_not_delay_the_server() {
    // It accepts the connection but never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    session(&Workspace::with_probe(""), &["--otlp", &url]);
}

#[test]
fn an_invalid_address_is_refused() {
    let workspace = Workspace::new();
    for address in ["localhost:4318", "https://localhost:4318", "http://localhost:4318?x", ""] {
        let run = workspace.run(&["serve", "--otlp", address]);
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(
            run.stderr.contains(&format!("`{address}` is not the address of a collector")),
            "{}",
            run.stderr
        );
    }
}
