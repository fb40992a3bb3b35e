//! Many calls: concurrent and consecutive, good and bad ones mixed. Each answer is correct, the
//! rest of the process is not delayed, and ended calls leave nothing behind.

#[allow(dead_code, unused_imports, unused_macros, reason = "a harness for more than these tests")]
mod support;

use std::fs;
use std::future::{Future, poll_fn};
use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use kitbag::base::ByteSize;
use kitbag::{Cancellation, Concurrency, Kitbag, Outcome, Places, ToolboxError};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::support::{CallInTest, Workspace};

/// Runs one test at a time, since the tests measure the whole process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn runtime(workers: usize) -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_time()
        .build()
        .unwrap()
}

fn kitbag(workspace: &Workspace, calls: usize, waiting: usize) -> Kitbag {
    builder(workspace, calls, waiting).build().unwrap()
}

/// Like [`kitbag`], with a memory budget like a server.
fn kitbag_of(memory: ByteSize, workspace: &Workspace, calls: usize, waiting: usize) -> Kitbag {
    builder(workspace, calls, waiting).memory(memory).build().unwrap()
}

fn builder(workspace: &Workspace, calls: usize, waiting: usize) -> kitbag::Builder {
    let own = workspace.home().join(".config/kitbag/config.toml");
    let places = Places {
        cache: Some(workspace.cache().to_owned()),
        user_file: own.exists().then_some(own),
        ..Places::default()
    };
    let calls = NonZeroUsize::new(calls).unwrap();
    Kitbag::builder()
        .workspace(workspace.root())
        .places(places)
        .trust_workspace(true)
        .concurrency(Concurrency { calls, waiting })
}

/// A workspace whose tool may write into `here`, without a time limit.
fn gathering() -> Workspace {
    let workspace = Workspace::with_probe(
        "[tools.probe.grants]\n\
         filesystem = [{ host = \"here\", guest = \"/here\", mode = \"rw\" }]\n",
    );
    workspace.own_config("[tools.probe.limits]\ntime = \"1h\"\n");
    fs::create_dir_all(workspace.path("here")).unwrap();
    workspace
}

/// Starts a call that creates its file, waits until it is released, and then performs another
/// action or ends.
fn gather(kitbag: &Kitbag, id: &str, then: &str) -> JoinHandle<Result<Outcome, ToolboxError>> {
    let kitbag = kitbag.clone();
    let path = format!("/here/{id}");
    let arguments = json!({ "do": "gather", "path": path, "until": "/here/go", "then": then });
    tokio::spawn(async move { kitbag.call("probe", arguments).await })
}

/// Waits until this many calls have created their files, and releases them.
async fn let_go(workspace: &Workspace, count: usize) {
    let here = workspace.path("here");
    while fs::read_dir(&here).unwrap().count() < count {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    fs::write(here.join("go"), "").unwrap();
}

fn echo(text: &str) -> Value {
    json!({ "do": "echo", "text": text })
}

/// The open files of this process, and its resident memory in KiB.
fn held() -> (usize, usize) {
    let files = fs::read_dir("/proc/self/fd").unwrap().count();
    (files, memory_kib("VmRSS:"))
}

/// A line of `/proc/self/status` that contains memory, in KiB.
fn memory_kib(line: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let value = status.lines().find_map(|found| found.strip_prefix(line)).unwrap();
    value.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The peak of the resident memory from now on.
struct Peak {
    before_kib: usize,
}

impl Peak {
    fn watch() -> Self {
        // Resets the recorded peak; proc_pid_clear_refs(5).
        fs::write("/proc/self/clear_refs", "5").unwrap();
        Self { before_kib: memory_kib("VmRSS:") }
    }

    /// Checks that the growth of the peak is within a budget.
    fn assert_within(&self, budget: ByteSize) {
        let more = memory_kib("VmHWM:").saturating_sub(self.before_kib);
        assert!((more as u64) << 10 <= budget.as_u64(), "{more} KiB more at most, of {budget}");
    }
}

#[test]
fn loops_on_every_processor_delay_no_other_call() {
    let _alone = alone();
    let workspace = gathering();
    let processors = std::thread::available_parallelism().unwrap().get();
    let kitbag = kitbag(&workspace, processors * 2, 10);
    let runtime = runtime(processors);
    runtime.block_on(async {
        let loops: Vec<_> =
            (0..processors).map(|id| gather(&kitbag, &id.to_string(), "spin")).collect();
        let_go(&workspace, processors).await;
        for _ in 0..20 {
            let outcome = kitbag.call("probe", echo("here")).await.unwrap();
            assert_eq!(outcome, Outcome::Success("here".into()));
        }
        // All of that while every loop was running.
        for spinning in loops {
            assert!(!spinning.is_finished());
            spinning.abort();
            assert!(spinning.await.unwrap_err().is_cancelled());
        }
    });
}

/// Two threads are not faster than one if they wait for each other. The waits can be counted: with
/// a lock around each call, nearly every call waits.
#[test]
fn calls_on_two_threads_do_not_wait_for_each_other() {
    const CALLS: usize = 1_000;
    let _alone = alone();
    let workspace = Workspace::with_probe("");
    let kitbag = kitbag(&workspace, 2, 0);
    let call = || kitbag.call_blocking("probe", echo("x"), &Cancellation::default());
    call().unwrap();
    let waits = || getrusage(UsageWho::RUSAGE_SELF).unwrap().voluntary_context_switches();
    let waited = || {
        let before = waits();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..CALLS).for_each(|_| drop(call().unwrap())));
            }
        });
        waits() - before
    };
    // If other processes use the processors, a thread may also wait in the kernel; with a lock it
    // would wait in each round.
    let waited: Vec<_> = (0..5).map(|_| waited()).collect();
    let is_few = |waited: &i64| *waited < CALLS as i64 / 2;
    assert!(waited.iter().any(is_few), "{waited:?} times in {} calls", 2 * CALLS);
}

#[test]
fn a_call_beyond_the_queue_is_refused_with_a_time_to_retry() {
    let _alone = alone();
    let workspace = gathering();
    let kitbag = kitbag(&workspace, 1, 1);
    runtime(2).block_on(async {
        let first = gather(&kitbag, "first", "");
        while !workspace.path("here/first").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // The second call is queued from its first poll on.
        let mut second = pin!(kitbag.call("probe", echo("second")));
        let asked =
            poll_fn(|context| Poll::Ready(second.as_mut().poll(context).is_pending())).await;
        assert!(asked);
        let third = kitbag.call("probe", echo("x"));
        let third = tokio::time::timeout(Duration::from_secs(30), third).await.unwrap();
        let third = third.unwrap_err();
        let text = third.to_string();
        let expected =
            "busy: 1 calls are running and 1 are waiting, which is the limit; try again in ";
        assert!(text.starts_with(expected), "{text}");
        let ToolboxError::Call(error) = third else { panic!("{text}") };
        assert!(error.kind().is_transient());
        // A caller that blocks a thread can also cancel the waiting call.
        let cancellation = Cancellation::default();
        cancellation.cancel();
        let given_up = kitbag.call_blocking("probe", echo("x"), &cancellation);
        assert_eq!(given_up.unwrap_err().to_string(), "cancelled");
        let_go(&workspace, 1).await;
        assert!(matches!(first.await.unwrap().unwrap(), Outcome::Success(_)));
        assert!(matches!(second.await.unwrap(), Outcome::Success(_)));
    });
}

#[test]
fn a_blocking_call_also_takes_a_slot() {
    let _alone = alone();
    let workspace = gathering();
    let kitbag = kitbag(&workspace, 1, 0);
    let call =
        |arguments: Value| kitbag.call_blocking("probe", arguments, &Cancellation::default());
    std::thread::scope(|scope| {
        let arguments = json!({ "do": "gather", "path": "/here/first", "until": "/here/go" });
        let first = scope.spawn(|| call(arguments));
        while !workspace.path("here/first").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let second = call(echo("x"));
        fs::write(workspace.path("here/go"), "").unwrap();
        let second = second.unwrap_err().to_string();
        assert!(second.starts_with("busy: 1 calls are running and 0 are waiting"), "{second}");
        assert!(matches!(first.join().unwrap().unwrap(), Outcome::Success(_)));
    });
}

#[test]
fn a_thousand_instances_live_at_once() {
    const CALLS: usize = 1000;
    let _alone = alone();
    // Each call holds its directory open.
    let mut files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    files.current = files.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, files).unwrap();
    let workspace = gathering();
    // One tool may take seven eighths of the slots.
    let kitbag = kitbag(&workspace, CALLS + CALLS / 7 + 1, 0);
    runtime(2).block_on(async {
        kitbag.call("probe", echo("warm")).await.unwrap();
        let (_, before) = held();
        let calls: Vec<_> = (0..CALLS).map(|id| gather(&kitbag, &id.to_string(), "")).collect();
        let_go(&workspace, CALLS).await;
        let (_, during) = held();
        for (id, call) in calls.into_iter().enumerate() {
            let outcome = call.await.unwrap().unwrap();
            assert_eq!(outcome, Outcome::Success(format!("gather /here/{id}: let go")));
        }
        let each = during.saturating_sub(before) / CALLS;
        assert!(each < 512, "{each} KiB each");
    });
}

#[test]
fn ten_thousand_abandoned_calls_leave_nothing_behind() {
    let _alone = alone();
    let workspace = gathering();
    // The share of one tool in 16 slots.
    let places = 14;
    // Room for a call in each slot, at 84 MiB each.
    let budget = ByteSize::mib(3072);
    let kitbag = kitbag_of(budget, &workspace, 16, 100);
    let peak = Peak::watch();
    runtime(2).block_on(async {
        let give_up = async |times: usize| {
            for number in 0..times {
                let action = ["spin", "spin-hostcall", "sleep"][number % 3];
                let call = kitbag.call("probe", json!({ "do": action, "ms": 60_000 }));
                let patience = Duration::from_micros(200 + (number % 7) as u64 * 300);
                assert!(tokio::time::timeout(patience, call).await.is_err());
            }
        };
        give_up(1_000).await;
        let (files, resident) = held();
        give_up(9_000).await;
        // The last abandoned calls may still be ending.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let (files_after, resident_after) = held();
        assert!(files_after <= files + places, "{files} files, then {files_after}");
        let grown = resident_after.saturating_sub(resident);
        assert!(grown < 64 << 10, "grew by {grown} KiB");
        // All slots are free again: one call in each of them runs concurrently.
        let calls: Vec<_> = (0..places).map(|id| gather(&kitbag, &id.to_string(), "")).collect();
        let_go(&workspace, places).await;
        for call in calls {
            assert!(matches!(call.await.unwrap().unwrap(), Outcome::Success(_)));
        }
    });
    peak.assert_within(budget);
}

#[test]
fn many_mixed_calls_are_correct_and_leave_nothing_behind() {
    let _alone = alone();
    let calls = 100_000;
    let workspace = Workspace::new();
    let probe = fs::read(support::guest("probe")).unwrap();
    let tool = |name: &str, limits: &str| {
        workspace.file(&format!(".kitbag/tools/{name}.wasm"), &probe);
        workspace.file(&format!(".kitbag/tools/{name}.toml"), limits);
    };
    tool("steady", "");
    tool("hasty", "[limits]\ntime = \"20ms\"\n");
    tool("small", "[limits]\nmemory = \"8MiB\"\n");
    let budget = ByteSize::mib(1024);
    let kitbag = kitbag_of(budget, &workspace, 16, 1024);
    let peak = Peak::watch();
    let processors = std::thread::available_parallelism().unwrap().get();
    let next = Arc::new(AtomicUsize::new(0));
    let work = |limit: usize| {
        let (kitbag, next) = (kitbag.clone(), Arc::clone(&next));
        async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= limit {
                    return;
                }
                check_one(&kitbag, number).await;
            }
        }
    };
    runtime(processors).block_on(async {
        let run_to = async |limit: usize| {
            let workers: Vec<_> = (0..processors * 2).map(|_| tokio::spawn(work(limit))).collect();
            for worker in workers {
                worker.await.unwrap();
            }
            next.store(limit, Ordering::Relaxed);
        };
        run_to(calls / 10).await;
        let (files, resident) = held();
        run_to(calls).await;
        let (files_after, resident_after) = held();
        assert!(files_after <= files + 16, "{files} files, then {files_after}");
        let grown = resident_after.saturating_sub(resident);
        // Less than 200 bytes for each call.
        assert!(grown < 16 << 10, "grew by {grown} KiB");
    });
    peak.assert_within(budget);
}

/// Sixteen calls of 48 MiB would need 768 MiB at once: calls that do not fit wait.
#[test]
fn memory_hungry_calls_are_answered_within_the_budget() {
    let _alone = alone();
    let workspace = Workspace::with_probe("");
    let budget = ByteSize::mib(512);
    let kitbag = kitbag_of(budget, &workspace, 16, 1024);
    runtime(2).block_on(async {
        kitbag.call("probe", echo("warm")).await.unwrap();
        let peak = Peak::watch();
        let calls: Vec<_> = (0..400)
            .map(|_| {
                let kitbag = kitbag.clone();
                let arguments = json!({ "do": "allocate", "bytes": 48 << 20 });
                tokio::spawn(async move { kitbag.call("probe", arguments).await })
            })
            .collect();
        for call in calls {
            assert!(matches!(call.await.unwrap().unwrap(), Outcome::Success(_)));
        }
        peak.assert_within(budget);
    });
}

#[test]
fn the_host_copies_only_a_part_of_the_guest_memory() {
    let _alone = alone();
    let workspace = Workspace::with_probe("");
    workspace.own_config("[tools.probe.limits]\nmemory = \"256MiB\"\n");
    let kitbag = kitbag(&workspace, 1, 0);
    let call =
        |arguments: Value| kitbag.call_blocking("probe", arguments, &Cancellation::default());
    call(echo("warm")).unwrap();
    let peak = Peak::watch();
    let error = call(json!({ "do": "output", "bytes": 200 << 20 })).unwrap_err();
    assert_eq!(error.to_string(), "limit: host-data (16 MiB): request less at once");
    peak.assert_within(ByteSize::mib(256 + 16));
    let Outcome::Success(answer) = call(json!({ "do": "output", "bytes": 15 << 20 })).unwrap()
    else {
        panic!("an answer that is too long is cut")
    };
    assert!(answer.len() <= 1 << 20, "{}", answer.len());
}

/// Makes the call with this number, and checks its answer.
async fn check_one(kitbag: &Kitbag, number: usize) {
    let text = format!("number {number}");
    let said = |outcome: Result<Outcome, ToolboxError>| match outcome {
        Ok(Outcome::Success(content)) => content,
        Ok(Outcome::Error(error)) => format!("error: {}", error.message),
        Ok(Outcome::NeedsInput(question)) => format!("question: {}", question.text),
        Err(error) => format!("failed: {error}"),
    };
    match number % 100 {
        // Calls that hit a limit are rare, since each takes its full time.
        0 => {
            let got = said(kitbag.call("hasty", json!({ "do": "spin" })).await);
            assert_eq!(got, "failed: limit: time (20ms): request less, or a part of it");
        }
        1 => {
            let call = kitbag.call("steady", json!({ "do": "sleep", "ms": 60_000 }));
            assert!(tokio::time::timeout(Duration::from_millis(1), call).await.is_err());
        }
        2 | 3 => {
            let arguments = json!({ "do": "allocate", "bytes": 64 << 20, "abort": true });
            let got = said(kitbag.call("small", arguments).await);
            assert_eq!(got, "failed: limit: memory (8 MiB): give it less data, or a part of it");
        }
        4..8 => {
            let got = said(kitbag.call("steady", json!({ "do": "panic", "message": text })).await);
            assert!(got.starts_with("failed: trap: ") && got.ends_with(&text), "{got}");
        }
        8..12 => {
            let got = said(kitbag.call("steady", json!({ "do": "ask", "text": text })).await);
            assert_eq!(got, format!("question: {text}"));
        }
        12..20 => {
            let got = said(kitbag.call("steady", json!({ "do": "fail", "message": text })).await);
            assert_eq!(got, format!("error: {text}"));
        }
        20..24 => {
            let got = said(kitbag.call("steady", json!({ "do": {} })).await);
            assert!(got.starts_with("failed: invalid arguments for `steady`"), "{got}");
        }
        24..30 => {
            let got = said(kitbag.call("steady", json!({ "do": "state" })).await);
            assert_eq!(got, "state: call 1 of this instance, marker absent");
        }
        _ => assert_eq!(said(kitbag.call("steady", echo(&text)).await), text),
    }
}
