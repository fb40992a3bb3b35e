//! Staying awake between the messages of a row.
//!
//! A thread that sleeps until the next message, or until the tool has answered,
//! is woken in ten times the time that a small call takes. So for a moment after
//! each of these the runtime looks whether there is something to do instead. While every
//! processor runs a call it sleeps, since a thread that yields to computing guests waits for the
//! slices of all of them.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// How long the runtime stays awake. Any other thread has the processor
/// meanwhile.
const MOMENT: Duration = Duration::from_micros(200);

#[derive(Debug, Default)]
pub(crate) struct KeepAwake {
    until: Mutex<Option<Instant>>,
    begun: Notify,
}

impl KeepAwake {
    pub(crate) fn stay(&self) {
        let until = Instant::now() + MOMENT;
        let before = self.until.lock().unwrap_or_else(PoisonError::into_inner).replace(until);
        if before.is_none() {
            self.begun.notify_one();
        }
    }

    fn is_over(&self, is_busy: bool) -> bool {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_busy && until.is_some_and(|until| Instant::now() < until) {
            return false;
        }
        *until = None;
        true
    }

    /// Keeps the runtime of this task awake, unless the processors are busy.
    pub(crate) async fn keep(&self, is_busy: impl Fn() -> bool) {
        loop {
            self.begun.notified().await;
            while !self.is_over(is_busy()) {
                std::thread::yield_now();
                // The runtime does what there is to do, without waiting for it.
                tokio::task::yield_now().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_runtime_is_awake_for_a_moment_and_then_sleeps() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let awake = Arc::new(KeepAwake::default());
        let kept = Arc::clone(&awake);
        runtime.spawn(async move { kept.keep(|| false).await });
        let is_awake = || awake.until.lock().unwrap().is_some();
        for _ in 0..3 {
            awake.stay();
            // Another time while it is awake makes it no more than longer.
            awake.stay();
            assert!(is_awake());
            runtime.block_on(async {
                while is_awake() {
                    tokio::task::yield_now().await;
                }
            });
        }
    }

    #[test]
    fn busy_processors_end_the_moment_at_once() {
        let awake = KeepAwake::default();
        *awake.until.lock().unwrap() = Some(Instant::now() + Duration::from_secs(3_600));
        assert!(!awake.is_over(false));
        assert!(awake.is_over(true));
        assert_eq!(*awake.until.lock().unwrap(), None);
    }
}
