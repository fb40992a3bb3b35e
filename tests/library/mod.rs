//! The library, embedded in a program.

mod bytes;
mod calls;
mod embedding;
mod native;
mod server;
mod tool_config;
