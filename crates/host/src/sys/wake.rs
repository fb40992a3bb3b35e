//! Wake-up of a thread that waits with a timeout.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A handle that a thread can wait for, such as the reading end of a pipe.
pub(crate) type Handle = OwnedFd;

/// Wakes the thread that waits for it.
#[derive(Debug)]
pub(crate) struct Wake {
    /// A byte in this pipe wakes the thread.
    pipe: (PipeReader, PipeWriter),
}

impl Wake {
    /// Creates the pipe.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { pipe: io::pipe()? })
    }

    /// Wakes the thread. The thread must call [`take`](Self::take) before it can be woken again.
    pub(crate) fn wake(&self) {
        // The pipe never holds more than this byte, so there is room.
        let _ = (&self.pipe.1).write(&[0]);
    }

    /// Consumes the wake-up.
    pub(crate) fn take(&self) {
        let _ = (&self.pipe.0).read(&mut [0]);
    }

    /// Waits for `timeout`, or forever without one, until the thread is woken or one of the
    /// handles becomes readable. Returns for each handle whether it is readable. Waking too early,
    /// such as after an interrupted wait, does no harm.
    pub(crate) fn sleep<'a>(
        &'a self,
        timeout: Option<Duration>,
        handles: impl Iterator<Item = &'a Handle>,
    ) -> Vec<bool> {
        let mut descriptors: Vec<_> = std::iter::once(self.pipe.0.as_fd())
            .chain(handles.map(AsFd::as_fd))
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
            .collect();
        // A timeout that the system's type cannot hold is treated as no timeout.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let _ = poll(&mut descriptors, timeout.as_ref());
        descriptors[1..].iter().map(|descriptor| !descriptor.revents().is_empty()).collect()
    }
}
