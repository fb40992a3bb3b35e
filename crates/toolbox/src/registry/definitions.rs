//! Definitions of a toolbox's tools for model interfaces.

use std::collections::BTreeSet;

use kitbag_contract::ToolName;
use kitbag_host::{CacheProblem, CallError};
use serde_json::Value;

use crate::error::ToolboxError;
use crate::registry::Toolbox;
use crate::registry::tool::Tool;

pub use kitbag_schema::definitions::{Definition, Format, Loss, ToolInfo, without_nulls};

/// Definitions of several tools.
#[derive(Clone, Debug)]
pub struct Definitions {
    /// The definitions, by name, in the format of the interface.
    pub value: Value,
    /// The parts of each tool that the format could not express.
    pub losses: Vec<Loss>,
    /// Problems with the disk cache while tools were loaded for this.
    pub cache_problems: Vec<CacheProblem>,
    /// The tools whose own descriptions cannot be used, with the reason for each.
    pub description_problems: Vec<(ToolName, String)>,
    /// The omitted tools, with the reason for each.
    pub left_out: Vec<(ToolName, String)>,
}

impl<'a> From<&'a Tool> for ToolInfo<'a> {
    fn from(tool: &'a Tool) -> Self {
        Self {
            name: &tool.name,
            title: tool.title.as_ref().map(|title| &*title.value),
            description: tool.description.as_ref().map(|description| &*description.value),
            input_schema: &tool.input_schema.value,
            output_schema: tool.output_schema.as_ref().map(|schema| schema.value.as_json()),
            annotations: &tool.annotations,
        }
    }
}

impl Toolbox {
    /// Returns the definition of a tool.
    ///
    /// # Errors
    ///
    /// As for [`tool`](Self::tool); [`ToolboxError::Schema`] if one of the tool's schemas is
    /// invalid.
    pub fn definition(&self, name: &str, format: Format) -> Result<Definition, ToolboxError> {
        let tool = self.tool(name)?;
        tool.check_schemas()?;
        Ok(format.define(&tool))
    }

    /// Returns the definitions of every enabled tool. Tools with an invalid schema are omitted and
    /// listed in [`Definitions::left_out`].
    ///
    /// # Errors
    ///
    /// [`ToolboxError::Load`] for a tool that cannot be loaded.
    pub fn definitions(&self, format: Format) -> Result<Definitions, ToolboxError> {
        self.define_all(self.enabled().map(|(name, _)| name.as_str()), format, true)
    }

    /// Returns the definitions of some tools, sorted by name and without duplicates.
    ///
    /// # Errors
    ///
    /// As for [`definitions`](Self::definitions); [`ToolboxError::UnknownTool`] and
    /// [`ToolboxError::Disabled`] for a name, and [`ToolboxError::Schema`] for a tool with an
    /// invalid schema.
    pub fn definitions_of<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
        format: Format,
    ) -> Result<Definitions, ToolboxError> {
        self.define_all(names, format, false)
    }

    fn define_all<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
        format: Format,
        may_leave_out: bool,
    ) -> Result<Definitions, ToolboxError> {
        let (mut values, mut losses, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        let (mut cache_problems, mut description_problems) = (Vec::new(), Vec::new());
        for name in names.into_iter().collect::<BTreeSet<_>>() {
            let mut tool = self.tool(name).map_err(|error| match error {
                // With several tools, the error must name the tool.
                ToolboxError::Call(CallError::Load(source)) => {
                    ToolboxError::Load { tool: name.to_owned(), source: Box::new(source) }
                }
                error => error,
            })?;
            let checked = match may_leave_out {
                true => tool.check_schemas_in_use(),
                false => tool.check_schemas(),
            };
            match checked {
                Err(error) if may_leave_out => {
                    left_out.push((tool.name, error.to_string()));
                    continue;
                }
                other => other?,
            }
            let definition = format.define(&tool);
            values.push(definition.value);
            losses.extend(definition.losses);
            cache_problems.append(&mut tool.cache_problems);
            let output = tool.output_problem.map(|why| format!("its output schema: {why}"));
            let problems = [tool.description_problem, output].into_iter().flatten();
            description_problems.extend(problems.map(|why| (tool.name.clone(), why)));
        }
        Ok(Definitions {
            value: format.collect(values),
            losses,
            cache_problems,
            description_problems,
            left_out,
        })
    }
}
