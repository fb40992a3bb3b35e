//! Waiting on a thread, inside a runtime of the embedding program or outside.

use std::cell::OnceCell;
use std::io;

use tokio::runtime::{Handle, Runtime};

use crate::error::CallError;

thread_local! {
    /// What drives a guest's timers. One per thread, made by the first call.
    static RUNTIME: OnceCell<Runtime> = const { OnceCell::new() };
}

/// Waits on this thread, which must not be one of an executor's.
///
/// # Errors
///
/// Where the system has no timers left.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> Result<T, CallError> {
    RUNTIME.with(|slot| {
        let runtime = match slot.get() {
            Some(runtime) => runtime,
            None => {
                let mut builder = tokio::runtime::Builder::new_current_thread();
                let made = builder.enable_time().build().map_err(CallError::internal)?;
                slot.get_or_init(|| made)
            }
        };
        Ok(runtime.block_on(future))
    })
}

/// Does work that waits: on this thread, or on one of its own where this one
/// belongs to a runtime of the caller, in which waiting would panic.
pub(crate) fn waiting<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    if Handle::try_current().is_err() {
        return Ok(work());
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, work)?;
        thread.join().map_err(|_| io::Error::other("the work panicked"))
    })
}
