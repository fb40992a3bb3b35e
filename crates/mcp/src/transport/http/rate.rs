//! The rate limit on requests.

use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A token bucket with a burst of one second's requests.
pub(crate) struct RequestRate {
    every: Duration,
    burst: Duration,
    full: Mutex<Option<Instant>>,
}

impl RequestRate {
    pub(crate) fn new(per_second: NonZeroU32) -> Self {
        let second = Duration::from_secs(1);
        Self { every: second / per_second.get(), burst: second, full: Mutex::new(None) }
    }

    /// Takes one token.
    ///
    /// # Errors
    ///
    /// The time until the next token.
    pub(crate) fn take(&self) -> Result<(), Duration> {
        self.take_at(Instant::now())
    }

    fn take_at(&self, now: Instant) -> Result<(), Duration> {
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        let after = full.map_or(now, |full| full.max(now)) + self.every;
        match (after - now).checked_sub(self.burst) {
            None | Some(Duration::ZERO) => {
                *full = Some(after);
                Ok(())
            }
            Some(wait) => Err(wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_passes_and_then_the_rate_applies() {
        let rate = RequestRate::new(NonZeroU32::new(10).unwrap());
        let start = Instant::now();
        let taken = (0..20).take_while(|_| rate.take_at(start).is_ok()).count();
        assert_eq!(taken, 10);
        assert_eq!(rate.take_at(start), Err(Duration::from_millis(100)));
        let later = start + Duration::from_millis(100);
        assert_eq!(rate.take_at(later), Ok(()));
        assert!(rate.take_at(later).is_err());
        let much_later = start + Duration::from_secs(60);
        let taken = (0..20).take_while(|_| rate.take_at(much_later).is_ok()).count();
        assert_eq!(taken, 10);
    }
}
