//! The host's request to a tool.

use std::fmt;

/// The action that the host requests.
///
/// Contract: `wit/tool.wit`, enum `action`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Action {
    /// Do the work.
    #[default]
    Run,
    /// Render the call as one line for a person. Runs without grants.
    FormatArguments,
}

/// The handling of arguments that are not in a tool's schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UnknownArguments {
    /// Unknown arguments are dropped, unless one may be a misspelled argument or a required
    /// argument is missing.
    #[default]
    Drop,
    /// Unknown arguments are an error.
    Refuse,
}

/// The context of a call, as the tool sees it.
///
/// Contract: `wit/tool.wit`, record `context`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The guest path of the working directory; never a host path.
    pub root: String,
    /// The action that the host requests.
    pub action: Action,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Run => "run",
            Self::FormatArguments => "format-arguments",
        })
    }
}
