//! How quickly a call ends after its cancellation or timeout, and the cost of a call that only
//! waits.
//!
//! `cargo bench --bench limits` prints both. The time is measured from the cancellation or the
//! timeout until the caller continues.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

#[allow(dead_code, reason = "for more than this benchmark")]
mod support;

use std::fs;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kitbag::config::LimitFlags;
use kitbag::{Cancellation, Completion, Concurrency, Kitbag, Outcome};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::support::memory::resident_kib;
use crate::support::workspace::{Workspace, unsaid_tool};
use crate::support::{CommandLine, complete, percentile, processors};

const ROUNDS: u64 = 500;
const PARKED: usize = 1000;
/// The timeout of the call that exceeds it.
const TIME: Duration = Duration::from_millis(20);
/// How long an idle process is observed.
const IDLE: Duration = Duration::from_secs(5);
const HOUR: Duration = Duration::from_secs(60 * 60);

fn main() {
    let grants = "filesystem = [{ host = \"here\", guest = \"/here\", mode = \"rw\" }]\n";
    let config = unsaid_tool("probe") + "[tools.probe.grants]\n" + grants;
    let workspace = Workspace::new(&config);
    fs::create_dir(workspace.root().join("here")).unwrap();
    // In another process: compiling leaves memory behind that calls would reuse.
    workspace.compile(&CommandLine::read().binary(), "probe");

    // First, before any call has left memory behind.
    let (before, during) = parked(&workspace);
    println!(
        "{PARKED} parked instances: {before} KiB before, {during} KiB with them, {} KiB each\n",
        during.saturating_sub(before) / PARKED as u64
    );
    println!("{:44} {:>10} {:>10} {:>10}", "ends after", "p50", "p99", "max");
    let spin = json!({ "do": "spin" });
    let sleep = json!({ "do": "sleep", "ms": 60_000 });
    let long = kitbag(&workspace, HOUR, 16);
    show("a loop, cancelled", || cancelled(&long, &spin));
    show("a sleep, cancelled", || cancelled(&long, &sleep));
    let short = kitbag(&workspace, TIME, 16);
    show("a loop, its time", || overdue(&short, &spin));
    show("a sleep, its time", || overdue(&short, &sleep));
    beside_a_loop(|| show("a sleep of a thread, beside one in a loop", oversleep));
    idle(&long, &sleep);
    let others = Cancellation::default();
    std::thread::scope(|scope| {
        for _ in 0..processors() {
            scope.spawn(|| call(&long, &spin, &others));
        }
        show("a loop, cancelled, all processors in loops", || cancelled(&long, &spin));
        others.cancel();
    });
}

fn kitbag(workspace: &Workspace, time: Duration, calls: usize) -> Kitbag {
    let calls = NonZeroUsize::new(calls).unwrap();
    let limits = LimitFlags { time: Some(time), ..LimitFlags::default() };
    let builder = Kitbag::builder()
        .workspace(workspace.root())
        .places(workspace.places())
        .trust_workspace(true);
    let builder = builder.limits(limits).concurrency(Concurrency { calls, waiting: 0 });
    let kitbag = builder.build().unwrap();
    kitbag.toolbox().load("probe").unwrap();
    kitbag
}

fn call(kitbag: &Kitbag, arguments: &Value, cancellation: &Cancellation) -> Completion {
    complete(kitbag, "probe", arguments.clone(), cancellation)
}

/// Cancels a running call and returns the time until it has ended.
fn cancelled(kitbag: &Kitbag, arguments: &Value) -> Duration {
    let cancellation = Cancellation::default();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let completion = call(kitbag, arguments, &cancellation);
            let ended = Instant::now();
            assert_eq!(completion.result.unwrap_err().to_string(), "cancelled");
            ended
        });
        std::thread::sleep(TIME);
        let cancelled = Instant::now();
        cancellation.cancel();
        running.join().unwrap() - cancelled
    })
}

/// Measures the processor time of an idle process, whose threads are running and one of whose calls
/// waits.
fn idle(kitbag: &Kitbag, sleep: &Value) {
    let cancellation = Cancellation::default();
    std::thread::scope(|scope| {
        scope.spawn(|| call(kitbag, sleep, &cancellation));
        // Until all threads sleep.
        std::thread::sleep(Duration::from_secs(1));
        let used = || {
            let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
            let time = usage.user_time() + usage.system_time();
            Duration::from_micros(time.num_microseconds().unsigned_abs())
        };
        let before = used();
        std::thread::sleep(IDLE);
        println!("processor time in {IDLE:?} in which a call sleeps: {:?}", used() - before);
        cancellation.cancel();
    });
}

/// Returns how far a call exceeds its timeout.
fn overdue(kitbag: &Kitbag, arguments: &Value) -> Duration {
    let completion = call(kitbag, arguments, &Cancellation::default());
    assert_eq!(
        completion.result.unwrap_err().to_string(),
        "limit: time (20ms): request less, or a part of it"
    );
    completion.usage.elapsed - TIME
}

/// Runs some work beside a thread that loops, without kitbag: how late this machine wakes a thread.
fn beside_a_loop(work: impl FnOnce()) {
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !has_ended.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        work();
        has_ended.store(true, Ordering::Relaxed);
    });
}

/// Returns how far a thread oversleeps.
fn oversleep() -> Duration {
    let start = Instant::now();
    std::thread::sleep(TIME);
    start.elapsed() - TIME
}

fn show(title: &str, measure: impl Fn() -> Duration) {
    let mut times: Vec<_> = (0..ROUNDS).map(|_| measure()).collect();
    let [median, nearly_all, longest] = [50, 99, 100].map(|share| percentile(&mut times, share));
    println!("{title:44} {median:>10.1?} {nearly_all:>10.1?} {longest:>10.1?}");
}

/// Resident memory before and while this many instances wait, in KiB.
fn parked(workspace: &Workspace) -> (u64, u64) {
    // Each call holds its directories open.
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    setrlimit(Resource::Nofile, files).unwrap();
    // One tool may take seven eighths of the slots.
    let kitbag = kitbag(workspace, HOUR, PARKED + PARKED / 7 + 1);
    let here = workspace.root().join("here");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        kitbag.call("probe", json!({ "do": "echo", "text": "warm" })).await.unwrap();
        let before = resident_kib("self");
        let wait = |id: usize| {
            let kitbag = kitbag.clone();
            let path = format!("/here/{id}");
            let arguments = json!({ "do": "gather", "path": path, "until": "/here/go" });
            tokio::spawn(async move { kitbag.call("probe", arguments).await })
        };
        let calls: Vec<_> = (0..PARKED).map(wait).collect();
        while fs::read_dir(&here).unwrap().count() < PARKED {
            assert!(!calls.iter().any(|call| call.is_finished()), "a call was refused");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let during = resident_kib("self");
        fs::write(here.join("go"), "").unwrap();
        for call in calls {
            assert!(matches!(call.await.unwrap().unwrap(), Outcome::Success(_)));
        }
        (before, during)
    })
}
