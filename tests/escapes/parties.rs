//! The promises between calls, and by two parties at once: whatever one tool or one
//! client does, each call of another is answered as if it were alone.
//!
//! What a tool tries within one call stands in the other modules.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kitbag::Kitbag;
use serde_json::{Value, json};

use crate::support::http::HttpServer;
use crate::support::mcp::Client;
use crate::support::{CallInTest, Workspace, guest, snapshot};

/// What the tool `attacker` does: it runs into each of its limits, breaks off, and leaves
/// behind what it can.
fn attacks() -> Vec<Value> {
    vec![
        json!({ "do": "state" }),
        json!({ "do": "tmp" }),
        json!({ "do": "allocate", "bytes": 64 << 20, "abort": true }),
        json!({ "do": "recurse" }),
        json!({ "do": "handles", "n": 100_000, "of": "descriptors" }),
        json!({ "do": "pollables", "n": 100_000 }),
        json!({ "do": "random", "bytes": u64::MAX }),
        json!({ "do": "output", "bytes": 100_000 }),
        json!({ "do": "print", "text": "{\"jsonrpc\":\"2.0\"}\n", "to": "both", "repeat": 10_000 }),
        json!({ "do": "log", "text": "x", "repeat": 2000, "then": "panic" }),
        json!({ "do": "emit", "repeat": 2000, "then": "fail" }),
        json!({ "do": "ask" }),
        json!({ "do": "exit", "code": 3 }),
        json!({ "do": "list", "path": "/proc/self" }),
        json!({ "do": "spin" }),
        json!({ "do": "sleep", "ms": 60_000 }),
    ]
}

/// What the tool `probe` looks for afterwards, and meanwhile. Each has one answer.
fn probes() -> Vec<Value> {
    vec![
        json!({ "do": "environment" }),
        json!({ "do": "argv" }),
        json!({ "do": "cwd" }),
        json!({ "do": "stdin" }),
        json!({ "do": "preopens" }),
        json!({ "do": "state" }),
        json!({ "do": "tmp" }),
        json!({ "do": "list-all", "path": "." }),
        json!({ "do": "handles", "n": 100, "of": "descriptors" }),
        json!({ "do": "allocate", "bytes": 8 << 20, "abort": true }),
        json!({ "do": "random", "bytes": 16 }),
        json!({ "do": "print", "text": "hello", "to": "both" }),
        json!({ "do": "log" }),
        json!({ "do": "emit" }),
        json!({ "do": "echo", "text": "still here" }),
    ]
}

/// A workspace with both tools. Time is short for the one that uses it up.
fn workspace() -> Workspace {
    let workspace = Workspace::with_probe(&format!(
        "[tools.attacker]\nsource = \"local\"\nwasm = {:?}\n\
         [tools.attacker.limits]\nmemory = \"16MiB\"\ntime = \"200ms\"\noutput = \"1KiB\"\n",
        guest("probe"),
    ));
    workspace.file("a.txt", "A");
    workspace
}

/// Who calls tools.
enum Party<'a> {
    Library(Kitbag),
    Stdio(Mutex<Client>),
    Http(&'a HttpServer),
    Process(&'a Workspace),
}

impl Party<'_> {
    fn stdio(workspace: &Workspace) -> Self {
        Self::Stdio(Mutex::new(Client::with_handshake(workspace, json!({}))))
    }

    fn call(&self, tool: &str, arguments: &Value) -> String {
        match self {
            Self::Library(kitbag) => kitbag.call_in_test(tool, arguments.clone()),
            Self::Stdio(client) => client.lock().unwrap().call(tool, arguments.clone()).to_string(),
            Self::Http(server) => {
                let params = json!({ "name": tool, "arguments": arguments });
                let reply = server.message("", "tools/call", params);
                assert_eq!(reply.status, 200, "{reply:?}");
                reply.message()["result"].to_string()
            }
            Self::Process(workspace) => {
                workspace.run(&["run", tool, "--args", &arguments.to_string()]).shown()
            }
        }
    }

    fn answers(&self) -> Vec<String> {
        probes().iter().map(|arguments| self.call("probe", arguments)).collect()
    }
}

/// Lets one party look again and again while another attacks, until that one has tried
/// everything.
#[track_caller]
fn check_together(attack: impl Fn(usize) + Sync, attacks: usize, victim: &Party<'_>) {
    let alone = victim.answers();
    let (tried, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                attack(tried.fetch_add(1, Ordering::SeqCst) % attacks);
            }
        });
        // The thread ends also where this does not hold.
        let all_as_alone = loop {
            let answers = victim.answers();
            if answers != alone || tried.load(Ordering::SeqCst) > attacks {
                break answers;
            }
        };
        is_over.store(true, Ordering::SeqCst);
        assert_eq!(all_as_alone, alone);
    });
}

#[test]
fn the_attacks_on_other_calls_run_into_their_limits() {
    let workspace = workspace();
    let library = Party::Library(workspace.kitbag());
    let got: String = attacks()
        .iter()
        .map(|attack| library.call("attacker", attack))
        .map(|answer| format!("{}\n", answer.chars().take(100).collect::<String>()))
        .collect();
    snapshot!("attacks", &workspace.redact(&got));
}

#[test]
fn whatever_a_call_did_the_next_one_is_as_if_it_were_the_first() {
    let workspace = workspace();
    let server = HttpServer::start(&workspace, &["--no-token"]);
    let parties =
        [Party::Library(workspace.kitbag()), Party::stdio(&workspace), Party::Http(&server)];
    let list = workspace.run(&["list"]).success();
    let process = Party::Process(&workspace).answers();
    for party in &parties {
        let first = party.answers();
        for attack in attacks() {
            party.call("attacker", &attack);
            assert_eq!(party.answers(), first, "after {attack}");
        }
    }
    // Nor is anything left for another process.
    assert_eq!(Party::Process(&workspace).answers(), process);
    assert_eq!(workspace.run(&["list"]).success(), list);
}

#[test]
fn a_tool_is_answered_as_if_alone_while_another_runs_into_its_limits() {
    let workspace = workspace();
    let attacks = attacks();
    let library = Party::Library(workspace.kitbag());
    let attack = |number: usize| drop(library.call("attacker", &attacks[number]));
    check_together(attack, attacks.len(), &library);
}

#[test]
fn a_client_is_answered_as_if_alone_while_anothers_tool_runs_into_its_limits() {
    let workspace = workspace();
    let attacks = attacks();
    let server = HttpServer::start(&workspace, &["--no-token"]);
    let (attacker, client) = (Party::Http(&server), Party::Http(&server));
    let attack = |number: usize| drop(attacker.call("attacker", &attacks[number]));
    check_together(attack, attacks.len(), &client);
}

#[test]
fn a_client_is_answered_as_if_alone_while_another_breaks_the_protocol() {
    let workspace = workspace();
    let server = HttpServer::start(&workspace, &["--no-token"]);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let long = format!("\"{}\"", "x".repeat(3 << 20));
    let bodies = ["", "{", "null", "[]", "\u{0}", &deep, &long, "{\"jsonrpc\":\"2.0\",\"id\":1}"];
    let headers =
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    let attack = |number: usize| {
        let reply = server.send("POST", "/mcp", headers, bodies[number]);
        assert!((400..500).contains(&reply.status), "{number}: {reply:?}");
    };
    check_together(attack, bodies.len(), &Party::Http(&server));
}
