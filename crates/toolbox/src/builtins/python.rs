//! The host's part of `python`: the list of tools that a script can call, for the model.

use std::fmt::Write as _;

use kitbag_config::{Config, ConfiguredTool, PYTHON, ToolSource};
use kitbag_contract::Limits;
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
    fn describe(&self, config: &Config, tool: &ConfiguredTool, description: &mut String) {
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
