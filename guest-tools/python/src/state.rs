//! The state of the call that runs: its output, its tools, and notes about files.

use std::cell::RefCell;
use std::collections::BTreeMap;

use kitbag_workspace::Encoding;

use crate::output::Output;
use crate::tools::{Spent, Tools};

/// The state of a call.
#[derive(Default)]
pub(crate) struct State {
    /// The directory that relative paths start from.
    pub(crate) root: String,
    pub(crate) output: Output,
    pub(crate) tools: Tools,
    /// The files that were not read as UTF-8, each with its encoding.
    pub(crate) assumed: BTreeMap<String, Encoding>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Runs a function with the state of the call.
pub(crate) fn with<T>(function: impl FnOnce(&mut State) -> T) -> T {
    STATE.with_borrow_mut(function)
}

pub(crate) fn begin(root: &str) {
    with(|state| *state = State { root: root.to_owned(), ..State::default() });
}

/// Takes the output, with notes about files at its end, and the cost of calls.
pub(crate) fn end() -> (Output, Spent) {
    let State { mut output, tools, assumed, .. } = with(std::mem::take);
    let line = |(path, encoding): (&String, &Encoding)| format!("[`{path}` is {encoding}]\n");
    output.push_lines(&assumed.iter().map(line).collect::<String>());
    (output, tools.end())
}
