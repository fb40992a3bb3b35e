//! Events, cancellation and deadline of a load or a call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kitbag_engine::{Compiling, Waiter};
use kitbag_http::Account;
use tokio::sync::Semaphore;

use crate::call::report::EventSink;
use crate::schedule::timer::Cancellation;

/// Event sink, cancellation, deadline and account of a load or a call.
///
/// By default, events are dropped and only the limits of the call end it.
#[derive(Clone, Default)]
pub struct RunContext {
    /// Receives the tool's reports and the compilation progress of its component.
    pub events: EventSink,
    /// Ends the load or call when cancelled.
    pub cancellation: Cancellation,
    /// When the load or call must end, regardless of its own limits: the deadline of the call that
    /// contains it.
    pub deadline: Option<Instant>,
    /// The account charged. Default: the only client, and the called tool.
    pub account: Account,
    /// The right to the memory that the outermost call has reserved for one nested call. `None`
    /// for the outermost call.
    pub inner_memory: Option<Arc<Semaphore>>,
    /// True if no call waits for the load: a process that compiles for it gets a low priority.
    pub is_background: bool,
}

impl RunContext {
    /// Returns the account for a call of this tool. A nested call is charged to the account of the
    /// outermost call.
    pub(crate) fn account_of(&self, tool: &str) -> Account {
        self.account.clone().charged_to(tool)
    }

    /// Returns the shorter of `time` and the time until the deadline.
    pub fn time(&self, time: Duration) -> Duration {
        let left = self.deadline.map(|at| at.saturating_duration_since(Instant::now()));
        left.map_or(time, |left| left.min(time))
    }

    /// Returns true after cancellation or past the deadline.
    pub fn is_over(&self) -> bool {
        self.cancellation.is_cancelled() || self.deadline.is_some_and(|at| Instant::now() >= at)
    }
}

impl Waiter for RunContext {
    fn is_over(&self) -> bool {
        self.is_over()
    }

    fn is_background(&self) -> bool {
        self.is_background
    }

    fn listens(&self) -> bool {
        !self.events.is_empty()
    }

    fn compiling(&self, compiling: &Compiling<'_>) {
        self.events.compiling(compiling);
    }
}
