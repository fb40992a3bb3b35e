//! Errors of schemas and of values that are checked.

use kitbag_base::ARGUMENTS_DEPTH;

use crate::problems::ArgumentProblem;

/// Why a schema is not valid or too expensive to check.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SchemaError {
    /// The problem.
    pub reason: String,
}

impl SchemaError {
    pub(crate) fn new(reason: &str) -> Self {
        Self { reason: reason.to_owned() }
    }
}

/// Why a value does not match. `E` is the caller's reason to end the check.
#[derive(Debug, thiserror::Error)]
pub enum CheckError<E> {
    /// The value does not match the schema: all problems.
    #[error("does not match{}", list(.0))]
    Misfit(Vec<ArgumentProblem>),
    /// Arrays and objects are nested too deeply.
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
