//! The MCP server, and the configuration of clients that start it.

pub(crate) mod mcp_config;
pub(crate) mod serve;
