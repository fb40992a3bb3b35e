//! What reached a server.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// How long a test waits for what has to come. It fails then.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The connections and requests that reached a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// How many connections there were.
    pub connections: usize,
    /// How many of them are open.
    pub open: usize,
    /// The number of connections that resumed an earlier TLS session.
    pub resumed: usize,
    /// The requests, in the order of their heads.
    pub requests: Vec<SeenRequest>,
}

impl Seen {
    /// Whether nothing reached the server at all.
    pub fn is_nothing(&self) -> bool {
        self.connections == 0
    }
}

/// A request that reached a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenRequest {
    /// The number of its connection, from 0.
    pub connection: usize,
    /// Such as `GET`.
    pub method: String,
    /// The target as it was sent. Over HTTP/2 it is the whole URL.
    pub target: String,
    /// Such as `HTTP/1.1`.
    pub version: String,
    /// The header fields in their order. Names over HTTP/1.1 are as `hyper` has them, in lower case,
    /// apart from those of raw behaviours.
    pub headers: Vec<(String, Vec<u8>)>,
    /// What there was of the body when it ended.
    pub body: Vec<u8>,
    /// Whether the whole body is there.
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

/// What a server writes and a test reads.
#[derive(Clone, Default)]
pub(crate) struct Record(Arc<(Mutex<Seen>, Condvar)>);

impl Record {
    pub(crate) fn now(&self) -> Seen {
        self.lock().clone()
    }

    /// Counts a connection, until what comes back is dropped.
    pub(crate) fn connection(&self) -> Connection {
        let number = self.change(|seen| {
            seen.connections += 1;
            seen.open += 1;
            seen.connections - 1
        });
        Connection { record: self.clone(), number }
    }

    /// Notes the head of a request, and gives its index.
    pub(crate) fn head(&self, request: SeenRequest) -> usize {
        self.change(|seen| {
            seen.requests.push(request);
            seen.requests.len() - 1
        })
    }

    /// Adds to the body of a request.
    pub(crate) fn body(&self, index: usize, bytes: &[u8]) {
        self.change(|seen| seen.requests[index].body.extend_from_slice(bytes));
    }

    /// Notes that a body ended, and gives the whole request.
    pub(crate) fn complete(&self, index: usize) -> SeenRequest {
        self.change(|seen| {
            seen.requests[index].complete = true;
            seen.requests[index].clone()
        })
    }

    /// Blocks until something has happened, and panics where it does not.
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

/// A connection while it is open.
pub(crate) struct Connection {
    pub(crate) record: Record,
    pub(crate) number: usize,
}

impl Connection {
    /// Notes that it goes on with an earlier session of TLS.
    pub(crate) fn resumes(&self) {
        self.record.change(|seen| seen.resumed += 1);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.record.change(|seen| seen.open -= 1);
    }
}
