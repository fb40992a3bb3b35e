//! Warm calls in the library: how long one takes from a checked argument to its
//! answer, in an instance of its own each, how many a machine does, and what JSON
//! costs a guest.
//!
//! `cargo bench --bench warm` prints times, their ratio to a process that does
//! nothing, and what more threads give. The ratio is what can be compared;
//! absolute times depend on the machine.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

#[allow(dead_code, reason = "for more than this benchmark")]
mod support;

use std::process::{Command, Stdio};
use std::time::Duration;

use kitbag::Kitbag;
use kitbag::config::LimitFlags;
use serde_json::{Value, json};

use crate::support::workspace::{Workspace, local_tool, unsaid_tool};
use crate::support::{call, median, median_time, processors, time};

const ROUNDS: usize = 40;

fn main() {
    let config = format!(
        "[knowledge.topic]\nsubjects = \"kb\"\n{}{}",
        local_tool("echo"),
        unsaid_tool("probe")
    );
    let workspace = Workspace::new(&config);
    workspace.subjects("kb", 10, 4 << 10);
    calls(&open(&workspace, LimitFlags::default()));
    json_work(&workspace);
}

fn open(workspace: &Workspace, limits: LimitFlags) -> Kitbag {
    let builder = Kitbag::builder().workspace(workspace.root()).places(workspace.places());
    builder.limits(limits).build().unwrap()
}

fn calls(kitbag: &Kitbag) {
    let echo = |bytes: usize| json!({ "do": "echo", "text": "x".repeat(bytes) });
    let cases = [
        ("echo of 100 B", "echo", echo(100), 500),
        ("echo of 1 MB", "echo", echo(1_000_000), 20),
        ("100 B, read as JSON by the tool", "probe", echo(100), 500),
        ("1 MB, read as JSON by the tool", "probe", echo(1_000_000), 20),
        ("`learn`, list 10 subjects", "learn", json!({ "topic": "topic" }), 200),
        (
            "`learn`, load one of 4 KB",
            "learn",
            json!({ "topic": "topic", "subjects": "subject-3" }),
            200,
        ),
    ];
    let process = median_time(10 * ROUNDS, || {
        let mut command = Command::new("/bin/true");
        assert!(command.stdin(Stdio::null()).status().unwrap().success());
    });
    println!("{:36} {:>10} {:>8} {:>14} {:>6}", "", "a call", "of a", "calls/s with", "");
    println!("{:36} {:>10} {:>8} {:>14} {:>6}", "", "", "process", "all processors", "times");
    for (title, tool, arguments, calls) in cases {
        let some = || (0..calls).for_each(|_| call(kitbag, tool, arguments.clone()));
        some();
        let alone = median_time(ROUNDS, some) / calls as u32;
        let together = median_time(ROUNDS / 4, || {
            std::thread::scope(|scope| (0..processors()).for_each(|_| drop(scope.spawn(some))));
        });
        let rate = (processors() * calls) as f64 / together.as_secs_f64();
        let times = rate * alone.as_secs_f64();
        let verdict = if times < 1.0 { " slower than one" } else { "" };
        let of_process = alone.as_secs_f64() / process.as_secs_f64();
        println!("{title:36} {alone:>10.1?} {of_process:>8.3} {rate:>14.0} {times:>6.2}{verdict}");
    }
    println!("{:36} {process:>10.1?}", "a process that does nothing");
}

/// Half a megabyte of JSON that a guest reads, in turn with the same library doing
/// it natively, and with the guest's instructions counted.
///
/// Every guest looks at the epoch, which cannot be taken out of kitbag to see what
/// it costs by itself. The host has its part in a call: it checks the arguments and
/// writes them for the guest.
fn json_work(workspace: &Workspace) {
    let item = |id: usize| json!({ "id": id, "name": format!("item {id}"), "is_new": true });
    let items: Vec<Value> = (0..10_000).map(item).collect();
    let arguments = json!({ "do": "output", "bytes": 1, "items": items });
    let text = arguments.to_string();
    let plain = open(workspace, LimitFlags::default());
    let counting = LimitFlags { fuel: Some(u64::MAX >> 1), ..LimitFlags::default() };
    let counting = open(workspace, counting);
    let natively = || drop(serde_json::from_str::<Value>(&text).unwrap());
    let (mut native, mut guest, mut counted) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS + 1 {
        native.push(time(natively));
        guest.push(time(|| call(&plain, "probe", arguments.clone())));
        counted.push(time(|| call(&counting, "probe", arguments.clone())));
    }
    let [native, guest, counted] = [native, guest, counted].map(|mut times| median(&mut times));
    let times = |time: Duration| time.as_secs_f64() / native.as_secs_f64();
    println!("\n{:36} {:>10} {:>8}", format!("{} KB of JSON", text.len() / 1000), "", "times");
    println!("{:36} {native:>10.1?} {:>8.2}", "read natively", 1.0);
    println!("{:36} {guest:>10.1?} {:>8.2}", "read in a call", times(guest));
    println!("{:36} {counted:>10.1?} {:>8.2}", "read in a call that counts fuel", times(counted));
}
