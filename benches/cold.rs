//! Whole processes: the time of `kitbag run` and `kitbag list` from start to end, against other
//! ways to do the same work, all measured in turn in one run.
//!
//! `cargo bench --bench cold` prints the median time of each, its ratio to a static native program,
//! and its peak memory; another binary can be named,
//! `cargo bench --bench cold -- target/release/kitbag`. Compare the ratios; absolute times depend
//! on the machine.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

#[allow(dead_code, reason = "for more than this benchmark")]
mod support;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::memory::{peak_of, run_if_asked};
use crate::support::workspace::{Workspace, guest, local_tool};
use crate::support::{CommandLine, median, time};

const ROUNDS: usize = 300;
const WARM_UP: usize = 10;
/// Memory varies little between runs.
const MEMORY_ROUNDS: usize = 5;
const FIRST_USES: usize = 15;

/// One way to do the work.
struct Contender<'a> {
    title: &'static str,
    program: &'a Path,
    arguments: &'a [&'a str],
    workspace: &'a Workspace,
    times: Vec<Duration>,
    peaks_kib: Vec<u64>,
}

fn main() {
    run_if_asked();
    let given = CommandLine::read().binary();
    let config = format!("[knowledge.topic]\nsubjects = \"kb\"\n{}", local_tool("probe"));
    let workspace = Workspace::new(&config);
    workspace.subjects("kb", 10, 4 << 10);
    workspace.compile(&given, "probe");
    let (one, thousand) = (Workspace::with_idle_tools(1), Workspace::with_idle_tools(1_000));
    let programs = tempfile::tempdir().unwrap();
    let native = build_native(programs.path());
    let kitbag = programs.path().join("kitbag");
    // Copied, as an installer does. The page cache holds a freshly linked file in single pages, and
    // each page that a start touches costs a fault; a copy, or the same file after a reboot, is
    // cached in large pages.
    fs::copy(&given, &kitbag).unwrap();
    let python = python();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/baseline/learn.py");

    let here = |title, program, arguments| Contender::new(title, program, arguments, &workspace);
    let load = ["run", "learn", "topic=topic", "subjects=subject-3"];
    let mut contenders = vec![
        here("native, list 10 subjects", &native, &["kb"]),
        here("kitbag, list 10 subjects", &kitbag, &["run", "learn", "topic=topic"]),
        here("native, load one of 4 KB", &native, &["kb", "subject-3"]),
        here("kitbag, load one of 4 KB", &kitbag, &load),
        here(
            "kitbag, a local tool from the cache",
            &kitbag,
            &["run", "probe", "do=echo", "text=a"],
        ),
        Contender::new("kitbag list, 1 tool", &kitbag, &["list"], &one),
        Contender::new("kitbag list, 1,000 tools", &kitbag, &["list"], &thousand),
        here("/bin/true", Path::new("/bin/true"), &[]),
    ];
    let of_python: &[&str] = &["-I", "-S", script, "kb"];
    match &python {
        Some(python) => contenders.extend([
            here("python3 -I -S -c pass", python, &["-I", "-S", "-c", "pass"]),
            here("python3, list 10 subjects", python, of_python),
        ]),
        None => println!("there is no python3 here to compare with"),
    }
    check(&contenders);
    for round in 0..WARM_UP + ROUNDS {
        for contender in &mut contenders {
            let taken = contender.run();
            if round >= WARM_UP {
                contender.times.push(taken);
            }
        }
    }
    for _ in 0..MEMORY_ROUNDS {
        for contender in &mut contenders {
            contender.peaks_kib.push(peak_of(&contender.command(), Stdio::null()));
        }
    }
    show(&mut contenders);
    first_use(&kitbag);
}

/// Runs a local tool that is not cached yet.
fn first_use(kitbag: &Path) {
    let once = || {
        let workspace = Workspace::new(&local_tool("probe"));
        time(|| workspace.compile(kitbag, "probe"))
    };
    let taken = median(&mut (0..FIRST_USES).map(|_| once()).collect::<Vec<_>>());
    let bytes = fs::metadata(guest("probe")).unwrap().len();
    println!("\nfirst use of a local tool of {} KB: {taken:.1?}", bytes / 1000);
}

impl<'a> Contender<'a> {
    fn new(
        title: &'static str,
        program: &'a Path,
        arguments: &'a [&'a str],
        workspace: &'a Workspace,
    ) -> Self {
        let (times, peaks_kib) = (Vec::new(), Vec::new());
        Self { title, program, arguments, workspace, times, peaks_kib }
    }

    fn command(&self) -> Command {
        let mut command = self.workspace.command(self.program);
        command.args(self.arguments).stdin(Stdio::null());
        command
    }

    fn run(&self) -> Duration {
        let mut command = self.command();
        command.stdout(Stdio::null());
        time(|| assert!(command.status().unwrap().success(), "{command:?}"))
    }
}

/// Checks that contenders for the same work produce the same result.
fn check(contenders: &[Contender<'_>]) {
    let mut said = HashMap::new();
    for contender in contenders {
        let Some((_, task)) = contender.title.split_once(", ") else { continue };
        let output = contender.command().output().unwrap();
        let before = said.entry(task).or_insert_with(|| output.stdout.clone());
        assert!(output.stdout == *before, "`{}` does something else", contender.title);
    }
}

/// Prints each contender and its ratio to the native program that does the same work, or to the one
/// that lists if there is no such program.
fn show(contenders: &mut [Contender<'_>]) {
    let mut figures = Vec::new();
    for contender in contenders {
        let (taken, peak) = (median(&mut contender.times), median(&mut contender.peaks_kib));
        figures.push((contender.title, taken, peak));
    }
    let native = |task: &str| {
        let mut natives = figures.iter().filter(|(title, ..)| title.starts_with("native, "));
        natives.find(|(title, ..)| title.ends_with(task)).map(|(_, taken, _)| *taken)
    };
    println!("{:36} {:>10} {:>8} {:>11}", "a whole process", "median", "ratio", "peak");
    for (title, taken, peak) in &figures {
        let task = title.split_once(", ").map_or("", |(_, task)| task);
        let native = native(task).or_else(|| native("")).unwrap();
        let ratio = taken.as_secs_f64() / native.as_secs_f64();
        println!("{title:36} {taken:>10.1?} {ratio:>8.2} {peak:>7} KiB");
    }
    println!("\nA process counts as holding at least what the one that starts it holds.");
}

fn build_native(directory: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/baseline/main.rs");
    let binary = directory.join("native");
    let flags = ["--edition=2024", "-O", "-Ctarget-feature=+crt-static", "-Cstrip=symbols", "-o"];
    let mut rustc = Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into()));
    let status = rustc.args(flags).arg(&binary).arg(source).status().unwrap();
    assert!(status.success());
    binary
}

/// Returns the interpreter itself: the `python3` in the path may be a script that looks for it.
fn python() -> Option<PathBuf> {
    let ask = ["-c", "import sys; print(sys.executable)"];
    let output = Command::new("python3").args(ask).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().into())
}
