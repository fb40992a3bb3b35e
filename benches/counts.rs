//! Instruction counts of a start and of a call. Unlike times, they do not vary between runs, so a
//! change that makes something slower is noticed when it is made.
//!
//! `cargo bench --profile dev --bench counts` runs the binary and a warm call in the library under
//! callgrind, and fails if a figure differs from the one in `counts.csv` by more than the
//! tolerance. With `-- --update` it rewrites that file. The figures are of a development build,
//! which the tests have already built.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

#[allow(dead_code, reason = "for more than this benchmark")]
mod support;

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use kitbag::Kitbag;
use serde_json::json;

use crate::support::workspace::Workspace;
use crate::support::{CommandLine, call};

/// Largest relative difference from the stored figure. Hash tables have a different seed in each
/// process, and another C library allocates differently.
const TOLERANCE: f64 = 0.03;

/// The stored figures.
const STORED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/counts.csv");

/// Makes this many calls in the library, to be counted by valgrind. With a subject, the calls load
/// it instead of listing all subjects.
const CALLS: &str = "calls";
const SUBJECT: &str = "subject";

fn main() -> ExitCode {
    let command_line = CommandLine::read();
    if let Some(calls) = command_line.value(CALLS) {
        make_calls(calls, command_line.value(SUBJECT));
        return ExitCode::SUCCESS;
    }
    let workspace = Workspace::new("[knowledge.topic]\nsubjects = \"kb\"\n");
    workspace.subjects("kb", 10, 4 << 10);
    let large = Workspace::new("[knowledge.topic]\nsubjects = \"kb\"\n");
    large.file("kb/large.md", "It is 1 MB, nearly.\n".repeat(45_000));
    let many = Workspace::with_idle_tools(101);
    let one = Workspace::with_idle_tools(1);
    let binary = command_line.binary();
    let kitbag = |workspace: &Workspace, arguments: &[&str]| {
        count(workspace.command(Path::new("valgrind")), &binary, arguments)
    };
    let calls = |workspace: &Workspace, calls: u64, subject: &[&str]| {
        let me = std::env::current_exe().unwrap();
        let option = format!("--{CALLS}={calls}");
        count(workspace.command(Path::new("valgrind")), &me, &[&[&*option], subject].concat())
    };
    let load = format!("--{SUBJECT}=large");
    let load = |count| calls(&large, count, &[&load]);
    let learn = ["run", "learn", "topic=topic"];
    let counted = [
        ("kitbag --version", kitbag(&workspace, &["--version"])),
        ("kitbag run learn, list", kitbag(&workspace, &learn)),
        (
            "kitbag run learn, load",
            kitbag(&workspace, &[&learn[..], &["subjects=subject-3"]].concat()),
        ),
        ("kitbag list, each tool", (kitbag(&many, &["list"]) - kitbag(&one, &["list"])) / 100),
        ("a warm call of learn", (calls(&workspace, 120, &[]) - calls(&workspace, 20, &[])) / 100),
        ("a warm load of 900 KB", (load(15) - load(5)) / 10),
    ];
    if command_line.has("update") {
        let mut text = "what,instructions\n".to_owned();
        for (what, count) in &counted {
            writeln!(text, "\"{what}\",{count}").unwrap();
        }
        std::fs::write(STORED, text).unwrap();
    }
    let stored = std::fs::read_to_string(STORED).unwrap();
    println!("{:24} {:>14} {:>14} {:>8}", "instructions", "counted", "stored", "ratio");
    let mut is_right = true;
    for (what, count) in counted {
        let line = stored.lines().find_map(|line| line.strip_prefix(&format!("\"{what}\",")));
        let stored: u64 =
            line.unwrap_or_else(|| panic!("no `{what}` in {STORED}")).parse().unwrap();
        let ratio = count as f64 / stored as f64;
        let is_near = (ratio - 1.0).abs() <= TOLERANCE;
        is_right &= is_near;
        let verdict = if is_near { "" } else { "  differs" };
        println!("{what:24} {count:>14} {stored:>14} {ratio:>8.3}{verdict}");
    }
    if is_right {
        return ExitCode::SUCCESS;
    }
    println!(
        "A figure differs by more than {:.0} %. Where that is meant, store it with `-- --update` \
         and say why in the commit.",
        TOLERANCE * 100.0
    );
    ExitCode::FAILURE
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

/// Calls a built-in tool in the workspace that this process runs in.
fn make_calls(calls: u64, subject: Option<String>) {
    let builder = Kitbag::builder().workspace(".").trust_workspace(true);
    let kitbag = builder.no_cache().build().unwrap();
    let arguments = match subject {
        Some(subject) => json!({ "topic": "topic", "subjects": subject, "max_bytes": 1 << 20 }),
        None => json!({ "topic": "topic" }),
    };
    for _ in 0..calls {
        call(&kitbag, "learn", arguments.clone());
    }
}
