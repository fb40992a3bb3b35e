//! Integration tests of the real binary and the real library.
//!
//! There is a directory for each part of kitbag; `support` is the harness. The files under
//! `snapshots/` show the behaviour and are reviewed.

mod support;

mod cli;
mod library;
mod mcp;
mod meta;
mod security;
mod tools;
