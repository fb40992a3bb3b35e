//! Non-blocking reads and writes.

use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::stdio::Handle;

/// One end of a pipe, a socket, a terminal or a file. It is never used in a blocking way, and its
/// flags are not changed for other processes that share it.
pub(crate) enum Pipe {
    Polled(AsyncFd<Handle>),
    /// A regular file, which is always ready.
    Ready(Handle),
}

impl Pipe {
    #[expect(
        deprecated,
        reason = "unsound for what may close its descriptor; an owned one does not"
    )]
    fn new(fd: Handle, interest: Interest) -> io::Result<Self> {
        match AsyncFd::try_with_interest(fd, interest) {
            Ok(fd) => Ok(Self::Polled(fd)),
            Err(refused) => match refused.into_parts() {
                (fd, error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    Ok(Self::Ready(fd))
                }
                (_, error) => Err(error),
            },
        }
    }

    /// Opens the end to read from.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn input(handle: Handle) -> io::Result<Self> {
        Self::new(handle, Interest::READABLE)
    }

    /// Opens the end to write to.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn output(handle: Handle) -> io::Result<Self> {
        Self::new(handle, Interest::WRITABLE)
    }

    /// Reads available bytes into the free capacity of a buffer. Returns their number: 0 at the
    /// end.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) async fn read(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let read = |fd: &Handle| rustix::io::read(fd, rustix::buffer::spare_capacity(buffer));
        self.when(Interest::READABLE, read).await
    }

    /// Writes as much of a part as is possible without blocking. Returns the number of bytes.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) async fn write(&self, part: &[u8]) -> io::Result<usize> {
        let write = |fd: &Handle| rustix::io::retry_on_intr(|| rustix::io::write(fd, part));
        self.when(Interest::WRITABLE, write).await
    }

    /// Waits until `work` can run without blocking, then runs it.
    async fn when<T>(
        &self,
        interest: Interest,
        mut work: impl FnMut(&Handle) -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        let fd = match self {
            Self::Ready(fd) => return Ok(work(fd)?),
            Self::Polled(fd) => fd,
        };
        let flags = if interest.is_readable() { PollFlags::IN } else { PollFlags::OUT };
        loop {
            let mut ready = fd.ready(interest).await?;
            // The readiness may be outdated, and a blocking descriptor would stall the whole
            // runtime.
            if is_ready(fd.get_ref(), flags)? {
                return Ok(work(fd.get_ref())?);
            }
            ready.clear_ready();
        }
    }
}

fn is_ready(fd: &Handle, flags: PollFlags) -> io::Result<bool> {
    let mut fds = [PollFd::from_borrowed_fd(fd.as_fd(), flags)];
    let ready = rustix::io::retry_on_intr(|| poll(&mut fds, Some(&Timespec::default())))?;
    Ok(ready > 0)
}
