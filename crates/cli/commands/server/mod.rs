//! The MCP server, the configuration of clients that start it, and the people who share it.

pub(crate) mod import;
pub(crate) mod mcp_config;
pub(crate) mod serve;
pub(crate) mod token;
