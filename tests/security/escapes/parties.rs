//! Promises between calls, and between two parties at once: regardless of the actions of one tool
//! or client, each call of another is answered as if it were alone.
//!
//! The other modules test attempts within one call.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kitbag::Kitbag;
use kitbag::base::text::{is_hidden, printable};
use serde_json::{Value, json};

use crate::support::http::HttpServer;
use crate::support::mcp::Client;
use crate::support::{CallInTest, Workspace, crafted, guest, probe, snapshot};

/// The attacks of the tool `attacker`: it exceeds each of its limits, traps, and leaves behind as
/// much as possible.
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
        // Control sequences for a terminal, in every output.
        json!({ "do": "print", "text": ESCAPES, "to": "both", "then": "unreachable" }),
        json!({ "do": "log", "level": "all", "text": ESCAPES }),
        json!({ "do": "progress", "steps": ["1"], "text": ESCAPES }),
        json!({ "do": "emit", "kind": "link", "name": ESCAPES, "title": ESCAPES }),
        json!({ "do": "fail", "message": ESCAPES, "trace": [ESCAPES] }),
        json!({ "do": "panic", "message": ESCAPES }),
        json!({ "do": "ask", "id": "a", "text": ESCAPES }),
        json!({ "do": "echo", "text": ESCAPES }),
    ]
}

/// Sets the title, clears the screen, reverses the line, and forges another line.
const ESCAPES: &str = "a\u{1b}]0;b\u{7}c\u{1b}[2Jd\u{202e}e\u{9b}f\r\nerror: forged";

/// The checks of the tool `probe`, afterwards and meanwhile. Each has one correct answer.
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

/// A workspace with both tools. The attacker, which uses up its time, has a short time limit.
fn workspace() -> Workspace {
    let workspace = Workspace::with_probe(&format!(
        "[tools.attacker]\nsource = \"local\"\nwasm = {:?}\n\
         [tools.attacker.limits]\nmemory = \"16MiB\"\ntime = \"200ms\"\noutput = \"1KiB\"\n",
        guest("probe"),
    ));
    workspace.file("a.txt", "A");
    workspace
}

/// A caller of tools.
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

/// One party checks repeatedly while another attacks, until the attacker has tried everything.
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
        // Do not assert here, so that the attacking thread also ends after a failure.
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
    snapshot!("attacks", &printable(&workspace.redact(&got)).to_string());
}

#[test]
fn no_attack_reaches_a_terminal() {
    let workspace = workspace();
    for attack in attacks() {
        let arguments = attack.to_string();
        for more in [&[][..], &["--verbose"], &["--json"], &["--format-arguments"]] {
            let run = workspace.run(&[&["run", "attacker", "--args", &arguments], more].concat());
            let acts = |c: char| is_hidden(c) && c != '\n' && c != '\t';
            assert!(!run.stderr.contains(acts), "{attack} {more:?}: {:?}", run.stderr);
            // With `--json`, standard output contains nothing else either.
            let is_plain = !more.contains(&"--json") || !run.stdout.contains(acts);
            assert!(is_plain, "{attack}: {:?}", run.stdout);
        }
    }
}

#[test]
fn a_damaged_cache_does_not_change_answers() {
    let workspace = Workspace::with_own_cache();
    workspace.config(&probe(""));
    workspace.file("a.txt", "A");
    let server = HttpServer::start(&workspace, &["--no-token"]);
    let loaded =
        [Party::Library(workspace.kitbag()), Party::stdio(&workspace), Party::Http(&server)];
    let first: Vec<_> = loaded.iter().map(Party::answers).collect();
    let entry = workspace.cached();
    let directory = workspace.cache().to_owned();
    let intact = fs::read(&entry).unwrap();
    let replace = |content: &[u8]| {
        // A new file replaces the entry, so that the mapped entry does not change.
        let new = directory.join("new");
        fs::write(&new, content).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).unwrap();
        fs::rename(new, &entry).unwrap();
    };
    let elsewhere = workspace.outside().join("elsewhere");
    let damaged = |at: usize| {
        let mut bytes = intact.clone();
        bytes[at] ^= 0x10;
        bytes
    };
    type Attack<'a> = (&'a str, &'a dyn Fn());
    let attacks: [Attack<'_>; 10] = [
        ("removed", &|| fs::remove_file(&entry).unwrap()),
        ("empty", &|| replace(b"")),
        ("native code", &|| replace(b"\x7fELF native code that another program has made")),
        ("half", &|| replace(&intact[..intact.len() / 2])),
        ("its first byte", &|| replace(&damaged(0))),
        ("its last byte", &|| replace(&damaged(intact.len() - 1))),
        ("the entry of another tool", &|| {
            workspace.run(&["cache", "--clear"]).success();
            let other = Workspace::with_own_cache();
            other.config("[tools.other]\nsource = \"local\"\nwasm = \"other.wasm\"\n");
            other.file("other.wasm", crafted::tool("a:b/c", ""));
            other.run(&["run", "other"]).success();
            replace(&fs::read(other.cached()).unwrap());
        }),
        ("a link", &|| {
            fs::write(&elsewhere, &intact).unwrap();
            fs::remove_file(&entry).unwrap();
            symlink(&elsewhere, &entry).unwrap();
        }),
        ("a FIFO", &|| {
            fs::remove_file(&entry).unwrap();
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, &entry, kind, mode, 0).unwrap();
        }),
        ("a directory that others can write", &|| {
            fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        }),
    ];
    for (name, attack) in attacks {
        attack();
        for (party, first) in loaded.iter().zip(&first) {
            assert_eq!(&party.answers(), first, "{name}");
        }
        // Also a library that has not loaded anything yet.
        let anew = Party::Library(workspace.kitbag()).answers();
        assert_eq!(anew, first[0], "{name}");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
        let _ = fs::remove_file(&entry);
        replace(&intact);
    }
}

#[test]
fn cancelled_calls_do_not_affect_other_clients() {
    let workspace = workspace();
    let attacks = attacks();
    let server = HttpServer::start(&workspace, &["--no-token"]);
    let give_up = |number: usize| {
        let params = json!({ "name": "attacker", "arguments": attacks[number] });
        // Some are dropped before the call starts, and some while it runs.
        drop(server.begin("", "tools/call", params));
    };
    check_together(give_up, attacks.len(), &Party::Http(&server));
}

#[test]
fn a_cancelled_call_leaves_nothing_for_the_next() {
    let workspace = workspace();
    let mut client = Client::with_handshake(&workspace, json!({}));
    let answers = |client: &mut Client| -> Vec<_> {
        probes().into_iter().map(|probe| client.call("probe", probe).to_string()).collect()
    };
    let first = answers(&mut client);
    for attack in attacks() {
        let params = json!({ "name": "attacker", "arguments": attack });
        let id = client.send("tools/call", params);
        client.notify("notifications/cancelled", json!({ "requestId": id }));
        assert_eq!(answers(&mut client), first, "after {attack}");
    }
}

#[test]
fn attacks_on_one_server_do_not_affect_another() {
    let workspace = workspace();
    let attacks = attacks();
    let [one, other] = [(); 2].map(|()| HttpServer::start(&workspace, &["--no-token"]));
    let attacker = Party::Http(&one);
    let attack = |number: usize| drop(attacker.call("attacker", &attacks[number]));
    for victim in [Party::Http(&other), Party::Library(workspace.kitbag())] {
        check_together(attack, attacks.len(), &victim);
    }
}

#[test]
fn each_call_runs_as_if_it_were_the_first() {
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
    // Another process is not affected either.
    assert_eq!(Party::Process(&workspace).answers(), process);
    assert_eq!(workspace.run(&["list"]).success(), list);
}

#[test]
fn tools_that_hit_limits_do_not_affect_other_tools() {
    let workspace = workspace();
    let attacks = attacks();
    let library = Party::Library(workspace.kitbag());
    let attack = |number: usize| drop(library.call("attacker", &attacks[number]));
    check_together(attack, attacks.len(), &library);
}

#[test]
fn tools_that_hit_limits_do_not_affect_other_clients() {
    let workspace = workspace();
    let attacks = attacks();
    let server = HttpServer::start(&workspace, &["--no-token"]);
    let (attacker, client) = (Party::Http(&server), Party::Http(&server));
    let attack = |number: usize| drop(attacker.call("attacker", &attacks[number]));
    check_together(attack, attacks.len(), &client);
}

#[test]
fn protocol_violations_do_not_affect_other_clients() {
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
