//! The thread that drives the connections, and its runtime.
//!
//! Connections are kept for later calls, but a call's runtime ends with it, so connections have a
//! runtime of their own. One thread drives all of them and ends with the client.

use std::io;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// The thread, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct IoThread {
    handle: Handle,
    /// Dropped to end the thread.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl IoThread {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// If the system provides no thread or event queue.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("kitbag-http".to_owned());
        let thread = thread.spawn(move || {
            let _ = runtime.block_on(ended);
            // A look-up in a system file may block; it is not waited for.
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
        // A task of the client itself may drop the last handle.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}
