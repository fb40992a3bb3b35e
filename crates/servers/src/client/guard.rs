//! Limits on what a server sends and leaves unread.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::time::timeout;

use super::router::{Failure, Routed, Router};

/// The number of messages that no request caused that a server may send at once, and per second.
const BURST: f64 = 20_000.0;
const PER_SECOND: f64 = 2_000.0;

/// The time that the end of a connection may take.
const CLOSE: Duration = Duration::from_millis(200);

/// The number of messages that may wait until the server reads them.
const UNREAD: usize = 1024;

/// A transport within limits. At a limit, the connection ends.
pub(crate) struct Guard<T> {
    transport: T,
    router: Arc<Router>,
    failure: Arc<Failure>,
    unread: Arc<AtomicUsize>,
    left: f64,
    at: Instant,
}

/// A message that is being sent.
struct Unread(Arc<AtomicUsize>);

impl<T> Guard<T> {
    pub(crate) fn new(transport: T, router: Arc<Router>, failure: Arc<Failure>) -> Self {
        let (unread, at) = (Arc::default(), Instant::now());
        Self { transport, router, failure, unread, left: BURST, at }
    }

    /// Counts a message. Returns false at the limit.
    fn count(&mut self, now: Instant) -> bool {
        self.left -= 1.0;
        if self.left < 0.0 {
            let passed = now.saturating_duration_since(self.at).as_secs_f64();
            self.left = (self.left + passed * PER_SECOND).min(BURST);
            self.at = now;
        }
        self.left >= 0.0
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Guard<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        mut item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let id = self.router.sends(&mut item);
        let router = Arc::clone(&self.router);
        self.unread.fetch_add(1, Ordering::Relaxed);
        let unread = Unread(Arc::clone(&self.unread));
        let sent = self.transport.send(item);
        async move {
            let _unread = unread;
            let sent = sent.await;
            if let Some(id) = id.filter(|_| sent.is_err()) {
                router.forget(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if self.unread.load(Ordering::Relaxed) > UNREAD {
                self.failure.set(format!("left {UNREAD} messages unread"));
                return None;
            }
            let message = self.transport.receive().await?;
            let routed = self.router.receives(message);
            if let Routed::Answer(answer) = routed {
                return Some(answer);
            }
            if !self.count(Instant::now()) {
                self.failure.set(format!("sent more than {BURST} messages that no request caused"));
                return None;
            }
            if let Routed::Other(message) = routed {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // A server that reads nothing blocks the end of its input.
        timeout(CLOSE, self.transport.close()).await.unwrap_or(Ok(()))
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
