//! The thread that drives the connections, and its runtime.
//!
//! Connections are kept for later calls, and calls end with their own runtimes, so the
//! connections have one of their own. One thread drives all of them; it ends with the client.

use std::io;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// The thread, until this is dropped.
#[derive(Debug)]
pub(crate) struct IoThread {
    handle: Handle,
    /// Dropped to end the thread.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl IoThread {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// Where the system gives no thread or no events.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("kitbag-http".to_owned());
        let thread = thread.spawn(move || {
            let _ = runtime.block_on(ended);
            // A look-up in a file of the system may block; it is not waited for.
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, end: Some(end), thread: Some(thread) })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for IoThread {
    fn drop(&mut self) {
        drop(self.end.take());
        // The last handle of the client may be dropped by one of its own tasks.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}
