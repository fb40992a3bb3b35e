//! The client at the other end of a connection.

pub(crate) mod client;
pub(crate) mod handshake;
pub(crate) mod notifications;
pub(crate) mod resume_state;
pub(crate) mod state_codec;
pub(crate) mod subscription;
pub(crate) mod trust_notice;

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::request::Parts;
use kitbag_contract::LogLevel;
use kitbag_host::{Account, Reservation};
use kitbag_toolbox::Caller;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

use crate::server::Server;
use crate::session::client::Client;
use crate::session::handshake::{NAME_BYTES, SESSION_BYTES};
use crate::transport::message;
use crate::transport::stdio::output::Output;

/// The source address of an HTTP request.
#[derive(Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Returns the identity that distinguishes clients with the same token.
pub(crate) fn client(peer: Option<&Peer>, name: &str, version: &str) -> String {
    let address = peer.map(|peer| peer.0.to_string()).unwrap_or_default();
    let [name, version] = [name, version].map(|text| &text[..text.floor_char_boundary(NAME_BYTES)]);
    format!("{address}\0{name}\0{version}")
}

#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) server: Server,
    /// Authenticated identity of the client.
    pub(crate) principal: Arc<str>,
    /// Unique id of the connection in this process.
    pub(crate) id: u64,
    /// Caller on whose behalf calls are made. `None`: the client itself.
    pub(crate) owner: Option<Caller>,
    /// Minimum level of the log messages that the client requested for the session.
    level: Arc<Mutex<LogLevel>>,
    /// Output of a client that has one stream for all answers.
    output: Option<Arc<Output>>,
    /// Reserved memory of a session that started with a handshake.
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

    /// Reserves memory for a session that starts with a handshake.
    ///
    /// # Errors
    ///
    /// Busy, if no memory is available now.
    pub(crate) fn begin(&self, context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let memory = self.hold(&self.account(context), SESSION_BYTES)?;
        // A second handshake has no effect.
        let _ = self.memory.set(memory);
        Ok(())
    }

    /// Reserves memory for state between messages: a session, a subscription or a waiting question.
    ///
    /// # Errors
    ///
    /// Busy, if the client has used up its share, or the pool is exhausted.
    pub(crate) fn hold(&self, account: &Account, bytes: u64) -> Result<Reservation, ErrorData> {
        let held = self.server.state_pool().hold(account, bytes);
        held.ok_or_else(|| message::busy("sessions and questions have reserved their memory"))
    }

    /// Returns the account that is charged for a request: over HTTP the client with this token,
    /// address, name and version, and its session for its calls. Standard input has one client.
    pub(crate) fn account(&self, context: &RequestContext<RoleServer>) -> Account {
        if self.output.is_some() {
            return Account::default();
        }
        let parts = context.extensions.get::<Parts>();
        let peer = parts.and_then(|parts| parts.extensions.get());
        let info = context.client_info();
        let (name, version) = info.as_ref().map_or(("", ""), |info| (&info.name, &info.version));
        let client = client(peer, name, version);
        let account = Account::of_client(format!("{}\0{client}", self.principal));
        match Client::of(context).is_stateless {
            true => account,
            false => account.in_session(&self.id.to_string()),
        }
    }

    /// Like [`new`](Self::new), for a client with one stream for all answers: a program that the
    /// user of this process started, or that started it as this user. Data that tools store for it
    /// belongs to the user, as on the command line.
    pub(crate) fn with_output(server: Server, principal: &str, output: Arc<Output>) -> Self {
        let owner = Some(Caller::this_user());
        Self { output: Some(output), owner, ..Self::new(server, principal) }
    }

    /// Returns the scope of an approval that is valid until the process ends: this connection
    /// alone. `None` if each request of a client could use another connection.
    pub(crate) fn approver(&self, client: Client) -> Option<Arc<str>> {
        let is_one = self.output.is_some() || !client.is_stateless;
        is_one.then(|| self.id.to_string().into())
    }

    /// Waits until the client has read enough output to receive more.
    pub(crate) async fn has_room(&self) {
        if let Some(output) = &self.output {
            output.has_room().await;
        }
    }

    pub(crate) fn set_log_level(&self, level: LogLevel) {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = level;
    }

    /// Returns the minimum level of log messages that a client with a session requested.
    pub(crate) fn session_level(&self) -> LogLevel {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the minimum level of log messages of this call. A client of the stateless revisions
    /// requests a level with every call, or gets no messages.
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
