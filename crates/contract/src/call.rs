//! What the host asks of a tool.

use std::fmt;

/// What the host asks for.
///
/// Contract: `wit/tool.wit`, enum `action`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Action {
    /// Do the work.
    #[default]
    Run,
    /// Render the call as one line for a person; runs with no grants at all.
    FormatArguments,
}

/// The handling of arguments that a tool's schema does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UnknownArguments {
    /// They are dropped, unless one may be a misspelled argument or a required argument is
    /// missing.
    #[default]
    Drop,
    /// They are an error.
    Refuse,
}

/// What a call happens in, as the tool sees it.
///
/// Contract: `wit/tool.wit`, record `context`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// Guest path of the directory to work in; never a host path.
    pub root: String,
    /// What the host asks for.
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
