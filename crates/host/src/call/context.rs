//! Where a load or a call reports, and what ends it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kitbag_engine::{Compiling, Waiter};
use kitbag_http::Account;
use tokio::sync::Semaphore;

use crate::call::report::EventSink;
use crate::schedule::timer::Cancellation;

/// Where a load or a call reports its events, and what ends it early.
///
/// Default: events are dropped, and only its own limits end it.
#[derive(Clone, Default)]
pub struct RunContext {
    /// Takes what the tool reports, and how long its component takes to compile.
    pub events: EventSink,
    /// Ends it when it is cancelled.
    pub cancellation: Cancellation,
    /// When it has to end, whatever time the call's own limits leave: the end of the
    /// call that it is a part of.
    pub deadline: Option<Instant>,
    /// The account that is charged. Default: the only client, and the tool that is called.
    pub account: Account,
    /// The right to the memory that the outermost call has reserved for one call inside it.
    /// `None`: it is that call.
    pub inner_memory: Option<Arc<Semaphore>>,
    /// Whether no call waits for it, so that a process that compiles for it has a low
    /// priority.
    pub is_background: bool,
}

impl RunContext {
    /// The account of a call of this tool, which is that of the outermost call if it is in one.
    pub(crate) fn account_of(&self, tool: &str) -> Account {
        self.account.clone().charged_to(tool)
    }

    /// The shorter of this time and what is left until the deadline.
    pub fn time(&self, time: Duration) -> Duration {
        let left = self.deadline.map(|at| at.saturating_duration_since(Instant::now()));
        left.map_or(time, |left| left.min(time))
    }

    /// Whether it was cancelled or the deadline has passed.
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
