//! MCP over standard input and output: one message a line.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::{ServerInitializeError, serve_server};
use rmcp::transport::Transport;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Mutex, Notify};
use tokio_util::sync::CancellationToken;

use crate::handler::Handler;
use crate::message::{self, Line, Skim};
use crate::server::Server;

/// The longest message that is read: 16 MiB.
pub const LINE_BYTES: usize = 16 << 20;

/// How long calls may go on when the client has closed its end.
const GRACE: Duration = Duration::from_millis(500);

/// How much of a message is read or written at once.
const CHUNK_BYTES: usize = 64 << 10;

/// A pipe that can be written to takes this much without waiting (POSIX,
/// `PIPE_BUF` on Linux).
const WRITE_BYTES: usize = 4096;

/// As long as this much waits to be written, nothing more is read.
const UNWRITTEN_BYTES: usize = 64 << 20;

/// A session that could not be served.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// Standard input or output cannot be used.
    #[error("standard input and output cannot be used")]
    Io(#[from] io::Error),
    /// The client does not speak the protocol.
    #[error("the client began no session: {0}")]
    Protocol(String),
}

/// Takes standard input and output over for the protocol.
///
/// Whatever else this process prints to standard output goes to standard error
/// from here on, so that nothing but messages reaches the client.
///
/// # Errors
///
/// Where one of them is closed.
pub fn take_over_stdio() -> io::Result<(OwnedFd, OwnedFd)> {
    /// Above those that have a meaning of their own.
    const ABOVE: i32 = 3;
    let input = rustix::io::fcntl_dupfd_cloexec(io::stdin(), ABOVE)?;
    let output = rustix::io::fcntl_dupfd_cloexec(io::stdout(), ABOVE)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok((input, output))
}

impl Server {
    /// Serves one client until its end of `input` is closed. Nothing but messages
    /// is written to `output`.
    ///
    /// Within half a second after that every call that still runs has ended.
    ///
    /// # Errors
    ///
    /// [`StdioError`] where no session came about.
    pub async fn serve_stdio(&self, input: OwnedFd, output: OwnedFd) -> Result<(), StdioError> {
        let closing = self.closing().clone();
        let transport = Stdio::new(input, output, closing.clone())?;
        let handler = Handler::new(self.clone(), "stdio");
        let _alert = self.keep_alert();
        let session = tokio::select! {
            session = serve_server(handler, transport) => session,
            () = closing.cancelled() => return Ok(()),
        };
        match session {
            Ok(session) => {
                let end = session.cancellation_token();
                let waiting = session.waiting();
                tokio::pin!(waiting);
                tokio::select! {
                    _ = &mut waiting => {}
                    () = closing.cancelled() => {
                        end.cancel();
                        // A client that reads no more is not waited for.
                        let _ = tokio::time::timeout(GRACE / 2, waiting).await;
                    }
                }
                Ok(())
            }
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(StdioError::Protocol(error.to_string())),
        }
    }
}

/// The transport.
struct Stdio {
    input: Input,
    output: Arc<Output>,
    closing: CancellationToken,
    /// Whether a request has come. What comes before it means nothing.
    is_begun: bool,
}

struct Input {
    pipe: Pipe,
    /// What was read and not taken yet: part of a line, or several.
    buffer: Vec<u8>,
    /// How much of the buffer holds no end of a line.
    searched: usize,
    /// The line that is too long to be kept, while it goes by.
    skim: Option<Skim>,
}

struct Output {
    pipe: Mutex<Pipe>,
    unwritten: AtomicUsize,
    written: Notify,
}

/// One end of a pipe, a socket, a terminal or a file, used without ever waiting
/// in the kernel and without changing it for others who have it open.
enum Pipe {
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
    fn new(fd: OwnedFd, interest: Interest) -> io::Result<Self> {
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
    async fn when<T>(
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

impl Input {
    /// The next line, without its end; nothing at the end of the input.
    ///
    /// May be given up at any point and called again.
    async fn line(&mut self) -> io::Result<Option<Read>> {
        loop {
            let end = memchr::memchr(b'\n', &self.buffer[self.searched..]);
            if let Some(end) = end {
                let end = self.searched + end;
                self.searched = 0;
                // In one go: collected from the iterator, it would be copied byte by byte.
                let line = self.buffer[..end].to_vec();
                self.buffer.drain(..=end);
                return Ok(Some(self.finish(line)));
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > LINE_BYTES || self.skim.is_some() {
                self.skim.get_or_insert_default().feed(&self.buffer);
                self.buffer.clear();
                self.searched = 0;
            }
            self.buffer.reserve(CHUNK_BYTES);
            let buffer = &mut self.buffer;
            let read = self.pipe.when(Interest::READABLE, |fd| {
                rustix::io::read(fd, rustix::buffer::spare_capacity(buffer))
            });
            if read.await? == 0 {
                if self.buffer.is_empty() && self.skim.is_none() {
                    return Ok(None);
                }
                self.searched = 0;
                let rest = std::mem::take(&mut self.buffer);
                return Ok(Some(self.finish(rest)));
            }
        }
    }

    fn finish(&mut self, line: Vec<u8>) -> Read {
        let is_too_long = line.len() > LINE_BYTES;
        match self.skim.take().or_else(|| is_too_long.then(Skim::default)) {
            Some(mut skim) => {
                skim.feed(&line);
                Read::TooLong(skim)
            }
            None => Read::Line(line),
        }
    }
}

enum Read {
    Line(Vec<u8>),
    TooLong(Skim),
}

impl Output {
    async fn write(&self, text: &[u8]) -> io::Result<()> {
        let pipe = self.pipe.lock().await;
        let mut rest = text;
        while !rest.is_empty() {
            let part = &rest[..rest.len().min(WRITE_BYTES)];
            let written = pipe.when(Interest::WRITABLE, |fd| {
                rustix::io::retry_on_intr(|| rustix::io::write(fd, part))
            });
            rest = &rest[written.await?..];
        }
        Ok(())
    }
}

/// Counts what waits to be written.
struct Unwritten(Arc<Output>, usize);

impl Unwritten {
    fn new(output: &Arc<Output>, bytes: usize) -> Self {
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

impl Stdio {
    fn new(input: OwnedFd, output: OwnedFd, closing: CancellationToken) -> io::Result<Self> {
        Ok(Self {
            input: Input {
                pipe: Pipe::new(input, Interest::READABLE)?,
                buffer: Vec::new(),
                searched: 0,
                skim: None,
            },
            output: Arc::new(Output {
                pipe: Mutex::new(Pipe::new(output, Interest::WRITABLE)?),
                unwritten: AtomicUsize::new(0),
                written: Notify::new(),
            }),
            closing,
            is_begun: false,
        })
    }

    /// Writes a message, whether or not somebody waits for that.
    fn put(&self, message: &ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + use<> {
        let output = Arc::clone(&self.output);
        let text = serde_json::to_vec(message).map(|mut text| {
            text.push(b'\n');
            text
        });
        let unwritten = Unwritten::new(&self.output, text.as_ref().map_or(0, Vec::len));
        async move {
            let _unwritten = unwritten;
            output.write(&text?).await
        }
    }

    async fn has_room(&self) {
        loop {
            let written = self.output.written.notified();
            if self.output.unwritten.load(Ordering::Relaxed) < UNWRITTEN_BYTES {
                return;
            }
            written.await;
        }
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.put(&message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            self.has_room().await;
            let refused = match self.input.line().await {
                Ok(Some(Read::Line(line))) => match message::read(&line) {
                    Line::Empty => continue,
                    Line::Message(message) => {
                        let is_request = matches!(*message, ClientJsonRpcMessage::Request(_));
                        if self.is_begun || is_request {
                            self.is_begun = true;
                            return Some(*message);
                        }
                        tracing::debug!("ignored before the first request");
                        continue;
                    }
                    Line::Refused(answer) => *answer,
                },
                Ok(Some(Read::TooLong(skim))) => message::too_long(&skim, LINE_BYTES),
                Ok(None) => break,
                Err(error) => {
                    tracing::error!("standard input cannot be read: {error}");
                    break;
                }
            };
            // On its own, since this future may be given up half way.
            tokio::spawn(self.put(&refused));
        }
        // The client has gone. What it asked for may still be answered, but
        // not for long.
        let closing = self.closing.clone();
        tokio::spawn(async move {
            tokio::time::sleep(GRACE).await;
            closing.cancel();
        });
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}
