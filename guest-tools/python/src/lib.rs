//! The tool `python`.
//!
//! The interpreter is the crate `monty`, compiled as it is. It reaches nothing by itself:
//! where a script asks for a file, a variable or the time, it stops, and [`system`] answers.
//! What ends a script that does not end, or takes too much, are the limits of the call.

#![forbid(unsafe_code)]

mod answer;
mod system;
#[cfg(test)]
mod tests;
mod value;

use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Tool, json};
use monty::{MontyRun, RunProgress};
use monty_types::{
    CompileOptions, ExcType, ExtFunctionResult, MontyException, MontyObject, NameLookupResult,
    PrintWriter, ResourceLimits, ResourceTracker,
};
use serde::Deserialize;

use crate::answer::Printed;
use crate::system::System;
use crate::value::Inputs;

/// What a traceback calls the script.
const SCRIPT: &str = "script.py";

/// The most that one value may take, in bytes. The memory of the call ends a script before
/// as a rule; what is larger than a vector can be would end it as a panic.
const VALUE_BYTES: usize = 1 << 30;

/// The modules that there are.
const MODULES: [&str; 16] = [
    "asyncio",
    "base64",
    "binascii",
    "collections",
    "dataclasses",
    "datetime",
    "functools",
    "itertools",
    "json",
    "math",
    "os",
    "pathlib",
    "re",
    "sys",
    "typing",
    "unicodedata",
];

/// The component.
struct Python;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    code: String,
    #[serde(default)]
    inputs: Inputs,
}

kitbag_sdk::export!(Python);

impl Tool for Python {
    type Arguments = Arguments;

    fn describe() -> Description {
        Description::new("python")
            .title("Python")
            .description(
                "Run a Python script in a fresh sandbox, for what takes more than one step: \
                 arithmetic, text, JSON, dates, files of the workspace by `open()` and \
                 `pathlib`. No packages, network or processes; nothing is kept between calls. \
                 Not there: `del`, `match`, `yield`, class inheritance, `@property`, \
                 `for line in file` (use `.readlines()`), `csv`, \
                 `random`, `time`. Example: {\"code\": \"sum(len(s) for s in words)\", \
                 \"inputs\": {\"words\": [\"a\", \"bc\"]}}. Answers what it printed, then the value of the last expression, as \
                 JSON where it is data; an error is the traceback.",
            )
            .arguments(
                json!({
                    "code": { "type": "string" },
                    "inputs": {
                        "type": "object",
                        "description": "Variables of the script",
                        "default": {},
                    },
                }),
                &["code"],
            )
            .annotations(json!({
                "readOnlyHint": false,
                "destructiveHint": true,
                "idempotentHint": false,
                "openWorldHint": false,
            }))
            .grants(json!({ "filesystem": [{ "guest": "/workspace", "mode": "ro" }] }))
    }

    fn run(call: &Call, arguments: Arguments) -> Result<String, Stop> {
        let mut printed = Printed::default();
        match run(arguments, &System::new(call), &mut printed) {
            Ok(value) => Ok(answer::success(printed, &value)),
            Err(exception) => Err(ErrorInfo::new(answer::failure(printed, &exception)).into()),
        }
    }
}

/// Runs a script to its end and returns the value of its last expression.
///
/// # Errors
///
/// The exception that ended it.
fn run(
    arguments: Arguments,
    system: &System,
    printed: &mut Printed,
) -> Result<MontyObject, MontyException> {
    let (names, values) = arguments.inputs.0.into_iter().unzip();
    let script = MontyRun::new(arguments.code, SCRIPT, names, CompileOptions::default())?;
    let tracker = ResourceTracker::new(ResourceLimits::default().max_memory(VALUE_BYTES));
    let mut progress = script.start(values, tracker, PrintWriter::Callback(printed))?;
    loop {
        let print = PrintWriter::Callback(printed);
        progress = match progress {
            RunProgress::Complete(value) => return Ok(value),
            RunProgress::OsCall(call) => call.resume_with(print, |call| system.answer(call))?,
            // There are no functions and no names from outside.
            RunProgress::NameLookup(lookup) => lookup.resume(NameLookupResult::Undefined, print)?,
            RunProgress::FunctionCall(call) => {
                let name = call.function_name.clone();
                call.resume(ExtFunctionResult::NotFound(name), print)?
            }
            RunProgress::ResolveFutures(futures) => {
                let message = "all tasks wait, and nothing is left that could wake one";
                let error = MontyException::new(ExcType::RuntimeError, Some(message.to_owned()));
                futures.abort(error, print)?
            }
        };
    }
}
