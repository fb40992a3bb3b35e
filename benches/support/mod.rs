//! Helpers of the benchmarks: command line, statistics, workspaces, a client, and memory.

pub(crate) mod memory;
pub(crate) mod session;
pub(crate) mod workspace;

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use kitbag::{CallContext, Cancellation, Completion, Invocation, Kitbag, NoAnswers, Outcome};
use serde_json::Value;

/// The arguments after `--` of `cargo bench`, without the options that cargo adds.
pub(crate) struct CommandLine(Vec<String>);

impl CommandLine {
    pub(crate) fn read() -> Self {
        Self(std::env::args().skip(1).collect())
    }

    /// The binary to measure: the given one, or the one that cargo built for this benchmark.
    pub(crate) fn binary(&self) -> PathBuf {
        let named = self.0.iter().find(|argument| !argument.starts_with("--"));
        let path = named.map_or(env!("CARGO_BIN_EXE_kitbag"), String::as_str);
        Path::new(path)
            .canonicalize()
            .unwrap_or_else(|error| panic!("there is no binary `{path}`: {error}"))
    }

    /// Returns true if `--NAME` was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|argument| argument.strip_prefix("--") == Some(name))
    }

    /// The value of `--NAME=VALUE`.
    pub(crate) fn value<T: FromStr>(&self, name: &str) -> Option<T> {
        let options = self.0.iter().filter_map(|argument| argument.strip_prefix("--"));
        let mut values = options.filter_map(|option| option.split_once('='));
        let (_, value) = values.find(|(key, _)| *key == name)?;
        Some(value.parse().unwrap_or_else(|_| panic!("`--{name}` takes no `{value}`")))
    }
}

/// Returns the time of some work.
pub(crate) fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// Returns a percentile of the values.
pub(crate) fn percentile<T: Ord + Copy>(values: &mut [T], percent: usize) -> T {
    values.sort_unstable();
    values[(values.len() - 1) * percent / 100]
}

pub(crate) fn median<T: Ord + Copy>(values: &mut [T]) -> T {
    percentile(values, 50)
}

/// Number of threads that run in parallel on this machine.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Calls a tool in the library. The call must succeed.
pub(crate) fn call(kitbag: &Kitbag, tool: &str, arguments: Value) {
    let completion = complete(kitbag, tool, arguments, &Cancellation::default());
    assert!(matches!(completion.result, Ok(Outcome::Success(_))), "{completion:?}");
}

/// Calls a tool in the library on this thread.
pub(crate) fn complete(
    kitbag: &Kitbag,
    tool: &str,
    arguments: Value,
    cancellation: &Cancellation,
) -> Completion {
    let invocation = Invocation::tool(tool, arguments);
    let context = CallContext::default().with_cancellation(cancellation.clone());
    let ended = kitbag.toolbox().call_blocking(invocation, context, &mut NoAnswers);
    let Ok(completion) = ended.unwrap().completion();
    completion
}
