//! The methods of the protocol.

pub(crate) mod call;
pub(crate) mod catalog;
pub(crate) mod component_items;
pub(crate) mod content;
pub(crate) mod discovery;
pub(crate) mod knowledge;
pub(crate) mod outcome;
pub(crate) mod page;
pub(crate) mod prompts;
pub(crate) mod question;
pub(crate) mod resources;
pub(crate) mod results;
pub(crate) mod server_items;
pub(crate) mod skills;
