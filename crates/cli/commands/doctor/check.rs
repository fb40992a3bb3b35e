//! A check, and its result.

/// The result of a check.
pub(super) struct Check {
    pub(super) name: String,
    pub(super) status: Status,
    /// The finding, and the way out if there is a problem.
    pub(super) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Status {
    Ok,
    Warning,
    Error,
}

impl Status {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl Check {
    pub(super) fn new(name: impl Into<String>, status: Status, text: impl Into<String>) -> Self {
        Self { name: name.into(), status, text: text.into() }
    }
}
