//! Tools as functions of a script.
//!
//! A name is looked up when a script first uses it, one tool at a time: a script without tools
//! requests none. The host decides on calls.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kitbag_sdk::ErrorInfo;
use kitbag_sdk::host;
use kitbag_sdk::serde_json::{self, Value};
use kitbag_sdk::tools::{self, Answer, Pending, ToolInfo};
use kitbag_workspace::nearest;
use monty::FunctionCall;
use monty_types::{ExcType, MontyException, MontyObject};

use crate::help;
use crate::names::identifiers;
use crate::value::{from_json, quote, write_argument};

/// The function that shows what tools there are.
pub(crate) const HELP: &str = "help";

/// The tools of one run, and what calling them took.
#[derive(Default)]
pub(crate) struct Tools {
    /// Those that were looked up, by what the script calls them.
    found: BTreeMap<String, ToolInfo>,
    /// The names of their arguments that go by position, where a call gave some so.
    positional: BTreeMap<String, Vec<String>>,
    /// All of them, once they were asked for.
    listed: Option<BTreeMap<String, ToolInfo>>,
    /// The calls that were started and not taken, in the order of their start.
    pending: BTreeMap<u32, Pending>,
    spent: Spent,
}

/// The cost of a script's calls.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    calls: u32,
    /// Those that ended with the script, which did not wait for them.
    dropped: usize,
    /// The time that the script waited for them.
    waited: Duration,
    /// The bytes of arguments and answers.
    bytes: u64,
    /// Why something that a tool gave besides its text is not in the answer.
    left_out: Option<String>,
}

/// The result of a call for a script.
pub(crate) type CallResult = Result<MontyObject, MontyException>;

impl Tools {
    /// Looks whether a tool has this name in a script.
    pub(crate) fn find(&mut self, name: &str) -> Option<&ToolInfo> {
        if !self.found.contains_key(name) {
            let tool = match tools::find(name) {
                Some(tool) => tool,
                // Only names that are not identifiers are changed.
                None if name.contains('_') => self.list().get(name)?.clone(),
                None => return None,
            };
            self.found.insert(name.to_owned(), tool);
        }
        self.found.get(name)
    }

    /// All tools, by what a script calls them.
    pub(crate) fn list(&mut self) -> &BTreeMap<String, ToolInfo> {
        self.listed.get_or_insert_with(|| {
            let tools = tools::list();
            let aliases: Vec<_> = tools.iter().map(|tool| &*tool.alias).collect();
            let names = identifiers(&aliases).into_iter().map(|(name, _)| name);
            let names: Vec<_> = names.collect();
            names.into_iter().zip(tools).collect()
        })
    }

    /// The tool whose name is nearest to one that there is not.
    pub(crate) fn nearest(&mut self, name: &str) -> Option<String> {
        let names = self.list().keys().map(String::as_str);
        nearest(name, names).first().map(|name| (*name).to_owned())
    }

    /// Makes a call and waits for its end.
    pub(crate) fn call(&mut self, name: &str, call: &FunctionCall) -> CallResult {
        let pending = self.begin(name, call)?;
        let begun = Instant::now();
        let answer = pending.finish();
        self.spent.waited += begun.elapsed();
        self.take(answer)
    }

    /// Starts a call, which [`finish`](Self::finish) waits for.
    pub(crate) fn start(&mut self, name: &str, call: &FunctionCall) -> Result<(), MontyException> {
        let pending = self.begin(name, call)?;
        self.pending.insert(call.call_id, pending);
        Ok(())
    }

    /// Waits for the end of the first-started of these calls. The order in which calls end is
    /// random, but a script that is run again must continue in the same way.
    pub(crate) fn finish(&mut self, calls: &[u32]) -> Option<(u32, CallResult)> {
        let first = calls.iter().copied().filter(|call| self.pending.contains_key(call)).min()?;
        let pending = self.pending.remove(&first)?;
        let begun = Instant::now();
        let answer = pending.finish();
        self.spent.waited += begun.elapsed();
        Some((first, self.take(answer)))
    }

    /// Returns true if any tool was called.
    pub(crate) fn were_called(&self) -> bool {
        self.spent.calls > 0
    }

    /// Ends what was not waited for, and says what all of it took.
    pub(crate) fn end(mut self) -> Spent {
        self.spent.dropped = self.pending.len();
        self.spent
    }

    /// Starts a call. A call that is refused, for example beyond the limit, is not counted.
    fn begin(&mut self, name: &str, call: &FunctionCall) -> Result<Pending, MontyException> {
        let (alias, arguments) = self.arguments(name, call)?;
        let pending = tools::start_json(&alias, &arguments).map_err(failed)?;
        self.spent.calls += 1;
        self.spent.bytes += arguments.len() as u64;
        Ok(pending)
    }

    fn take(&mut self, answer: Result<Answer, ErrorInfo>) -> CallResult {
        let Answer { text, structured, content } = answer.map_err(|error| {
            self.spent.bytes += error.message.len() as u64;
            failed(error)
        })?;
        // Only the structured answer is used if there is one.
        self.spent.bytes += structured.as_ref().unwrap_or(&text).len() as u64;
        for item in &content {
            if let Err(problem) = host::emit(item) {
                self.spent.left_out.get_or_insert(problem);
            }
        }
        let value = structured.and_then(|json| from_json(&json).ok());
        Ok(value.unwrap_or(MontyObject::String(text)))
    }

    /// The tool that a call means, and the arguments as JSON.
    fn arguments(
        &mut self,
        name: &str,
        call: &FunctionCall,
    ) -> Result<(String, String), MontyException> {
        let Some(tool) = self.find(name) else {
            let message = format!("name '{name}' is not defined");
            return Err(MontyException::new(ExcType::NameError, Some(message)));
        };
        let (alias, given) = (tool.alias.clone(), call.args.len());
        if given > 0 && !self.positional.contains_key(name) {
            let names = positional(&self.found[name].input_schema);
            self.positional.insert(name.to_owned(), names);
        }
        let names = self.positional.get(name).map(Vec::as_slice).unwrap_or_default();
        let Some(names) = names.get(..given) else {
            let by_position = match names {
                [] => "no arguments by position".to_owned(),
                names => format!("{} by position", names.join(", ")),
            };
            return Err(type_error(format!(
                "{name}() takes {by_position}, and {given} were given; the others go by their names"
            )));
        };
        Ok((alias, written(name, names, call)?))
    }
}

/// The names of the arguments that go by position: those that are required, in their order, or
/// the only one that there is.
fn positional(schema: &str) -> Vec<String> {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut names: Vec<_> = required.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    if let (0, Some(properties)) = (names.len(), schema["properties"].as_object())
        && properties.len() == 1
    {
        names.extend(properties.keys().cloned());
    }
    names
}

/// Arguments as a JSON object. Those by position have these names.
fn written(
    name: &str,
    positional: &[String],
    call: &FunctionCall,
) -> Result<String, MontyException> {
    let mut json = "{".to_owned();
    let mut add = |argument: &str, value: &MontyObject| {
        if json.len() > 1 {
            json.push(',');
        }
        json.push_str(&quote(argument));
        json.push(':');
        write_argument(value, &mut json)
            .map_err(|what| type_error(format!("the argument `{argument}` of {name}() is {what}")))
    };
    for (argument, value) in positional.iter().zip(&call.args) {
        add(argument, value)?;
    }
    for (argument, value) in &call.kwargs {
        let MontyObject::String(argument) = argument else {
            return Err(type_error(format!("{name}() takes arguments whose names are texts")));
        };
        if positional.contains(argument) {
            return Err(type_error(format!(
                "{name}() got multiple values for argument '{argument}'"
            )));
        }
        add(argument, value)?;
    }
    json.push('}');
    Ok(json)
}

/// Formats the output of `help(…)`.
pub(crate) fn help(tools: &mut Tools, call: &FunctionCall) -> Result<String, MontyException> {
    let name = match (&*call.args, &*call.kwargs) {
        ([], []) => return Ok(help::all(tools.list())),
        ([MontyObject::Function { name, .. } | MontyObject::String(name)], []) => name,
        _ => return Err(type_error("help() takes a tool, or nothing".to_owned())),
    };
    if name == HELP {
        return Ok("help() lists the tools, and help(tool) shows one.\n".to_owned());
    }
    if let Some(tool) = tools.find(name) {
        return Ok(help::one(name, tool));
    }
    let meant = tools.nearest(name).map(|it| format!("; did you mean `{it}`?"));
    let message = format!("there is no tool `{name}`{}", meant.unwrap_or_default());
    Err(MontyException::new(ExcType::LookupError, Some(message)))
}

fn type_error(message: String) -> MontyException {
    MontyException::new(ExcType::TypeError, Some(message))
}

/// The error of a call, as an exception.
fn failed(error: ErrorInfo) -> MontyException {
    MontyException::new(ExcType::RuntimeError, Some(error.message))
}

impl Spent {
    /// Describes the cost of calls, in a line. `None` if there were none.
    pub(crate) fn line(&self) -> Option<String> {
        let Self { calls, dropped, waited, bytes, left_out } = self;
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let calls = match calls {
            0 => return None,
            calls => format!("{calls} call{} of tools", plural(*calls as usize)),
        };
        let dropped = match dropped {
            0 => String::new(),
            1 => ", one of them not waited for".to_owned(),
            more => format!(", {more} of them not waited for"),
        };
        let time = match waited.as_millis() {
            millis @ ..1000 => format!("{millis} ms"),
            millis => format!("{}.{} s", millis / 1000, millis / 100 % 10),
        };
        let size = match bytes {
            0..1024 => format!("{bytes} B"),
            0..0x10_0000 => format!("{} KiB", bytes.div_ceil(1 << 10)),
            _ => format!("{} MiB", bytes.div_ceil(1 << 20)),
        };
        let left_out = left_out.as_ref().map(|why| format!("; some content was left out: {why}"));
        Some(format!("[{calls}{dropped}: {time}, {size}{}]", left_out.unwrap_or_default()))
    }
}
