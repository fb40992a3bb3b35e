//! A thread with its own runtime, which ends when it is dropped.

use std::thread::{self, JoinHandle};

use tokio::runtime;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

/// A task that runs until it is dropped.
pub(crate) struct Running {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Runs a future, and the tasks that it spawns with `spawn_local`, on a new thread.
    pub(crate) fn start<F: Future<Output = ()>>(make: impl FnOnce() -> F + Send + 'static) -> Self {
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime starts");
            let tasks = LocalSet::new();
            tasks.block_on(&runtime, async {
                tokio::select! {
                    () = make() => {}
                    _ = stopped => {}
                }
            });
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        if let Some(Err(panic)) = ended
            && !thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}
