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
    /// The source of the script.
    code: String,
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

pub(crate) fn begin(root: &str, code: &str) {
    let (root, code) = (root.to_owned(), code.to_owned());
    with(|state| *state = State { root, code, ..State::default() });
}

/// Takes the output, with notes about files at its end, and the cost of calls.
pub(crate) fn end() -> (Output, Spent) {
    let (_, output, spent) = with(std::mem::take).into_parts();
    (output, spent)
}

/// Takes the source of the script, the output and the cost of calls. `None` if a function is using
/// the state.
pub(crate) fn try_end() -> Option<(String, Output, Spent)> {
    let state = STATE.with(|state| Some(std::mem::take(&mut *state.try_borrow_mut().ok()?)));
    state.map(State::into_parts)
}

impl State {
    fn into_parts(self) -> (String, Output, Spent) {
        let Self { code, mut output, tools, assumed, .. } = self;
        let line = |(path, encoding): (&String, &Encoding)| format!("[`{path}` is {encoding}]\n");
        output.push_lines(&assumed.iter().map(line).collect::<String>());
        (code, output, tools.end())
    }
}
