//! What wakes a thread that waits for a time.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What a thread can wait for: the reading end of a pipe, say.
pub(crate) type Handle = OwnedFd;

/// Wakes the thread that waits for it.
#[derive(Debug)]
pub(crate) struct Wake {
    /// A byte in this pipe wakes the thread.
    pipe: (PipeReader, PipeWriter),
}

impl Wake {
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { pipe: io::pipe()? })
    }

    /// Wakes the thread. That has to take it before it can be woken again.
    pub(crate) fn wake(&self) {
        // There is room: the pipe never holds more than this byte.
        let _ = (&self.pipe.1).write(&[0]);
    }

    /// Takes what woke the thread.
    pub(crate) fn take(&self) {
        let _ = (&self.pipe.0).read(&mut [0]);
    }

    /// Waits for the time, for ever without one, or until the thread is woken or one of some
    /// handles can be read. Says of each of these whether it can. Waking too early, as when the
    /// system breaks the wait off, does no harm.
    pub(crate) fn sleep<'a>(
        &'a self,
        timeout: Option<Duration>,
        handles: impl Iterator<Item = &'a Handle>,
    ) -> Vec<bool> {
        let mut descriptors: Vec<_> = std::iter::once(self.pipe.0.as_fd())
            .chain(handles.map(AsFd::as_fd))
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
            .collect();
        // A time that the system's type cannot hold is as good as none.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let _ = poll(&mut descriptors, timeout.as_ref());
        descriptors[1..].iter().map(|descriptor| !descriptor.revents().is_empty()).collect()
    }
}
