//! The places that tools come from.

mod component;
pub(crate) mod native;
mod program;
pub(crate) mod script;
