//! Commands that print configuration, definitions and documentation for other programs.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod export;
pub(crate) mod man;
pub(crate) mod prompt;
