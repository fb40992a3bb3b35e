//! MCP servers whose tools kitbag offers.

pub mod process;
