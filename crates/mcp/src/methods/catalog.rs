//! The tools as `tools/list` returns them.

use kitbag_base::text::printable;
use kitbag_toolbox::definitions::{Definition, Format};
use kitbag_toolbox::{KnownTool, Toolbox};
use rmcp::model;

/// The tools of one toolbox by name, with the data that is known without loading them.
pub(crate) struct Catalog {
    /// The output of `kitbag export --format mcp`.
    pub(crate) tools: Vec<model::Tool>,
    /// Names of the tools whose own descriptions are not loaded yet.
    pub(crate) undescribed: Vec<String>,
}

impl Catalog {
    /// Reads the cached descriptions of local tools. Compiles nothing.
    pub(crate) fn of(toolbox: &Toolbox) -> Self {
        let mut catalog = Self { tools: Vec::new(), undescribed: Vec::new() };
        for known in toolbox.known_tools() {
            match known {
                Ok(KnownTool { tool, may_say_more }) => {
                    if let Some(problem) = &tool.description_problem {
                        let problem = printable(problem);
                        tracing::warn!(
                            "the description of `{}` cannot be used: {problem}",
                            tool.name
                        );
                    }
                    if let Some(problem) = &tool.output_problem {
                        tracing::warn!(
                            "the output schema of `{}` is omitted, because it cannot be used: {}",
                            tool.name,
                            printable(problem)
                        );
                    }
                    if let Err(error) = tool.check_schema_forms() {
                        tracing::error!("`{}` is omitted: {error}", tool.name);
                        continue;
                    }
                    let Definition { value, losses } = Format::Mcp.define(&tool);
                    for loss in losses {
                        tracing::warn!("{loss}");
                    }
                    match serde_json::from_value(value) {
                        Ok(definition) => catalog.tools.push(definition),
                        Err(error) => {
                            tracing::error!("the tool `{}` is omitted: {error}", tool.name);
                        }
                    }
                    if may_say_more {
                        catalog.undescribed.push(tool.name.to_string());
                    }
                }
                Err(error) => tracing::error!("a tool is omitted: {error}"),
            }
        }
        catalog
    }
}
