//! Large results, which the server keeps for the session that received their start.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use kitbag_host::{Account, Reservation};
use rmcp::RoleServer;
use rmcp::service::RequestContext;

use crate::server::WeakServer;
use crate::session::Session;
use crate::session::client::Client;
use crate::session::state_codec::LIFETIME;

/// The prefix of the URI of a kept result.
pub(crate) const RESULT_SCHEME: &str = "kitbag://result/";

/// Maximum number and total size of the results of one session.
const RESULTS: usize = 64;
const BYTES: usize = 32 << 20;

/// Memory of a result in addition to its text.
const RESULT_BYTES: usize = 512;

/// The text of a result, without its fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptResult {
    pub(crate) text: Arc<str>,
    /// The lines that enclose text of an untrusted source.
    pub(crate) fence: Option<(String, String)>,
    /// The result comes from a source that is marked as untrusted.
    pub(crate) is_untrusted: bool,
    /// The result was sent as structured content without its text.
    pub(crate) is_sent: bool,
}

/// The kept results of all sessions.
#[derive(Default)]
pub(crate) struct KeptResults {
    entries: Mutex<VecDeque<Entry>>,
    /// The readers that requested the text of structured content that they had received: their
    /// clients show only text to the model.
    text_readers: Mutex<Vec<Scope>>,
}

/// Maximum number of text readers. The oldest are forgotten, and request a text once more.
const TEXT_READERS: usize = 1_024;

struct Entry {
    uri: String,
    scope: Scope,
    since: Instant,
    result: KeptResult,
    _memory: Reservation,
}

/// The readers of a result.
#[derive(Clone, PartialEq, Eq)]
struct Scope {
    caller: String,
    /// The session. `None` for a client without sessions, whose requests have only the caller in
    /// common: its URI, which cannot be guessed, is the only access to the result.
    session: Option<u64>,
}

impl Scope {
    fn new(session: &Session, context: &RequestContext<RoleServer>) -> Self {
        let has_session = session.approver(Client::of(context)).is_some();
        Self {
            caller: session.identity.caller().to_string(),
            session: has_session.then_some(session.id),
        }
    }
}

impl KeptResults {
    /// Keeps a result until the session ends, for at most an hour. Replaces the oldest results of
    /// the session if there is no room. Returns the URI, and whether it is the only result of the
    /// session. `None` if there is no memory.
    pub(crate) fn keep(
        &self,
        session: &Session,
        context: &RequestContext<RoleServer>,
        result: KeptResult,
    ) -> Option<(String, bool)> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).ok()?;
        let uri = format!("{RESULT_SCHEME}{:032x}", u128::from_le_bytes(random));
        let (scope, bytes) = (Scope::new(session, context), result.text.len());
        let account = session.account(context);
        let mut entries = self.entries();
        loop {
            let own = entries.iter().filter(|entry| entry.scope == scope);
            let (count, size) =
                own.fold((0, 0), |(count, size), own| (count + 1, size + own.result.text.len()));
            let is_full = count >= RESULTS || size + bytes > BYTES;
            let memory = match is_full {
                true => None,
                false => reserve(session, &account, bytes),
            };
            if let Some(_memory) = memory {
                let (uri_, since) = (uri.clone(), Instant::now());
                entries.push_back(Entry { uri: uri_, scope, since, result, _memory });
                return Some((uri, count == 0));
            }
            let oldest = entries.iter().position(|entry| entry.scope == scope)?;
            entries.remove(oldest);
        }
    }

    /// Returns a result of this session.
    pub(crate) fn get(
        &self,
        session: &Session,
        context: &RequestContext<RoleServer>,
        uri: &str,
    ) -> Option<KeptResult> {
        let scope = Scope::new(session, context);
        let entries = self.entries();
        let own = entries.iter().find(|entry| entry.uri == uri && entry.scope == scope);
        own.map(|entry| entry.result.clone())
    }

    /// Records that this session reads the text of a result that it received as structured content.
    pub(crate) fn add_text_reader(&self, session: &Session, context: &RequestContext<RoleServer>) {
        let scope = Scope::new(session, context);
        let mut readers = self.text_readers.lock().unwrap_or_else(PoisonError::into_inner);
        if !readers.contains(&scope) {
            if readers.len() == TEXT_READERS {
                readers.remove(0);
            }
            readers.push(scope);
        }
    }

    /// Returns whether this session requested the text of structured content.
    pub(crate) fn is_text_reader(
        &self,
        session: &Session,
        context: &RequestContext<RoleServer>,
    ) -> bool {
        let scope = Scope::new(session, context);
        self.text_readers.lock().unwrap_or_else(PoisonError::into_inner).contains(&scope)
    }

    /// Returns whether this session has results.
    pub(crate) fn has_any(&self, session: &Session, context: &RequestContext<RoleServer>) -> bool {
        let scope = Scope::new(session, context);
        self.entries().iter().any(|entry| entry.scope == scope)
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    fn remove_session(&self, id: u64) {
        self.entries().retain(|entry| entry.scope.session != Some(id));
        let mut readers = self.text_readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.retain(|scope| scope.session != Some(id));
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| entry.since.elapsed() < LIFETIME);
        entries
    }
}

fn reserve(session: &Session, account: &Account, bytes: usize) -> Option<Reservation> {
    session.server.state_pool().hold(account, (bytes + RESULT_BYTES) as u64)
}

/// Removes the results of a session when its last clone is dropped.
pub(crate) struct EndOfSession {
    server: WeakServer,
    id: u64,
}

impl EndOfSession {
    pub(crate) fn new(server: WeakServer, id: u64) -> Self {
        Self { server, id }
    }
}

impl Drop for EndOfSession {
    fn drop(&mut self) {
        if let Some(server) = self.server.upgrade() {
            server.kept_results().remove_session(self.id);
        }
    }
}
