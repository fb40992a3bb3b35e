//! Errors of a calculation.

/// The reason why a calculation has no result.
#[derive(Debug, PartialEq)]
pub(crate) enum Fail {
    /// The expression has no result; the message gives the reason.
    Error(String),
    /// More digits may lead to a result. The message applies if the maximum number of digits is
    /// reached.
    Undecided(String),
}

pub(crate) fn error<T>(message: impl Into<String>) -> Result<T, Fail> {
    Err(Fail::Error(message.into()))
}

pub(crate) fn undecided<T>(message: impl Into<String>) -> Result<T, Fail> {
    Err(Fail::Undecided(message.into()))
}
