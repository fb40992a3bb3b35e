//! Connections in use, and returning them to the pool.

use std::sync::{Arc, Weak};

use tokio::sync::OwnedSemaphorePermit;

use crate::client::Shared;
use crate::pool::{Connection, IDLE_TIME, Key, Sender};

/// A connection in use by one request, until the response body has ended.
pub(crate) struct Lease {
    pub(crate) shared: Arc<Shared>,
    pub(crate) key: Key,
    pub(crate) connection: Connection,
    /// One of the call's permits for concurrent requests.
    pub(crate) permit: OwnedSemaphorePermit,
}

impl Lease {
    /// Keeps the connection for the next request.
    pub(crate) fn give_back(self) {
        // An HTTP/2 connection is in the pool since it was opened.
        if matches!(self.connection.sender, Sender::Http1(_)) {
            keep(&self.shared, self.key, self.connection);
        }
    }
}

/// Keeps a connection for the next request if there is room.
pub(crate) fn keep(shared: &Arc<Shared>, key: Key, connection: Connection) {
    // Called in the runtime in which the connection was opened.
    if shared.pool.put(key, connection)
        && let Ok(runtime) = shared.runtime()
    {
        runtime.spawn(sweep(Arc::downgrade(shared)));
    }
}

/// Closes unused connections until none is kept.
async fn sweep(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(IDLE_TIME / 2).await;
        let Some(shared) = shared.upgrade() else { return };
        if !shared.pool.close_unused() {
            return;
        }
    }
}
