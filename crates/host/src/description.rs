//! Requests for a component's description.

/// Why a component had no time to answer, or could not be asked.
pub(crate) struct NotNow(pub(crate) String);
