//! The sessions of clients that use a revision with a handshake: their owners, lifetimes, and
//! eviction.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::{HeaderMap, Method};
use rmcp::transport::common::server_side_http::SessionId;
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::server::generation::Changes;
use crate::session::Identity;

/// The header with the session id.
pub(super) const SESSION: &str = "mcp-session-id";

/// Maximum and minimum time between two searches for unused sessions.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);
const SHORTEST_INTERVAL: Duration = Duration::from_millis(50);

/// The open sessions. A session ends if no request and no open stream has used it for some time.
#[derive(Clone)]
pub(super) struct Sessions {
    manager: Arc<LocalSessionManager>,
    uses: Arc<Mutex<Uses>>,
    limit: usize,
    idle: Duration,
}

#[derive(Default)]
struct Uses(HashMap<SessionId, Use>);

struct Use {
    /// The owner. Requests of others find no such session.
    identity: Identity,
    client: Arc<str>,
    requests: usize,
    /// Open streams for messages from the server.
    streams: usize,
    last: Instant,
}

/// A request named a session of another identity.
pub(super) struct NotOwner;

pub(super) struct SessionInUse {
    id: SessionId,
    is_stream: bool,
    uses: Arc<Mutex<Uses>>,
}

pub(super) struct EndUnused(JoinHandle<()>);

impl Sessions {
    pub(super) fn new(limit: usize, idle: Duration) -> Self {
        let mut manager = LocalSessionManager::default();
        // Completed responses are not kept for a client that resumes its stream later: their memory
        // would not be counted.
        manager.session_config.completed_cache_ttl = Duration::ZERO;
        // To the library, a session with an open stream is idle.
        manager.session_config.keep_alive = None;
        Self { manager: Arc::new(manager), uses: Arc::default(), limit, idle }
    }

    pub(super) fn manager(&self) -> Arc<LocalSessionManager> {
        Arc::clone(&self.manager)
    }

    pub(super) async fn len(&self) -> usize {
        self.manager.sessions.read().await.len()
    }

    /// Keeps the session in the headers of a request in use. `None` if no such session exists.
    ///
    /// # Errors
    ///
    /// If the session belongs to another identity.
    pub(super) async fn in_use(
        &self,
        headers: &HeaderMap,
        method: &Method,
        identity: &Identity,
    ) -> Result<Option<SessionInUse>, NotOwner> {
        let Some(id) = self.open(headers).await else { return Ok(None) };
        let is_stream = method == Method::GET;
        match lock(&self.uses).0.get_mut(&id) {
            Some(session) if session.identity.caller() == identity.caller() => {
                *session.count(is_stream) += 1;
            }
            Some(_) | None => return Err(NotOwner),
        }
        Ok(Some(SessionInUse { id, is_stream, uses: Arc::clone(&self.uses) }))
    }

    /// Keeps the session in the headers of a response in use: a client has just started it.
    pub(super) async fn begun(
        &self,
        headers: &HeaderMap,
        client: &str,
        identity: &Identity,
    ) -> Option<SessionInUse> {
        let id = self.open(headers).await?;
        let (identity, client) = (identity.clone(), client.into());
        let session = Use { identity, client, requests: 1, streams: 0, last: Instant::now() };
        lock(&self.uses).0.insert(id.clone(), session);
        Some(SessionInUse { id, is_stream: false, uses: Arc::clone(&self.uses) })
    }

    /// Returns the id of the open session in these headers.
    async fn open(&self, headers: &HeaderMap) -> Option<SessionId> {
        let id = headers.get(SESSION)?.to_str().ok()?;
        Some(self.manager.sessions.read().await.get_key_value(id)?.0.clone())
    }

    /// Returns whether another session may start. Ends a session if the limit is reached.
    pub(super) async fn make_room(&self) -> bool {
        if self.len().await < self.limit {
            return true;
        }
        self.forget_ended().await;
        let chosen = lock(&self.uses).to_end();
        match chosen {
            Some(id) => {
                self.end(id).await;
                true
            }
            None => false,
        }
    }

    /// Ends unused sessions, and at once those of people whose token is revoked, until the result is
    /// dropped.
    pub(super) fn end_unused(&self, mut changes: watch::Receiver<Changes>) -> EndUnused {
        let sessions = self.clone();
        EndUnused(tokio::spawn(async move {
            let interval = (sessions.idle / 4).clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL);
            loop {
                tokio::select! {
                    () = tokio::time::sleep(interval) => {}
                    Ok(()) = changes.changed() => {}
                }
                let unused = lock(&sessions.uses).unused(sessions.idle);
                for id in unused {
                    sessions.end(id).await;
                }
                sessions.forget_ended().await;
            }
        }))
    }

    async fn forget_ended(&self) {
        let open = self.manager.sessions.read().await;
        lock(&self.uses).0.retain(|id, session| session.requests > 0 || open.contains_key(id));
    }

    async fn end(&self, id: SessionId) {
        tracing::info!("a session ended");
        lock(&self.uses).0.remove(&id);
        if let Err(error) = self.manager.close_session(&id).await {
            tracing::debug!("a session could not be ended: {error}");
        }
    }
}

impl Uses {
    /// Returns the sessions that were unused for this long, or whose token is revoked.
    fn unused(&self, time: Duration) -> Vec<SessionId> {
        let is_unused = |it: &Use| {
            let is_idle = it.requests == 0 && it.streams == 0 && it.last.elapsed() >= time;
            is_idle || it.identity.is_revoked()
        };
        let unused = self.0.iter().filter(|(_, session)| is_unused(session));
        unused.map(|(id, _)| id.clone()).collect()
    }

    /// Returns the session that makes room for a new one. Candidates have no request in flight; the
    /// session belongs to the client with the most sessions, has no open stream if possible, and
    /// was unused for the longest time.
    fn to_end(&self) -> Option<SessionId> {
        let mut counts = HashMap::<_, usize>::new();
        self.0.values().for_each(|it| *counts.entry(&it.client).or_default() += 1);
        let idle = self.0.iter().filter(|(_, session)| session.requests == 0);
        let chosen = idle.max_by_key(|(_, session)| {
            (counts[&session.client], session.streams == 0, session.last.elapsed())
        });
        chosen.map(|(id, _)| id.clone())
    }
}

impl Use {
    fn count(&mut self, is_stream: bool) -> &mut usize {
        if is_stream { &mut self.streams } else { &mut self.requests }
    }
}

impl Drop for SessionInUse {
    fn drop(&mut self) {
        if let Some(session) = lock(&self.uses).0.get_mut(&self.id) {
            *session.count(self.is_stream) -= 1;
            session.last = Instant::now();
        }
    }
}

impl Drop for EndUnused {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn lock(uses: &Mutex<Uses>) -> MutexGuard<'_, Uses> {
    uses.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_with_most_sessions_makes_room() {
        let now = Instant::now();
        let mut uses = Uses::default();
        for (age, (id, client)) in
            [("5", "one"), ("4", "many"), ("3", "many"), ("2", "many"), ("1", "one")]
                .into_iter()
                .enumerate()
        {
            let last = now - Duration::from_secs(age as u64);
            let identity = Identity::Shared("http".into());
            let session = Use { identity, client: client.into(), requests: 0, streams: 0, last };
            uses.0.insert(id.into(), session);
        }
        let mut check = |requests: &[&str], streams: &[&str], expected: Option<&str>| {
            for (id, session) in &mut uses.0 {
                session.requests = usize::from(requests.contains(&&**id));
                session.streams = usize::from(streams.contains(&&**id));
            }
            assert_eq!(uses.to_end().as_deref(), expected, "{requests:?} {streams:?}");
        };
        check(&[], &[], Some("2"));
        check(&["2"], &[], Some("3"));
        check(&[], &["2", "3"], Some("4"));
        check(&[], &["2", "3", "4"], Some("2"));
        check(&["2", "3", "4"], &[], Some("1"));
        check(&["1", "2", "3", "4", "5"], &[], None);
    }
}
