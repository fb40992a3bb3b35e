//! The sessions of clients that speak a revision with a handshake, and how long they last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderMap;
use rmcp::transport::common::server_side_http::SessionId;
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::task::JoinHandle;

use super::SESSION;

/// Where all sessions are open, the one that was unused for the longest time makes room, if it
/// was unused for this long.
const LEAST_UNUSED: Duration = Duration::from_secs(5 * 60);

/// The longest and the shortest time between two looks for sessions that nothing uses.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);
const SHORTEST_INTERVAL: Duration = Duration::from_millis(50);

/// The open sessions. One ends if no request and no open stream has used it for a time.
#[derive(Clone)]
pub(super) struct Sessions {
    manager: Arc<LocalSessionManager>,
    uses: Arc<Mutex<HashMap<SessionId, Use>>>,
    /// How many there may be.
    limit: usize,
    idle: Duration,
}

struct Use {
    /// Requests and streams that are open.
    open: usize,
    /// When the last of them ended.
    last: Instant,
}

/// Keeps a session in use.
pub(super) struct SessionInUse {
    id: SessionId,
    uses: Arc<Mutex<HashMap<SessionId, Use>>>,
}

/// Ends the task when it is dropped.
pub(super) struct EndUnused(JoinHandle<()>);

impl Sessions {
    pub(super) fn new(limit: usize, idle: Duration) -> Self {
        let mut manager = LocalSessionManager::default();
        // An answer is not kept for a client that takes up its stream again later: it
        // would be held without being counted.
        manager.session_config.completed_cache_ttl = Duration::ZERO;
        // The library does not take an open stream for a use.
        manager.session_config.keep_alive = None;
        Self { manager: Arc::new(manager), uses: Arc::default(), limit, idle }
    }

    pub(super) fn manager(&self) -> Arc<LocalSessionManager> {
        Arc::clone(&self.manager)
    }

    /// The number of open sessions.
    pub(super) async fn len(&self) -> usize {
        self.manager.sessions.read().await.len()
    }

    /// Keeps the session that these headers name in use. `None`: there is no such session.
    pub(super) async fn in_use(&self, headers: &HeaderMap) -> Option<SessionInUse> {
        let id = headers.get(SESSION)?.to_str().ok()?;
        let id = self.manager.sessions.read().await.get_key_value(id)?.0.clone();
        let mut uses = lock(&self.uses);
        let session = uses.entry(id.clone()).or_insert(Use { open: 0, last: Instant::now() });
        session.open += 1;
        Some(SessionInUse { id, uses: Arc::clone(&self.uses) })
    }

    /// Whether another session may begin. If all are open, an unused one is ended for it.
    pub(super) async fn make_room(&self) -> bool {
        if self.len().await < self.limit {
            return true;
        }
        let unused = self.unused(LEAST_UNUSED.min(self.idle)).into_iter().next();
        match unused {
            Some(id) => {
                self.end(id).await;
                true
            }
            None => false,
        }
    }

    /// Ends the sessions that nothing uses, until the result is dropped.
    pub(super) fn end_unused(&self) -> EndUnused {
        let sessions = self.clone();
        EndUnused(tokio::spawn(async move {
            let interval = (sessions.idle / 4).clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL);
            loop {
                tokio::time::sleep(interval).await;
                for id in sessions.unused(sessions.idle) {
                    sessions.end(id).await;
                }
                // Those that their clients have ended.
                let open = sessions.manager.sessions.read().await;
                lock(&sessions.uses)
                    .retain(|id, session| session.open > 0 || open.contains_key(id));
            }
        }))
    }

    /// The sessions that were not used for this long, the longest unused first.
    fn unused(&self, time: Duration) -> Vec<SessionId> {
        let uses = lock(&self.uses);
        let unused = uses.iter().filter(|(_, it)| it.open == 0 && it.last.elapsed() >= time);
        let mut unused: Vec<_> = unused.map(|(id, session)| (session.last, id.clone())).collect();
        unused.sort();
        unused.into_iter().map(|(_, id)| id).collect()
    }

    async fn end(&self, id: SessionId) {
        tracing::info!("a session ended that was not used for some time");
        lock(&self.uses).remove(&id);
        if let Err(error) = self.manager.close_session(&id).await {
            tracing::debug!("a session could not be ended: {error}");
        }
    }
}

impl Drop for SessionInUse {
    fn drop(&mut self) {
        if let Some(session) = lock(&self.uses).get_mut(&self.id) {
            session.open -= 1;
            session.last = Instant::now();
        }
    }
}

impl Drop for EndUnused {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn lock(uses: &Mutex<HashMap<SessionId, Use>>) -> MutexGuard<'_, HashMap<SessionId, Use>> {
    uses.lock().unwrap_or_else(PoisonError::into_inner)
}
