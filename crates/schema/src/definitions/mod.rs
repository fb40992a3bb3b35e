//! Definitions of a tool in the formats of model interfaces.
//!
//! Each interface supports a different part of JSON Schema. A definition contains as much as its
//! format can express and lists the rest as [`Loss`]es. kitbag always checks calls against the
//! tool's own schema.

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

/// The format in which a model interface accepts tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `tools` of OpenAI's Chat Completions and compatible interfaces. With `strict` if the schema
    /// allows it; see [`without_nulls`].
    OpenAiChat,
    /// `tools` of OpenAI's Responses. With `strict` as above.
    OpenAiResponses,
    /// `tools` of Anthropic's Messages API.
    Anthropic,
    /// An element of `tools` of Gemini's `generateContent`.
    Gemini,
    /// The result of `tools/list` in the Model Context Protocol.
    Mcp,
}

/// The definition of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// The tool in its format.
    pub value: Value,
    /// The parts that the format cannot express.
    pub losses: Vec<Loss>,
}

/// A part of a tool that a format cannot express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The name of the tool.
    pub tool: ToolName,
    /// The position in the input schema, as a JSON pointer; empty for the whole schema.
    pub pointer: String,
    /// The change, as the end of a sentence.
    pub what: String,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 5] =
        [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini, Self::Mcp];

    /// Defines one tool.
    ///
    /// The schema must be valid; see [`Schema::check`](crate::Schema::check).
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

    /// Combines definitions into the form of the interface.
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
