//! The tool `python`: runs a script with RustPython.
//!
//! The interpreter and its standard library are compiled into this component. It is started once,
//! by `initialize` while kitbag is built, and each call begins with a copy of that memory.
//! The modules in `prelude` run scripts: they connect tools, files, clocks and the event loop with
//! this crate through the module `_kitbag`.

mod answer;
mod awaited;
mod globals;
mod help;
mod interpreter;
mod names;
mod native;
mod output;
mod panic_report;
mod script;
mod snapshot;
mod state;
mod system;
mod tools;
mod unclosed;
mod value;

use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Tool};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The component.
struct Python;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    code: String,
    /// Read from the text of the arguments later, directly into objects of the interpreter.
    #[serde(default, rename = "inputs")]
    _inputs: std::collections::HashMap<String, IgnoredAny>,
}

kitbag_sdk::export!(Python);

/// The component's own description, also in its section.
const DESCRIPTION: &str = include_str!("../describe.json");

kitbag_sdk::describe_section!(DESCRIPTION);

impl Tool for Python {
    type Arguments = Arguments;

    fn describe() -> Description {
        Description::from_json(DESCRIPTION)
    }

    fn run(call: &Call, arguments: Arguments) -> Result<String, Stop> {
        state::begin(call.root(), &arguments.code);
        let outcome = interpreter::run(&arguments.code, call.arguments_json());
        let (output, spent) = state::end();
        match outcome {
            Ok(value) => Ok(answer::with_spent(answer::success(output, value.as_deref()), &spent)),
            Err(problem) => {
                let message = answer::failure(output, &problem);
                Err(ErrorInfo::new(answer::with_spent(message, &spent)).into())
            }
        }
    }
}
