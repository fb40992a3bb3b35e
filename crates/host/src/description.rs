//! Asking a component for its description.

/// A component had no time to answer, or could not be asked, and why.
pub(crate) struct NotNow(pub(crate) String);
