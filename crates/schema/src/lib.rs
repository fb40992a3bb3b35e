//! JSON Schema: arguments against it, what that takes, and the definitions for model
//! interfaces.
//!
//! A schema and a value are the words of a tool and of a model, so that all work on
//! them is bounded. Whose schema it is, when a call has to end and where a tool comes
//! from is left to the caller.

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

/// For a check that nothing ends.
///
/// # Errors
///
/// None.
pub fn without_end() -> Result<(), Infallible> {
    Ok(())
}
