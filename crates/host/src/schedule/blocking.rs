//! Blocking waits on a thread, inside or outside a runtime of the embedding program.

use std::cell::{OnceCell, RefCell};
use std::future::poll_fn;
use std::pin::pin;

use tokio::runtime::{Handle, Runtime};

use crate::error::CallError;

thread_local! {
    /// Drives a guest's timers. One per thread, created by the first call.
    static RUNTIME: OnceCell<Runtime> = const { OnceCell::new() };

    /// The embedding program's runtime that gave this thread its work.
    static OUTER: RefCell<Option<Handle>> = const { RefCell::new(None) };
}

/// Waits for a future on this thread, or on a separate thread if this one belongs to a runtime, in
/// which waiting would panic.
///
/// # Errors
///
/// Fails if the system has no timers or threads left.
pub(crate) fn block_on<T: Send, F: Future<Output = T>>(
    work: impl FnOnce() -> F + Send,
) -> Result<T, CallError> {
    let Ok(outer) = Handle::try_current() else { return drive(work()) };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, || {
            set_outer_runtime(Some(outer));
            drive(work())
        });
        let joined = thread.map_err(CallError::internal)?.join();
        joined.unwrap_or_else(|_| Err(CallError::internal("the work panicked")))
    })
}

/// Sets the runtime that gave this thread its work.
pub(crate) fn set_outer_runtime(outer: Option<Handle>) {
    OUTER.set(outer);
}

/// Polls code of the embedding program inside that program's runtime, so that it can use the
/// runtime's sockets and tasks.
pub(crate) async fn in_outer_runtime<T>(work: impl Future<Output = T>) -> T {
    inside(OUTER.with_borrow(Clone::clone), work).await
}

/// Polls a call inside this thread's own runtime, whose timers a guest needs.
pub(crate) async fn in_own_runtime<T>(work: impl Future<Output = T>) -> T {
    inside(RUNTIME.with(|slot| slot.get().map(|runtime| runtime.handle().clone())), work).await
}

async fn inside<T>(runtime: Option<Handle>, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    poll_fn(|context| {
        let _entered = runtime.as_ref().map(Handle::enter);
        work.as_mut().poll(context)
    })
    .await
}

fn drive<T>(future: impl Future<Output = T>) -> Result<T, CallError> {
    // Pinned here because a call is large, and each function of the runtime would move it once
    // more.
    let future = pin!(future);
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
