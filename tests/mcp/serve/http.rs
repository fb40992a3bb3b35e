//! `kitbag serve --http`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::texts;
use crate::support::Workspace;
use crate::support::http::{HttpServer, Reply};

const OPEN: &[&str] = &["--no-token"];

/// Makes a file readable for its owner alone.
fn own(file: &Path) {
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

fn echo(server: &HttpServer, headers: &str, text: &str) -> Reply {
    let arguments = json!({ "do": "echo", "text": text });
    server.message(headers, "tools/call", json!({ "name": "probe", "arguments": arguments }))
}

#[track_caller]
fn check_echo(reply: &Reply, text: &str) {
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(texts(&reply.message()["result"]), [text]);
}

#[test]
fn requests_without_the_token_are_refused() {
    let workspace = Workspace::with_probe("");
    let server = HttpServer::start(&workspace, &[]);
    let token = server.token.clone().unwrap();
    check_echo(&echo(&server, &format!("Authorization: Bearer {token}\r\n"), "hello"), "hello");
    check_echo(&echo(&server, &format!("authorization: bearer {token}\r\n"), "hello"), "hello");
    let mut other = token.clone().into_bytes();
    other[0] ^= 1;
    let other = String::from_utf8(other).unwrap();
    for headers in [
        String::new(),
        format!("Authorization: Bearer {other}\r\n"),
        format!("Authorization: Basic {token}\r\n"),
        format!("Authorization: {token}\r\n"),
        "Authorization: Bearer \r\n".to_owned(),
        format!("X-Authorization: Bearer {token}\r\n"),
    ] {
        let reply = echo(&server, &headers, "hello");
        assert_eq!(reply.status, 401, "{headers}: {reply:?}");
        assert!(reply.head.to_lowercase().contains("www-authenticate: bearer"), "{reply:?}");
        assert!(!reply.body.contains(&token), "{reply:?}");
        assert!(reply.body.contains("as `Authorization: Bearer TOKEN`"), "{reply:?}");
        let what = match &*headers {
            "" => "no token was sent",
            headers if headers.starts_with("X-") => "no token was sent",
            headers if headers.contains(&other) => "the token is wrong",
            _ => "`Authorization` does not have the form `Bearer TOKEN`",
        };
        let message = reply.message()["error"]["message"].to_string();
        assert!(message.starts_with(&format!("\"{what}")), "{headers}: {reply:?}");
        assert_eq!(server.send("GET", "/metrics", &headers, "").status, 401);
    }
    // Any client may ask for the health of the server.
    assert_eq!(server.send("GET", "/healthz", "", "").body, "ok\n");
    assert_eq!(server.send("GET", "/readyz", "", "").status, 200);
    assert_eq!(server.send("GET", "/", "", "").status, 404);
}

#[test]
fn a_token_file_sets_the_token() {
    let workspace = Workspace::with_probe("");
    let file = workspace.outside().join("token");
    fs::write(&file, "a-token-of-my-own-1234\n").unwrap();
    own(&file);
    let server = HttpServer::start(&workspace, &["--token-file", file.to_str().unwrap()]);
    assert_eq!(server.token, None);
    let headers = "Authorization: Bearer a-token-of-my-own-1234\r\n";
    check_echo(&echo(&server, headers, "x"), "x");
    assert_eq!(echo(&server, "", "x").status, 401);
}

#[test]
fn a_server_open_to_everyone_does_not_start() {
    let workspace = Workspace::new();
    let short = workspace.outside().join("short");
    fs::write(&short, "letmein\n").unwrap();
    own(&short);
    let short = short.to_str().unwrap();
    for (arguments, expected) in [
        (vec!["--http", "0.0.0.0:0"], "can be reached from other machines"),
        (vec!["--http", "0.0.0.0:0", "--allow-host", "a.example", "--no-token"], "other machines"),
        (vec!["--http", "[::]:0"], "can be reached from other machines"),
        (vec!["--http", "127.0.0.1:0", "--token-file", short], "at least 16 characters"),
        (vec!["--http", "127.0.0.1:0", "--token-file", "/nowhere"], "`/nowhere` cannot be read"),
        (vec!["--http", "127.0.0.1:0", "--state-key-file", short], "at least 32"),
        (vec!["--token-file", short], "--http"),
    ] {
        let run = workspace.run(&[&["serve"], &arguments[..]].concat());
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.shown());
        assert!(run.stderr.contains(expected), "{arguments:?}: {}", run.shown());
    }
}

#[test]
fn localhost_is_a_valid_listen_address() {
    let workspace = Workspace::with_probe("");
    let server = HttpServer::start_at(&workspace, "localhost:0", OPEN);
    assert!(server.address.ip().is_loopback(), "{}", server.address);
    check_echo(&echo(&server, "", "hello"), "hello");
    for address in ["example.com:80", "localhost", "localhost:http", ":80", "127.0.0.1"] {
        let run = workspace.run(&["serve", "--http", address]);
        assert_eq!(run.code, 2, "{}", run.shown());
        let hint = "write an IP address and a port, such as `127.0.0.1:8620`, or `localhost:8620`";
        assert!(run.stderr.contains(hint), "{}", run.shown());
    }
}

#[test]
fn a_request_without_a_session_explains_how_to_start_one() {
    let workspace = Workspace::new();
    let server = HttpServer::start(&workspace, OPEN);
    let send = |headers: &str, body: &str| {
        let headers = format!(
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{headers}"
        );
        let reply = server.send("POST", "/mcp", &headers, body);
        assert_eq!(reply.status, 400, "{reply:?}");
        reply.body
    };
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let answer = send("", list);
    assert!(answer.contains("`tools/list` needs a session"), "{answer}");
    assert!(answer.contains("`initialize`") && answer.contains("`Mcp-Session-Id`"), "{answer}");
    let answer = send("MCP-Protocol-Version: 1999-01-01\r\n", list);
    assert!(answer.contains("`1999-01-01`") && answer.contains("`2025-11-25`"), "{answer}");
    let answer = send("", r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#);
    assert!(answer.contains("missing field `protocolVersion`"), "{answer}");
}

#[test]
fn other_hosts_and_origins_are_refused() {
    let workspace = Workspace::with_probe("");
    let server = HttpServer::start(&workspace, OPEN);
    let port = server.address.port();
    check_echo(&echo(&server, &format!("Host: localhost:{port}\r\n"), "x"), "x");
    for headers in [
        "Host: evil.example\r\n".to_owned(),
        format!("Host: evil.example:{port}\r\n"),
        format!("Host: 127.0.0.1.evil.example:{port}\r\n"),
        format!("Host: evil-localhost:{port}\r\n"),
        format!("Host: localhost.:{port}\r\n"),
        format!("Host: [localhost]:{port}\r\n"),
        "Host: localhost:99999\r\n".to_owned(),
        "Host: localhost:\r\n".to_owned(),
        "Origin: http://evil.example\r\n".to_owned(),
        "Origin: null\r\n".to_owned(),
        format!("Origin: http://localhost.evil.example:{port}\r\n"),
        format!("Origin: http://127.0.0.1:{}\r\n", port ^ 1),
    ] {
        let reply = echo(&server, &headers, "x");
        assert_eq!(reply.status, 403, "{headers}: {reply:?}");
        // Regardless of the body.
        let with_type = format!("{headers}Content-Type: application/json\r\n");
        for body in ["{nope", "{}", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#] {
            let reply = server.send("POST", "/mcp", &with_type, body);
            assert_eq!(reply.status, 403, "{headers} {body}: {reply:?}");
        }
    }
    // Its own host, under either name.
    for host in ["localhost", "127.0.0.1"] {
        check_echo(&echo(&server, &format!("Origin: http://{host}:{port}\r\n"), "x"), "x");
    }
    let arguments = ["--no-token", "--allow-origin", "https://app.example:443"];
    let server = HttpServer::start(&workspace, &arguments);
    check_echo(&echo(&server, "Origin: https://app.example\r\n", "x"), "x");
    assert_eq!(echo(&server, "Origin: http://app.example\r\n", "x").status, 403);
}

#[test]
fn a_request_with_an_unclear_host_or_origin_is_refused() {
    let workspace = Workspace::with_probe("");
    let server = HttpServer::start(&workspace, OPEN);
    let own = server.address;
    for (headers, expected) in [
        (format!("Host: {own}\r\nHost: evil.example\r\n"), "more than one `Host`"),
        (format!("Host: {own}\r\nHost: {own}\r\n"), "more than one `Host`"),
        (
            format!("Origin: http://{own}\r\nOrigin: http://evil.example\r\n"),
            "more than one `Origin`",
        ),
        (format!("Host: evil.example@{own}\r\n"), "a user in its `Host`"),
    ] {
        let expected = format!("the request has {expected}");
        let reply = echo(&server, &headers, "x");
        assert_eq!(reply.status, 400, "{headers}");
        assert_eq!(reply.message()["error"]["message"], *expected, "{headers}");
        let reply = server.send("GET", "/metrics", &headers, "");
        assert_eq!((reply.status, reply.body), (400, format!("{expected}\n")), "{headers}");
    }
    let get = |url: String, headers: &str| server.send("GET", &url, headers, "").status;
    assert_eq!(get("http://evil.example/metrics".into(), ""), 400);
    assert_eq!(get(format!("http://evil.example@{own}/metrics"), ""), 400);
    assert_eq!(get(format!("http://{own}/metrics"), "Host: evil.example\r\n"), 400);
    let evil = "Host: evil.example\r\n";
    assert_eq!(get("http://evil.example/metrics".into(), evil), 403);
    assert_eq!(get(format!("http://{own}/metrics"), ""), 200);
}

#[test]
fn oversized_or_invalid_json_is_refused() {
    let workspace = Workspace::with_probe("");
    let server = HttpServer::start(&workspace, OPEN);
    let headers = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
                   MCP-Protocol-Version: 2025-11-25\r\n";
    let post = |body: &str| server.send("POST", "/mcp", headers, body);
    assert_eq!(post(&format!("\"{}\"", "x".repeat(5 << 20))).status, 413);
    let reply = post(r#"{"jsonrpc":"2.0","id":3,"method":"ping","method":"tools/list"}"#);
    assert_eq!((reply.status, &reply.message()["id"]), (400, &json!(3)), "{reply:?}");
    assert_eq!(post("no json").status, 400);
    check_echo(&echo(&server, "", "still"), "still");
}

#[test]
fn two_hundred_concurrent_clients_get_their_own_answers() {
    let workspace = Workspace::with_probe("");
    let server = HttpServer::start(&workspace, OPEN);
    std::thread::scope(|scope| {
        for client in 0..200 {
            let server = &server;
            scope.spawn(move || {
                for round in 0..5 {
                    let text = format!("{client}/{round}");
                    check_echo(&echo(server, "", &text), &text);
                }
            });
        }
    });
    let metrics = server.send("GET", "/metrics", "", "").body;
    assert!(
        metrics.contains(r#"kitbag_calls_total{tool="probe",outcome="success"} 1000"#),
        "{metrics}"
    );
    assert!(metrics.contains("kitbag_calls_running 0"), "{metrics}");
}

pub(super) const TYPES: &str =
    "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";

/// Begins a session with a handshake.
pub(super) fn begin(server: &HttpServer) -> Reply {
    begin_as(server, "")
}

/// Begins a session with these headers.
pub(super) fn begin_as(server: &HttpServer, headers: &str) -> Reply {
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "t", "version": "1" },
        },
    });
    server.send("POST", "/mcp", &format!("{TYPES}{headers}"), &hello.to_string())
}

/// The headers of later requests of the session.
pub(super) fn in_session(reply: &Reply) -> String {
    let head = reply.head.to_lowercase();
    let id = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    format!("{TYPES}Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-11-25\r\n")
}

#[test]
fn an_excess_session_ends_an_idle_session() {
    let workspace = Workspace::new();
    let server = HttpServer::start(&workspace, OPEN);
    let other = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "other", "version": "1" },
        },
    });
    let other = in_session(&server.send("POST", "/mcp", TYPES, &other.to_string()));
    let first = begin(&server);
    for _ in 2..1_000 {
        assert_eq!(begin(&server).status, 200);
    }
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }).to_string();
    let status = |session: &str| server.send("POST", "/mcp", session, &list).status;
    // The client with the most sessions loses its least recently used session.
    for _ in 0..3 {
        assert_eq!(status(&in_session(&first)), 200);
        assert_eq!(begin(&server).status, 200);
    }
    assert_eq!(status(&in_session(&first)), 200);
    assert_eq!(status(&other), 200);
    let metrics = server.send("GET", "/metrics", "", "").body;
    assert!(metrics.contains("sessions 1000"), "{metrics}");
}

#[test]
fn a_session_with_a_handshake_lasts_until_it_is_deleted() {
    let workspace = Workspace::with_probe("");
    let server = HttpServer::start(&workspace, OPEN);
    let reply = begin(&server);
    assert_eq!(reply.message()["result"]["protocolVersion"], "2025-11-25");
    let headers = in_session(&reply);
    let call = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "probe", "arguments": { "do": "echo", "text": "in a session" } },
    });
    check_echo(&server.send("POST", "/mcp", &headers, &call.to_string()), "in a session");
    // Clients interpret 202 as an accepted message, and warn.
    let deleted = server.send("DELETE", "/mcp", &headers, "");
    assert_eq!((deleted.status, &*deleted.body), (204, ""), "{deleted:?}");
    let gone = server.send("POST", "/mcp", &headers, &call.to_string());
    assert_eq!(gone.status, 404, "{gone:?}");
}

#[test]
fn a_client_cannot_cancel_a_call_of_another_client() {
    let workspace = Workspace::with_probe(
        "[tools.probe.grants]\nfilesystem = [{ host = \".\", guest = \"/workspace\", mode = \"rw\" }]\n",
    );
    let server = HttpServer::start(&workspace, OPEN);
    let [first, second] = [(); 2].map(|()| in_session(&begin(&server)));
    let message = |id: Option<&str>, method: &str, params: Value| {
        let mut message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        if let Some(id) = id {
            message["id"] = id.into();
        }
        message.to_string()
    };
    let arguments = json!({ "do": "gather", "path": "here", "until": "go" });
    let call = json!({ "name": "probe", "arguments": arguments });
    let call = message(Some("same"), "tools/call", call);
    std::thread::scope(|scope| {
        let called = scope.spawn(|| server.send("POST", "/mcp", &first, &call));
        while !workspace.path("here").exists() {
            std::thread::yield_now();
        }
        let cancel = json!({ "requestId": "same", "reason": "not mine" });
        let body = message(None, "notifications/cancelled", cancel.clone());
        server.send("POST", "/mcp", &second, &body);
        server.message("", "notifications/cancelled", cancel);
        // Both notifications are handled before this is answered.
        let list = message(Some("list"), "tools/list", json!({}));
        assert_eq!(server.send("POST", "/mcp", &second, &list).status, 200);
        workspace.file("go", "");
        let answer = called.join().unwrap().message();
        assert_eq!(texts(&answer["result"]), ["gather here: let go"]);
    });
}

#[test]
fn servers_with_the_same_key_continue_each_others_calls() {
    let workspace = Workspace::with_probe("");
    let key = workspace.outside().join("key");
    fs::write(&key, [7; 32]).unwrap();
    own(&key);
    let arguments = ["--no-token", "--state-key-file", key.to_str().unwrap()];
    let first = HttpServer::start(&workspace, &arguments);
    let second = HttpServer::start(&workspace, &arguments);
    let stranger = HttpServer::start(&workspace, OPEN);
    let call = |server: &HttpServer, more: &Value| {
        let mut params = json!({ "name": "probe", "arguments": { "do": "ask" } });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        // With forms this time.
        params["_meta"] = crate::support::mcp::meta(json!({ "elicitation": { "form": {} } }));
        let message =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let headers = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
                       MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: probe\r\n";
        server.send("POST", "/mcp", headers, &message.to_string()).message()
    };
    let asked = call(&first, &json!({}))["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let answer = json!({
        "requestState": asked["requestState"],
        "inputResponses": { "go-on": { "action": "accept", "content": { "go-on": true } } },
    });
    assert_eq!(texts(&call(&second, &answer)["result"]), [r#"ask: {"go-on":true}"#]);
    assert_eq!(call(&stranger, &answer)["error"]["code"], -32602);
}

#[test]
fn a_stopped_server_answers_running_calls_first() {
    let workspace = Workspace::with_probe(
        "[tools.probe.grants]\nfilesystem = [{ host = \".\", guest = \"/workspace\", mode = \"rw\" }]\n",
    );
    let mut server = HttpServer::start(&workspace, OPEN);
    let process = server.child.id().to_string();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let arguments = json!({ "do": "gather", "path": "here", "until": "go" });
            let call = json!({ "name": "probe", "arguments": arguments });
            server.message("", "tools/call", call)
        });
        while !workspace.path("here").exists() {
            std::thread::yield_now();
        }
        assert!(Command::new("kill").args(["-TERM", &process]).status().unwrap().success());
        // It stops listening when the shutdown begins.
        while std::net::TcpStream::connect(server.address).is_ok() {
            std::thread::yield_now();
        }
        workspace.file("go", "");
        check_echo(&running.join().unwrap(), "gather here: let go");
    });
    let status = server.child.wait().unwrap();
    assert_eq!(status.code(), Some(0), "{}", server.rest());
}
