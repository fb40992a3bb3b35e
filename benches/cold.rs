//! The cold start: `kitbag run learn` as a whole process, against a static
//! native program that does the same, in turn, in one run.
//!
//! `cargo bench --bench cold` prints the median of each and their ratio; another
//! binary can be named, `cargo bench --bench cold -- target/release/kitbag`. The
//! ratio is what can be compared; absolute times depend on the machine.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 400;
const WARM_UP: usize = 20;

fn main() {
    let directory = tempfile::tempdir().unwrap();
    let workspace = directory.path();
    std::fs::create_dir(workspace.join(".kitbag")).unwrap();
    std::fs::create_dir(workspace.join("kb")).unwrap();
    for number in 0..10 {
        let line = format!("Line of subject {number}, repeated.\n");
        std::fs::write(workspace.join(format!("kb/subject-{number}.md")), line.repeat(120))
            .unwrap();
    }
    let config = "[knowledge.topic]\nsubjects = \"kb\"\n";
    std::fs::write(workspace.join(".kitbag/config.toml"), config).unwrap();
    let baseline = installed(&build_baseline(workspace), "native");
    let given = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let given = given.unwrap_or_else(|| env!("CARGO_BIN_EXE_kitbag").to_owned());
    let binary = installed(Path::new(&given), "kitbag");
    println!("{:24} {:>12} {:>12} {:>8}", "cold, whole process", "kitbag", "native", "ratio");
    for (title, subject) in [("list 10 subjects", None), ("load one of 4 KB", Some("subject-3"))] {
        let kitbag = || {
            let mut command = Command::new(&binary);
            command.args(["run", "learn", "topic=topic"]);
            command.args(subject.map(|subject| format!("subjects={subject}")));
            command.current_dir(workspace).env_clear();
            command
        };
        let native = || {
            let mut command = Command::new(&baseline);
            command.arg("kb").args(subject).current_dir(workspace).env_clear();
            command
        };
        assert_eq!(
            kitbag().output().unwrap().stdout.len(),
            native().output().unwrap().stdout.len()
        );
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..WARM_UP + ROUNDS {
            let (a, b) = (time(kitbag()), time(native()));
            if round >= WARM_UP {
                ours.push(a);
                theirs.push(b);
            }
        }
        let (ours, theirs) = (median(ours), median(theirs));
        let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
        println!("{title:24} {ours:>12.1?} {theirs:>12.1?} {ratio:>8.2}");
    }
}

/// Copies a program, as installing it does.
///
/// What a linker has just written lies in the page cache in single pages, and
/// each of them that a start touches costs a fault; a copy, or the same file
/// after a reboot, lies there in large ones.
fn installed(program: &Path, name: &str) -> PathBuf {
    let copy = std::env::temp_dir().join(format!("{name}-installed-{}", std::process::id()));
    std::fs::copy(program, &copy).unwrap();
    copy
}

fn build_baseline(directory: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/baseline/main.rs");
    let binary = directory.join("baseline");
    let status = Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into()))
        .args([
            "--edition=2024",
            "-O",
            "-C",
            "target-feature=+crt-static",
            "-C",
            "strip=symbols",
            "-o",
        ])
        .arg(&binary)
        .arg(source)
        .status()
        .unwrap();
    assert!(status.success());
    binary
}

fn time(mut command: Command) -> Duration {
    let start = Instant::now();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    let elapsed = start.elapsed();
    assert!(status.success());
    elapsed
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
