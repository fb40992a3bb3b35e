//! Staying awake between the messages of a row.
//!
//! A thread that sleeps until the next message, or until the tool has answered,
//! is woken in ten times the time that a small call takes. So for a moment after
//! each of these the runtime looks whether there is something to do instead.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// How long the runtime stays awake. Whoever else wants the processor has it
/// meanwhile.
const MOMENT: Duration = Duration::from_micros(200);

/// Keeps a runtime awake.
#[derive(Debug, Default)]
pub(crate) struct Alert {
    until: Mutex<Option<Instant>>,
    begun: Notify,
}

impl Alert {
    /// Stays awake from now on, for a moment.
    pub(crate) fn stay(&self) {
        let until = Instant::now() + MOMENT;
        let before = self.until.lock().unwrap_or_else(PoisonError::into_inner).replace(until);
        if before.is_none() {
            self.begun.notify_one();
        }
    }

    /// Whether the moment is over.
    fn is_over(&self) -> bool {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        if until.is_some_and(|until| Instant::now() < until) {
            return false;
        }
        *until = None;
        true
    }

    /// What a task does that keeps its runtime awake.
    pub(crate) async fn keep(&self) {
        loop {
            self.begun.notified().await;
            while !self.is_over() {
                std::thread::yield_now();
                // The runtime does what there is to do, without waiting for it.
                tokio::task::yield_now().await;
            }
        }
    }
}
