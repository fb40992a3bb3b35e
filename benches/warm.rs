//! Warm calls in the library: how long one takes from a checked argument to its
//! answer, in an instance of its own each, and how many a machine does.
//!
//! `cargo bench --bench warm` prints times, their ratio to a process that does
//! nothing, and what more threads give. The ratio is what can be compared;
//! absolute times depend on the machine.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kitbag::{Answered, Cancellation, Kitbag, Outcome};
use serde_json::{Value, json};

const ROUNDS: usize = 40;
const SUBJECT_BYTES: usize = 4 << 10;

fn main() {
    let directory = tempfile::tempdir().unwrap();
    let workspace = directory.path();
    fs::create_dir(workspace.join(".kitbag")).unwrap();
    fs::create_dir(workspace.join("kb")).unwrap();
    for number in 0..10 {
        let text = "a line of text\n".repeat(SUBJECT_BYTES / 15);
        fs::write(workspace.join(format!("kb/subject-{number}.md")), text).unwrap();
    }
    let probe = Path::new(env!("TEST_GUESTS")).join("kitbag_probe.wasm");
    let config = format!(
        "[knowledge.topic]\nsubjects = \"kb\"\n\
         [tools.echo]\nsource = \"local\"\nwasm = {probe:?}\ndescription = \"echoes\"\n\
         [tools.echo.parameters.do]\ntype = \"string\"\n\
         [tools.echo.parameters.text]\ntype = \"string\"\n\
         [tools.says]\nsource = \"local\"\nwasm = {probe:?}\n"
    );
    fs::write(workspace.join(".kitbag/config.toml"), config).unwrap();
    let kitbag = Kitbag::builder().workspace(workspace).build().unwrap();

    let echo = |bytes: usize| json!({ "do": "echo", "text": "x".repeat(bytes) });
    let cases = [
        ("echo of 100 B", "echo", echo(100), 500),
        ("the same, by its own description", "says", echo(100), 500),
        ("echo of 1 MB", "echo", echo(1_000_000), 20),
        ("`learn`, list 10 subjects", "learn", json!({ "topic": "topic" }), 200),
        (
            "`learn`, load one of 4 KB",
            "learn",
            json!({ "topic": "topic", "subjects": "subject-3" }),
            200,
        ),
    ];
    let process = median(10 * ROUNDS, || {
        let mut command = Command::new("/bin/true");
        assert!(command.stdin(Stdio::null()).status().unwrap().success());
    });
    println!("{:36} {:>10} {:>8} {:>14} {:>6}", "", "a call", "of a", "calls/s with", "");
    println!("{:36} {:>10} {:>8} {:>14} {:>6}", "", "", "process", "all processors", "times");
    for (title, tool, arguments, calls) in cases {
        let some = || (0..calls).for_each(|_| call(&kitbag, tool, &arguments));
        some();
        let alone = median(ROUNDS, some) / calls as u32;
        let threads = std::thread::available_parallelism().unwrap().get();
        let together = median(ROUNDS / 4, || {
            std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(some))));
        });
        let rate = (threads * calls) as f64 / together.as_secs_f64();
        println!(
            "{title:36} {alone:>10.1?} {:>8.3} {rate:>14.0} {:>6.2}",
            alone.as_secs_f64() / process.as_secs_f64(),
            rate * alone.as_secs_f64(),
        );
    }
    println!("{:36} {process:>10.1?}", "a process that does nothing");
}

fn call(kitbag: &Kitbag, tool: &str, arguments: &Value) {
    let nobody = |_: &_| Ok(Answered::Nobody);
    let cancellation = Cancellation::default();
    let completion = kitbag
        .toolbox()
        .call_blocking(tool, arguments.clone().into(), &cancellation, nobody)
        .unwrap();
    assert!(matches!(completion.result, Ok(Outcome::Success(_))), "{completion:?}");
}

fn median(rounds: usize, mut work: impl FnMut()) -> Duration {
    let mut times: Vec<_> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[rounds / 2]
}
