//! Measurements in the library. Each size gets its own process, because the peak memory of a
//! process never decreases.

use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use kitbag::base::ByteSize;
use kitbag::config::LimitFlags;
use kitbag::{Cancellation, Concurrency, Kitbag, Outcome, Places};
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::{Map, Value, json};

use crate::series::Point;
use crate::support::memory::{peak_kib, resident_kib};
use crate::support::workspace::Workspace;
use crate::support::{complete, median};

/// Tells a copy of this benchmark what to measure: followed by the name of the work, the size and
/// the number of rounds.
const MEASURE: &str = "--measure";

/// How long each concurrent call waits.
const WAIT: Duration = Duration::from_secs(1);

/// Work that can be measured in the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// A call whose arguments hold a string of this many bytes.
    Text,
    /// A call whose arguments hold a list of this many bytes of JSON.
    List,
    /// A call whose arguments hold an object of short entries, of this many bytes of JSON.
    Object,
    /// A call that answers with this many bytes.
    Answer,
    /// This many concurrent calls that wait. Time is measured beyond the wait, memory by its
    /// growth.
    Waiting,
}

impl Work {
    const ALL: [(&str, Self); 5] = [
        ("text", Self::Text),
        ("list", Self::List),
        ("object", Self::Object),
        ("answer", Self::Answer),
        ("waiting", Self::Waiting),
    ];

    /// Measures the work in a copy of this benchmark.
    pub(crate) fn measure(self, workspace: &Workspace, size: usize, rounds: usize) -> Point {
        let (name, _) = Self::ALL.iter().find(|(_, work)| *work == self).unwrap();
        let mut copy = workspace.command(&std::env::current_exe().unwrap());
        copy.args([MEASURE, name, &size.to_string(), &rounds.to_string()]);
        let output = copy.stderr(Stdio::inherit()).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let figures: Vec<u64> = said.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [nanoseconds, memory_kib] = figures[..] else { panic!("{self:?} {size}: `{said}`") };
        Point { size, time: Duration::from_nanos(nanoseconds), memory_kib }
    }
}

/// Does the measurement that [`Work::measure`] requests from a copy of this benchmark, and exits.
#[expect(clippy::print_stdout, reason = "it is how the copy answers")]
pub(crate) fn measure_if_asked() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [first, name, size, rounds] = &arguments[..] else { return };
    if first != MEASURE {
        return;
    }
    let (_, work) = Work::ALL.iter().find(|(known, _)| known == name).unwrap();
    let (size, rounds) = (size.parse().unwrap(), rounds.parse().unwrap());
    let (time, memory_kib) = match work {
        Work::Waiting => wait(size, rounds),
        _ => call(*work, size, rounds),
    };
    println!("{} {memory_kib}", time.as_nanos());
    std::process::exit(0);
}

/// Opens the library in the workspace that this process was started in.
fn kitbag(calls: usize) -> Kitbag {
    let limits = LimitFlags {
        memory: Some(ByteSize::mib(1024)),
        time: Some(Duration::from_secs(600)),
        output: Some(ByteSize::mib(128)),
        written: None,
        fuel: None,
        requests: None,
        tool_calls: None,
        compile: None,
    };
    let calls = NonZeroUsize::new(calls).unwrap();
    Kitbag::builder()
        .trust_workspace(true)
        .workspace(Path::new("."))
        .places(Places::from_environment(std::env::vars_os()))
        .limits(limits)
        .concurrency(Concurrency { calls, waiting: 0 })
        .build()
        .unwrap()
}

/// Makes one call after the other; returns the median time and the peak memory of this process.
fn call(work: Work, size: usize, rounds: usize) -> (Duration, u64) {
    let arguments = match work {
        Work::Text => arguments("text", size, |bytes| "x".repeat(bytes).into()),
        Work::List => arguments("list", size, |bytes| vec![1; bytes / "1,".len()].into()),
        Work::Object => arguments("object", size, |bytes| {
            let entries = bytes / r#""000000":1,"#.len();
            let entry = |number| (format!("{number:06}"), Value::from(1));
            (0..entries).map(entry).collect::<Map<_, _>>().into()
        }),
        Work::Answer | Work::Waiting => json!({ "do": "output", "bytes": size }),
    };
    let kitbag = kitbag(1);
    let once = || {
        let (arguments, cancellation) = (arguments.clone(), Cancellation::default());
        let start = Instant::now();
        let completion = complete(&kitbag, "probe", arguments, &cancellation);
        let elapsed = start.elapsed();
        assert!(matches!(&completion.result, Ok(Outcome::Success(_))), "{:?}", completion.result);
        elapsed
    };
    once();
    let mut times: Vec<_> = (0..rounds).map(|_| once()).collect();
    (median(&mut times), peak_kib("self"))
}

/// Returns arguments of this many bytes of JSON, most of them in one argument, that request a short
/// answer.
fn arguments(name: &str, bytes: usize, fill: impl Fn(usize) -> Value) -> Value {
    let with = |value| json!({ "do": "output", "bytes": 1, name: value });
    let frame = with(fill(0)).to_string().len();
    with(fill(bytes.saturating_sub(frame)))
}

/// Makes this many calls at once.
fn wait(calls: usize, rounds: usize) -> (Duration, u64) {
    // Each call holds its directories open.
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    setrlimit(Resource::Nofile, files).unwrap();
    let kitbag = kitbag(calls);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        kitbag.call("probe", json!({ "do": "echo", "text": "warm" })).await.unwrap();
        let before = resident_kib("self");
        let mut times = Vec::new();
        for _ in 0..rounds {
            let start = Instant::now();
            let arguments = json!({ "do": "sleep", "ms": WAIT.as_millis() as u64 });
            let one = || {
                let (kitbag, arguments) = (kitbag.clone(), arguments.clone());
                tokio::spawn(async move { kitbag.call("probe", arguments).await })
            };
            let started: Vec<_> = (0..calls).map(|_| one()).collect();
            for call in started {
                assert!(matches!(call.await.unwrap().unwrap(), Outcome::Success(_)));
            }
            times.push(start.elapsed() - WAIT);
        }
        (median(&mut times), peak_kib("self").saturating_sub(before))
    })
}
