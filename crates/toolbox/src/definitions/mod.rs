//! What a model is told of a tool, in the form that its interface takes.
//!
//! Each interface understands another part of JSON Schema. A definition says as
//! much as its format can, and lists as [`Loss`]es what it could not say. kitbag
//! checks every call against the tool's own schema, whatever a model was told.

mod anthropic;
mod disjoint;
mod gemini;
mod mcp;
mod nulls;
mod openai;
mod root;
mod strict;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;

use kitbag_contract::ToolName;
use kitbag_contract::text::shown;
use kitbag_host::{CacheProblem, CallError};
use serde_json::{Value, json};

use crate::{Tool, Toolbox, ToolboxError};

pub use nulls::without_nulls;

/// The form that a model interface takes tools in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `tools` of OpenAI's chat completions, and of whatever speaks like them.
    /// With `strict` wherever the schema allows it; see [`without_nulls`].
    OpenAiChat,
    /// `tools` of OpenAI's responses. With `strict` as above.
    OpenAiResponses,
    /// `tools` of Anthropic's messages.
    Anthropic,
    /// One element of `tools` of Gemini's `generateContent`.
    Gemini,
    /// The result of `tools/list` in the Model Context Protocol.
    Mcp,
}

/// What a model is told of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// The tool in its format.
    pub value: Value,
    /// What the format could not express.
    pub losses: Vec<Loss>,
}

/// What a model is told of several tools.
#[derive(Clone, Debug)]
pub struct Definitions {
    /// All of them, by name, as the interface takes them.
    pub value: Value,
    /// What the format could not express, tool by tool.
    pub losses: Vec<Loss>,
    /// What was wrong with the disk cache when tools were loaded for this.
    pub cache_problems: Vec<CacheProblem>,
    /// The tools whose descriptions of themselves cannot be used, and why not.
    pub description_problems: Vec<(ToolName, String)>,
    /// The tools that are left out, and why.
    pub left_out: Vec<(ToolName, String)>,
}

/// Something about a tool that a format could not express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The tool.
    pub tool: ToolName,
    /// Where in its input schema, as a JSON pointer; empty for the whole.
    pub pointer: String,
    /// What was done instead, as the end of a sentence.
    pub what: String,
}

/// A [`Loss`] of a schema, before it is known whose that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) pointer: String,
    pub(crate) what: String,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini, Self::Mcp];

    /// Defines one tool.
    ///
    /// A [`ToolName`] fits every format as it is. The schema is taken to be a
    /// valid one; [`Toolbox::definition`] makes sure of that.
    pub fn define(self, tool: &Tool) -> Definition {
        let (value, notes) = match self {
            Self::OpenAiChat => openai::chat(tool),
            Self::OpenAiResponses => openai::responses(tool),
            Self::Anthropic => anthropic::define(tool),
            Self::Gemini => gemini::define(tool),
            Self::Mcp => mcp::define(tool),
        };
        let loss = |Note { pointer, what }| Loss { tool: tool.name.clone(), pointer, what };
        Definition { value, losses: notes.into_iter().map(loss).collect() }
    }

    /// Puts definitions together as the interface takes them.
    pub fn collect(self, definitions: Vec<Value>) -> Value {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses | Self::Anthropic => definitions.into(),
            Self::Gemini => json!({ "functionDeclarations": definitions }),
            Self::Mcp => json!({ "tools": definitions }),
        }
    }
}

impl Toolbox {
    /// What a model is told of a tool.
    ///
    /// # Errors
    ///
    /// As for [`tool`](Self::tool); [`ToolboxError::Schema`] where one of the tool's
    /// schemas is none.
    pub fn definition(&self, name: &str, format: Format) -> Result<Definition, ToolboxError> {
        let tool = self.tool(name)?;
        tool.check_schemas()?;
        Ok(format.define(&tool))
    }

    /// What a model is told of every enabled tool. One with a schema that is none is
    /// left out, which [`Definitions::left_out`] says.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::Load`] for a tool that cannot be loaded.
    pub fn definitions(&self, format: Format) -> Result<Definitions, ToolboxError> {
        self.define_all(self.enabled().map(|(name, _)| name.as_str()), format, true)
    }

    /// What a model is told of some tools. They are sorted by name, and one that
    /// is named twice counts once.
    ///
    /// # Errors
    ///
    /// As for [`definitions`](Self::definitions), [`ToolboxError::UnknownTool`] and
    /// [`ToolboxError::Disabled`] for a name, and [`ToolboxError::Schema`] for a tool
    /// with a schema that is none.
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
                // Of several tools it has to be said which one.
                ToolboxError::Call(CallError::Load(source)) => {
                    ToolboxError::Load { tool: name.to_owned(), source: Box::new(source) }
                }
                error => error,
            })?;
            match tool.check_schemas() {
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
            description_problems.extend(tool.description_problem.map(|why| (tool.name, why)));
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

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.pointer {
            "" => write!(f, "`{}`: the input schema {}", self.tool, self.what),
            pointer => write!(f, "`{}`: `{}` {}", self.tool, shown(pointer), self.what),
        }
    }
}

impl Note {
    fn new(pointer: impl Into<String>, what: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), what: what.into() }
    }
}

/// What a tool says of itself, where it says anything.
fn description(tool: &Tool) -> Option<&str> {
    tool.description.as_ref().map(|description| &*description.value)
}

/// Finds what a `$ref` within the schema points to, and the pointer to it.
fn resolve<'a>(root: &'a Value, reference: &str) -> Option<(String, &'a Value)> {
    let pointer = reference.strip_prefix('#')?;
    // Whatever would have to be decoded first is left alone.
    if pointer.contains('%') {
        return None;
    }
    Some((pointer.to_owned(), root.pointer(pointer)?))
}
