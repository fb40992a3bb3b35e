//! Attempts through WASI 0.3 whose results differ from those through WASI 0.2. The attempts on files
//! and on the disk, with equal results, are in the modules of their subjects.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use kitbag::Cancellation;
use serde_json::json;

use super::{Attempts, Probe};
use crate::support::{CallInTest, Workspace, snapshot};

#[test]
fn a_command_for_wasi_0_3_has_no_access() {
    let workspace = Probe::Asynchronous.workspace("");
    workspace.file("inside.txt", "inside");
    let mut attempts = Attempts::of(Probe::Asynchronous, &workspace);
    attempts.about("Variables, arguments, working directory, standard input.");
    for action in ["environment", "argv", "cwd", "stdin"] {
        attempts.attempt(json!({ "do": action }));
    }
    attempts.about("There is no directory.");
    attempts.attempt(json!({ "do": "preopens" }));
    attempts.attempt(json!({ "do": "read", "path": "inside.txt" }));
    attempts.attempt(json!({ "do": "read", "path": "/etc/passwd" }));
    attempts.about("No socket and no name look-up.");
    attempts.attempt(json!({ "do": "connect", "address": "127.0.0.1:80" }));
    attempts.attempt(json!({ "do": "connect", "address": "[::1]:80" }));
    attempts.attempt(json!({ "do": "udp", "address": "127.0.0.1:53" }));
    attempts.attempt(json!({ "do": "resolve", "name": "localhost" }));
    attempts.about("No request.");
    attempts.attempt(json!({ "do": "request", "url": "http://127.0.0.1/" }));
    snapshot!("WASI 0.3", &attempts.report);
}

#[test]
fn limits_hold_for_wasi_0_3() {
    let workspace = Probe::Asynchronous.workspace("[tools.probe.limits]\ntime = \"1s\"\n");
    let mut attempts = Attempts::of(Probe::Asynchronous, &workspace);
    attempts.about("A loop, and a wait past the deadline.");
    for arguments in [json!({ "do": "spin" }), json!({ "do": "sleep", "ms": 60_000 })] {
        let start = Instant::now();
        attempts.attempt(arguments);
        // Long before the end of the wait.
        assert!(start.elapsed() < Duration::from_secs(30));
    }
    let time = attempts.report;
    let limits = "[tools.probe.limits]\nmemory = \"16MiB\"\noutput = \"1KiB\"\n";
    let workspace = Probe::Asynchronous.workspace(limits);
    let mut attempts = Attempts::of(Probe::Asynchronous, &workspace);
    attempts.about("Memory.");
    attempts.attempt(json!({ "do": "allocate", "bytes": 8 << 20 }));
    attempts.attempt(json!({ "do": "allocate", "bytes": 64 << 20 }));
    attempts.attempt(json!({ "do": "allocate", "bytes": 64 << 20, "abort": true }));
    attempts.about("Random bytes are given, in portions that do not hurt.");
    attempts.attempt(json!({ "do": "random", "bytes": 16 }));
    attempts.attempt(json!({ "do": "random", "bytes": u64::MAX }));
    attempts.about("Output is truncated.");
    let output = attempts.attempt(json!({ "do": "output", "bytes": 5000 }));
    assert_eq!(output.len(), 1024);
    attempts.about("The next call works.");
    attempts.attempt(json!({ "do": "argv" }));
    snapshot!("limits for WASI 0.3", &format!("{time}\n{}", attempts.report));
}

/// Fuel needs a second compilation, for an engine of its own.
#[test]
fn fuel_holds_for_wasi_0_3() {
    let workspace = Probe::Asynchronous.workspace("[tools.probe.limits]\nfuel = 10_000_000\n");
    let mut attempts = Attempts::of(Probe::Asynchronous, &workspace);
    attempts.attempt(json!({ "do": "argv" }));
    attempts.attempt(json!({ "do": "spin" }));
    attempts.attempt(json!({ "do": "argv" }));
    snapshot!("fuel for WASI 0.3", &attempts.report);
}

#[test]
fn components_for_wasi_0_3_are_cached() {
    let workspace = Workspace::with_own_cache();
    workspace.config(&Probe::Asynchronous.table(""));
    let arguments = Probe::Asynchronous.arguments(&json!({ "do": "argv" }));
    let entries = || {
        let entries = fs::read_dir(workspace.cache()).unwrap().map(Result::unwrap);
        let entry = |entry: fs::DirEntry| {
            (entry.file_name(), entry.metadata().unwrap().modified().unwrap())
        };
        entries.map(entry).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(workspace.tool("probe", &arguments, &[]).success(), "argv: none\n");
    let compiled = entries();
    assert_eq!(workspace.tool("probe", &arguments, &[]).success(), "argv: none\n");
    assert_eq!(entries(), compiled);
}

#[test]
fn a_command_with_one_directory_has_it_once() {
    let grant = "[tools.probe.grants]\nfilesystem = [{ host = \".\", guest = \"/\" }]\n";
    let workspace = Probe::Asynchronous.workspace(grant);
    let mut attempts = Attempts::of(Probe::Asynchronous, &workspace);
    assert_eq!(attempts.attempt(json!({ "do": "preopens" })), "preopens: /");
}

#[test]
fn cancellation_ends_a_call_of_wasi_0_3() {
    let workspace = Probe::Asynchronous.workspace("");
    let kitbag = workspace.kitbag();
    for attempt in [json!({ "do": "sleep", "ms": 60_000 }), json!({ "do": "spin" })] {
        let cancellation = Cancellation::default();
        let start = Instant::now();
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(300));
                cancellation.cancel();
            });
            let arguments = Probe::Asynchronous.arguments(&attempt);
            kitbag.call_blocking("probe", arguments, &cancellation)
        });
        assert_eq!(result.unwrap_err().to_string(), "cancelled", "{attempt}");
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
