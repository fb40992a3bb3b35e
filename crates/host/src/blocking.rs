//! Waiting on a thread, inside a runtime of the embedding program or outside.

use std::cell::OnceCell;

use tokio::runtime::{Handle, Runtime};

use crate::error::CallError;

thread_local! {
    /// What drives a guest's timers. One per thread, made by the first call.
    static RUNTIME: OnceCell<Runtime> = const { OnceCell::new() };
}

/// Waits for a future on this thread, or on one of its own where this one belongs to
/// a runtime, in which waiting would panic.
///
/// # Errors
///
/// Where the system has no timers or no thread left.
pub(crate) fn block_on<T: Send, F: Future<Output = T>>(
    work: impl FnOnce() -> F + Send,
) -> Result<T, CallError> {
    if Handle::try_current().is_err() {
        return drive(work());
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, || drive(work()));
        let joined = thread.map_err(CallError::internal)?.join();
        joined.unwrap_or_else(|_| Err(CallError::internal("the work panicked")))
    })
}

fn drive<T>(future: impl Future<Output = T>) -> Result<T, CallError> {
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
