//! Errors and questions that end a call.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::bindings::kitbag::tool::types::{ErrorInfo, Outcome, Question};

/// The reason for ending a call before there is a result. `?` converts an [`ErrorInfo`] or a
/// [`Question`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The tool could not do the requested work.
    Error(ErrorInfo),
    /// The tool needs an answer first and has changed nothing yet.
    Question(Question),
}

impl ErrorInfo {
    /// Creates an error that the model can act on. It is shown unchanged, so name the invalid value
    /// and a valid one.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), trace: Vec::new(), transient: false }
    }

    /// Adds a cause for the maintainer of the tool. The outermost comes first; the model does not
    /// see them.
    #[must_use]
    pub fn caused_by(mut self, cause: impl ToString) -> Self {
        self.trace.push(cause.to_string());
        self
    }

    /// Marks the error as transient: repeating the same call later may succeed.
    #[must_use]
    pub fn transient(mut self) -> Self {
        self.transient = true;
        self
    }
}

impl From<ErrorInfo> for Stop {
    fn from(error: ErrorInfo) -> Self {
        Self::Error(error)
    }
}

impl From<Question> for Stop {
    fn from(question: Question) -> Self {
        Self::Question(question)
    }
}

impl From<Result<String, Stop>> for Outcome {
    fn from(result: Result<String, Stop>) -> Self {
        match result {
            Ok(content) => Self::Success(content),
            Err(Stop::Error(error)) => Self::Error(error),
            Err(Stop::Question(question)) => Self::NeedsInput(question),
        }
    }
}
