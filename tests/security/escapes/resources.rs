//! Resources: if a tool uses up any resource, the call ends with the name of the limit, and the
//! next call works.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Attempts, Probe};
use crate::support::{Workspace, snapshot};

const SMALL: &str = "[tools.probe.limits]\nmemory = \"16MiB\"\noutput = \"1KiB\"\n";

#[test]
fn a_tool_that_never_ends_is_ended() {
    let workspace = Workspace::with_probe("[tools.probe.limits]\ntime = \"1s\"\n");
    let mut attempts = Attempts::new(&workspace);
    attempts.about("A loop, with and without calls to the host, and a sleep past the deadline.");
    for arguments in [
        json!({ "do": "spin" }),
        json!({ "do": "spin-hostcall" }),
        json!({ "do": "sleep", "ms": 60_000 }),
    ] {
        let start = Instant::now();
        attempts.attempt(arguments);
        // Long before the end of the sleep.
        assert!(start.elapsed() < Duration::from_secs(30));
    }
    attempts.about("The next call works.");
    attempts.attempt(json!({ "do": "echo", "text": "still here" }));
    snapshot!("time", &attempts.report);
}

#[test]
fn endless_allocation_ends_with_the_name_of_the_limit() {
    let workspace = Workspace::with_probe(SMALL);
    workspace.file("one.txt", "");
    let mut attempts = Attempts::new(&workspace);
    attempts.about("Memory that is there is given.");
    attempts.attempt(json!({ "do": "allocate", "bytes": 8 << 20 }));
    attempts
        .about("More is refused; a tool that cannot go on without it ends with the limit's name.");
    attempts.attempt(json!({ "do": "allocate", "bytes": 64 << 20 }));
    attempts.attempt(json!({ "do": "allocate", "bytes": 64 << 20, "abort": true }));
    attempts.attempt(json!({ "do": "allocate", "bytes": 1 << 30, "abort": true }));
    attempts.about("Recursion ends at the stack.");
    attempts.attempt(json!({ "do": "recurse" }));
    attempts.about("Handles that the host would have to hold are bounded.");
    for of in ["descriptors", "streams", "listings"] {
        attempts.attempt(json!({ "do": "handles", "n": 100_000, "of": of }));
    }
    attempts.attempt(json!({ "do": "pollables", "n": 100_000 }));
    attempts.about("Random bytes are given, in portions that do not hurt.");
    attempts.attempt(json!({ "do": "random", "bytes": 16 }));
    attempts.attempt(json!({ "do": "random", "bytes": u64::MAX }));
    attempts.about("The next call works.");
    attempts.attempt(json!({ "do": "echo", "text": "still here" }));
    snapshot!("memory", &attempts.report);
}

#[test]
fn filling_the_disk_ends_with_the_name_of_the_limit() {
    for probe in Probe::ALL {
        let with = |limits: &str| {
            probe.workspace(&format!(
                "[tools.probe.grants]\n\
             filesystem = [{{ host = \".\", guest = \"/workspace\", mode = \"rw\" }}]\n{limits}"
            ))
        };
        let workspace = with("");
        workspace.file("a", "");
        let mut attempts = Attempts::of(probe, &workspace);
        attempts.about("1 GiB in a call, also where it is a hole.");
        attempts
            .attempt(json!({ "do": "set-size", "write": true, "path": "a", "bytes": 1_u64 << 30 }));
        let more = (1_u64 << 31) + 1;
        attempts.attempt(json!({ "do": "set-size", "write": true, "path": "a", "bytes": more }));
        attempts.about("A tool that breaks off over it ends with the limit's name.");
        attempts.attempt(
            json!({ "do": "set-size", "write": true, "path": "a", "bytes": more, "abort": true }),
        );
        attempts.about("A call has as much as any other before it.");
        attempts.attempt(json!({ "do": "set-size", "write": true, "path": "a", "bytes": 0 }));
        attempts
            .attempt(json!({ "do": "set-size", "write": true, "path": "a", "bytes": 1_u64 << 30 }));
        snapshot!("written", &attempts.report);

        let workspace = with("[tools.probe.limits]\nwritten = \"20KiB\"\n");
        workspace.file("a", "");
        let mut attempts = Attempts::of(probe, &workspace);
        attempts.about("20 KiB: a new file counts 4 KiB, and then each byte.");
        for action in ["write", "append"] {
            for bytes in [16 << 10, (20 << 10) + 1] {
                let text = "x".repeat(bytes);
                attempts.attempt(json!({ "do": action, "path": action, "text": text }));
            }
        }
        // WASI 0.2 writes in portions of 4 KiB, and refuses the last one.
        let appended = match probe {
            Probe::Tool => 36 << 10,
            Probe::Asynchronous => 16 << 10,
        };
        assert_eq!(std::fs::metadata(workspace.path("append")).unwrap().len(), appended);
        snapshot!("written, a smaller limit", &attempts.report);

        let workspace = with("[tools.probe.limits]\nwritten = \"4095 bytes\"\n");
        workspace.file("a", "");
        let mut attempts = Attempts::of(probe, &workspace);
        attempts.about("4,095 bytes: nothing can be created, and what is there can be written.");
        attempts.attempt(json!({ "do": "write", "path": "b", "text": "" }));
        attempts.attempt(json!({ "do": "mkdir", "path": "c" }));
        attempts.attempt(json!({ "do": "symlink", "target": "a", "path": "d" }));
        attempts.attempt(json!({ "do": "link", "old": "a", "new": "e" }));
        attempts.attempt(json!({ "do": "rename", "old": "a", "new": "f" }));
        attempts.attempt(json!({ "do": "set-size", "write": true, "path": "f", "bytes": 4095 }));
        attempts.attempt(json!({ "do": "list", "path": "." }));
        snapshot!("written, next to nothing", &attempts.report);
    }
}

#[test]
fn an_oversized_answer_is_truncated_and_marked() {
    let workspace = Workspace::with_probe(SMALL);
    let answer = workspace.call("probe", json!({ "do": "output", "bytes": 5000 }));
    assert_eq!(answer.len(), 1024);
    assert!(answer.ends_with("x\n[cut by kitbag: this answer had 5000 bytes]"), "{answer}");
    let whole = workspace.call("probe", json!({ "do": "output", "bytes": 1024 }));
    assert_eq!(whole, "x".repeat(1024));
    // The other kinds of answers.
    let failed = workspace.call("probe", json!({ "do": "fail", "message": "x".repeat(5000) }));
    assert!(failed.ends_with("x\n[cut by kitbag: this answer had 5000 bytes]"), "{failed}");
    let trace = ["x".repeat(5000), "y".repeat(5000)];
    let run = json!({ "do": "fail", "message": "short", "trace": trace }).to_string();
    let run = workspace.run(&["run", "probe", "--json", "--args", &run]);
    let error = &run.json()["error"];
    assert_eq!(error["message"], "short");
    let kept: Vec<_> = error["trace"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
    assert_eq!(kept.len(), 1, "what has no room at all is left out");
    assert!(kept[0].ends_with("x\n[cut by kitbag: this answer had 5000 bytes]"), "{kept:?}");
    let asked = workspace.call("probe", json!({ "do": "ask", "text": "x".repeat(5000) }));
    assert!(asked.ends_with("x\n[cut by kitbag: this answer had 5000 bytes]"), "{asked}");
    // Up to the size that the host copies, 16 MiB.
    let large = workspace.call("probe", json!({ "do": "output", "bytes": 12_000_000 }));
    assert!(large.ends_with("x\n[cut by kitbag: this answer had 12000000 bytes]"), "{large}");
}

#[test]
fn a_tool_that_traps_reports_the_reason() {
    let workspace = Workspace::with_probe(SMALL);
    let mut attempts = Attempts::new(&workspace);
    attempts.about("A panic's own message reaches the person, and an exit is no answer.");
    attempts.attempt(json!({ "do": "panic", "message": "the cat sat on the keyboard" }));
    attempts.attempt(json!({ "do": "exit", "code": 3 }));
    attempts.attempt(json!({ "do": "exit", "code": 0 }));
    attempts.about("What it printed last, as a runtime does that was not made with Rust.");
    let exception = "Traceback (most recent call last):\n  File \"app.py\", line 3, in run\n    \
                     total = rows / 0\nZeroDivisionError: division by zero\n";
    let printed = |text: &str, then: &str| json!({ "do": "print", "to": "stderr", "text": text, "then": then });
    attempts.attempt(printed(exception, "panic"));
    attempts.attempt(printed("Error: boom\n    at run (tool.js:3:9)\n", "unreachable"));
    attempts.attempt(printed("fatal: no such table\n", "exit"));
    attempts.attempt(printed("", "unreachable"));
    attempts.about("Spelled out, and bounded: ten lines of 200 characters, the last ones.");
    attempts.attempt(printed("a\u{1b}]0;title\u{7}\u{202e}b\nhint: forged\n", "unreachable"));
    attempts.attempt(printed(&"x".repeat(300), "unreachable"));
    let lines: String = (0..12_000).map(|number| format!("line {number}\n")).collect();
    attempts.attempt(printed(&lines, "unreachable"));
    attempts.about("A tool that overflows the stack in its own memory, which no limit names.");
    attempts.attempt(json!({ "do": "recurse", "memory": true }));
    attempts.about("The next call works.");
    attempts.attempt(json!({ "do": "echo", "text": "still here" }));
    snapshot!("traps", &attempts.report);
}

#[test]
fn oversized_arguments_do_not_reach_a_tool() {
    let workspace = Workspace::with_probe("");
    let large = workspace.call("probe", json!({ "do": "echo", "text": "x".repeat(2 << 20) }));
    assert_eq!(large, "failed: limit: arguments (1 MiB): give fewer or shorter ones");
    let value: Value = (0..200).fold(json!(1), |value, _| json!([value]));
    let in_library = workspace.call("probe", json!({ "do": "echo", "text": "x", "deep": value }));
    assert_eq!(in_library, "failed: limit: arguments (128 levels): give fewer or shorter ones");
}

#[test]
fn invalid_json_arguments_do_not_reach_a_tool() {
    let workspace = Workspace::with_probe("");
    let mut report = String::new();
    let mut try_it = |about: &str, arguments: &[u8]| {
        let file = workspace.file("arguments.json", arguments);
        let run = workspace.run(&["run", "probe", "--args", &format!("@{}", file.display())]);
        report.push_str(&format!("# {about}\n{}\n", run.shown()));
    };
    let nest = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let deep = |depth: usize| format!(r#"{{"do":"echo","text":"fine","deep":{}}}"#, nest(depth));
    try_it("Nested a hundred times.", deep(100).as_bytes());
    try_it("Nested a hundred thousand times.", deep(100_000).as_bytes());
    try_it("A key twice.", br#"{"do":"echo","text":"one","text":"two"}"#);
    try_it("A key twice, further down.", b"{\"do\":\"arguments\",\n\"a\":[{\"b\":1,\"b\":2}]}");
    try_it(
        "A whole number of more than 64 bits.",
        br#"{"do":"arguments","n":18446744073709551616}"#,
    );
    try_it("A number beyond all floats.", br#"{"do":"arguments","n":1e999}"#);
    try_it("Numbers at the edge.", br#"{"do":"arguments","n":[18446744073709551615,1.5e300]}"#);
    try_it("No UTF-8.", b"{\"do\":\"echo\",\n\"text\":\"\xc3\x28\"}");
    try_it("Half a surrogate.", br#"{"do":"echo","text":"\ud800"}"#);
    try_it("More than a mebibyte.", &[b' '; (1 << 20) + 1]);
    snapshot!("arguments", &report);
}
