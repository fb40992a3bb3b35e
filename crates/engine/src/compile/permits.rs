//! The number of concurrent compilations.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::load_error::LoadError;
use crate::wait::Wait;

/// A fixed number of permits to compile.
pub(super) struct Permits {
    free: Mutex<usize>,
    freed: Condvar,
}

/// The permit of a compilation, which is released when this is dropped.
pub(super) struct Permit(&'static Permits);

impl Permits {
    /// Creates this many permits.
    pub(super) const fn new(permits: usize) -> Self {
        Self { free: Mutex::new(permits), freed: Condvar::new() }
    }

    /// Waits for a permit, at most this long.
    pub(super) fn take(
        &'static self,
        wait: &Wait<'_>,
        time: Duration,
    ) -> Result<Permit, LoadError> {
        let permit = wait.until(time, |slice| {
            let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = self.freed.wait_timeout_while(free, slice, |free| *free == 0);
            let (mut free, _) = waited.unwrap_or_else(PoisonError::into_inner);
            *free = free.checked_sub(1)?;
            Some(Permit(self))
        });
        permit.ok_or_else(|| match wait.is_cancelled() {
            true => LoadError::Cancelled,
            false => LoadError::Busy,
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}
