//! Reading and writing without ever waiting in the kernel.

use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::stdio::Handle;

/// One end of a pipe, a socket, a terminal or a file, used without ever waiting
/// in the kernel and without changing it for others who have it open.
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

    /// The end that is read.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn input(handle: Handle) -> io::Result<Self> {
        Self::new(handle, Interest::READABLE)
    }

    /// The end that is written.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn output(handle: Handle) -> io::Result<Self> {
        Self::new(handle, Interest::WRITABLE)
    }

    /// Reads what is there into the room that a buffer has left. Returns how much that was:
    /// nothing at the end.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) async fn read(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let read = |fd: &Handle| rustix::io::read(fd, rustix::buffer::spare_capacity(buffer));
        self.when(Interest::READABLE, read).await
    }

    /// Writes a part that there is room for without waiting. Returns how much of it was written.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) async fn write(&self, part: &[u8]) -> io::Result<usize> {
        let write = |fd: &Handle| rustix::io::retry_on_intr(|| rustix::io::write(fd, part));
        self.when(Interest::WRITABLE, write).await
    }

    /// Waits until `work` can be done without waiting, and does it.
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
            // Readiness may be from before; a descriptor that waits would hold
            // everything up.
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
