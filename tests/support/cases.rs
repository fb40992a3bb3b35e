//! Calls and answers of a built-in component, made through the library.
//!
//! The files are in the directory `cases` of the component, whose own tests make the same calls
//! natively.

use std::fs;
use std::thread;

use kitbag::{Kitbag, Outcome};
use serde_json::Value;

use super::{Workspace, block_on, repository};

/// Makes the calls of these files in a workspace with the data beside them.
#[track_caller]
pub(crate) fn check_cases(component: &str, files: &[&str]) {
    let directory = repository().join("guest-tools").join(component).join("cases");
    let workspace = Workspace::with_toolsets(&[component]);
    for entry in fs::read_dir(&directory).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), workspace.path(entry.file_name().to_str().unwrap())).unwrap();
    }
    let kitbag = workspace.kitbag();
    for file in files {
        kitbag_cases::check(directory.join(file), |tool, arguments| {
            call(&kitbag, tool, serde_json::from_str(arguments).unwrap())
        });
    }
}

/// Makes these calls 64 times, eight at once, each with its own answer.
#[track_caller]
pub(crate) fn check_concurrent(kitbag: &Kitbag, calls: &[(&str, Value)]) {
    let alone: Vec<_> =
        calls.iter().map(|(tool, arguments)| call(kitbag, tool, arguments.clone())).collect();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..8 {
                    for ((tool, arguments), expected) in calls.iter().zip(&alone) {
                        assert_eq!(&call(kitbag, tool, arguments.clone()), expected);
                    }
                }
            });
        }
    });
}

/// The answer of a call, or the message of its error.
pub(crate) fn call(kitbag: &Kitbag, tool: &str, arguments: Value) -> Result<String, String> {
    match block_on(kitbag.call(tool, arguments)) {
        Ok(Outcome::Success(content)) => Ok(content),
        Ok(Outcome::Error(error)) => Err(error.message),
        Ok(Outcome::NeedsInput(question)) => Err(format!("question: {}", question.text)),
        Err(error) => Err(format!("failed: {error}")),
    }
}
