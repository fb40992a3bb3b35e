//! The tests of the whole: the real binary and the real library.
//!
//! A directory for each part of kitbag; `support` is the harness. Reading the files under
//! `snapshots/` is reviewing behaviour.

mod support;

mod cli;
mod library;
mod mcp;
mod meta;
mod security;
mod tools;
