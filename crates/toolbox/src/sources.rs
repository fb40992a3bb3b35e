//! The sources of tools.

pub(crate) mod command;
mod component;
pub(crate) mod native;
mod program;
pub(crate) mod script;
pub(crate) mod server;
pub(crate) mod server_items;
