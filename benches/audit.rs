//! The cost of trust records and the audit log: at startup, for a warm call, and for verifying that
//! 100,000 lines are unchanged.
//!
//! `cargo bench --bench audit` prints medians with and without them, measured in turn; another
//! binary can be named, as for `cold`. Compare the ratio and the difference.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

#[allow(dead_code, reason = "for more than this benchmark")]
mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use kitbag::Kitbag;
use serde_json::json;

use crate::support::workspace::{Workspace, local_tool};
use crate::support::{CommandLine, call, median, time};

const STARTS: usize = 300;
const ROUNDS: usize = 100;
const CALLS: u32 = 500;
const LINES: usize = 100_000;
const VERIFICATIONS: usize = 5;

fn main() {
    let binary = CommandLine::read().binary();
    let [with, without] = [true, false].map(workspace);
    starts(&binary, &with, &without);
    let kitbags = [&with, &without].map(open);
    calls(&kitbags);
    drop(kitbags);
    verify(&binary);
}

fn workspace(is_logged: bool) -> Workspace {
    let workspace = Workspace::new(&local_tool("echo"));
    workspace.own_config(&format!("[audit]\nenable = {is_logged}\n"));
    workspace
}

fn open(workspace: &Workspace) -> Kitbag {
    let builder = Kitbag::builder().workspace(workspace.root()).places(workspace.places());
    builder.trust_workspace(true).build().unwrap()
}

/// Whole processes, each with one call.
fn starts(binary: &Path, with: &Workspace, without: &Workspace) {
    let command = |workspace: &Workspace, arguments: &[&str]| {
        let mut command = workspace.command(binary);
        command.args(arguments).stdout(Stdio::null());
        command
    };
    let time = |mut command: Command| time(|| assert!(command.status().unwrap().success()));
    // Without the variable that trusts the workspace, the record is read.
    let by_record = |arguments: &[&str]| {
        let mut command = command(with, arguments);
        command.env_remove("KITBAG_TRUST_WORKSPACE");
        command
    };
    time(by_record(&["trust", "--yes"]));
    let call = ["run", "echo", "text=x"];
    let run = || [time(by_record(&call)), time(command(without, &call))];
    run();
    let times: Vec<_> = (0..STARTS).map(|_| run()).collect();
    let [with, without] = medians(&times);
    let ratio = with.as_secs_f64() / without.as_secs_f64();
    println!("a start with one call: {with:.1?} with both, {without:.1?} without: {ratio:.3}");
}

/// Warm calls in the library.
fn calls(kitbags: &[Kitbag; 2]) {
    let run = |kitbag: &Kitbag| {
        time(|| (0..CALLS).for_each(|_| call(kitbag, "echo", json!({ "text": "x" })))) / CALLS
    };
    for kitbag in kitbags {
        run(kitbag);
    }
    let times: Vec<_> = (0..ROUNDS).map(|_| [run(&kitbags[0]), run(&kitbags[1])]).collect();
    let [with, without] = medians(&times);
    let more = with.saturating_sub(without);
    println!("a warm call: {with:.2?} with the log, {without:.2?} without: {more:.2?} more");
}

fn verify(binary: &Path) {
    let workspace = workspace(true);
    let kitbag = open(&workspace);
    (0..LINES).for_each(|_| call(&kitbag, "echo", json!({ "text": "x" })));
    drop(kitbag);
    let verify = || {
        let mut command = workspace.command(binary);
        let output = command.args(["audit", "verify", "--json"]).output().unwrap();
        let lines = serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap();
        assert_eq!((output.status.code(), &lines["lines"]), (Some(0), &LINES.into()), "{lines}");
    };
    let mut times: Vec<_> = (0..VERIFICATIONS).map(|_| time(verify)).collect();
    println!("verifying {LINES} lines: {:.0?}", median(&mut times));
}

fn medians(times: &[[Duration; 2]]) -> [Duration; 2] {
    [0, 1].map(|at| median(&mut times.iter().map(|times| times[at]).collect::<Vec<_>>()))
}
