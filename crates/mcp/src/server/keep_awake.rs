//! Keeps the runtime awake between successive messages.
//!
//! Waking a sleeping thread takes ten times as long as a small call. So after each message and each
//! answer, the runtime polls for work for a moment instead of sleeping. It sleeps at once while
//! every processor runs a call, because a thread that yields to computing guests waits for the time
//! slices of all of them.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// How long the runtime stays awake. Other threads can use the processor during that time.
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
                // The runtime does the available work without waiting for more.
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
    fn runtime_stays_awake_briefly_and_then_sleeps() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let awake = Arc::new(KeepAwake::default());
        let kept = Arc::clone(&awake);
        runtime.spawn(async move { kept.keep(|| false).await });
        let is_awake = || awake.until.lock().unwrap().is_some();
        for _ in 0..3 {
            awake.stay();
            // A repeated request only extends the time.
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
    fn busy_processors_let_the_runtime_sleep_at_once() {
        let awake = KeepAwake::default();
        *awake.until.lock().unwrap() = Some(Instant::now() + Duration::from_secs(3_600));
        assert!(!awake.is_over(false));
        assert!(awake.is_over(true));
        assert_eq!(*awake.until.lock().unwrap(), None);
    }
}
