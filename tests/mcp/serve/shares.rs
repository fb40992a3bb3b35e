//! Memory and shares of a server whose clients take as much as possible.
//!
//! Budgets are small and attacks are counted, so that no test depends on the machine's speed.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::http::{TYPES, begin};
use crate::support::http::{HttpServer, Reply};
use crate::support::mcp::{Client, meta_of};
use crate::support::{Workspace, guest, peak_mib};

/// How long a request may take before its test fails. It is not a measurement.
const PATIENCE: Duration = Duration::from_secs(60);

/// The tools `relay`, which calls other tools as its arguments specify, and `probe`.
fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.own_config(&format!(
        "[tools.probe]\nsource = \"local\"\nwasm = {:?}\n\
         grants.filesystem = [{{ host = \".\", guest = \"/workspace\", mode = \"rw\" }}]\n\
         [tools.relay]\nsource = \"local\"\nwasm = {:?}\n\
         grants.filesystem = []\ngrants.tools = {{ probe = \"probe\" }}\nlimits.tool_calls = 200\n",
        guest("probe"),
        guest("relay")
    ));
    workspace.run(&["run", "probe", "do=echo", "text=compiled"]).success();
    workspace.run(&["run", "relay", "--args", r#"{"steps":[]}"#]).success();
    workspace
}

fn start(workspace: &Workspace, total_mib: u64) -> HttpServer {
    let total = format!("{total_mib}MiB");
    HttpServer::start(workspace, &["--no-token", "--total-memory", &total])
}

fn call(server: &HttpServer, client: &str, tool: &str, arguments: &Value) -> Reply {
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta_of(client) });
    server.message("", "tools/call", params)
}

/// Checks that a session can be started.
#[track_caller]
fn check_served(server: &HttpServer) {
    let reply = begin(server);
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.body.contains("\"result\""), "{reply:?}");
}

#[test]
fn queued_inner_calls_stay_within_the_memory_of_the_server() {
    const TOTAL_MIB: u64 = 640;
    let workspace = workspace();
    let server = start(&workspace, TOTAL_MIB);
    // Each takes 8 MB when parsed; four slow calls keep them waiting.
    let junk = json!({ "do": "echo", "more": vec![[0]; 49_000] });
    let arguments = json!({ "steps": [
        { "start": { "tool": "probe", "arguments": { "do": "sleep", "ms": 600_000 }, "times": 4 } },
        { "start": { "tool": "probe", "arguments": junk, "times": 120 } },
        { "log": { "text": "started" } },
        "drop",
    ] });
    let reply = call(&server, "greedy", "relay", &arguments);
    let peak = peak_mib(server.child.id());
    assert!(peak < TOTAL_MIB, "{peak} of {TOTAL_MIB} MiB: {reply:?}");
}

#[test]
fn arguments_of_waiting_inner_calls_are_bounded() {
    let workspace = workspace();
    let mut client = Client::with_handshake(&workspace, json!({}));
    let slow = json!({ "do": "gather", "path": "here", "until": "go" });
    let large = json!({ "do": "echo", "text": "echoed", "more": "x".repeat(900_000) });
    let steps = json!([
        { "start": { "tool": "probe", "arguments": slow, "times": 4 } },
        { "start": { "tool": "probe", "arguments": large, "times": 8 } },
        { "log": { "text": "all are started" } },
        "finish",
    ]);
    let params = json!({ "name": "relay", "arguments": { "steps": steps } });
    let id = client.send("tools/call", params);
    while !workspace.path("here").exists() {
        std::thread::yield_now();
    }
    for _ in 0..100 {
        client.request("ping", json!({}));
    }
    assert!(client.others().is_empty(), "more is started than may wait");
    workspace.file("go", "");
    let answer = client.answer(id);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    assert_eq!(text.matches("ok echoed").count(), 8, "{answer}");
}

#[test]
fn calls_left_at_a_question_lock_no_client_out() {
    let workspace = workspace();
    let server = start(&workspace, 640);
    let arguments = json!({ "steps": [
        { "call": { "tool": "probe", "arguments": { "do": "output", "bytes": 900_000 }, "times": 8 } },
        { "ask": { "text": "Go on?" } },
    ] });
    for number in 0..14 {
        let reply = call(&server, "left", "relay", &arguments);
        assert!(reply.body.contains("Go on?"), "{number}: {reply:?}");
    }
    check_served(&server);
}

#[test]
fn bodies_of_one_client_leave_memory_for_small_messages() {
    let workspace = Workspace::new();
    let server = start(&workspace, 384);
    let part = vec![b' '; 3_900_000];
    let _bodies: Vec<_> = (0..40)
        .filter_map(|_| {
            let mut stream = TcpStream::connect(server.address).ok()?;
            stream.set_write_timeout(Some(PATIENCE)).ok()?;
            let address = server.address;
            let head = format!(
                "POST /mcp HTTP/1.1\r\nHost: {address}\r\n{TYPES}Content-Length: 4000000\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).ok()?;
            // The server refuses bodies for which it has no memory.
            stream.write_all(&part).ok()?;
            Some(stream)
        })
        .collect();
    // Until the server refuses further bodies.
    let is_full = || server.send("GET", "/metrics", "", "").body.contains("why=\"memory\"");
    while !is_full() {
        std::thread::yield_now();
    }
    check_served(&server);
}

/// A server with memory for six calls and the tool `probe` under several names.
struct Crowded {
    workspace: Workspace,
    server: HttpServer,
    running: Vec<TcpStream>,
}

impl Crowded {
    const TOOLS: [&str; 4] = ["one", "two", "three", "four"];

    fn start() -> Self {
        let workspace = Workspace::new();
        let tool = |name: &&str| {
            format!(
                "[tools.{name}]\nsource = \"local\"\nwasm = {:?}\n[tools.{name}.grants]\n\
                 filesystem = [{{ host = \".\", guest = \"/workspace\", mode = \"rw\" }}]\n",
                guest("probe")
            )
        };
        workspace.own_config(&Self::TOOLS.iter().map(tool).collect::<String>());
        workspace.run(&["run", "one", "do=echo", "text=compiled"]).success();
        let server = start(&workspace, 1024);
        Self { workspace, server, running: Vec::new() }
    }

    /// Starts many calls of all tools as a client, until this many run.
    fn fill(&mut self, client: &str, calls: usize) {
        for number in 0..24 {
            let here = format!("{client}{number}");
            let arguments = json!({ "do": "gather", "path": here, "until": "go" });
            let tool = Self::TOOLS[number % Self::TOOLS.len()];
            let params = json!({ "name": tool, "arguments": arguments, "_meta": meta_of(client) });
            self.running.push(self.server.begin("", "tools/call", params));
        }
        while self.begun(client) < calls {
            std::thread::yield_now();
        }
    }

    /// Number of calls of a client that have started.
    fn begun(&self, client: &str) -> usize {
        (0..24).filter(|n| self.workspace.path(&format!("{client}{n}")).exists()).count()
    }

    #[track_caller]
    fn check_answered(&self, client: &str) {
        let arguments = json!({ "do": "echo", "text": "answered" });
        for _ in 0..3 {
            let reply = call(&self.server, client, "one", &arguments);
            assert!(reply.body.contains("answered"), "{reply:?}");
        }
    }
}

#[test]
fn a_client_leaves_memory_for_other_clients() {
    let mut crowded = Crowded::start();
    // The limit of a client is independent of its choice of tools.
    crowded.fill("greedy", 4);
    crowded.check_answered("honest");
    assert_eq!(crowded.begun("greedy"), 4);
    crowded.workspace.file("go", "");
}

#[test]
fn two_greedy_clients_leave_memory_for_a_third() {
    let mut crowded = Crowded::start();
    crowded.fill("greedy", 4);
    crowded.fill("greedier", 1);
    crowded.check_answered("honest");
    assert_eq!((crowded.begun("greedy"), crowded.begun("greedier")), (4, 1));
    crowded.workspace.file("go", "");
}

/// The niceness of each thread that runs calls, from the kernel's list.
fn niceness_of_calls(server: &HttpServer) -> Vec<i64> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", server.child.id())).unwrap();
    let stats = threads.filter_map(|it| std::fs::read_to_string(it.ok()?.path().join("stat")).ok());
    stats
        .filter_map(|stat| {
            let (name, fields) = stat.rsplit_once(") ")?;
            // proc_pid_stat(5): the first field after the name is the third, and the niceness is
            // the 19th.
            let niceness = fields.split(' ').nth(16)?.parse().ok()?;
            name.ends_with("(kitbag-call").then_some(niceness)
        })
        .collect()
}

#[test]
fn long_running_guests_yield_to_other_calls() {
    const MOST_CALLS: usize = 10_000;
    let workspace = workspace();
    let processors = std::thread::available_parallelism().unwrap().get();
    let server = start(&workspace, 1024 + 256 * processors as u64);
    let arguments = json!({ "do": "spin" });
    let params = json!({ "name": "probe", "arguments": arguments, "_meta": meta_of("greedy") });
    let _running: Vec<_> =
        (0..processors).map(|_| server.begin("", "tools/call", params.clone())).collect();
    // A call that arrives while every processor runs a call lowers the priority of the long ones.
    let have_given_way = (0..MOST_CALLS).any(|_| {
        let reply = call(&server, "honest", "probe", &json!({ "do": "echo", "text": "answered" }));
        assert!(reply.body.contains("answered"), "{reply:?}");
        let niceness = niceness_of_calls(&server);
        let usual = niceness.iter().min().copied().unwrap_or_default();
        niceness.iter().filter(|it| **it > usual).count() == processors
    });
    assert!(have_given_way);
}
