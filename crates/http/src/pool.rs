//! All connections: those in use, and those kept for later requests.
//!
//! A connection belongs to one owner (a tool with one set of grants) and one origin.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::client::conn::{http1, http2};
use kitbag_policy::http::{Host, HttpRequest, Scheme};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::request_body::RequestBody;
use crate::shares::{Account, Share, Shares};

/// The most connections of all calls. Each needs a file descriptor. A process has 1,024 by
/// default.
pub(crate) const MOST_CONNECTIONS: usize = 256;

/// The part that a client leaves for others.
const OTHER_CLIENTS: usize = 8;

/// The most connections of all tools that are kept for later requests.
const MOST_IDLE: usize = 32;

/// The time that a connection is kept for later requests. Servers close idle connections after a
/// minute or later.
pub(crate) const IDLE_TIME: Duration = Duration::from_secs(30);

/// The time limit for a connection to become ready for the next request.
const READY_TIME: Duration = Duration::from_secs(1);

/// The connections of a client.
pub(crate) struct Pool {
    kept: Mutex<IdleConnections>,
    permits: Arc<Semaphore>,
    shares: Shares,
}

/// The permission to have one connection.
pub(crate) struct Permit {
    _permit: OwnedSemaphorePermit,
    _share: Share,
}

#[derive(Default)]
struct IdleConnections {
    by_key: HashMap<Key, Vec<IdleConnection>>,
    is_swept: bool,
}

/// The owner and the destination of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    owner: Arc<str>,
    origin: (Scheme, Host, u16),
}

impl Key {
    pub(crate) fn new(owner: &Arc<str>, request: &HttpRequest) -> Self {
        let (scheme, host, port) = request.origin();
        Self { owner: Arc::clone(owner), origin: (scheme, host.clone(), port) }
    }
}

struct IdleConnection {
    connection: Connection,
    used: Instant,
}

impl IdleConnection {
    /// Returns true if a request uses the connection. With HTTP/2, others can use it as well.
    fn is_used(&self) -> bool {
        Arc::strong_count(&self.connection.alive) > 1
    }
}

/// A connection. With HTTP/2, clones share the connection; with HTTP/1.1, there are no clones.
pub(crate) struct Connection {
    pub(crate) sender: Sender,
    /// The address of the host. `None`: a proxy resolved the name.
    pub(crate) address: Option<IpAddr>,
    /// Ends the connection's task when the last clone is dropped.
    alive: Arc<DropGuard>,
}

pub(crate) enum Sender {
    Http1(http1::SendRequest<RequestBody>),
    Http2(http2::SendRequest<RequestBody>),
}

impl Default for Pool {
    fn default() -> Self {
        let permits = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        Self {
            kept: Mutex::default(),
            permits,
            shares: Shares::of(MOST_CONNECTIONS, OTHER_CLIENTS),
        }
    }
}

impl Pool {
    /// Waits for permission to open a connection on an account. Closes idle connections to make
    /// room.
    pub(crate) async fn permit(&self, account: &Account) -> Option<Permit> {
        let share = self.shares.take(account, 1).await?;
        if self.permits.available_permits() == 0 {
            self.retain(|entry| entry.is_used());
        }
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
        Some(Permit { _permit: permit, _share: share })
    }

    /// Takes a kept connection whose address is still allowed.
    pub(crate) fn take(
        &self,
        key: &Key,
        is_allowed: impl Fn(Option<IpAddr>) -> bool,
    ) -> Option<Connection> {
        let mut kept = self.kept();
        let entries = kept.by_key.get_mut(key)?;
        entries.retain(|entry| !entry.connection.is_closed());
        let at = entries.iter().rposition(|entry| is_allowed(entry.connection.address))?;
        match entries[at].connection.share() {
            Some(shared) => {
                entries[at].used = Instant::now();
                Some(shared)
            }
            None => Some(entries.swap_remove(at).connection),
        }
    }

    /// Keeps a connection for the next request if there is room. Returns true if
    /// [`close_unused`](Self::close_unused) must be called from now on.
    pub(crate) fn put(&self, key: Key, connection: Connection) -> bool {
        // At the limit, another request waits for a connection to be closed.
        if self.permits.available_permits() == 0 {
            return false;
        }
        let mut kept = self.kept();
        if kept.by_key.values().map(Vec::len).sum::<usize>() >= MOST_IDLE {
            return false;
        }
        let entry = IdleConnection { connection, used: Instant::now() };
        kept.by_key.entry(key).or_default().push(entry);
        !std::mem::replace(&mut kept.is_swept, true)
    }

    /// Closes connections that were idle for long. Returns true if any are kept.
    pub(crate) fn close_unused(&self) -> bool {
        self.retain(|entry| {
            !entry.connection.is_closed() && (entry.is_used() || entry.used.elapsed() < IDLE_TIME)
        });
        let mut kept = self.kept();
        kept.is_swept = !kept.by_key.is_empty();
        kept.is_swept
    }

    /// Closes the kept connections other than these.
    fn retain(&self, is_left: impl Fn(&IdleConnection) -> bool) {
        let mut kept = self.kept();
        kept.by_key.values_mut().for_each(|entries| entries.retain(&is_left));
        kept.by_key.retain(|_, entries| !entries.is_empty());
    }

    fn kept(&self) -> MutexGuard<'_, IdleConnections> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Creates a connection whose task ends when `alive` is cancelled.
    pub(crate) fn new(sender: Sender, address: Option<IpAddr>, alive: CancellationToken) -> Self {
        Self { sender, address, alive: Arc::new(alive.drop_guard()) }
    }

    /// Clones the connection if it supports concurrent requests.
    pub(crate) fn share(&self) -> Option<Self> {
        match &self.sender {
            Sender::Http1(_) => None,
            Sender::Http2(sender) => Some(Self {
                sender: Sender::Http2(sender.clone()),
                address: self.address,
                alive: self.alive.clone(),
            }),
        }
    }

    /// Waits until the connection accepts a request. Returns false if it never will.
    pub(crate) async fn is_ready(&mut self) -> bool {
        let ready = async {
            match &mut self.sender {
                Sender::Http1(sender) => sender.ready().await.is_ok(),
                Sender::Http2(sender) => sender.ready().await.is_ok(),
            }
        };
        tokio::time::timeout(READY_TIME, ready).await.unwrap_or(false)
    }

    fn is_closed(&self) -> bool {
        match &self.sender {
            Sender::Http1(sender) => sender.is_closed(),
            Sender::Http2(sender) => sender.is_closed(),
        }
    }
}
