//! Reading and writing without ever waiting in the kernel.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// One end of a pipe, a socket, a terminal or a file, used without ever waiting
/// in the kernel and without changing it for others who have it open.
pub(crate) enum Pipe {
    /// Readiness can be waited for.
    Polled(AsyncFd<OwnedFd>),
    /// A regular file, which is always ready.
    Ready(OwnedFd),
}

impl Pipe {
    #[expect(
        deprecated,
        reason = "unsound for what may close its descriptor; an owned one does not"
    )]
    pub(crate) fn new(fd: OwnedFd, interest: Interest) -> io::Result<Self> {
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

    /// Waits until `work` can be done without waiting, and does it.
    pub(crate) async fn when<T>(
        &self,
        interest: Interest,
        mut work: impl FnMut(&OwnedFd) -> rustix::io::Result<T>,
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

fn is_ready(fd: &OwnedFd, flags: PollFlags) -> io::Result<bool> {
    let mut fds = [PollFd::from_borrowed_fd(fd.as_fd(), flags)];
    let ready = rustix::io::retry_on_intr(|| poll(&mut fds, Some(&Timespec::default())))?;
    Ok(ready > 0)
}
