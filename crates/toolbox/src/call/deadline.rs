//! The deadline that the checks of a call share with the call.

use std::time::{Duration, Instant};

use kitbag_base::format_duration;
use kitbag_contract::LimitKind;
use kitbag_host::{CallError, Cancellation};

/// The time when the work for a call must end.
pub(crate) struct Deadline<'a>(Option<End<'a>>);

struct End<'a> {
    cancellation: &'a Cancellation,
    time: Duration,
    at: Option<Instant>,
}

impl<'a> Deadline<'a> {
    /// The deadline of work that is not part of a call. It never passes.
    pub(crate) const NONE: Deadline<'static> = Deadline(None);

    /// Creates the deadline of a call with the time limit `time`. `left` is the remaining time.
    pub(crate) fn new(cancellation: &'a Cancellation, time: Duration, left: Duration) -> Self {
        // A limit that the clock cannot express never applies.
        let at = Instant::now().checked_add(left);
        Self(Some(End { cancellation, time, at }))
    }

    /// Checks that the work may continue.
    ///
    /// # Errors
    ///
    /// [`CallError::Cancelled`], or [`CallError::Limit`] if the time is up.
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
