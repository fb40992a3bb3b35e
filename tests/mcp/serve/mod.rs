//! `kitbag serve`, from the view of its clients.

mod bounds;
mod fixtures;
mod http;
mod log;
mod memory;
mod people;
mod questions;
mod reload;
mod reports;
mod resources;
mod session;
mod shares;
mod skills;
mod tools;
mod web;

use crate::support::mcp::texts;
