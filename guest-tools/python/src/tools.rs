//! Tools as functions of a script.
//!
//! A name is looked up when a script uses it, one tool at a time: a script without tools requests
//! none. The host decides on calls.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kitbag_sdk::ErrorInfo;
use kitbag_sdk::host;
use kitbag_sdk::serde_json::{self, Value};
use kitbag_sdk::tools::{self, Answer, Pending, ToolInfo};
use kitbag_workspace::nearest;
use rustpython_vm::builtins::PyStr;
use rustpython_vm::function::FuncArgs;
use rustpython_vm::{AsObject, PyObject, PyObjectRef, PyResult, VirtualMachine};

use crate::help;
use crate::names::identifiers;
use crate::state;
use crate::value::{NotJson, from_json, quote, to_json};

/// The tools of one run, and the cost of calling them.
#[derive(Default)]
pub(crate) struct Tools {
    /// The tools that were looked up, by their names in the script.
    found: BTreeMap<String, ToolInfo>,
    /// All tools, once they were requested.
    listed: Option<BTreeMap<String, ToolInfo>>,
    /// The calls that were started and not finished, by number.
    pending: BTreeMap<u32, Pending>,
    spent: Spent,
}

/// The cost of a script's calls.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    calls: u32,
    /// The calls that ended before the script waited for them.
    dropped: usize,
    /// The time that the script waited for calls.
    waited: Duration,
    /// The bytes of arguments and answers.
    bytes: u64,
    /// The reason why content of a tool is not in the answer.
    omitted: Option<String>,
}

impl Tools {
    /// Returns the tool with this name in a script.
    pub(crate) fn find(&mut self, name: &str, vm: &VirtualMachine) -> Option<&ToolInfo> {
        if !self.found.contains_key(name) {
            let tool = match tools::find(name) {
                Some(tool) => tool,
                // Only names that are not identifiers are changed.
                None if name.contains('_') => self.list(vm).get(name)?.clone(),
                None => return None,
            };
            self.found.insert(name.to_owned(), tool);
        }
        self.found.get(name)
    }

    /// Returns true if a tool is called so without a change of its name.
    pub(crate) fn has_exact(&mut self, name: &str) -> bool {
        if !self.found.contains_key(name)
            && let Some(tool) = tools::find(name)
        {
            self.found.insert(name.to_owned(), tool);
        }
        self.found.contains_key(name)
    }

    /// Returns all tools, by their names in a script.
    pub(crate) fn list(&mut self, vm: &VirtualMachine) -> &BTreeMap<String, ToolInfo> {
        self.listed.get_or_insert_with(|| {
            let tools = tools::list();
            let aliases: Vec<_> = tools.iter().map(|tool| &*tool.alias).collect();
            let names = identifiers(&aliases, |name| is_builtin(name, vm));
            names.into_iter().zip(tools).collect()
        })
    }

    /// Returns the tool whose name is nearest to an unknown one.
    pub(crate) fn nearest(&mut self, name: &str, vm: &VirtualMachine) -> Option<String> {
        let names = self.list(vm).keys().map(String::as_str);
        nearest(name, names).first().map(|name| (*name).to_owned())
    }

    /// Formats the list of all tools.
    pub(crate) fn help(&mut self, vm: &VirtualMachine) -> String {
        help::all(self.list(vm))
    }

    /// Formats the help of one tool.
    pub(crate) fn help_about(&mut self, name: &str, vm: &VirtualMachine) -> Option<String> {
        self.find(name, vm).map(|tool| help::one(name, tool))
    }

    pub(crate) fn calls(&self) -> u32 {
        self.spent.calls
    }

    /// Drops a call whose result the script no longer waits for.
    pub(crate) fn drop_call(&mut self, number: u32) {
        if self.pending.remove(&number).is_some() {
            self.spent.dropped += 1;
        }
    }

    /// Ends the calls that nothing waited for, and returns the cost of all calls.
    pub(crate) fn end(mut self) -> Spent {
        self.spent.dropped += self.pending.len();
        self.spent
    }

    /// Counts an answer and passes its content on. Returns its text, or the JSON of its structured
    /// result.
    fn take(&mut self, answer: Result<Answer, ErrorInfo>) -> Result<Taken, String> {
        let Answer { text, structured, content } = answer.map_err(|error| {
            self.spent.bytes += error.message.len() as u64;
            error.message
        })?;
        // Only the structured answer is used if there is one.
        self.spent.bytes += structured.as_ref().unwrap_or(&text).len() as u64;
        for item in &content {
            if let Err(problem) = host::emit(item) {
                self.spent.omitted.get_or_insert(problem);
            }
        }
        Ok(Taken { text, structured })
    }
}

/// The result of a call.
struct Taken {
    text: String,
    structured: Option<String>,
}

/// Makes a call and waits for its end.
pub(crate) fn call(name: &str, arguments: FuncArgs, vm: &VirtualMachine) -> PyResult {
    finish_call(begin(name, arguments, vm)?, vm)
}

/// Starts a call, which [`finish`] waits for. Returns its number.
pub(crate) fn start(name: &str, arguments: FuncArgs, vm: &VirtualMachine) -> PyResult<u32> {
    let pending = begin(name, arguments, vm)?;
    Ok(state::with(|state| {
        let number = state.tools.spent.calls;
        state.tools.pending.insert(number, pending);
        number
    }))
}

/// Returns true if a started call has ended, so that [`finish`] does not wait.
pub(crate) fn has_ended(number: u32) -> bool {
    state::with(|state| state.tools.pending.get(&number).is_none_or(Pending::has_ended))
}

/// Waits for the end of a started call.
pub(crate) fn finish(number: u32, vm: &VirtualMachine) -> PyResult {
    match state::with(|state| state.tools.pending.remove(&number)) {
        Some(pending) => finish_call(pending, vm),
        None => Err(vm.new_runtime_error("the result of this call was taken before")),
    }
}

fn finish_call(pending: Pending, vm: &VirtualMachine) -> PyResult {
    let begun = Instant::now();
    let answer = pending.finish();
    let taken = state::with(|state| {
        state.tools.spent.waited += begun.elapsed();
        state.tools.take(answer)
    });
    // Objects are made without the state: the garbage collector may run code of the script.
    let Taken { text, structured } = taken.map_err(|message| vm.new_runtime_error(message))?;
    let value = structured.and_then(|json| from_json(&json, vm));
    Ok(value.unwrap_or_else(|| vm.ctx.new_str(text).into()))
}

/// Starts a call. A call that is refused, for example beyond the limit, is not counted.
fn begin(name: &str, arguments: FuncArgs, vm: &VirtualMachine) -> PyResult<Pending> {
    let tool = state::with(|state| {
        state.tools.find(name, vm).map(|tool| (tool.alias.clone(), tool.input_schema.clone()))
    });
    let Some((alias, schema)) = tool else {
        return Err(
            vm.new_name_error(format!("name '{name}' is not defined"), vm.ctx.new_str(name))
        );
    };
    let json = written(name, &schema, &arguments, vm)?;
    let pending =
        tools::start_json(&alias, &json).map_err(|error| vm.new_runtime_error(error.message))?;
    state::with(|state| {
        state.tools.spent.calls += 1;
        state.tools.spent.bytes += json.len() as u64;
    });
    Ok(pending)
}

/// Writes arguments as a JSON object.
fn written(name: &str, schema: &str, given: &FuncArgs, vm: &VirtualMachine) -> PyResult<String> {
    let count = given.args.len();
    let schema: Value = match count {
        0 => Value::Null,
        _ => serde_json::from_str(schema).unwrap_or_default(),
    };
    let names: Vec<String> = help::positional(&schema).into_iter().map(str::to_owned).collect();
    let Some(names) = names.get(..count) else {
        let by_position = match &names[..] {
            [] => "no arguments by position".to_owned(),
            names => format!("{} by position", names.join(", ")),
        };
        let message = format!(
            "{name}() takes {by_position}, but {count} were given; pass the others by name"
        );
        return Err(vm.new_type_error(message));
    };
    let mut json = "{".to_owned();
    let by_name: Vec<_> = given.kwargs.iter().map(|(name, it)| (name.to_string(), it)).collect();
    if let Some((twice, _)) = by_name.iter().find(|(argument, _)| names.contains(argument)) {
        let message = format!("{name}() got multiple values for argument '{twice}'");
        return Err(vm.new_type_error(message));
    }
    let by_position = names.iter().zip(&given.args);
    for (argument, value) in by_position.chain(by_name.iter().map(|(name, it)| (name, *it))) {
        if json.len() > 1 {
            json.push(',');
        }
        json.push_str(&quote(argument));
        json.push(':');
        json.push_str(&argument_json(name, argument, value, vm)?);
    }
    json.push('}');
    Ok(json)
}

/// Writes one argument. A path becomes a string.
fn argument_json(
    name: &str,
    argument: &str,
    value: &PyObject,
    vm: &VirtualMachine,
) -> PyResult<String> {
    if let Some(method) = vm.get_attribute_opt(value, "__fspath__")? {
        let path = method.call((), vm)?;
        if let Some(path) = path.downcast_ref::<PyStr>() {
            return Ok(quote(&path.to_string_lossy()));
        }
    }
    let reason = match to_json(value, vm) {
        Ok(json) => return Ok(json),
        Err(NotJson::Raised(error)) => return Err(error),
        Err(NotJson::Deep) => "is nested too deep".to_owned(),
        Err(NotJson::Type(kind)) if *kind == *value.class().name() => {
            format!("is a {kind}, which is not JSON")
        }
        Err(NotJson::Type(kind)) => format!("contains a {kind}, which is not JSON"),
    };
    Err(vm.new_type_error(format!("the argument `{argument}` of {name}() {reason}")))
}

/// Returns true if Python has a built-in object with this name. Tools that were found are
/// built-in objects of the script.
fn is_builtin(name: &str, vm: &VirtualMachine) -> bool {
    let found: Option<PyObjectRef> = vm.builtins.dict().get_item_opt(name, vm).ok().flatten();
    found.is_some_and(|object| &*object.class().name() != "Tool")
}

impl Spent {
    /// Describes the cost of calls in a line. `None` if there were no calls.
    pub(crate) fn line(&self) -> Option<String> {
        let Self { calls, dropped, waited, bytes, omitted } = self;
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
        let omitted = omitted.as_ref().map(|reason| format!("; some content is missing: {reason}"));
        Some(format!("[{calls}{dropped}: {time}, {size}{}]", omitted.unwrap_or_default()))
    }
}
