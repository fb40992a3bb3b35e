//! Counts of instructions and system calls. Unlike times, they hardly vary between runs, so a change
//! that makes something slower is noticed when it is made.
//!
//! `cargo bench --profile dev --bench counts` counts the instructions of the binary and of warm
//! calls in the library with callgrind, and the system calls of warm calls of a server with strace.
//! It fails if a figure differs too much from the figure in `counts.csv`. With `-- --update` it
//! rewrites that file. The figures are of a development build, which the tests have already built.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

#[allow(dead_code, reason = "for more than this benchmark")]
mod support;

use std::fmt::Write as _;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Command, ExitCode};

use kitbag::Kitbag;
use serde_json::{Value, json};

use crate::support::session::Session;
use crate::support::workspace::Workspace;
use crate::support::{CommandLine, call};

/// Accepted ratios of instructions to the stored figure. Hash tables have a different seed in each
/// process, and another C library allocates differently.
const INSTRUCTIONS: RangeInclusive<f64> = 0.97..=1.03;

/// Accepted ratios of system calls to the stored figure. A machine without a home directory has
/// fewer private paths to look up, and a thread may start or end during the measured calls.
const SYSTEM_CALLS: RangeInclusive<f64> = 0.0..=1.1;

/// System calls that are not counted: threads that wait for work or wake each other, which depends
/// on the scheduler.
const WAITING: &str = "futex,sched_yield,epoll_wait,clock_nanosleep";

/// The stored figures.
const STORED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/counts.csv");

/// Option that makes this many calls in the library, to be counted by valgrind.
const CALLS: &str = "calls";
/// Options that name the tool and the arguments of these calls.
const TOOL: &str = "tool";
const ARGUMENTS: &str = "arguments";

/// Name of a count, the count, and its accepted ratios to the stored figure.
type Figure = (&'static str, u64, RangeInclusive<f64>);

fn main() -> ExitCode {
    let command_line = CommandLine::read();
    if let Some(calls) = command_line.value(CALLS) {
        let tool: String = command_line.value(TOOL).unwrap();
        make_calls(calls, &tool, &command_line.value(ARGUMENTS).unwrap());
        return ExitCode::SUCCESS;
    }
    let figures = figures(&command_line.binary());
    if command_line.has("update") {
        let mut text = "what,count\n".to_owned();
        for (what, count, _) in &figures {
            writeln!(text, "\"{what}\",{count}").unwrap();
        }
        fs::write(STORED, text).unwrap();
    }
    let stored = fs::read_to_string(STORED).unwrap();
    println!("{:27} {:>14} {:>14} {:>8}", "", "counted", "stored", "ratio");
    let mut is_right = true;
    for (what, count, accepted) in figures {
        let line = stored.lines().find_map(|line| line.strip_prefix(&format!("\"{what}\",")));
        let stored: u64 =
            line.unwrap_or_else(|| panic!("no `{what}` in {STORED}")).parse().unwrap();
        let ratio = count as f64 / stored as f64;
        let is_near = accepted.contains(&ratio);
        is_right &= is_near;
        let verdict = if is_near { "" } else { "  differs" };
        println!("{what:27} {count:>14} {stored:>14} {ratio:>8.3}{verdict}");
    }
    if is_right {
        return ExitCode::SUCCESS;
    }
    println!(
        "A figure differs: instructions by more than 3 %, or system calls exceed the stored figure \
         by more than 10 %. Where that is meant, store it with `-- --update` and say why in the \
         commit."
    );
    ExitCode::FAILURE
}

fn figures(binary: &Path) -> Vec<Figure> {
    let workspace = Workspace::new("[knowledge.topic]\nsubjects = \"kb\"\n");
    workspace.subjects("kb", 10, 4 << 10);
    let large = Workspace::new("[knowledge.topic]\nsubjects = \"kb\"\n");
    large.file("kb/large.md", "It is 1 MB, nearly.\n".repeat(45_000));
    let many = Workspace::with_idle_tools(101);
    let one = Workspace::with_idle_tools(1);
    let kitbag = |workspace: &Workspace, arguments: &[&str]| {
        count(workspace.command(Path::new("valgrind")), binary, arguments)
    };
    let calls = |workspace: &Workspace, calls: u64, tool: &str, arguments: &Value| {
        let me = std::env::current_exe().unwrap();
        let options =
            [(CALLS, calls.to_string()), (TOOL, tool.into()), (ARGUMENTS, arguments.to_string())];
        let options = options.map(|(name, value)| format!("--{name}={value}"));
        let options: Vec<_> = options.iter().map(String::as_str).collect();
        count(workspace.command(Path::new("valgrind")), &me, &options)
    };
    let warm = |tool: &str, arguments: &Value| {
        (calls(&workspace, 120, tool, arguments) - calls(&workspace, 20, tool, arguments)) / 100
    };
    let list = json!({ "topic": "topic" });
    let file = json!({ "path": "kb/subject-0.md" });
    let load = json!({ "topic": "topic", "subjects": "large", "max_bytes": 1 << 20 });
    let load = |count| calls(&large, count, "learn", &load);
    let learn = ["run", "learn", "topic=topic"];
    let instructions = [
        ("kitbag --version", kitbag(&workspace, &["--version"])),
        ("kitbag run learn, list", kitbag(&workspace, &learn)),
        (
            "kitbag run learn, load",
            kitbag(&workspace, &[&learn[..], &["subjects=subject-3"]].concat()),
        ),
        ("kitbag list, each tool", (kitbag(&many, &["list"]) - kitbag(&one, &["list"])) / 100),
        ("a warm call of learn", warm("learn", &list)),
        ("a warm load of 900 KB", (load(15) - load(5)) / 10),
        ("a warm call of read_file", warm("read_file", &file)),
    ];
    // The audit log is written in batches, whose number depends on the time.
    workspace.own_config("[audit]\nenable = false\n");
    let system_calls = [
        ("system calls of now", system_calls(&workspace, binary, "now", &json!({}))),
        ("system calls of read_file", system_calls(&workspace, binary, "read_file", &file)),
    ];
    let instructions = instructions.map(|(what, count)| (what, count, INSTRUCTIONS));
    let system_calls = system_calls.map(|(what, count)| (what, count, SYSTEM_CALLS));
    instructions.into_iter().chain(system_calls).collect()
}

/// Counts the instructions of a program from its start to its end.
fn count(mut valgrind: Command, program: &Path, arguments: &[&str]) -> u64 {
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let run = valgrind.arg(program).args(arguments).output();
    let run = run.unwrap_or_else(|error| panic!("valgrind has to be installed: {error}"));
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{}: {said}", program.display());
    let total = said.lines().find_map(|line| line.split_once("Collected : "));
    let (_, total) = total.unwrap_or_else(|| panic!("callgrind counted nothing: {said}"));
    total.trim().parse().unwrap()
}

/// Counts the system calls that a server makes for each warm call of a tool over standard input and
/// output, in all its threads.
fn system_calls(workspace: &Workspace, binary: &Path, tool: &str, arguments: &Value) -> u64 {
    const CALLS: usize = 100;
    let log = workspace.root().with_file_name("system-calls");
    let mut strace = workspace.command(Path::new("strace"));
    strace.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    // `-y` shows which descriptors only wake a thread.
    strace.args(["-f", "-qq", "-y", "-e", "signal=none", "-e", &format!("trace=!{WAITING}"), "-o"]);
    strace.arg(&log).arg(binary).arg("serve");
    let mut session = Session::of(strace);
    session.initialize();
    let params = json!({ "name": tool, "arguments": arguments }).to_string();
    let mut make = |calls| {
        (0..calls).for_each(|_| session.call(&params));
        fs::read_to_string(&log).unwrap()
    };
    // At first, a thread loads the built-in tools.
    let has_ended = |log: &str| log.contains(" exit(0");
    assert!((0..1_000).any(|_| has_ended(&make(1))), "the tools are not loaded");
    let before = make(20).lines().count();
    let after = make(CALLS);
    session.end();
    let is_counted = |line: &&str| !line.contains("resumed>") && !line.contains("[eventfd]");
    let count = after.lines().skip(before).filter(is_counted).count();
    ((count + CALLS / 2) / CALLS) as u64
}

/// Calls a built-in tool in the workspace that this process runs in.
fn make_calls(calls: u64, tool: &str, arguments: &Value) {
    let builder = Kitbag::builder().workspace(".").trust_workspace(true);
    let kitbag = builder.no_cache().build().unwrap();
    for _ in 0..calls {
        call(&kitbag, tool, arguments.clone());
    }
}
