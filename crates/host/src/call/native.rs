//! Calls of tools that are code of the embedding program.

use std::time::Instant;

use kitbag_contract::{LimitKind, Limits, Outcome};

use crate::call::context::RunContext;
use crate::call::truncate::truncate_outcome;
use crate::call::{Completion, Usage};
use crate::error::CallError;
use crate::limits::exceeded;
use crate::schedule::blocking::in_outer_runtime;
use crate::schedule::timer::{Reason, Timer};

/// Awaits native code within the limits on time and output.
///
/// # Errors
///
/// [`CallError::Limit`] and [`CallError::Cancelled`]; the work is dropped.
pub(crate) async fn run(
    timer: &Timer,
    limits: &Limits,
    context: &RunContext,
    work: impl Future<Output = Outcome>,
) -> Result<Completion, CallError> {
    let start = Instant::now();
    let time = context.time(limits.time);
    let watched = timer.watch(None, time, &context.cancellation).map_err(CallError::internal)?;
    let watch = watched.watch();
    let end = |reason| match reason {
        Reason::Cancelled => CallError::Cancelled,
        Reason::Deadline => exceeded(LimitKind::Time, limits),
    };
    context.events.started();
    let outcome = tokio::select! {
        biased;
        reason = watch.ended() => return Err(end(reason)),
        outcome = in_outer_runtime(work) => outcome,
    };
    // The code may have run past its deadline without yielding.
    if let Some(reason) = watch.reason() {
        return Err(end(reason));
    }
    let (outcome, output_bytes) = truncate_outcome(outcome, limits.output.as_usize());
    let usage = Usage { elapsed: start.elapsed(), output_bytes, ..Usage::default() };
    Ok(Completion { usage, ..Completion::answered(outcome) })
}
