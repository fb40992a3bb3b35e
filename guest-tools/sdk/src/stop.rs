//! What ends a call before there is a result.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::bindings::kitbag::tool::types::{ErrorInfo, Outcome, Question};

/// What ends a call before there is a result. `?` makes one of an [`ErrorInfo`]
/// or a [`Question`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The tool could not do what was asked.
    Error(ErrorInfo),
    /// The tool needs an answer first, and has changed nothing yet.
    Question(Question),
}

impl ErrorInfo {
    /// An error that the model can act on. It is shown as it is, so name the
    /// value that was wrong and what would be right.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), trace: Vec::new(), transient: false }
    }

    /// Adds a cause, for the person who looks after the tool. The outermost
    /// comes first; the model does not see them.
    #[must_use]
    pub fn caused_by(mut self, cause: impl ToString) -> Self {
        self.trace.push(cause.to_string());
        self
    }

    /// Says that the same call may succeed when it is made again later.
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
