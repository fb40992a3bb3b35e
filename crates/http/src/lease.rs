//! Connections in use, and what keeps them afterwards.

use std::sync::{Arc, Weak};

use tokio::sync::OwnedSemaphorePermit;

use crate::client::Shared;
use crate::pool::{Connection, IDLE_TIME, Key, Sender};

/// A connection in use by one request, until the body of the response has ended.
pub(crate) struct Lease {
    pub(crate) shared: Arc<Shared>,
    pub(crate) key: Key,
    pub(crate) connection: Connection,
    /// One of the requests that the call has under way.
    pub(crate) permit: OwnedSemaphorePermit,
}

impl Lease {
    /// Keeps the connection for the next request.
    pub(crate) fn give_back(self) {
        // One with HTTP/2 is kept since it was made.
        if matches!(self.connection.sender, Sender::Http1(_)) {
            keep(&self.shared, self.key, self.connection);
        }
    }
}

/// Keeps a connection for the next request, where there is room.
pub(crate) fn keep(shared: &Arc<Shared>, key: Key, connection: Connection) {
    // There is the runtime, in which the connection was made.
    if shared.pool.put(key, connection)
        && let Ok(runtime) = shared.runtime()
    {
        runtime.spawn(sweep(Arc::downgrade(shared)));
    }
}

/// Closes what is not used, until nothing is kept.
async fn sweep(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(IDLE_TIME / 2).await;
        let Some(shared) = shared.upgrade() else { return };
        if !shared.pool.close_unused() {
            return;
        }
    }
}
