//! What the requests of one call share: its grants and limits, what is counted of them, and what
//! became of each.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::HeaderName;
use kitbag_policy::http::{AllowedRequest, HttpGrants, HttpRefusal, HttpRequest, RefusalKind};
use kitbag_secrets::{CallSecrets, Redactor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::error::RequestError;
use crate::headers;
use crate::outgoing_request::OutgoingRequest;
use crate::shares::Account;

/// Requests of one call that are under way at once; the next ones wait.
const AT_ONCE: usize = 16;

/// Requests of one call whose responses have not begun; one more is refused. Each holds its
/// header fields and a part of its body.
const MOST_WAITING: usize = 50;

/// Refusals of one call that are kept for its error.
const MOST_REFUSED: usize = 5;

/// Requests of one call that are kept for its record.
const MOST_MADE: usize = 100;

/// Those among them that were refused at once, so that they leave room for others.
const MOST_UNSENT: usize = 50;

/// Requests beyond [`MOST_MADE`] that are kept as well, since their origin is a new one.
const MOST_ORIGINS: usize = 100;

/// The longest method and the longest origin that are kept, in bytes.
const METHOD_BYTES: usize = 32;
const ORIGIN_BYTES: usize = 300;

/// Failed connections of one call that are kept for its error.
const MOST_UNCONNECTED: usize = 5;

/// Warnings of one call that are kept for the log.
const MOST_WARNINGS: usize = 20;

/// What bounds the requests of one call, besides its grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Requests, with each hop of a redirect. Default: 50.
    pub requests: u64,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self { requests: 50 }
    }
}

/// The times that a tool sets for one request, within those of its grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestTimes {
    /// Until there is a connection.
    pub connect: Option<Duration>,
    /// Until the response begins.
    pub first_byte: Option<Duration>,
    /// Between two parts of the response.
    pub between_bytes: Option<Duration>,
}

/// What became of one request, or one hop of a redirect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestRecord {
    /// Its method.
    pub method: String,
    /// Scheme, host and port; empty where its URL is not one. Path and query may hold secrets.
    pub origin: String,
    /// The status of the response. `None`: there was none.
    pub status: Option<u16>,
    /// Whether any of it was sent.
    pub is_sent: bool,
    /// The bytes of its body. 0 where nothing was sent.
    pub request_bytes: u64,
    /// The bytes of the response's body that were read.
    pub response_bytes: u64,
    /// The pattern of the grant that allowed it; empty where none did, or where it was refused
    /// before anything was sent.
    pub grant: String,
    /// What it was refused for, at once or on its way.
    pub refused: Option<RefusalKind>,
}

/// A connection that could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedConnection {
    /// Why not.
    pub reason: String,
    /// Whether a proxy refused it, or could not be reached.
    pub is_of_proxy: bool,
}

/// Requests of one kind that were refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRequest {
    /// Their method.
    pub method: String,
    /// Their origin, as in [`RequestRecord`].
    pub origin: String,
    /// What they were refused for.
    pub kind: RefusalKind,
    /// The rule, pattern or secret that they were refused for.
    pub by: Option<String>,
    /// How many there were.
    pub times: u64,
}

/// The records of a call's requests.
#[derive(Debug, Default)]
struct Made {
    requests: Vec<Arc<Mutex<RequestRecord>>>,
    /// How many of them were refused at once.
    unsent: usize,
    /// The origins of all others.
    origins: HashSet<String>,
    /// How many more requests there were.
    more: u64,
    refused: Vec<RefusedRequest>,
    /// How many more were refused.
    more_refused: u64,
}

/// What the requests of one call share.
pub(crate) struct Call {
    /// The tool and its grants, within which connections are used again.
    pub(crate) owner: Arc<str>,
    /// The account that its connections are charged to.
    pub(crate) account: Account,
    grants: HttpGrants,
    pub(crate) permits: Arc<Semaphore>,
    /// Held by each until its response begins.
    waiting: Arc<Semaphore>,
    /// Held by the one request whose whole body is in memory.
    pub(crate) whole: Semaphore,
    pub(crate) ended: CancellationToken,
    /// What is put into requests, and masked in responses.
    pub(crate) secrets: Option<Arc<CallSecrets>>,
    limits: CallLimits,
    sent: AtomicU64,
    made: Mutex<Made>,
    refused: Mutex<Vec<HttpRefusal>>,
    unconnected: Mutex<Vec<FailedConnection>>,
    warnings: Mutex<Vec<String>>,
}

impl Call {
    pub(crate) fn new(
        owner: Arc<str>,
        account: Account,
        grants: HttpGrants,
        limits: CallLimits,
        secrets: Option<Arc<CallSecrets>>,
    ) -> Self {
        Self {
            owner,
            account,
            grants,
            permits: Arc::new(Semaphore::new(AT_ONCE)),
            waiting: Arc::new(Semaphore::new(MOST_WAITING)),
            whole: Semaphore::new(1),
            ended: CancellationToken::new(),
            secrets,
            limits,
            sent: AtomicU64::new(0),
            made: Mutex::default(),
            refused: Mutex::default(),
            unconnected: Mutex::default(),
            warnings: Mutex::default(),
        }
    }

    /// Takes a place among the requests that wait for their responses.
    pub(crate) fn wait(
        &self,
        method: &str,
        url: &str,
    ) -> Result<OwnedSemaphorePermit, HttpRefusal> {
        Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| {
            let reason = format!(
                "{MOST_WAITING} requests of the call wait for their responses, the most that may at \
                 once"
            );
            let refusal = HttpRefusal::new(RefusalKind::Rate, reason);
            self.refused_at_once(method, url, &refusal);
            refusal
        })
    }

    /// Decides on one request, and counts it.
    pub(crate) fn decide(
        &self,
        url: &str,
        outgoing: &OutgoingRequest,
    ) -> Result<AllowedRequest, HttpRefusal> {
        headers::check(&outgoing.headers)?;
        let request = HttpRequest::new(outgoing.method.as_str(), url)?;
        let mut allowed = self.grants.decide(&request)?;
        allowed.headers(outgoing.headers.keys().map(HeaderName::as_str))?;
        let limit = self.limits.requests;
        if self.sent.fetch_add(1, Ordering::Relaxed) >= limit {
            // The counter stays where it is, so that it never wraps.
            self.sent.store(limit, Ordering::Relaxed);
            let reason = format!(
                "the call has reached its limit `requests`, {limit}; allow more with `limits.requests` of \
                 the tool"
            );
            return Err(HttpRefusal::new(RefusalKind::Rate, reason));
        }
        Ok(allowed)
    }

    /// Begins the record of a request that is allowed at first.
    pub(crate) fn record(&self, allowed: &AllowedRequest) -> Option<Arc<Mutex<RequestRecord>>> {
        let request = allowed.request();
        let record = RequestRecord {
            method: cut(request.method().as_str(), METHOD_BYTES),
            origin: cut(&request.origin_url(), ORIGIN_BYTES),
            grant: allowed.by().url.to_string(),
            ..RequestRecord::default()
        };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = made.requests.len() >= MOST_MADE;
        let is_new = made.origins.len() < MOST_ORIGINS && !made.origins.contains(&record.origin);
        if is_full && !is_new {
            made.more += 1;
            return None;
        }
        if is_new {
            made.origins.insert(record.origin.clone());
        }
        let record = Arc::new(Mutex::new(record));
        made.requests.push(Arc::clone(&record));
        Some(record)
    }

    /// Notes a request that was refused before anything of it was done.
    pub(crate) fn refused_at_once(&self, method: &str, url: &str, refusal: &HttpRefusal) {
        let origin = HttpRequest::new(method, url).map(|request| request.origin_url());
        let origin = origin.unwrap_or_default();
        self.refused(method, &origin, refusal);
        let record = RequestRecord {
            method: cut(method, METHOD_BYTES),
            origin: cut(&origin, ORIGIN_BYTES),
            refused: Some(refusal.kind),
            ..RequestRecord::default()
        };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.unsent >= MOST_UNSENT || made.requests.len() >= MOST_MADE {
            made.more += 1;
            return;
        }
        made.unsent += 1;
        made.requests.push(Arc::new(Mutex::new(record)));
    }

    /// What masks the values that the call has read.
    pub(crate) fn redactor(&self) -> Arc<Redactor> {
        self.secrets.as_ref().map(|secrets| secrets.redactor()).unwrap_or_default()
    }

    /// Notes what was sent though it looks like a key or a token.
    pub(crate) fn warned(&self, warnings: Vec<String>) {
        let mut noted = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        let left = MOST_WARNINGS.saturating_sub(noted.len());
        noted.extend(warnings.into_iter().take(left));
    }

    /// Notes a refusal: for the call's error, and for its record.
    pub(crate) fn refused(&self, method: &str, origin: &str, refusal: &HttpRefusal) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() < MOST_REFUSED && !refused.contains(refusal) {
            refused.push(refusal.clone());
        }
        drop(refused);
        let (method, origin) = (cut(method, METHOD_BYTES), cut(origin, ORIGIN_BYTES));
        let denied_by = refusal.denied_by.as_ref().map(ToString::to_string);
        let by = refusal.by.as_ref().map(ToString::to_string).or(denied_by);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let same = made.refused.iter().position(|it| {
            it.kind == refusal.kind && it.method == method && it.origin == origin && it.by == by
        });
        match same {
            Some(same) => made.refused[same].times += 1,
            None if made.refused.len() < MOST_UNSENT => {
                let kind = refusal.kind;
                made.refused.push(RefusedRequest { method, origin, kind, by, times: 1 });
            }
            None => made.more_refused += 1,
        }
    }

    /// Notes a connection that could not be made.
    pub(crate) fn unconnected(&self, error: &RequestError) {
        let is_of_proxy = match error {
            RequestError::Proxy { .. } => true,
            RequestError::Name { .. } | RequestError::Connect { .. } | RequestError::Tls { .. } => {
                false
            }
            _ => return,
        };
        let failed = FailedConnection { reason: error.to_string(), is_of_proxy };
        let mut unconnected = self.unconnected.lock().unwrap_or_else(PoisonError::into_inner);
        if unconnected.len() < MOST_UNCONNECTED && !unconnected.contains(&failed) {
            unconnected.push(failed);
        }
    }

    /// The connections that could not be made, and forgets them.
    pub(crate) fn take_unconnected(&self) -> Vec<FailedConnection> {
        std::mem::take(&mut self.unconnected.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was sent though it looks like a key or a token, and forgets it.
    pub(crate) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The records that were kept, and how many more there were.
    pub(crate) fn records(&self) -> (Vec<RequestRecord>, u64) {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let records = made.requests.iter().map(|record| {
            let mut record = record.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if !record.is_sent {
                record.request_bytes = 0;
                if record.refused.is_some() {
                    record.grant.clear();
                }
            }
            record
        });
        (records.collect(), made.more)
    }

    /// The requests that were refused, and how many more there were.
    pub(crate) fn refused_requests(&self) -> (Vec<RefusedRequest>, u64) {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        (made.refused.clone(), made.more_refused)
    }

    /// What was refused, and forgets it.
    pub(crate) fn take_refused(&self) -> Vec<HttpRefusal> {
        std::mem::take(&mut self.refused.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A text of the tool's, no longer than so many bytes.
fn cut(text: &str, bytes: usize) -> String {
    match text.len() <= bytes {
        true => text.to_owned(),
        false => format!("{}…", &text[..text.floor_char_boundary(bytes)]),
    }
}
