//! Web pages and other clients of `kitbag serve --http` that use no SDK.

use serde_json::{Value, json};

use super::http::{TYPES, begin, in_session};
use crate::support::Workspace;
use crate::support::http::{HttpServer, Reply};

const PAGE: &str = "http://localhost:6274";

/// The value of a header.
fn header<'a>(reply: &'a Reply, name: &str) -> Option<&'a str> {
    reply.head.lines().find_map(|line| {
        let (own, value) = line.split_once(": ")?;
        own.eq_ignore_ascii_case(name).then_some(value)
    })
}

#[track_caller]
fn check_page_may_read(reply: &Reply, origin: &str) {
    assert_eq!(header(reply, "access-control-allow-origin"), Some(origin), "{reply:?}");
    let read = header(reply, "access-control-expose-headers").unwrap_or_default();
    assert!(read.contains("Mcp-Session-Id"), "{reply:?}");
    assert_eq!(header(reply, "vary"), Some("Origin"), "{reply:?}");
}

#[test]
fn a_page_of_an_allowed_origin_can_use_the_server() {
    let workspace = Workspace::with_probe("");
    let server = HttpServer::start(&workspace, &["--allow-origin", PAGE]);
    let page = format!("Origin: {PAGE}\r\n");
    // A preflight has no token.
    let asks = format!(
        "{page}Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: \
         authorization,content-type,mcp-protocol-version\r\n\
         Access-Control-Request-Private-Network: true\r\n"
    );
    for path in ["/mcp", "/mcp/"] {
        let reply = server.send("OPTIONS", path, &asks, "");
        assert_eq!((reply.status, &*reply.body), (204, ""), "{reply:?}");
        check_page_may_read(&reply, PAGE);
        let methods = header(&reply, "access-control-allow-methods");
        assert_eq!(methods, Some("GET, POST, DELETE"), "{reply:?}");
        let headers = header(&reply, "access-control-allow-headers");
        assert_eq!(headers, Some("authorization,content-type,mcp-protocol-version"), "{reply:?}");
        assert_eq!(header(&reply, "access-control-allow-private-network"), Some("true"));
    }
    let token = server.token.clone().unwrap();
    let admitted = format!("{page}Authorization: Bearer {token}\r\n");
    let reply = server.message(&admitted, "tools/list", json!({}));
    assert_eq!(reply.status, 200, "{reply:?}");
    check_page_may_read(&reply, PAGE);
    // A page can read why it is refused.
    let reply = server.message(&page, "tools/list", json!({}));
    assert_eq!(reply.status, 401, "{reply:?}");
    check_page_may_read(&reply, PAGE);
}

#[test]
fn a_page_of_another_origin_can_read_no_response() {
    let workspace = Workspace::with_probe("");
    let server = HttpServer::start(&workspace, &["--no-token", "--allow-origin", PAGE]);
    for origin in ["http://localhost:6275", "https://localhost:6274", "null", "http://evil.example"]
    {
        let asks = format!("Origin: {origin}\r\nAccess-Control-Request-Method: POST\r\n");
        for reply in [
            server.send("OPTIONS", "/mcp", &asks, ""),
            server.message(&format!("Origin: {origin}\r\n"), "tools/list", json!({})),
        ] {
            assert_eq!(reply.status, 403, "{reply:?}");
            assert_eq!(header(&reply, "access-control-allow-origin"), None, "{reply:?}");
            let message = reply.message()["error"]["message"].to_string();
            let option = format!("`kitbag serve --http ADDRESS --allow-origin={origin}`");
            assert!(message.contains(&option), "{reply:?}");
        }
    }
    // Two origins in one request are never allowed.
    let twice = format!("Origin: {PAGE}\r\nOrigin: http://evil.example\r\n");
    let reply = server.message(&twice, "tools/list", json!({}));
    assert_eq!(reply.status, 400, "{reply:?}");
    assert_eq!(header(&reply, "access-control-allow-origin"), None, "{reply:?}");
    let reply = server.message("Host: host.docker.internal:8620\r\n", "tools/list", json!({}));
    let message = reply.message()["error"]["message"].to_string();
    assert_eq!(reply.status, 403, "{reply:?}");
    assert!(message.contains("--allow-host=host.docker.internal:8620`"), "{message}");
}

#[test]
fn the_option_named_in_a_refusal_allows_the_page() {
    let workspace = Workspace::with_probe("");
    for origin in ["null", "vscode-file://vscode-app", "http://[::1]:6274"] {
        let option = format!("--allow-origin={origin}");
        let server = HttpServer::start(&workspace, &["--no-token", &option]);
        let reply = server.message(&format!("Origin: {origin}\r\n"), "tools/list", json!({}));
        assert_eq!(reply.status, 200, "{origin}: {reply:?}");
        check_page_may_read(&reply, origin);
    }
    let option = ["--no-token", "--allow-host=host.docker.internal:8620"];
    let server = HttpServer::start(&workspace, &option);
    let reply = server.message("Host: host.docker.internal:8620\r\n", "tools/list", json!({}));
    assert_eq!(reply.status, 200, "{reply:?}");
}

/// The headers of a stateless request with this `Accept`.
fn stateless(accept: &str, method: &str) -> String {
    format!(
        "Content-Type: application/json\r\n{accept}MCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: {method}\r\n"
    )
}

#[test]
fn the_answer_has_a_type_that_the_client_accepts() {
    let workspace = Workspace::with_probe("");
    let server = HttpServer::start(&workspace, &["--no-token"]);
    let meta = crate::support::mcp::meta(json!({}));
    let list = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {
        "_meta": meta } });
    for (accept, expected) in [
        ("Accept: application/json\r\n", "application/json"),
        ("Accept: application/*\r\n", "application/json"),
        ("Accept: application/json, text/event-stream;q=0\r\n", "application/json"),
        ("Accept: text/event-stream\r\n", "text/event-stream"),
        ("Accept: */*\r\n", "text/event-stream"),
        ("", "text/event-stream"),
    ] {
        let headers = stateless(accept, "tools/list");
        let reply = server.send("POST", "/mcp", &headers, &list.to_string());
        assert_eq!(reply.status, 200, "{accept} {reply:?}");
        let kind = header(&reply, "content-type").unwrap_or_default();
        assert!(kind.starts_with(expected), "{accept} {reply:?}");
        let message = reply.message();
        assert_eq!(message["id"], 7, "{accept} {message}");
        assert!(message["result"]["tools"].is_array(), "{accept} {message}");
        assert_eq!(reply.body.starts_with('{'), expected == "application/json", "{reply:?}");
    }
    let headers = stateless("Accept: text/html\r\n", "tools/list");
    let reply = server.send("POST", "/mcp", &headers, &list.to_string());
    assert_eq!(reply.status, 406, "{reply:?}");
    assert!(reply.body.contains("`Accept` allows neither"), "{reply:?}");
}

#[test]
fn a_json_only_client_has_a_session_without_questions() {
    let workspace = Workspace::with_probe("");
    let server = HttpServer::start(&workspace, &["--no-token"]);
    let json_alone = "Content-Type: application/json\r\nAccept: application/json\r\n";
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "t", "version": "1" } } });
    let reply = server.send("POST", "/mcp", json_alone, &hello.to_string());
    assert_eq!(reply.message()["result"]["protocolVersion"], "2025-11-25", "{reply:?}");
    let id = header(&reply, "mcp-session-id").unwrap();
    let headers =
        format!("{json_alone}Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
    let call = |arguments: Value| {
        let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": { "name": "probe", "arguments": arguments } });
        server.send("POST", "/mcp", &headers, &call.to_string())
    };
    let reply = call(json!({ "do": "echo", "text": "in JSON" }));
    assert_eq!(super::texts(&reply.message()["result"]), ["in JSON"], "{reply:?}");
    let reply = call(json!({ "do": "ask", "id": "q", "answer_type": { "type": "string" } }));
    let message = reply.message()["error"]["message"].to_string();
    assert!(message.contains("also accept `text/event-stream`"), "{reply:?}");
}

#[test]
fn the_path_may_end_with_a_slash() {
    let workspace = Workspace::with_probe("");
    let server = HttpServer::start(&workspace, &[]);
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let reply = server.send("POST", "/mcp/", TYPES, list);
    assert_eq!(reply.status, 401, "{reply:?}");
    assert_eq!(server.send("POST", "/mcp/x", TYPES, list).status, 404);
}

#[test]
fn protocol_errors_are_json_rpc_errors() {
    let workspace = Workspace::with_probe("");
    let server = HttpServer::start(&workspace, &["--allow-origin", PAGE]);
    let token = format!("Authorization: Bearer {}\r\n", server.token.clone().unwrap());
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let unknown = format!("{TYPES}{token}Mcp-Session-Id: unknown\r\n");
    let unread = format!("{token}Content-Type: application/json\r\nAccept: text/html\r\n");
    for (method, headers, body, status) in [
        ("POST", TYPES.to_owned(), list, 401),
        ("GET", String::new(), "", 401),
        ("POST", format!("{TYPES}Authorization: Bearer wrong-token-of-another\r\n"), list, 401),
        ("POST", format!("{TYPES}{token}Host: evil.example\r\n"), list, 403),
        ("POST", unknown, list, 404),
        ("POST", unread, list, 406),
        ("PUT", token.clone(), "", 405),
        ("POST", format!("{TYPES}{token}"), "no json", 400),
    ] {
        let reply = server.send(method, "/mcp", &headers, body);
        assert_eq!(reply.status, status, "{method} {headers} {reply:?}");
        let kind = header(&reply, "content-type");
        assert_eq!(kind, Some("application/json"), "{method} {headers} {reply:?}");
        let message = reply.message();
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        assert!(message["error"]["code"].is_i64(), "{message}");
        assert_eq!(message["id"], Value::Null, "{message}");
        assert!(message["error"]["message"].as_str().is_some_and(|it| !it.is_empty()), "{message}");
    }
}

#[test]
fn clients_that_look_for_oauth_find_the_token() {
    let workspace = Workspace::with_probe("");
    let server = HttpServer::start(&workspace, &[]);
    for (method, path, status) in [
        ("GET", "/.well-known/oauth-protected-resource", 404),
        ("GET", "/.well-known/oauth-protected-resource/mcp", 404),
        ("GET", "/.well-known/oauth-authorization-server", 404),
        ("GET", "/.well-known/openid-configuration", 404),
        ("POST", "/register", 400),
        ("GET", "/authorize", 400),
        ("POST", "/token", 400),
    ] {
        let reply = server.send(method, path, "", "");
        assert_eq!(reply.status, status, "{path} {reply:?}");
        assert_eq!(header(&reply, "content-type"), Some("application/json"), "{reply:?}");
        let body: Value = serde_json::from_str(&reply.body).unwrap();
        assert!(body["error"].is_string(), "{body}");
        let description = body["error_description"].as_str().unwrap_or_default();
        assert!(description.contains("`Authorization: Bearer TOKEN`"), "{body}");
        assert!(!reply.body.contains(&server.token.clone().unwrap()), "{reply:?}");
    }
}

#[test]
fn null_is_accepted_as_meta_and_params() {
    let workspace = Workspace::with_probe("");
    let server = HttpServer::start(&workspace, &["--no-token"]);
    let headers = in_session(&begin(&server));
    for body in [
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":null}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"_meta":null}}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"_meta":null,"name":"probe","arguments":{"do":"echo","text":"x"}}}"#,
    ] {
        let reply = server.send("POST", "/mcp", &headers, body);
        assert_eq!(reply.status, 200, "{body} {reply:?}");
        assert!(reply.message()["result"].is_object(), "{body} {reply:?}");
    }
}

#[test]
fn an_unused_session_ends_unless_a_stream_is_open() {
    let workspace = Workspace::with_probe("");
    workspace.add_to_own_config("[serve]\nsession_idle = \"500ms\"\n");
    let server = HttpServer::start(&workspace, &["--no-token"]);
    let silent = in_session(&begin(&server));
    // On a slow machine a session may end before its stream is open.
    let (streams, stream) = loop {
        let session = in_session(&begin(&server));
        if let Some(stream) = server.open_stream(&session) {
            break (session, stream);
        }
    };
    let sessions = || {
        let metrics = server.send("GET", "/metrics", "", "").body;
        let line = metrics.lines().find_map(|line| line.strip_prefix("kitbag_sessions "));
        line.and_then(|count| count.parse::<u64>().ok()).unwrap()
    };
    // The other session is unused, and ends eventually.
    while sessions() > 1 {
        std::thread::yield_now();
    }
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    assert_eq!(server.send("POST", "/mcp", &silent, ping).status, 404);
    assert_eq!(server.send("POST", "/mcp", &streams, ping).status, 200);
    drop(stream);
    while sessions() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(server.send("POST", "/mcp", &streams, ping).status, 404);
}

#[test]
fn only_the_user_config_sets_the_session_timeout() {
    let workspace = Workspace::with_probe("");
    workspace.config("[serve]\nsession_idle = \"1s\"\n");
    let run = workspace.run(&["check"]);
    assert!(
        run.shown().contains("a workspace may not set `serve.session_idle`"),
        "{}",
        run.shown()
    );
}
