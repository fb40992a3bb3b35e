//! Core modules of other hosts, as components.

pub(crate) mod core;
pub(crate) mod module;
pub(crate) mod plugin;
