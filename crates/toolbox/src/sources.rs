//! The sources of tools.

mod component;
pub(crate) mod native;
mod program;
pub(crate) mod script;
