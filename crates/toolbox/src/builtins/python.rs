//! The host's part of `python`: the list of tools that a script can call, for the model, and the
//! end of a script that stopped the interpreter.

use std::fmt::Write as _;

use kitbag_base::text::bound_error;
use kitbag_config::{Config, ConfiguredTool, PYTHON, ToolSource};
use kitbag_contract::{ErrorInfo, Limits, Outcome};
use kitbag_host::{CallError, CapturedOutput, Completion};
use kitbag_policy::{Kind, ToolGrants};
use serde_json::{Map, Value};

use crate::builtins::adapter::{Adapter, AdapterRefusal, Additions};
use crate::registry::ToolboxState;

/// The number of tools in a description. `help()` lists all.
const MOST: usize = 12;

/// The built-ins that scripts call most, in order of use. Each has its required arguments in order,
/// and some optional ones.
const MOST_USED: [(&str, &str); MOST] = [
    ("read_file", "path=…"),
    ("search_files", "pattern, globs=…"),
    ("find_files", "globs=…"),
    ("list_dir", "path=…"),
    ("write_file", "path, content"),
    ("edit_file", "path, edits"),
    ("apply_patch", "patch"),
    ("fetch", "url"),
    ("learn", "topic, subjects=…"),
    ("query_data", "query, path=…"),
    ("convert_data", "to, path=…"),
    ("html_to_markdown", "text=…"),
];

pub(crate) struct Python;

impl Adapter for Python {
    fn describe(&self, state: &ToolboxState, tool: &ConfiguredTool, description: &mut String) {
        let config = &state.config;
        if tool.grants.value.tools.is_empty() {
            description.push_str("\nNo tools are granted to scripts here.");
            return;
        }
        let callable = callable(config, tool);
        let used = MOST_USED.iter().flat_map(|(own, arguments)| {
            let is_it = |tool: &&(&str, &ConfiguredTool)| own_name(tool.1) == Some(own);
            callable.iter().filter(is_it).map(|(name, _)| (*name, *arguments))
        });
        let others = callable.iter().filter(|(_, tool)| own_name(tool).is_none());
        let others = others.map(|(name, _)| (*name, "…"));
        for (name, arguments) in used.chain(others).take(MOST) {
            let _ = write!(description, "\n{}({arguments})", name.replace('-', "_"));
        }
    }

    fn names_tools(&self) -> bool {
        true
    }

    fn own_arguments(&self) -> &'static [&'static str] {
        &[]
    }

    fn prepare(
        &self,
        _: &ToolboxState,
        _: &Map<String, Value>,
        _: &Limits,
    ) -> Result<Additions, AdapterRefusal> {
        Ok(Additions::default())
    }
}

/// Returns true if a tool is `python`, under any name.
pub(crate) fn is_python(source: &ToolSource) -> bool {
    matches!(source, ToolSource::Builtin { name } if name.value == PYTHON)
}

/// Returns true if a tool is a script or runs scripts that its caller writes.
pub(crate) fn runs_scripts(source: &ToolSource) -> bool {
    is_python(source) || matches!(source, ToolSource::Script(_))
}

/// The lines of the interpreter's report of a panic, on its standard error, that come before the
/// answer of the call.
const REPORTED: &str = "\nnote: answer:\n";

/// The start of the message of a trap if the interpreter reported a panic.
const PANICKED: &str = "the tool panicked at the interpreter: ";

/// The start of the message of a trap if the interpreter's stack had no room.
const OUT_OF_BOUNDS: &str = "out of bounds memory access";

const STACK_FULL: &str = "RecursionError: the stack of the interpreter is full; use less nesting in \
                          code, data and calls";

/// Makes the trap of the interpreter an error of the script, which a model can act on.
///
/// A component cannot catch a panic. The interpreter reports one with the answer of the call: the
/// output of the script and a traceback.
pub(crate) fn settle_trap(completion: &mut Completion) {
    let Err(CallError::Trap { message }) = &completion.result else { return };
    let reported = completion.stderr.text.rsplit_once(REPORTED);
    let mut message = match reported {
        Some((_, answer)) => answer.to_owned(),
        // The stack in the interpreter's memory is full.
        None if message.starts_with(OUT_OF_BOUNDS) => STACK_FULL.to_owned(),
        None => {
            let reason = message.strip_prefix(PANICKED).unwrap_or(message);
            format!("SystemError: the interpreter stopped: {reason}; change the script")
        }
    };
    bound_error(&mut message);
    completion.result = Ok(Outcome::Error(ErrorInfo::new(message)));
    completion.stderr = CapturedOutput::default();
}

/// Returns the enabled tools that a tool may call, each with its alias.
fn callable<'a>(
    config: &'a Config,
    tool: &'a ConfiguredTool,
) -> Vec<(&'a str, &'a ConfiguredTool)> {
    let enabled = |name| config.tools.get(name).filter(|tool| tool.is_enabled());
    match &tool.grants.value.tools {
        ToolGrants::None => Vec::new(),
        ToolGrants::Aliases(aliases) => aliases
            .iter()
            .filter_map(|(alias, grant)| Some((alias.as_str(), enabled(&grant.tool)?)))
            .collect(),
        ToolGrants::Caller => {
            let tools = config.tools.values();
            let others = tools.filter(|other| other.is_enabled() && other.name != tool.name);
            others.map(|other| (other.name.as_str(), other)).collect()
        }
    }
}

fn own_name(tool: &ConfiguredTool) -> Option<&str> {
    match &tool.source.value {
        ToolSource::Builtin { name } => Some(&name.value),
        ToolSource::Local(_)
        | ToolSource::Script(_)
        | ToolSource::Bytes(_)
        | ToolSource::Native
        | ToolSource::Server(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(message: &str, printed: &str) -> String {
        let mut completion = Completion::answered(Outcome::Success(String::new()));
        completion.result = Err(CallError::Trap { message: message.into() });
        completion.stderr.text = printed.into();
        settle_trap(&mut completion);
        assert_eq!(completion.stderr, CapturedOutput::default());
        match completion.result {
            Ok(Outcome::Error(error)) => error.message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_trap_of_the_interpreter_is_an_error_of_the_script() {
        let panicked = "the tool panicked at the interpreter: no luck";
        let report = "panicked at the interpreter:\nno luck\nnote: answer:\nprinted\nSystemError";
        assert_eq!(settled(panicked, report), "printed\nSystemError");
        // A second panic ended the report.
        let first = "panicked at the interpreter:\nno luck\n";
        let expected = "SystemError: the interpreter stopped: no luck; change the script";
        assert_eq!(settled(panicked, first), expected);
        let expected = "SystemError: the interpreter stopped: no reason; change the script";
        assert_eq!(settled("no reason", ""), expected);
        assert_eq!(settled("out of bounds memory access: a tool", ""), STACK_FULL);
    }

    #[test]
    fn a_long_report_is_shortened() {
        let report = format!("{REPORTED}{}", "ä".repeat(100_000));
        let message = settled("", &report);
        assert!(message.len() <= 4 << 10, "{}", message.len());
    }

    #[test]
    fn an_answer_is_not_changed() {
        let mut completion = Completion::answered(Outcome::Success("yes".into()));
        completion.stderr.text = REPORTED.into();
        settle_trap(&mut completion);
        assert!(matches!(completion.result, Ok(Outcome::Success(it)) if it == "yes"));
        assert_eq!(completion.stderr.text, REPORTED);
    }
}
