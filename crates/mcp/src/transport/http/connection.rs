//! Connections: their limits, authentication and shutdown.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use kitbag_host::{MemoryBudget, Reservation};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::transport::message;

/// Maximum number of connections without a valid token. A new connection replaces the oldest, so
/// that a client with a token is always accepted.
const STRANGERS: usize = 512;

/// Minimum lifetime of a connection before it can be replaced, so that its client's data can
/// arrive. Until then new connections wait in the kernel. With the maximum of 4,096 waiting
/// connections, a client is accepted after eight times this time.
const LEAST_TIME: Duration = Duration::from_millis(200);

/// Maximum time without reading for a client with pending output.
const WRITE_TIME: Duration = Duration::from_secs(10);

/// The connections of a server. Clones share them.
#[derive(Clone)]
pub(crate) struct Connections(Arc<Shared>);

struct Shared {
    strangers: Mutex<Strangers>,
    left: Notify,
    admitted: Arc<Semaphore>,
}

#[derive(Default)]
struct Strangers {
    last: u64,
    /// In the order of their arrival.
    open: BTreeMap<u64, Stranger>,
}

/// A connection that has not presented a valid token yet.
struct Stranger {
    since: Instant,
    end: CancellationToken,
}

pub(crate) struct Connection {
    connections: Connections,
    number: u64,
    end: CancellationToken,
    place: OnceLock<OwnedSemaphorePermit>,
}

impl Connections {
    /// `admitted` limits the number of connections with a token.
    pub(crate) fn new(admitted: usize) -> Self {
        let admitted = Arc::new(Semaphore::new(admitted.min(Semaphore::MAX_PERMITS)));
        Self(Arc::new(Shared { strangers: Mutex::default(), left: Notify::new(), admitted }))
    }

    /// Waits until a new connection can be accepted.
    pub(crate) async fn room(&self) {
        loop {
            let left = self.0.left.notified();
            let Some(room) = self.room_at() else { return };
            tokio::select! {
                () = sleep_until(room) => {}
                () = left => {}
            }
        }
    }

    /// Returns the time at which a new connection can be accepted, unless that is now.
    fn room_at(&self) -> Option<Instant> {
        let strangers = self.strangers();
        let (_, oldest) = strangers.open.first_key_value()?;
        let room = oldest.since + LEAST_TIME;
        (strangers.open.len() >= STRANGERS && room > Instant::now()).then_some(room)
    }

    /// Adds a new connection without a token.
    pub(crate) fn take(&self) -> Arc<Connection> {
        let end = CancellationToken::new();
        let mut strangers = self.strangers();
        if strangers.open.len() >= STRANGERS
            && let Some((_, oldest)) = strangers.open.pop_first()
        {
            oldest.end.cancel();
        }
        strangers.last += 1;
        let number = strangers.last;
        strangers.open.insert(number, Stranger { since: Instant::now(), end: end.clone() });
        drop(strangers);
        Arc::new(Connection { connections: self.clone(), number, end, place: OnceLock::new() })
    }

    fn strangers(&self) -> MutexGuard<'_, Strangers> {
        self.0.strangers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Records a valid token. Returns `false` if the limit on connections with a token is reached.
    pub(crate) fn admit(&self) -> bool {
        if self.is_admitted() {
            return true;
        }
        let Ok(place) = Arc::clone(&self.connections.0.admitted).try_acquire_owned() else {
            return false;
        };
        let _ = self.place.set(place);
        self.leave();
        true
    }

    pub(crate) fn is_admitted(&self) -> bool {
        self.place.get().is_some()
    }

    /// Waits until the connection must make room, and its received data has been read.
    pub(crate) async fn ended(&self) {
        self.end.cancelled().await;
        // Yields so that the runtime polls for received data and reads it first.
        tokio::task::yield_now().await;
        if self.is_admitted() {
            std::future::pending().await
        }
    }

    fn leave(&self) {
        self.connections.strangers().open.remove(&self.number);
        self.connections.0.left.notify_one();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A stream whose writes fail if the other end reads nothing for [`WRITE_TIME`].
pub(crate) struct TimedStream {
    stream: TcpStream,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl TimedStream {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, stalled: None }
    }

    fn watch(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(WRITE_TIME)));
        ready!(stalled.as_mut().poll(context));
        stalled.as_mut().reset(Instant::now() + WRITE_TIME);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A body whose parts are counted until they are written. It also keeps a value alive until then.
pub(crate) struct MeteredBody<B, H> {
    body: B,
    memory: MemoryBudget,
    _held: H,
    /// Ends the body early.
    revoked: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl<B, H> MeteredBody<B, H> {
    /// The body ends when `revoked` is cancelled.
    pub(crate) fn new(
        body: B,
        memory: MemoryBudget,
        held: H,
        revoked: Option<&CancellationToken>,
    ) -> Self {
        let revoked = revoked.map(|revoked| Box::pin(revoked.clone().cancelled_owned()));
        Self { body, memory, _held: held, revoked }
    }
}

impl<B: Body<Data = Bytes> + Unpin, H: Unpin> Body for MeteredBody<B, H> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(revoked) = &mut self.revoked
            && revoked.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Some(Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the token was revoked",
            ))));
        }
        let Some(Ok(frame)) = ready!(Pin::new(&mut self.body).poll_frame(context)) else {
            return Poll::Ready(None);
        };
        Poll::Ready(Some(match frame.into_data() {
            Ok(bytes) => match message::reserve(&self.memory, bytes.len() as u64) {
                Some(memory) => Ok(Frame::data(Bytes::from_owner(CountedBytes(bytes, memory)))),
                None => Err(io::Error::new(
                    io::ErrorKind::OutOfMemory,
                    "other messages have reserved the server's memory",
                )),
            },
            Err(other) => Ok(other),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A part of an answer. Its memory is released when it is written.
struct CountedBytes(Bytes, #[expect(dead_code, reason = "held, not read")] Reservation);

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unauthenticated_connections_evict_only_each_other() {
        let connections = Connections::new(1);
        let admitted = connections.take();
        assert!(admitted.admit() && admitted.admit());
        let first = connections.take();
        let others: Vec<_> = (1..STRANGERS).map(|_| connections.take()).collect();
        assert!(!first.end.is_cancelled());
        let last = connections.take();
        assert!(first.end.is_cancelled() && !admitted.end.is_cancelled());
        assert!(others.iter().all(|other| !other.end.is_cancelled()));
        let room = connections.room_at().expect("the oldest has just come");
        assert_eq!(room, connections.strangers().open[&others[0].number].since + LEAST_TIME);
        assert!(!last.admit(), "one with a token may be open");
        drop(admitted);
        assert!(last.admit());
        assert_eq!(connections.room_at(), None);
        drop((first, others, last));
        assert_eq!(connections.strangers().open.len(), 0);
    }
}
