//! Connections and requests of a server.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// How long a test waits for an event before it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The connections and requests that reached a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Number of connections.
    pub connections: usize,
    /// Number of open connections.
    pub open: usize,
    /// The number of connections that resumed an earlier TLS session.
    pub resumed: usize,
    /// The requests, in the order in which their heads arrived.
    pub requests: Vec<SeenRequest>,
}

impl Seen {
    /// Returns true if there was neither a connection nor a request.
    pub fn is_nothing(&self) -> bool {
        self.connections == 0
    }
}

/// A request that reached a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenRequest {
    /// The number of the connection, from 0.
    pub connection: usize,
    /// The method, such as `GET`.
    pub method: String,
    /// The raw target. Over HTTP/2 it is the complete URL.
    pub target: String,
    /// The version, such as `HTTP/1.1`.
    pub version: String,
    /// The header fields, in order. Names over HTTP/1.1 are in lower case, as `hyper` has them,
    /// except those of raw behaviours.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The received part of the body.
    pub body: Vec<u8>,
    /// True if the complete body was received.
    pub complete: bool,
}

impl SeenRequest {
    /// The first value of a header field, as text.
    pub fn header(&self, name: &str) -> Option<String> {
        let found = self.headers.iter().find(|(is, _)| is.eq_ignore_ascii_case(name));
        found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    }

    /// The path of the target, without the query.
    pub fn path(&self) -> &str {
        let target = match self.target.split_once("://") {
            Some((_, rest)) if !self.target.starts_with('/') => {
                rest.find('/').map_or("/", |at| &rest[at..])
            }
            _ => &self.target,
        };
        target.split('?').next().unwrap_or_default()
    }
}

/// The shared record that a server writes and a test reads.
#[derive(Clone, Default)]
pub(crate) struct Record(Arc<(Mutex<Seen>, Condvar)>);

impl Record {
    pub(crate) fn now(&self) -> Seen {
        self.lock().clone()
    }

    /// Counts a connection as open until the returned value is dropped.
    pub(crate) fn connection(&self) -> Connection {
        let number = self.change(|seen| {
            seen.connections += 1;
            seen.open += 1;
            seen.connections - 1
        });
        Connection { record: self.clone(), number }
    }

    /// Records the head of a request, and returns its index.
    pub(crate) fn head(&self, request: SeenRequest) -> usize {
        self.change(|seen| {
            seen.requests.push(request);
            seen.requests.len() - 1
        })
    }

    /// Appends to the body of a request.
    pub(crate) fn body(&self, index: usize, bytes: &[u8]) {
        self.change(|seen| seen.requests[index].body.extend_from_slice(bytes));
    }

    /// Records the end of a body, and returns the complete request.
    pub(crate) fn complete(&self, index: usize) -> SeenRequest {
        self.change(|seen| {
            seen.requests[index].complete = true;
            seen.requests[index].clone()
        })
    }

    /// Blocks until an event has happened, and panics after [`PATIENCE`].
    pub(crate) fn wait(&self, what: &str, has_happened: impl Fn(&Seen) -> bool) -> Seen {
        let seen = self.lock();
        let waited = self.0.1.wait_timeout_while(seen, PATIENCE, |seen| !has_happened(seen));
        let (seen, timeout) = waited.expect("a server's thread has panicked");
        assert!(!timeout.timed_out(), "waited for {what}; there is {:#?}", *seen);
        seen.clone()
    }

    fn change<T>(&self, change: impl FnOnce(&mut Seen) -> T) -> T {
        let changed = change(&mut self.lock());
        self.0.1.notify_all();
        changed
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.0.lock().expect("a server's thread has panicked")
    }
}

/// An open connection.
pub(crate) struct Connection {
    pub(crate) record: Record,
    pub(crate) number: usize,
}

impl Connection {
    /// Records that the connection resumed a TLS session.
    pub(crate) fn resumes(&self) {
        self.record.change(|seen| seen.resumed += 1);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.record.change(|seen| seen.open -= 1);
    }
}
