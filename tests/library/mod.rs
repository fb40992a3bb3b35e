//! The library, embedded in a program.

mod bytes;
mod calls;
mod embedding;
mod mcp_servers;
mod native;
mod server;
mod tool_config;
