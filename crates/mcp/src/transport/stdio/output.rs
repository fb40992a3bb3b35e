//! Output that waits to be written to the client of standard output.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, Notify};

use crate::transport::sys::{Handle, Pipe};

/// As long as this much waits to be written, nothing more is read and no call
/// begins. Each message counts as [`MESSAGE_BYTES`](crate::transport::message::MESSAGE_BYTES) more than its text.
pub(crate) const UNWRITTEN_BYTES: usize = 64 << 20;

/// How long a client may read nothing at all while that much waits for it.
pub(crate) const WRITE_TIME: Duration = Duration::from_secs(10);

/// The output of a connection with one stream for all answers.
pub(crate) struct Output {
    pipe: Mutex<Pipe>,
    /// Bytes that wait to be written.
    unwritten: AtomicUsize,
    /// What the client has taken so far, in bytes.
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

    /// What the client has taken so far, in bytes.
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

    /// Waits until the client has taken nothing for [`WRITE_TIME`] of what waits for it.
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

    /// Waits until less than [`UNWRITTEN_BYTES`] wait to be written.
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

/// Counts what waits to be written.
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
