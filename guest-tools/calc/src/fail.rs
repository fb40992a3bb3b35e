//! Why a calculation has no result.

/// Why there is no result.
#[derive(Debug, PartialEq)]
pub(crate) enum Fail {
    /// The expression has none; the message says why.
    Error(String),
    /// More digits may decide it; the message is for when there are no more.
    Undecided(String),
}

pub(crate) fn error<T>(message: impl Into<String>) -> Result<T, Fail> {
    Err(Fail::Error(message.into()))
}

pub(crate) fn undecided<T>(message: impl Into<String>) -> Result<T, Fail> {
    Err(Fail::Undecided(message.into()))
}
