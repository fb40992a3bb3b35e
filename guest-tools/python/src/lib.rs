//! The tool `python`.
//!
//! The interpreter is the unmodified crate `monty`. It has no access of its own: if a script
//! requests a file, a variable or the time, it stops and [`system`] answers; if it calls a tool,
//! [`tools`] does. Scripts can only read files: changes are made by tools, which are not called
//! again when the script is run again with an answer. The limits of the call end scripts that do
//! not terminate or use too much.

#![forbid(unsafe_code)]

mod answer;
mod awaited;
mod help;
mod names;
mod system;
#[cfg(test)]
mod tests;
mod tools;
mod value;

use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Tool};
use monty::{FunctionCall, MontyRun, RunProgress};
use monty_types::{
    CompileOptions, ExcType, ExtFunctionResult, MontyException, MontyObject, NameLookupResult,
    PrintWriter, ResourceLimits, ResourceTracker,
};
use serde::Deserialize;

use crate::answer::Printed;
use crate::awaited::Awaited;
use crate::system::System;
use crate::tools::{CallResult, HELP, Tools};
use crate::value::Inputs;

/// The name of the script in a traceback.
const SCRIPT: &str = "script.py";

/// The most that one value may take, in bytes. The memory of the call ends a script before
/// as a rule; what is larger than a vector can be would end it as a panic.
pub(crate) const VALUE_BYTES: usize = 1 << 30;

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

/// The component's own description, also in its section.
const DESCRIPTION: &str = include_str!("../describe.json");

kitbag_sdk::describe_section!(DESCRIPTION);

impl Tool for Python {
    type Arguments = Arguments;

    fn describe() -> Description {
        Description::from_json(DESCRIPTION)
    }

    fn run(call: &Call, arguments: Arguments) -> Result<String, Stop> {
        let Arguments { mut code, inputs } = arguments;
        let awaited = Awaited::read(&mut code, inputs.0.iter().map(|(name, _)| name.as_str()));
        let mut script = Script { system: System::new(call), tools: Tools::default(), awaited };
        let mut printed = Printed::default();
        let ended = script.run(code, inputs, &mut printed);
        printed.show_lines(&script.system.notes());
        let Script { mut tools, awaited, .. } = script;
        match ended {
            Ok(value) => {
                let answer = answer::success(printed, &value);
                Ok(answer::with_spent(answer, &tools.end()))
            }
            Err(exception) => {
                let message = answer::failure(printed, &exception, &mut tools, &awaited);
                Err(ErrorInfo::new(answer::with_spent(message, &tools.end())).into())
            }
        }
    }
}

/// A script that runs.
struct Script {
    system: System,
    tools: Tools,
    awaited: Awaited,
}

impl Script {
    /// Runs a script to its end and returns the value of its last expression.
    ///
    /// # Errors
    ///
    /// The exception that ended it.
    fn run(
        &mut self,
        code: String,
        inputs: Inputs,
        printed: &mut Printed,
    ) -> Result<MontyObject, MontyException> {
        let (names, values) = inputs.0.into_iter().unzip();
        let script = MontyRun::new(code, SCRIPT, names, CompileOptions::default())?;
        let tracker = ResourceTracker::new(ResourceLimits::default().max_memory(VALUE_BYTES));
        let mut progress = script.start(values, tracker, PrintWriter::Callback(printed))?;
        loop {
            progress = match progress {
                RunProgress::Complete(value) => return Ok(value),
                RunProgress::OsCall(call) => call
                    .resume_with(PrintWriter::Callback(printed), |call| self.system.answer(call))?,
                RunProgress::NameLookup(lookup) => {
                    let function = match lookup.object_id() {
                        None => self.look_up(&lookup.name),
                        Some(_) => NameLookupResult::Undefined,
                    };
                    lookup.resume(function, PrintWriter::Callback(printed))?
                }
                RunProgress::FunctionCall(call) => {
                    let result = self.call(&call, printed);
                    call.resume(result, PrintWriter::Callback(printed))?
                }
                RunProgress::ResolveFutures(futures) => {
                    let print = PrintWriter::Callback(printed);
                    match self.tools.finish(futures.pending_call_ids()) {
                        Some((call, result)) => futures.resume(vec![(call, of(result))], print)?,
                        None => {
                            let message = "all tasks wait, and nothing is left that could wake one";
                            let kind = ExcType::RuntimeError;
                            let error = MontyException::new(kind, Some(message.to_owned()));
                            futures.abort(error, print)?
                        }
                    }
                }
            };
        }
    }

    /// Returns the function for a name in the script.
    fn look_up(&mut self, name: &str) -> NameLookupResult {
        let plain = self.awaited.name(name);
        let is_function = match plain.unwrap_or(name) {
            HELP => true,
            tool => self.tools.find(tool).is_some(),
        };
        if is_function {
            let (name, docstring) = (name.to_owned(), None);
            return NameLookupResult::Value(MontyObject::Function { name, docstring });
        }
        match plain {
            None => NameLookupResult::Undefined,
            // The script knows it by this name.
            Some(plain) => {
                let message = format!("name '{plain}' is not defined");
                NameLookupResult::Error(MontyException::new(ExcType::NameError, Some(message)))
            }
        }
    }

    /// Calls a function of the host's.
    fn call(&mut self, call: &FunctionCall, printed: &mut Printed) -> ExtFunctionResult {
        let name = &*call.function_name;
        if call.object_id.is_some() {
            return ExtFunctionResult::NotFound(name.to_owned());
        }
        if name == HELP {
            return of(tools::help(&mut self.tools, call).map(|text| {
                printed.show(&text);
                MontyObject::None
            }));
        }
        match self.awaited.name(name) {
            None => of(self.tools.call(name, call)),
            Some(plain) => match self.tools.start(plain, call) {
                Ok(()) => ExtFunctionResult::Future(call.call_id),
                Err(exception) => ExtFunctionResult::Error(exception),
            },
        }
    }
}

fn of(result: CallResult) -> ExtFunctionResult {
    match result {
        Ok(value) => ExtFunctionResult::Return(value),
        Err(exception) => ExtFunctionResult::Error(exception),
    }
}
