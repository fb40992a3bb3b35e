//! The log of a server whose standard error is not read.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use serde_json::{Value, json};

use super::texts;
use crate::support::Workspace;
use crate::support::http::HttpServer;
use crate::support::mcp::Client;

/// A full standard error that blocks until it is read, and its reader.
fn full() -> (UnixStream, Stdio) {
    let (reader, mut writer) = UnixStream::pair().unwrap();
    writer.set_nonblocking(true).unwrap();
    for size in [4_096, 1] {
        while writer.write(&b"\n".repeat(size)).is_ok() {}
    }
    writer.set_nonblocking(false).unwrap();
    (reader, OwnedFd::from(writer).into())
}

fn start(workspace: &Workspace, arguments: &[&str]) -> (UnixStream, Client) {
    let (reader, stderr) = full();
    let client = Client::start_with(workspace, arguments, stderr).after_handshake(json!({}));
    (reader, client)
}

#[test]
fn a_server_with_an_unread_log_answers_and_ends() {
    let workspace = Workspace::with_probe("");
    let attacks = [
        (vec![], json!({ "do": "panic", "message": "x" })),
        (vec!["--log", "info"], json!({ "do": "fail", "message": "x".repeat(30_000) })),
        (vec!["--log", "trace"], json!({ "do": "echo", "text": "x" })),
        (vec!["--log", "info", "--log-format", "json"], json!({ "do": "fail", "message": "x" })),
    ];
    for (arguments, attack) in attacks {
        let (_unread, mut client) = start(&workspace, &arguments);
        for _ in 0..3 {
            client.call("probe", attack.clone());
        }
        let answer = client.call("probe", json!({ "do": "echo", "text": "still" }));
        assert_eq!(texts(&answer), ["still"], "{arguments:?}");
        let (status, _) = client.close();
        assert_eq!(status.code(), Some(0), "{arguments:?}");
    }
}

#[test]
fn an_http_server_with_an_unread_log_answers() {
    let workspace = Workspace::with_probe("");
    // The log of the calls exceeds the size of a pipe. Only the server's address is read.
    let server = HttpServer::start(&workspace, &["--no-token", "--log", "info"]);
    let call = |arguments: Value| {
        let reply =
            server.message("", "tools/call", json!({ "name": "probe", "arguments": arguments }));
        reply.message()["result"].clone()
    };
    let text = "x".repeat(4_000);
    for _ in 0..75 {
        assert_eq!(texts(&call(json!({ "do": "fail", "message": text }))), [text.as_str()]);
    }
    assert_eq!(texts(&call(json!({ "do": "echo", "text": "still" }))), ["still"]);
}

#[test]
fn unread_log_lines_are_dropped_and_counted() {
    let workspace = Workspace::with_probe("");
    let (unread, mut client) = start(&workspace, &["--log", "info"]);
    // The queue has room for only a part of these lines of 4,000 bytes each.
    const LINES: usize = 1_200;
    for number in 0..LINES {
        let message = format!("line {number} {}", "x".repeat(3_900));
        client.call("probe", json!({ "do": "fail", "message": message }));
    }
    let mut kept = 0;
    for line in BufReader::new(unread).lines() {
        let line = line.unwrap();
        kept += usize::from(line.contains("line "));
        if let Some((before, _)) = line.split_once(" lines of the log were dropped") {
            let dropped: usize = before.rsplit(' ').next().unwrap().parse().unwrap();
            assert!(kept > 0 && dropped > 0, "{kept} {dropped}");
            assert_eq!(kept + dropped, LINES, "{line}");
            return;
        }
    }
    panic!("no line says what was dropped");
}
