//! Bounds on connections, requests, answers and memory that clients can use in a server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use kitbag_test_servers::{Behaviour, Server};
use serde_json::{Value, json};

use super::texts;
use crate::support::http::HttpServer;
use crate::support::mcp::{Client, meta};
use crate::support::{Workspace, guest, peak_mib, until};

/// How long a test waits before it fails. It is not a measurement.
const PATIENCE: Duration = Duration::from_secs(60);

const OPEN: &[&str] = &["--no-token"];

/// A server with the least possible memory, in MiB: a quarter is for messages.
const LITTLE: &[&str] = &["--no-token", "--total-memory", "384MiB"];

#[test]
fn a_client_that_reads_nothing_is_disconnected() {
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello });
    check_disconnected(&format!(
        "{hello}\n{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}}\n"
    ));
}

#[test]
fn a_client_that_never_reads_is_disconnected_early() {
    check_disconnected("");
}

/// Sends this and then pings, without reading any answers.
#[track_caller]
fn check_disconnected(begin: &str) {
    let workspace = Workspace::new();
    let mut child = workspace
        .command()
        .args(["serve"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(begin.as_bytes()).unwrap();
    let mut peak = 0;
    let is_disconnected = (0..1_000).any(|round| {
        let pings: String = (0..500)
            .map(|n| {
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}}\n", round * 500 + n)
            })
            .collect();
        peak = peak.max(peak_mib(child.id()));
        input.write_all(pings.as_bytes()).is_err()
    });
    assert!(is_disconnected, "half a million requests were taken");
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    assert!(said.contains("the client has read nothing for 10s"), "{said}");
    assert!(peak < 300, "{peak} MiB");
}

/// Arguments of this many bytes that take a hundred times as much memory when parsed.
fn costly(bytes: usize) -> String {
    format!(r#"{{"do":"echo","more":[{}[0]]}}"#, "[0],".repeat(bytes / 4))
}

#[test]
fn waiting_requests_are_bounded_by_their_memory() {
    let workspace = Workspace::with_probe("[tools.probe.limits]\nmemory = \"4MiB\"\n");
    let server = HttpServer::start(&workspace, LITTLE);
    let post = |arguments: &str| {
        let (meta, name) = (meta(json!({})), "probe");
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{arguments},"_meta":{meta}}}}}"#
        );
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: tools/call\r\nMcp-Name: {name}\r\nContent-Length: {}\r\n\r\n",
            server.address,
            body.len()
        );
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let _ = stream.write_all(body.as_bytes());
        stream
    };
    // All call slots are taken, so that the others wait.
    let places = 8 * std::thread::available_parallelism().unwrap().get();
    let sleep = json!({ "do": "sleep", "ms": 3_600_000 }).to_string();
    let sleeping: Vec<_> = (0..places).map(|_| post(&sleep)).collect();
    while !server.send("GET", "/metrics", "", "").body.contains(&format!("calls_running {places}"))
    {
        std::thread::yield_now();
    }
    // Each takes 11 MiB when parsed, and there are 63 MiB for large requests.
    let arguments = costly(80_000);
    let waiting: Vec<_> = (0..24).map(|_| post(&arguments)).collect();
    let refused = || {
        let is_refused = |stream: &&TcpStream| {
            let mut status = [0; 12];
            stream.set_nonblocking(true).unwrap();
            stream.peek(&mut status).is_ok_and(|length| &status[9..length.max(9)] == b"503")
        };
        waiting.iter().filter(is_refused).count()
    };
    until(|| refused() >= 24 - 5);
    // An honest client is answered meanwhile.
    assert_eq!(server.message("", "tools/list", json!({})).status, 200);
    assert_eq!(refused(), 24 - 5);
    drop(sleeping);
    let peak = peak_mib(server.child.id());
    assert!(peak < 384, "{peak} MiB");
    for text in ["x".repeat(3_100_000), "\\u0001".repeat(500_000)] {
        let arguments = format!(r#"{{"do":"echo","text":"{text}"}}"#);
        for mut stream in (0..12).map(|_| post(&arguments)).collect::<Vec<_>>() {
            stream.read_exact(&mut [0; 12]).unwrap();
        }
    }
    let peak = peak_mib(server.child.id());
    assert!(peak < 384, "{peak} MiB");
}

#[test]
fn incomplete_bodies_are_bounded_by_the_received_bytes() {
    let workspace = Workspace::new();
    let server = HttpServer::start(&workspace, LITTLE);
    let half = vec![b' '; 3 << 20];
    let head = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: ", server.address);
    let open = || {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "{head}{}\r\n\r\n", 4 << 20).unwrap();
        // A body for which there is no memory is refused before that.
        let _ = stream.write_all(&half);
        stream
    };
    // Together 180 MiB, and there are 96 MiB for all.
    let bodies: Vec<_> = (0..60).map(|_| open()).collect();
    let statuses = bodies.into_iter().map(|mut stream| {
        let mut status = [0; 12];
        stream.read_exact(&mut status).map_or_else(
            |error| error.to_string(),
            |()| String::from_utf8_lossy(&status[9..]).into_owned(),
        )
    });
    let statuses: Vec<_> = statuses.collect();
    let late = statuses.iter().filter(|status| *status == "408").count();
    assert!((20..33).contains(&late), "{statuses:?}");
    let peak = peak_mib(server.child.id());
    assert!(peak < 384, "{peak} MiB");
}

#[test]
fn incomplete_heads_and_bodies_time_out() {
    let workspace = Workspace::new();
    let server = HttpServer::start(&workspace, OPEN);
    let open = |text: String| {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    };
    let host = server.address;
    let body =
        format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1000\r\n\r\n{{\"id\"");
    let bodies: Vec<_> = (0..200).map(|_| open(body.clone())).collect();
    let heads: Vec<_> = (0..50).map(|_| open("POST /mcp HTTP/1.1\r\nHost: ".into())).collect();
    for mut stream in bodies {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
        assert!(answer.contains("must arrive within 10s"), "{answer}");
    }
    for mut stream in heads {
        // Closed, with or without an answer.
        let _ = stream.read_to_end(&mut Vec::new()).unwrap();
    }
    assert_eq!(server.message("", "tools/list", json!({})).status, 200);
}

#[test]
fn an_http_client_that_reads_nothing_is_disconnected() {
    let workspace = Workspace::with_probe("");
    workspace.add_to_own_config("[serve]\nresult_size = \"64MiB\"\n");
    let server = HttpServer::start(&workspace, OPEN);
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let arguments = json!({ "do": "output", "bytes": 1_000_000 });
    let params = json!({ "name": "probe", "arguments": arguments, "_meta": meta(json!({})) });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let body = body.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: probe\r\nContent-Length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    // Until the buffers in between are full and the server closes the connection.
    let error = (0..1_000_000).find_map(|_| stream.write_all(request.as_bytes()).err()).unwrap();
    assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "still connected after a minute");
    let peak = peak_mib(server.child.id());
    assert!(peak < 300, "{peak} MiB");
    assert_eq!(server.message("", "tools/list", json!({})).status, 200);
}

#[test]
fn connections_without_a_token_lock_no_client_out() {
    let workspace = Workspace::new();
    let server = HttpServer::start(&workspace, &[]);
    let token = format!("Authorization: Bearer {}\r\n", server.token.clone().unwrap());
    let connect = || {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(b"GET /").unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream
    };
    let strangers: Vec<_> = (0..1_000).map(|_| connect()).collect();
    // Well before their heads time out, the oldest connections are closed.
    for mut stream in &strangers[..1_000 - 512] {
        let read = stream.read(&mut [0; 1]);
        let is_closed = match &read {
            Ok(read) => *read == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        };
        assert!(is_closed, "{read:?}");
    }
    assert_eq!(server.message(&token, "tools/list", json!({})).status, 200);
    // A client without a token is answered, but the connection is closed.
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok\n"), "{answer}");
}

/// Repeatedly opens connections without a token while `honest` runs, which receives the number of
/// connections opened until now.
fn during_a_flood<T>(server: &HttpServer, honest: impl FnOnce(&AtomicUsize) -> T) -> T {
    const THREADS: usize = 4;
    let (address, is_over, opened) = (server.address, AtomicBool::new(false), AtomicUsize::new(0));
    let connect = || {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).ok()?;
        let _ = stream.write_all(b"POST /m");
        opened.fetch_add(1, Ordering::Relaxed);
        (!is_over.load(Ordering::Relaxed)).then_some(stream)
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    drop((0..300).map_while(|_| connect()).collect::<Vec<_>>());
                }
            });
        }
        let result = honest(&opened);
        is_over.store(true, Ordering::Relaxed);
        result
    })
}

#[test]
fn a_client_with_a_token_connects_during_a_flood() {
    let workspace = Workspace::new();
    let server = HttpServer::start(&workspace, &[]);
    let token = server.token.clone().unwrap();
    let request = format!(
        "GET /metrics HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
         Authorization: Bearer {token}\r\n\r\n",
        server.address
    );
    let statuses: Vec<Option<String>> = during_a_flood(&server, |opened| {
        let ask = || {
            let mut stream = TcpStream::connect_timeout(&server.address, PATIENCE).ok()?;
            stream.set_read_timeout(Some(PATIENCE)).ok()?;
            // Like a slow network: many other connections are opened between its connection and its
            // head.
            let others = opened.load(Ordering::Relaxed) + 300;
            while opened.load(Ordering::Relaxed) < others {
                std::thread::yield_now();
            }
            stream.write_all(request.as_bytes()).ok()?;
            let mut status = [0; 12];
            stream.read_exact(&mut status).ok()?;
            Some(String::from_utf8_lossy(&status).into_owned())
        };
        std::thread::scope(|scope| {
            let asked: Vec<_> = (0..50).map(|_| scope.spawn(ask)).collect();
            asked.into_iter().map(|asked| asked.join().unwrap()).collect()
        })
    });
    let statuses: Vec<_> =
        statuses.iter().map(|status| status.as_deref().unwrap_or("closed")).collect();
    assert_eq!(statuses, ["HTTP/1.1 200"; 50]);
}

#[test]
fn connections_with_a_token_are_limited() {
    let workspace = Workspace::new();
    let server = HttpServer::start(&workspace, OPEN);
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    let status = || {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        (stream, String::from_utf8_lossy(&status).into_owned())
    };
    let mut open = Vec::new();
    let refused = (0..=1_000).find_map(|number| {
        let (stream, status) = status();
        if status != "HTTP/1.1 200" {
            return Some((number, status));
        }
        open.push(stream);
        None
    });
    assert_eq!(refused, Some((1_000, "HTTP/1.1 503".to_owned())));
}

#[test]
fn a_duplicate_request_id_is_refused() {
    let workspace = Workspace::with_probe(
        "[tools.probe.grants]\nfilesystem = [{ host = \".\", guest = \"/workspace\", mode = \"rw\" }]\n",
    );
    let gather = |here: &str| {
        let arguments = json!({ "do": "gather", "path": here, "until": "go" });
        json!({ "name": "probe", "arguments": arguments })
    };
    let call = |id: &str, params: Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
    };
    let mut clients =
        [Client::with_handshake(&workspace, json!({})), Client::stateless(&workspace, json!({}))];
    for (number, client) in clients.iter_mut().enumerate() {
        let here = format!("here{number}");
        let mut params = gather(&here);
        params["_meta"] = meta(json!({}));
        client.write(&call("same", params));
        while !workspace.path(&here).exists() {
            std::thread::yield_now();
        }
        client.write(&call("same", json!({ "name": "probe", "arguments": { "do": "echo" } })));
        let refused = client.wait(|message| message.get("error").is_some());
        assert!(refused.get("id").is_none_or(Value::is_null), "{refused}");
        assert_eq!(
            refused["error"]["message"],
            "a request with the id `same` is still in flight; use another id"
        );
        // Nor does an invalid request get the answer of the first one.
        client.write(r#"{"jsonrpc":"2.0","id":"same","method":5}"#);
        let refused = client.wait(|message| message.get("error").is_some());
        assert!(refused.get("id").is_none_or(Value::is_null), "{refused}");
    }
    // The same in a session over HTTP.
    let server = HttpServer::start(&workspace, OPEN);
    let begun = super::http::begin(&server);
    let headers = super::http::in_session(&begun);
    std::thread::scope(|scope| {
        let first =
            scope.spawn(|| server.send("POST", "/mcp", &headers, &call("same", gather("here2"))));
        while !workspace.path("here2").exists() {
            std::thread::yield_now();
        }
        let second = json!({ "name": "probe", "arguments": { "do": "echo", "text": "x" } });
        let refused = server.send("POST", "/mcp", &headers, &call("same", second.clone()));
        assert_eq!(refused.status, 400, "{refused:?}");
        workspace.file("go", "");
        let first = first.join().unwrap().message();
        assert_eq!(texts(&first["result"]), ["gather here2: let go"]);
        let again = server.send("POST", "/mcp", &headers, &call("same", second)).message();
        assert_eq!(texts(&again["result"]), ["x"]);
    });
    for (number, client) in clients.iter_mut().enumerate() {
        let answer = client.wait(|message| message["id"] == "same");
        assert_eq!(texts(&answer["result"]), [format!("gather here{number}: let go")]);
    }
}

#[test]
fn a_secret_that_others_can_read_is_refused() {
    let workspace = Workspace::new();
    let file = workspace.outside().join("secret");
    std::fs::write(&file, "a-token-of-my-own-1234-and-a-key-too\n").unwrap();
    let path = file.to_str().unwrap();
    for option in ["--token-file", "--state-key-file"] {
        for mode in [0o644, 0o640, 0o604, 0o620] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            let run = workspace.run(&["serve", "--http", "127.0.0.1:0", option, path]);
            let shown = "<outside>/secret";
            let expected = format!(
                "`{shown}` can be read or written by others (mode {mode:04o}); run `chmod 600 {shown}`"
            );
            assert_eq!(run.code, 2, "{}", run.shown());
            assert!(run.stderr.contains(&expected), "{}", run.shown());
        }
    }
}

#[test]
fn metrics_require_an_allowed_host_and_origin() {
    let workspace = Workspace::new();
    let server = HttpServer::start(&workspace, OPEN);
    let port = server.address.port();
    let status = |headers: &str| server.send("GET", "/metrics", headers, "").status;
    assert_eq!(status(""), 200);
    assert_eq!(status(&format!("Origin: http://127.0.0.1:{port}\r\n")), 200);
    for headers in ["Host: evil.example\r\n", "Origin: http://evil.example\r\n", "Origin: null\r\n"]
    {
        assert_eq!(status(headers), 403, "{headers}");
    }
}

#[test]
fn a_call_waits_for_the_memory_of_the_server() {
    let workspace = Workspace::with_probe(
        "[tools.probe.grants]\nfilesystem = [{ host = \".\", guest = \"/workspace\", mode = \"rw\" }]\n",
    );
    // One call of the default size fits, but not two.
    workspace.own_config("[serve]\nmemory = \"384MiB\"\n");
    let mut client = Client::start(&workspace, &[]);
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    client.request("initialize", hello);
    let arguments = json!({ "do": "gather", "path": "here", "until": "go" });
    let first = client.send("tools/call", json!({ "name": "probe", "arguments": arguments }));
    while !workspace.path("here").exists() {
        std::thread::yield_now();
    }
    let echo = json!({ "name": "probe", "arguments": { "do": "echo", "text": "second" } });
    let second = client.send("tools/call", echo);
    // An `echo` that did not wait would be answered among these.
    for _ in 0..100 {
        assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    }
    assert!(client.others().is_empty(), "a call did not wait");
    workspace.file("go", "");
    // The second call runs when the first has released its memory, and may be answered before it.
    let mut answered = [(); 2].map(|()| {
        client.wait(|message| message["id"] == first || message["id"] == second)["id"].as_u64()
    });
    answered.sort_unstable();
    assert_eq!(answered, [Some(first), Some(second)]);
}

/// The maximum number of calls of a tool that waits for a server which never answers.
#[test]
fn a_tool_with_a_hanging_server_delays_no_other_tool() {
    let processors = std::thread::available_parallelism().unwrap().get();
    // A tool gets a share of its client's limit: of 384 MiB (a call takes 116 MiB), or of the call
    // slots if there is memory for all of them.
    for (memory, share) in [(1, 2), (2 * processors, 7 * processors - 7 * processors / 8)] {
        let silent = Server::start(Behaviour::Silent);
        let workspace = Workspace::with_probe("");
        workspace.own_config(&format!(
            "[serve]\nmemory = \"{memory}GiB\"\n\
             [tools.request]\nsource = \"local\"\nwasm = {:?}\nlimits.time = \"10min\"\n\
             [tools.request.grants]\nhttp = [\"{}/**\"]\n",
            guest("request"),
            silent.url()
        ));
        let server = HttpServer::start(&workspace, &["--no-token"]);
        let check_other = || {
            let arguments = json!({ "do": "echo", "text": "answered" });
            let params = json!({ "name": "probe", "arguments": arguments });
            let answer = server.message("", "tools/call", params);
            assert!(answer.body.contains("answered"), "{answer:?}");
        };
        // Compiled beforehand, while it need not wait.
        check_other();
        let arguments = json!({ "url": silent.url() });
        let params = json!({ "name": "request", "arguments": arguments });
        let hanging: Vec<_> = (0..=8 * processors.max(25))
            .map(|_| server.begin("", "tools/call", params.clone()))
            .collect();
        silent.wait_for_requests(share);
        for _ in 0..3 {
            check_other();
        }
        assert_eq!(silent.seen().requests.len(), share);
        drop(hanging);
    }
}

#[test]
fn a_call_larger_than_server_memory_is_refused() {
    let workspace = Workspace::with_probe("");
    workspace
        .own_config("[serve]\nmemory = \"384MiB\"\n[tools.probe.limits]\nmemory = \"256MiB\"\n");
    let mut client = Client::with_handshake(&workspace, json!({}));
    let refused = client.call("probe", json!({ "do": "echo", "text": "x" }));
    assert_eq!(
        texts(&refused),
        ["the call may need 276 MiB (its limit `memory` and memory of the host), but the server \
             has 112 MiB for all calls; ask the user to raise `memory` under `[serve]`"]
    );
    // The command line has no such limit.
    assert_eq!(workspace.call("probe", json!({ "do": "echo", "text": "x" })), "x");
    let run = workspace.run(&["serve", "--total-memory", "1MiB"]);
    assert_eq!(run.code, 2, "{}", run.shown());
    let expected = "`--total-memory` is `1 MiB`; a server needs at least `384 MiB`";
    assert!(run.stderr.contains(expected), "{}", run.shown());
}
