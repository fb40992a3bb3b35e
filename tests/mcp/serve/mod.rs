//! `kitbag serve`, as its clients meet it.

mod bounds;
mod fixtures;
mod http;
mod log;
mod memory;
mod questions;
mod reload;
mod reports;
mod resources;
mod session;
mod shares;
mod tools;
mod web;

use serde_json::Value;

/// The texts of a result, one after the other.
pub(crate) fn texts(result: &Value) -> Vec<&str> {
    let blocks = result["content"].as_array().unwrap();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
}
