//! The definition of a tool, in the form that a model interface takes.
//!
//! Each interface understands another part of JSON Schema. A definition says as
//! much as its format can, and lists as [`Loss`]es what it could not say. kitbag
//! checks every call against the tool's own schema, whatever a model was given.

mod anthropic;
mod clients;
mod disjoint;
mod ecma;
mod gemini;
mod mcp;
mod note;
mod nulls;
mod openai;
mod reference;
mod root;
mod strict;
#[cfg(test)]
mod tests;
mod tool_info;

use std::fmt;

use kitbag_base::text::shown;
use kitbag_contract::ToolName;
use serde_json::{Value, json};

pub use nulls::without_nulls;
pub use tool_info::ToolInfo;

pub(crate) use note::Note;

/// The form that a model interface takes tools in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `tools` of OpenAI's chat completions, and of interfaces that are compatible with them.
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

/// The definition of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// The tool in its format.
    pub value: Value,
    /// What the format could not express.
    pub losses: Vec<Loss>,
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

impl Format {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini, Self::Mcp];

    /// Defines one tool.
    ///
    /// The schema is taken to be a valid one; [`Schema::check`](crate::Schema::check)
    /// makes sure of that.
    pub fn define<'a>(self, tool: impl Into<ToolInfo<'a>>) -> Definition {
        let tool = &tool.into();
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

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.pointer {
            "" => write!(f, "`{}`: the input schema {}", self.tool, self.what),
            pointer => write!(f, "`{}`: `{}` {}", self.tool, shown(pointer), self.what),
        }
    }
}
