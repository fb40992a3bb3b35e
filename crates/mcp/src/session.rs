//! The client at the other end of a connection.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use kitbag_contract::LogLevel;
use kitbag_host::Reservation;
use kitbag_toolbox::Caller;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

use crate::era::Client;
use crate::handshake::SESSION_BYTES;
use crate::message;
use crate::notifications;
use crate::output::Output;
use crate::server::Server;

/// What a connection's requests share. Clones are the same.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) server: Server,
    /// Who is at the other end, as far as that was proved.
    pub(crate) principal: Arc<str>,
    /// What tells the connection from every other one of this process.
    pub(crate) id: u64,
    /// For whom its calls are made. `None`: for the client itself.
    pub(crate) owner: Option<Caller>,
    /// Minimum level of the log messages that the client requested for the session.
    level: Arc<Mutex<LogLevel>>,
    /// Where the answers of a client that has one stream for all of them go.
    output: Option<Arc<Output>>,
    /// What the session takes, once it has begun with a handshake.
    memory: Arc<OnceLock<Reservation>>,
}

impl Session {
    pub(crate) fn new(server: Server, principal: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            server,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            principal: principal.into(),
            owner: None,
            level: Arc::new(Mutex::new(LogLevel::Info)),
            output: None,
            memory: Arc::default(),
        }
    }

    /// Reserves what a session takes that begins with a handshake.
    ///
    /// # Errors
    ///
    /// Busy, where there is no memory for it now.
    pub(crate) fn begin(&self) -> Result<(), ErrorData> {
        let memory = message::hold(&self.server.message_memory(), SESSION_BYTES)?;
        // A second handshake changes nothing.
        let _ = self.memory.set(memory);
        Ok(())
    }

    /// As [`new`](Self::new), for a client with one stream for all answers: a program that the
    /// user of this process has started, or that has started it as this user. What tools keep
    /// for it is the user's, as on the command line.
    pub(crate) fn with_output(server: Server, principal: &str, output: Arc<Output>) -> Self {
        let owner = Some(Caller::this_user());
        Self { output: Some(output), owner, ..Self::new(server, principal) }
    }

    /// For whom an approval until the process ends counts: this connection alone. `None` where
    /// each request of a client could come over another one.
    pub(crate) fn approver(&self, client: Client) -> Option<Arc<str>> {
        let is_one = self.output.is_some() || !client.is_stateless;
        is_one.then(|| self.id.to_string().into())
    }

    /// Waits until the client has read enough of its answers for another one.
    pub(crate) async fn has_room(&self) {
        if let Some(output) = &self.output {
            output.has_room().await;
        }
    }

    pub(crate) fn set_log_level(&self, level: LogLevel) {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = level;
    }

    /// Minimum level of the log messages that a client with a session requested.
    pub(crate) fn session_level(&self) -> LogLevel {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Minimum level of the log messages of this call. A client of the stateless
    /// revisions requests one with every call, or gets no messages.
    pub(crate) fn log_level(
        &self,
        client: Client,
        context: &RequestContext<RoleServer>,
    ) -> Option<LogLevel> {
        match client.is_stateless {
            true => context.meta.log_level().map(notifications::read),
            false => Some(self.session_level()),
        }
    }
}
