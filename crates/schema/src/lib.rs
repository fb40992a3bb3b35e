//! JSON Schema: checks of arguments, their cost, and definitions for model interfaces.
//!
//! Schemas and values come from tools and models, so all work on them is bounded. The caller
//! decides when a call ends.

mod arguments;
mod complexity;
pub mod definitions;
mod error;
mod keywords;
mod plain;
mod problems;
mod schema;
mod types;

use std::convert::Infallible;

pub use arguments::{Arguments, Checked, Coercion};
pub use error::{CheckError, SchemaError};
pub use problems::ArgumentProblem;
pub use schema::Schema;

/// Never ends a check.
///
/// # Errors
///
/// Never fails.
pub fn without_end() -> Result<(), Infallible> {
    Ok(())
}
