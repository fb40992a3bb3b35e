//! Problems of a tool, for `check`, `add` and `update`.

use kitbag::config::ToolSource;
use kitbag::contract::{ErrorKind, ToolName};
use kitbag::host::CacheProblem;
use kitbag::toolbox::definitions::Format;
use kitbag::{Toolbox, ToolboxError};

use crate::console::listener::Screen;
use crate::error::{CliError, Finding};

#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) problems: Vec<Finding>,
    /// Likely mistakes that do not prevent use.
    pub(crate) warnings: Vec<String>,
    pub(crate) cache_problems: Vec<CacheProblem>,
}

impl Findings {
    /// Loads a tool and examines it. Runs nothing, except to ask a component without a section for
    /// its description, in the sandbox and without grants.
    pub(crate) fn of_tool(toolbox: &Toolbox, name: &ToolName, as_json: bool) -> Self {
        let mut findings = Self::default();
        let load = |events| toolbox.with_events(events).load(name.as_str());
        // A server is not started to examine its recorded tools.
        let tool = toolbox.config().tools.get(name.as_str()).map(|tool| &tool.source.value);
        let is_of_server = matches!(tool, Some(ToolSource::Server(_)));
        match (!is_of_server).then(|| Screen::during(as_json, load)) {
            None => {}
            Some(Ok(component)) => {
                findings.cache_problems = component.cache_problems().to_vec();
                if let Some(problem) = component.described().problem() {
                    findings.problems.push(Finding {
                        about: about(name),
                        text: format!("its description cannot be used: {problem}"),
                        kind: ErrorKind::Contract,
                    });
                }
            }
            Some(Err(error)) => {
                findings.problems.push(Finding::of_tool(name, error));
                return findings;
            }
        }
        let warnings = &mut findings.warnings;
        let checked = toolbox.tool(name.as_str()).and_then(|tool| {
            if let Some(reason) = tool.refused {
                let (tool, update) = (name.to_string(), name.to_string());
                return Err(ToolboxError::NotAsRecorded { tool, reason, update });
            }
            if tool.unavailable(toolbox.config()).is_some() {
                warnings.push(format!(
                    "the tool `{name}` is unavailable until it has the requested grants"
                ));
            }
            warnings.extend(tool.grant_warnings());
            warnings.extend(tool.missing_grants(toolbox.config()));
            warnings.extend(resolved_by_proxy(toolbox, name));
            tool.check_schemas()?;
            let served = Format::Mcp.define(&tool).losses;
            warnings.extend(served.iter().map(ToString::to_string));
            Ok(())
        });
        findings.problems.extend(checked.err().map(|error| Finding::of_tool(name, error)));
        findings
    }
}

/// Returns the warning that the addresses of granted hosts are not checked.
fn resolved_by_proxy(toolbox: &Toolbox, name: &ToolName) -> Option<String> {
    let config = toolbox.config();
    let grants = &config.tools.get(name)?.grants.value.http.grants;
    let mut hosts = grants.iter().map(|grant| grant.url.host()).filter(|host| host.is_of_names());
    let host = hosts.next().filter(|_| config.network.proxy_resolves())?;
    let more = match hosts.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let origin = &config.network.resolve.origin;
    Some(format!(
        "the proxy resolves `{host}`{more} for the tool `{name}`, so kitbag does not check the \
         addresses ({origin})"
    ))
}

impl Finding {
    fn of_tool(name: &ToolName, error: ToolboxError) -> Self {
        let error = CliError::from(error);
        Self { about: about(name), text: error.to_string(), kind: error.kind() }
    }
}

fn about(name: &ToolName) -> String {
    format!("tool `{name}`")
}
