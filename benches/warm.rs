//! Warm calls in the library: the time from the arguments to the answer, in a fresh instance for
//! each call, on one thread and on every processor at once, and the cost of JSON in a guest.
//!
//! `cargo bench --bench warm` prints times and calls per second. Compare them with one another, and
//! with `a_process_that_does_nothing`; absolute times depend on the machine.

#[allow(dead_code, reason = "for more than this benchmark")]
mod support;

use std::fmt;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use divan::Bencher;
use divan::counter::ItemsCount;
use kitbag::Kitbag;
use kitbag::config::LimitFlags;
use serde_json::{Value, json};

use crate::support::call;
use crate::support::workspace::{Workspace, guest, local_tool, unsaid_tool};

static WORKSPACE: LazyLock<Workspace> = LazyLock::new(|| {
    let keep = format!(
        "[tools.keep]\nsource = \"local\"\nwasm = {:?}\ngrants.storage = true\n",
        guest("keep")
    );
    let tools = format!("{}{}{keep}", local_tool("echo"), unsaid_tool("probe"));
    let workspace = Workspace::new(&format!("[knowledge.topic]\nsubjects = \"kb\"\n{tools}"));
    workspace.subjects("kb", 10, 4 << 10);
    workspace
});

static KITBAG: LazyLock<Kitbag> = LazyLock::new(|| open(LimitFlags::default()));

fn main() {
    divan::main();
}

fn open(limits: LimitFlags) -> Kitbag {
    let builder = Kitbag::builder()
        .workspace(WORKSPACE.root())
        .places(WORKSPACE.places())
        .trust_workspace(true);
    builder.limits(limits).build().unwrap()
}

/// A call that is repeated.
struct Case {
    title: &'static str,
    tool: &'static str,
    arguments: fn() -> Value,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title)
    }
}

fn echo(bytes: usize) -> Value {
    json!({ "do": "echo", "text": "x".repeat(bytes) })
}

const LARGE: [Case; 2] = [
    Case { title: "echo of 1 MB", tool: "echo", arguments: || echo(1_000_000) },
    Case { title: "1 MB, read as JSON by the tool", tool: "probe", arguments: || echo(1_000_000) },
];

const SMALL: [Case; 4] = [
    Case { title: "echo of 100 B", tool: "echo", arguments: || echo(100) },
    Case { title: "100 B, read as JSON by the tool", tool: "probe", arguments: || echo(100) },
    Case {
        title: "learn: list 10 subjects",
        tool: "learn",
        arguments: || json!({ "topic": "topic" }),
    },
    Case {
        title: "learn: load one of 4 KB",
        tool: "learn",
        arguments: || json!({ "topic": "topic", "subjects": "subject-3" }),
    },
];

/// On one thread, and on as many as there are processors.
#[divan::bench(args = SMALL, threads = [1, 0], sample_size = 200)]
fn small_call(bencher: Bencher<'_, '_>, case: &Case) {
    repeat(bencher, case);
}

/// Like [`small_call`].
#[divan::bench(args = LARGE, threads = [1, 0], sample_size = 5)]
fn large_call(bencher: Bencher<'_, '_>, case: &Case) {
    repeat(bencher, case);
}

fn repeat(bencher: Bencher<'_, '_>, case: &Case) {
    let arguments = (case.arguments)();
    call(&KITBAG, case.tool, arguments.clone());
    bencher
        .counter(ItemsCount::new(1_u32))
        .with_inputs(|| arguments.clone())
        .bench_values(|arguments| call(&KITBAG, case.tool, arguments));
}

/// A call in which a tool reads its stored values: the time includes all reads.
#[divan::bench(args = [1, 1000])]
fn reads_of_100_bytes_of_storage(bencher: Bencher<'_, '_>, count: u32) {
    let keep = |arguments: Value| call(&KITBAG, "keep", arguments);
    keep(json!({ "action": "set", "key": "k", "value": "x", "repeat": 100 }));
    let arguments = json!({ "action": "get", "key": "k", "count": count });
    bencher.counter(ItemsCount::new(count)).with_inputs(|| arguments.clone()).bench_values(keep);
}

#[divan::bench]
fn a_process_that_does_nothing() {
    let mut command = Command::new("/bin/true");
    assert!(command.stdin(Stdio::null()).status().unwrap().success());
}

/// Half a megabyte of JSON, read by a guest and by the same library natively.
///
/// Every guest checks the epoch, which cannot be disabled in kitbag to measure its cost separately.
/// The host is part of a call: it checks the arguments and serializes them for the guest.
mod half_a_megabyte_of_json {
    use super::*;

    fn arguments() -> Value {
        let item = |id: usize| json!({ "id": id, "name": format!("item {id}"), "is_new": true });
        let items: Vec<Value> = (0..10_000).map(item).collect();
        json!({ "do": "output", "bytes": 1, "items": items })
    }

    #[divan::bench]
    fn read_natively(bencher: Bencher<'_, '_>) {
        let text = arguments().to_string();
        bencher.bench(|| serde_json::from_str::<Value>(&text).unwrap());
    }

    #[divan::bench]
    fn read_in_a_call(bencher: Bencher<'_, '_>) {
        let arguments = arguments();
        let arguments = || arguments.clone();
        bencher.with_inputs(arguments).bench_values(|arguments| call(&KITBAG, "probe", arguments));
    }

    #[divan::bench]
    fn read_in_a_call_that_counts_fuel(bencher: Bencher<'_, '_>) {
        let counting = open(LimitFlags { fuel: Some(u64::MAX >> 1), ..LimitFlags::default() });
        let arguments = arguments();
        let arguments = || arguments.clone();
        bencher
            .with_inputs(arguments)
            .bench_values(|arguments| call(&counting, "probe", arguments));
    }
}
