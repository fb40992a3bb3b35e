//! Delays between the starts of a server that fails.

use std::time::{Duration, Instant};

/// The delay after the first failure. It doubles with each failure.
const FIRST: Duration = Duration::from_millis(500);

/// The longest delay.
const LONGEST: Duration = Duration::from_secs(60);

/// A server that ran this long before it failed is started again at once.
const STEADY: Duration = Duration::from_secs(10);

/// The failures of a server in a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    until: Option<Instant>,
    reason: String,
}

impl Backoff {
    /// Adds a failure of a server that ran for `ran`.
    pub(crate) fn failed(&mut self, reason: String, ran: Duration, now: Instant) {
        self.reason = reason;
        if ran >= STEADY {
            (self.failures, self.until) = (0, None);
            return;
        }
        let delay = FIRST.saturating_mul(1 << self.failures.min(10)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        self.until = now.checked_add(delay);
    }

    /// Returns the last failure and the remaining delay, if the server may not be started yet.
    pub(crate) fn wait(&self, now: Instant) -> Option<(&str, Duration)> {
        let left = self.until?.saturating_duration_since(now);
        (!left.is_zero()).then_some((&*self.reason, left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_and_have_a_limit() {
        let (mut backoff, now) = (Backoff::default(), Instant::now());
        assert_eq!(backoff.wait(now), None);
        let mut delays = Vec::new();
        for _ in 0..9 {
            backoff.failed("no".into(), Duration::ZERO, now);
            delays.push(backoff.wait(now).unwrap().1.as_millis());
        }
        assert_eq!(delays, [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(backoff.wait(now + LONGEST), None);
    }

    #[test]
    fn a_steady_server_restarts_at_once() {
        let (mut backoff, now) = (Backoff::default(), Instant::now());
        backoff.failed("no".into(), Duration::ZERO, now);
        backoff.failed("it ended".into(), STEADY, now);
        assert_eq!(backoff.wait(now), None);
    }
}
