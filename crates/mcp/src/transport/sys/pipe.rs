//! Reads and writes standard input and output without waiting in the kernel.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::stdio::Handle;

/// A pipe that can be written to takes this much without waiting (POSIX, `PIPE_BUF` on Linux).
const WRITE_BYTES: usize = 4096;

/// One end of a pipe, a socket, a terminal or a file. Never waits in the kernel, and does not
/// change it for others who have it open.
pub(crate) enum Pipe {
    Polled(Polled),
    /// A regular file, which is always ready.
    Ready(Handle),
}

pub(crate) struct Polled {
    fd: AsyncFd<Handle>,
    /// True if a single operation cannot be made non-blocking: on systems other than Linux, for
    /// terminals, and for pipes before Linux 6.5.
    needs_poll: AtomicBool,
}

impl Pipe {
    #[expect(
        deprecated,
        reason = "unsound for what may close its descriptor; an owned one does not"
    )]
    fn new(fd: Handle, interest: Interest) -> io::Result<Self> {
        match AsyncFd::try_with_interest(fd, interest) {
            Ok(fd) => {
                let needs_poll = AtomicBool::new(cfg!(not(target_os = "linux")));
                Ok(Self::Polled(Polled { fd, needs_poll }))
            }
            Err(refused) => match refused.into_parts() {
                (fd, error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    Ok(Self::Ready(fd))
                }
                (_, error) => Err(error),
            },
        }
    }

    /// Creates the end that is read.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub(crate) fn input(handle: Handle) -> io::Result<Self> {
        Self::new(handle, Interest::READABLE)
    }

    /// Creates the end that is written.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub(crate) fn output(handle: Handle) -> io::Result<Self> {
        Self::new(handle, Interest::WRITABLE)
    }

    /// Reads available bytes into a buffer. Returns their number, which is zero at the end.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub(crate) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Ready(fd) => Ok(rustix::io::read(fd, buffer)?),
            Self::Polled(polled) => {
                let read = |fd: &Handle, needs_poll| match needs_poll {
                    true => rustix::io::read(fd, &mut *buffer),
                    false => read_now(fd, buffer),
                };
                polled.when(Interest::READABLE, read).await
            }
        }
    }

    /// Writes as much of `bytes` as there is room for without waiting. Returns the number of
    /// written bytes.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub(crate) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Ready(fd) => Ok(rustix::io::write(fd, bytes)?),
            Self::Polled(polled) => {
                let write = |fd: &Handle, needs_poll| match needs_poll {
                    true => rustix::io::write(fd, &bytes[..bytes.len().min(WRITE_BYTES)]),
                    false => write_now(fd, bytes),
                };
                polled.when(Interest::WRITABLE, write).await
            }
        }
    }
}

impl Polled {
    /// Does `work` as soon as that is possible without waiting. `work` gets true if it may wait,
    /// since the descriptor is ready.
    async fn when(
        &self,
        interest: Interest,
        mut work: impl FnMut(&Handle, bool) -> rustix::io::Result<usize>,
    ) -> io::Result<usize> {
        let flags = if interest.is_readable() { PollFlags::IN } else { PollFlags::OUT };
        loop {
            // May be an earlier state of the descriptor.
            let mut ready = self.fd.ready(interest).await?;
            let fd = ready.get_inner();
            let needs_poll = self.needs_poll.load(Ordering::Relaxed);
            if needs_poll && !is_ready(fd, flags)? {
                ready.clear_ready();
                continue;
            }
            match work(fd, needs_poll) {
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM) if !needs_poll => {
                    self.needs_poll.store(true, Ordering::Relaxed);
                }
                done => return Ok(done?),
            }
        }
    }
}

/// Reads available bytes. An error of the kind `AGAIN`: there are none.
#[cfg(target_os = "linux")]
fn read_now(fd: &Handle, buffer: &mut [u8]) -> rustix::io::Result<usize> {
    use rustix::io::ReadWriteFlags;
    let mut buffers = [io::IoSliceMut::new(buffer)];
    rustix::io::preadv2(fd, &mut buffers, u64::MAX, ReadWriteFlags::NOWAIT)
}

/// Writes as much as the pipe has room for. The error `AGAIN` means that it is full.
#[cfg(target_os = "linux")]
fn write_now(fd: &Handle, bytes: &[u8]) -> rustix::io::Result<usize> {
    use rustix::io::ReadWriteFlags;
    rustix::io::pwritev2(fd, &[io::IoSlice::new(bytes)], u64::MAX, ReadWriteFlags::NOWAIT)
}

#[cfg(not(target_os = "linux"))]
fn read_now(_: &Handle, _: &mut [u8]) -> rustix::io::Result<usize> {
    Err(Errno::NOSYS)
}

#[cfg(not(target_os = "linux"))]
fn write_now(_: &Handle, _: &[u8]) -> rustix::io::Result<usize> {
    Err(Errno::NOSYS)
}

fn is_ready(fd: &Handle, flags: PollFlags) -> io::Result<bool> {
    let mut fds = [PollFd::from_borrowed_fd(fd.as_fd(), flags)];
    let ready = rustix::io::retry_on_intr(|| poll(&mut fds, Some(&Timespec::default())))?;
    Ok(ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message that a pipe does not hold at once.
    const MESSAGE_BYTES: usize = 1 << 20;

    async fn write_all(pipe: &Pipe, mut bytes: &[u8]) -> usize {
        let mut writes = 0;
        while !bytes.is_empty() {
            let written = pipe.write(bytes).await.unwrap();
            bytes = &bytes[written..];
            writes += 1;
        }
        writes
    }

    fn check(needs_poll: bool) -> usize {
        let (input, output) = io::pipe().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let message: Vec<_> = (0..MESSAGE_BYTES).map(|at| (at % 251) as u8).collect();
        let sent = message.clone();
        let (received, writes) = runtime.block_on(async {
            let (input, output) =
                (Pipe::input(input.into()).unwrap(), Pipe::output(output.into()).unwrap());
            for pipe in [&input, &output] {
                let Pipe::Polled(polled) = pipe else { panic!("a pipe is polled") };
                polled.needs_poll.fetch_or(needs_poll, Ordering::Relaxed);
            }
            let writing = tokio::spawn(async move { write_all(&output, &sent).await });
            let (mut received, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
            loop {
                match input.read(&mut buffer).await.unwrap() {
                    0 => break,
                    read => received.extend_from_slice(&buffer[..read]),
                }
            }
            (received, writing.await.unwrap())
        });
        assert!(received == message, "{} bytes", received.len());
        writes
    }

    #[test]
    fn messages_longer_than_the_pipe_arrive_complete() {
        assert!(check(true) >= MESSAGE_BYTES / WRITE_BYTES);
        check(false);
    }
}
