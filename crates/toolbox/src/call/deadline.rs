//! The end that the checks of a call share with the call.

use std::time::{Duration, Instant};

use kitbag_base::format_duration;
use kitbag_contract::LimitKind;
use kitbag_host::{CallError, Cancellation};

/// When the work for a call has to end.
pub(crate) struct Deadline<'a>(Option<End<'a>>);

struct End<'a> {
    cancellation: &'a Cancellation,
    time: Duration,
    at: Option<Instant>,
}

impl<'a> Deadline<'a> {
    /// For work that is part of no call.
    pub(crate) const NONE: Deadline<'static> = Deadline(None);

    /// The end of a call of this time, of which so much is left.
    pub(crate) fn new(cancellation: &'a Cancellation, time: Duration, left: Duration) -> Self {
        // A limit beyond what the clock can express is no limit.
        let at = Instant::now().checked_add(left);
        Self(Some(End { cancellation, time, at }))
    }

    /// Whether the work may go on.
    ///
    /// # Errors
    ///
    /// [`CallError::Cancelled`], or [`CallError::Limit`] where the time is over.
    pub(crate) fn check(&self) -> Result<(), CallError> {
        let Some(end) = &self.0 else { return Ok(()) };
        if end.cancellation.is_cancelled() {
            return Err(CallError::Cancelled);
        }
        if end.at.is_some_and(|at| Instant::now() >= at) {
            let limit = format_duration(end.time).to_string();
            return Err(CallError::Limit { kind: LimitKind::Time, limit });
        }
        Ok(())
    }
}
