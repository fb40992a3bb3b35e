//! Pending output of the client of standard output.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, Notify};

use crate::transport::sys::{Handle, Pipe};

/// If this many bytes are pending, no more input is read and no call starts. Each message counts
/// [`MESSAGE_BYTES`](crate::transport::message::MESSAGE_BYTES) in addition to its text.
pub(crate) const UNWRITTEN_BYTES: usize = 64 << 20;

/// Maximum time that a client may read nothing while that much output is pending.
pub(crate) const WRITE_TIME: Duration = Duration::from_secs(10);

/// The output of a connection with one stream for all answers.
pub(crate) struct Output {
    pipe: Mutex<Pipe>,
    /// Number of pending bytes.
    unwritten: AtomicUsize,
    /// Number of bytes that the client has read.
    taken: AtomicU64,
    written: Notify,
}

impl Output {
    pub(crate) fn new(output: Handle) -> io::Result<Self> {
        Ok(Self {
            pipe: Mutex::new(Pipe::output(output)?),
            unwritten: AtomicUsize::new(0),
            taken: AtomicU64::new(0),
            written: Notify::new(),
        })
    }

    /// Returns the number of bytes that the client has read.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    pub(crate) async fn write(&self, text: &[u8]) -> io::Result<()> {
        let pipe = self.pipe.lock().await;
        let mut rest = text;
        while !rest.is_empty() {
            let written = pipe.write(rest).await?;
            self.taken.fetch_add(written as u64, Ordering::Relaxed);
            rest = &rest[written..];
        }
        Ok(())
    }

    /// Waits until the client has not read any pending output for [`WRITE_TIME`].
    pub(crate) async fn stalls(&self) {
        loop {
            let taken = self.taken();
            let is_waiting = self.unwritten.load(Ordering::Relaxed) > 0;
            tokio::time::sleep(WRITE_TIME).await;
            if is_waiting && self.taken() == taken {
                return;
            }
        }
    }

    /// Waits until fewer than [`UNWRITTEN_BYTES`] are pending.
    pub(crate) async fn has_room(&self) {
        loop {
            let written = self.written.notified();
            if self.unwritten.load(Ordering::Relaxed) < UNWRITTEN_BYTES {
                return;
            }
            written.await;
        }
    }
}

/// Counts a message as pending until it is dropped.
pub(crate) struct Unwritten(Arc<Output>, usize);

impl Unwritten {
    pub(crate) fn new(output: &Arc<Output>, bytes: usize) -> Self {
        output.unwritten.fetch_add(bytes, Ordering::Relaxed);
        Self(Arc::clone(output), bytes)
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        self.0.unwritten.fetch_sub(self.1, Ordering::Relaxed);
        self.0.written.notify_waiters();
    }
}
