//! The memory of a server under attack, compared with `--total-memory`.
//!
//! The kernel records the peak memory of a process, so no moment is missed. Each attack continues
//! until a number of its requests were answered, regardless of the answer; `benches/soak` runs all
//! of them at once, for any duration.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kitbag_test_servers::{Behaviour, Server};
use serde_json::{Value, json};

use super::http::{TYPES, begin, in_session};
use super::texts;
use crate::support::http::HttpServer;
use crate::support::mcp::{Client, meta};
use crate::support::{Workspace, guest, peak_mib, process_stat};

/// How long a test waits before it fails. It is not a measurement.
const PATIENCE: Duration = Duration::from_secs(60);

/// The smallest total memory of a server.
const TOTAL_MIB: u64 = 384;

/// Number of answered requests of an attack, and number of clients.
const ANSWERED: usize = 16;
const CLIENTS: usize = 16;

/// A server with the tool `probe`, and a request for it in the stateless revision.
struct Attacked {
    server: HttpServer,
    workspace: Workspace,
    total_mib: u64,
}

impl Attacked {
    fn start() -> Self {
        Self::start_in(Workspace::with_probe(""), TOTAL_MIB)
    }

    fn start_in(workspace: Workspace, total_mib: u64) -> Self {
        // Large answers are sent whole.
        workspace.add_to_own_config("[serve]\nresult_size = \"64MiB\"\n");
        workspace.run(&["run", "probe", "do=echo", "text=compiled"]).success();
        let total = format!("{total_mib}MiB");
        let server = HttpServer::start(&workspace, &["--no-token", "--total-memory", &total]);
        Self { server, workspace, total_mib }
    }

    fn request(&self, arguments: &Value) -> String {
        let meta = meta(json!({}));
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"probe","arguments":{arguments},"_meta":{meta}}}}}"#
        );
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: tools/call\r\nMcp-Name: probe\r\nContent-Length: {}\r\n\r\n{body}",
            self.server.address,
            body.len()
        )
    }

    /// Sends a request on its own connection, and reads the start of the answer.
    fn ask(&self, request: &str) -> Option<TcpStream> {
        let mut stream = TcpStream::connect(self.server.address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.set_write_timeout(Some(PATIENCE)).ok()?;
        // A server that refuses a request does not read all of it.
        let _ = stream.write_all(request.as_bytes());
        stream.read_exact(&mut [0; 12]).ok()?;
        Some(stream)
    }

    /// Runs an attack by all clients until this many requests were answered, and then a request of
    /// an honest client.
    #[track_caller]
    fn check(&self, name: &str, times: usize, attack: impl Fn(&Self) -> bool + Sync) {
        let (answered, tried) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    while answered.load(Ordering::Relaxed) < times {
                        let number = tried.fetch_add(1, Ordering::Relaxed);
                        assert!(number < 100 * times, "{name}: {number} tries for {times} answers");
                        answered.fetch_add(usize::from(attack(self)), Ordering::Relaxed);
                    }
                });
            }
        });
        let peak = peak_mib(self.server.child.id());
        assert!(peak < self.total_mib, "{name}: {peak} of {} MiB", self.total_mib);
        assert!(peak > 20, "{name}: {peak} MiB are not those of a server");
        let honest = json!({ "name": "probe", "arguments": { "do": "echo", "text": "honest" } });
        let answer = (0..100).map(|_| self.server.message("", "tools/call", honest.clone()));
        let answer = answer.map(|reply| reply.body).find(|body| body.contains("honest"));
        assert!(answer.is_some(), "{name}: an honest client was not answered");
    }

    /// Like [`Self::check`], with calls that have these arguments and whose answers are read.
    #[track_caller]
    fn check_calls(&self, name: &str, arguments: &Value) {
        let request = self.request(arguments);
        let request = request.replacen("\r\n", "\r\nConnection: close\r\n", 1);
        self.check(name, ANSWERED, |attacked| {
            let answer = attacked.ask(&request);
            answer.is_some_and(|mut stream| stream.read_to_end(&mut Vec::new()).is_ok())
        });
    }
}

#[test]
fn memory_stays_bounded_while_calls_attack_the_server() {
    let attacked = Attacked::start();
    let check = |name: &str, arguments: Value| attacked.check_calls(name, &arguments);
    check("memory", json!({ "do": "allocate", "bytes": 60_000_000 }));
    // An answer is copied before it is truncated, into a buffer that the allocator may keep.
    for bytes in [8_000_000, 16_000_000, 31_000_000] {
        check("answers", json!({ "do": "output", "bytes": bytes }));
    }
    check("content", json!({ "do": "emit", "bytes": 900_000, "repeat": 2 }));
    check("logs", json!({ "do": "log", "text": "x".repeat(4_000), "repeat": 2_000 }));
    check(
        "streams",
        json!({ "do": "print", "text": "x".repeat(100_000), "to": "both", "repeat": 10 }),
    );
    check("errors", json!({ "do": "fail", "trace": vec!["a"; 90_000] }));
    check("handles", json!({ "do": "handles", "n": 500 }));
    check("arguments", json!({ "do": "echo", "text": "x".repeat(1_000_000) }));
    check("escapes", json!({ "do": "echo", "text": "\u{1}".repeat(160_000) }));
    check("beyond", json!({ "do": "echo", "text": "x".repeat(3_100_000) }));
    check("values", json!({ "do": "echo", "more": vec![[0]; 80_000] }));
}

/// Number of page faults of a process until now.
fn page_faults(process: u32) -> u64 {
    // `minflt`
    process_stat(process, 7).unwrap().parse().unwrap()
}

#[test]
fn consecutive_large_calls_reuse_their_memory() {
    const CALLS: u64 = 10;
    let workspace = Workspace::new();
    // The session would keep the results.
    workspace.own_config("[serve]\nresult_size = \"64MiB\"\n");
    workspace.config(&format!("[tools.echo]\nsource = \"local\"\nwasm = {:?}\n", guest("echo")));
    workspace.run(&["run", "echo", "text=compiled"]).success();
    let mut client = Client::with_handshake(&workspace, json!({}));
    let mut call = |_| {
        let answer = client.call("echo", json!({ "text": "x".repeat(1_000_000) }));
        assert_eq!(answer["isError"], false);
        page_faults(client.process_id())
    };
    let before = (0..CALLS).map(&mut call).last().unwrap();
    let after = (0..CALLS).map(&mut call).last().unwrap();
    // A megabyte has 244 pages, and is held in several buffers.
    let each = (after - before) / CALLS;
    assert!(each < 244, "{each} page faults a call");
}

#[test]
fn memory_stays_bounded_during_many_requests() {
    const CALLS: usize = 2 * CLIENTS;
    const REQUESTS: usize = 10;
    let server = Server::start(Behaviour::Echo);
    let workspace = Workspace::with_probe("");
    workspace.own_config(&format!(
        "[tools.request]\nsource = \"local\"\nwasm = {:?}\n\
         [tools.request.grants]\nhttp = [{{ url = \"{}/**\", methods = [\"POST\"] }}]\n",
        guest("request"),
        server.url()
    ));
    // So that several calls run concurrently.
    let attacked = Attacked::start_in(workspace, 1024);
    let arguments = json!({
        "url": server.url(), "method": "POST", "body": "0123456789", "repeat": 10_000,
        "times": REQUESTS, "at_once": true,
    });
    let params = json!({ "name": "request", "arguments": arguments });
    attacked.check("requests", CALLS, |attacked| {
        let answer = attacked.server.message("", "tools/call", params.clone());
        // Long answers are truncated, and each begins with its status.
        assert!(answer.body.contains("\\\"status\\\":200"), "{answer:?}");
        true
    });
    let seen = server.seen();
    assert!(seen.requests.len() >= CALLS * REQUESTS, "{}", seen.requests.len());
}

#[test]
fn memory_stays_bounded_when_clients_give_up() {
    let attacked = Attacked::start();
    let [spin, output, echo] = [
        json!({ "do": "spin" }),
        json!({ "do": "output", "bytes": 16_000_000 }),
        json!({ "do": "echo", "text": "x".repeat(900_000) }),
    ]
    .map(|arguments| attacked.request(&arguments));
    let begin = |request: &str| {
        let mut stream = TcpStream::connect(attacked.server.address).ok()?;
        stream.set_write_timeout(Some(PATIENCE)).ok()?;
        let _ = stream.write_all(request.as_bytes());
        Some(stream)
    };
    attacked.check("loops that are given up", 200, |_| begin(&spin).is_some());
    attacked.check("answers that are given up", 200, |_| begin(&output).is_some());
    attacked.check("half a request", 500, |_| begin(&echo[..echo.len() / 2]).is_some());
    attacked.check("answers that are not read", CLIENTS, |attacked| {
        let Some(mut stream) = attacked.ask(&echo) else { return false };
        let more = (0..20).take_while(|_| stream.write_all(echo.as_bytes()).is_ok());
        more.count() > 0
    });
}

/// The handshake of a session with this client information and these capabilities.
fn hello(client: &Value, capabilities: &Value) -> String {
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client,
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string()
}

#[test]
fn sessions_keep_little_of_client_information() {
    let attacked = Attacked::start();
    let begin = |client: Value, capabilities: Value| {
        attacked.server.send("POST", "/mcp", TYPES, &hello(&client, &capabilities))
    };
    let client = |title: &str| json!({ "name": "t", "version": "1", "title": title });
    let reply = begin(client(&"x".repeat(70_000)), json!({}));
    assert_eq!(reply.status, 400, "{reply:?}");
    let message = reply.message()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.ends_with("the limit is 64 KiB"), "{message}");
    // Each tree takes megabytes.
    let tree = json!({ "experimental": { "a": { "b": vec![json!([]); 20_000] } } });
    for number in 0..300 {
        let reply = begin(client(&number.to_string()), tree.clone());
        assert_eq!(reply.status, 200, "{number}: {reply:?}");
        in_session(&reply);
    }
    let peak = peak_mib(attacked.server.child.id());
    assert!(peak < 128, "{peak} MiB for 300 sessions");
}

#[test]
fn subscriptions_are_bounded_by_their_memory() {
    let attacked = Attacked::start();
    attacked.workspace.file("notes/a.md", "A\n");
    attacked.workspace.config("[knowledge.team]\nsubjects = \"notes\"\n");
    let total = format!("{TOTAL_MIB}MiB");
    let server = HttpServer::start(&attacked.workspace, &["--no-token", "--total-memory", &total]);
    let session = || in_session(&begin(&server));
    let subscribe = |session: &str, number: usize| {
        let uri = format!("kb://team/{number}{}", "x".repeat(2_000_000));
        let request = json!({
            "jsonrpc": "2.0", "id": number, "method": "resources/subscribe",
            "params": { "uri": uri },
        });
        server.send("POST", "/mcp", session, &request.to_string())
    };
    let sessions = [session(), session()];
    let refused = (1..100).find_map(|number| {
        let reply = subscribe(&sessions[number % 2], number);
        (!reply.body.contains("result")).then_some((number, reply))
    });
    let (number, reply) = refused.expect("something is refused");
    assert!((10..60).contains(&number), "{number}: {reply:?}");
    assert!(reply.body.contains("busy: "), "{reply:?}");
    let peak = peak_mib(server.child.id());
    assert!(peak < TOTAL_MIB, "{peak} MiB");
    // Their memory is free again after the sessions end.
    for session in &sessions {
        assert_eq!(server.send("DELETE", "/mcp", session, "").status, 204);
    }
    let after = session();
    let is_free = (0..1_000).any(|_| subscribe(&after, 1).body.contains("result"));
    assert!(is_free, "the memory of ended sessions is not free");
}

#[test]
fn answers_of_sessions_are_not_kept() {
    let attacked = Attacked::start();
    let session = in_session(&begin(&attacked.server));
    let call = |number: u64| {
        let arguments = json!({ "do": "output", "bytes": 1_000_000 });
        let request = json!({
            "jsonrpc": "2.0", "id": number, "method": "tools/call",
            "params": { "name": "probe", "arguments": arguments },
        });
        let reply = attacked.server.send("POST", "/mcp", &session, &request.to_string());
        assert!(reply.body.len() > 1_000_000, "{number}: {}", reply.head);
        peak_mib(attacked.server.child.id())
    };
    let before = (1..=20).map(call).max().unwrap();
    let after = (21..=120).map(call).max().unwrap();
    assert!(after < before + 50, "{before} and {after} MiB, after 100 more answers of 1 MB");
}

#[test]
fn waiting_questions_are_bounded_by_their_memory() {
    let workspace = Workspace::with_probe("");
    let total = format!("{TOTAL_MIB}MiB");
    let forms = json!({ "elicitation": { "form": {} } });
    let mut client = Client::start(&workspace, &["--total-memory", &total]).after_handshake(forms);
    let ask = |text: String| json!({ "name": "probe", "arguments": { "do": "ask", "text": text } });
    // A question that violates the tool's contract is refused.
    let answer = client.request("tools/call", ask("x".repeat(70_000)));
    let text = texts(&answer["result"]).join(" ");
    assert!(text.contains("the text of a question has"), "{text}");
    let ids: Vec<_> =
        (0..1_000).map(|_| client.send("tools/call", ask("x".repeat(65_000)))).collect();
    let is_busy = |message: &Value| {
        message["error"]["message"].as_str().is_some_and(|m| m.starts_with("busy: "))
    };
    let is_asked = |message: &Value| message["method"] == "elicitation/create";
    let (mut asked, mut busy) = (Vec::new(), 0);
    while asked.len() + busy < ids.len() {
        let message = client.wait(|message| is_asked(message) || is_busy(message));
        match is_asked(&message) {
            true => asked.push(message["id"].clone()),
            false => busy += 1,
        }
    }
    assert!(asked.len() > 10 && busy > 10, "{} asked, {busy} refused", asked.len());
    let peak = peak_mib(client.process_id());
    assert!(peak < TOTAL_MIB, "{peak} MiB for {} questions", asked.len());
    // An answer releases its memory.
    let declined = json!({ "jsonrpc": "2.0", "id": asked[0], "result": { "action": "decline" } });
    client.write(&declined.to_string());
    client.wait(|message| message["result"]["content"].is_array());
    assert_eq!(texts(&client.call("probe", json!({ "do": "echo", "text": "x" }))), ["x"]);
}

#[test]
fn incomplete_heads_take_little_memory() {
    let attacked = Attacked::start();
    let head = format!("GET /healthz HTTP/1.1\r\nX-A: {}", "a".repeat(400_000));
    let open: Vec<_> = (0..300)
        .map(|_| {
            let mut stream = TcpStream::connect(attacked.server.address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            // The server closes the connection when it has read enough.
            let _ = stream.write_all(head.as_bytes());
            stream
        })
        .collect();
    let mut answers = open.into_iter().map(|mut stream| {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer)
    });
    // The kernel may have discarded the answer together with the unread data.
    assert!(
        answers
            .all(|answer| answer.is_err() || answer.is_ok_and(|a| a.starts_with("HTTP/1.1 431")))
    );
    let peak = peak_mib(attacked.server.child.id());
    assert!(peak < 96, "{peak} MiB for 300 heads");
}
