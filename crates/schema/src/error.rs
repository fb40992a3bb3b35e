//! What can be wrong with a schema, or with a value that is checked against one.

use kitbag_base::ARGUMENTS_DEPTH;

use crate::problems::ArgumentProblem;

/// A schema that is no JSON Schema, or takes too much to check against.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SchemaError {
    /// What is wrong with it.
    pub reason: String,
}

impl SchemaError {
    pub(crate) fn new(reason: &str) -> Self {
        Self { reason: reason.to_owned() }
    }
}

/// A value that was not found to fit. `E` is why the caller ended the check.
#[derive(Debug, thiserror::Error)]
pub enum CheckError<E> {
    /// It does not fit the schema: everything that is wrong.
    #[error("does not fit{}", list(.0))]
    Misfit(Vec<ArgumentProblem>),
    /// Its arrays and objects nest too deep.
    #[error("nests deeper than {ARGUMENTS_DEPTH} levels")]
    TooDeep,
    /// The schema cannot be used.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The caller ended the check.
    #[error("the check was ended")]
    Ended(E),
}

fn list(problems: &[ArgumentProblem]) -> String {
    problems.iter().map(|problem| format!("\n  {problem}")).collect()
}
