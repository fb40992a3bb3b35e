//! The pipeline against fake tools: approval, questions, rates, nested calls and audit.

mod approval;
mod audit;
mod discovery;
mod fake;
mod nested_calls;
mod questions;
#[cfg(feature = "servers")]
mod servers;
