//! The client at the other end of a connection.

pub(crate) mod client;
pub(crate) mod handshake;
pub(crate) mod kept_results;
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
use tokio_util::sync::CancellationToken;

use crate::methods::catalog::Catalog;
use crate::methods::outcome::internal;
use crate::server::Server;
use crate::server::background::LISTING_TIME;
use crate::server::generation::{AuthenticatedPerson, Generation};
use crate::session::client::Client;
use crate::session::handshake::{NAME_BYTES, SESSION_BYTES};
use crate::session::kept_results::EndOfSession;
use crate::transport::message;
use crate::transport::stdio::output::Output;

/// The source address of an HTTP request.
#[derive(Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Returns the name of a client, by which its share of the server is counted. Clients with a shared
/// token are distinguished by the name that they declare. All clients of a person have one share, since a person
/// could declare any number of names.
pub(crate) fn client(
    identity: &Identity,
    peer: Option<&Peer>,
    name: &str,
    version: &str,
) -> String {
    let caller = identity.caller();
    if matches!(identity, Identity::Person(_)) {
        return caller.to_string();
    }
    let address = peer.map(|peer| peer.0.to_string()).unwrap_or_default();
    let [name, version] = [name, version].map(|text| &text[..text.floor_char_boundary(NAME_BYTES)]);
    format!("{caller}\0{address}\0{name}\0{version}")
}

/// The authenticated identity behind a request.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    /// All clients with this identity: that of a shared token, of a server without tokens, or of
    /// the process that started the server.
    Shared(Arc<str>),
    /// A person with their own token.
    Person(AuthenticatedPerson),
}

impl Identity {
    /// Returns the caller that the calls of this identity have.
    pub(crate) fn caller(&self) -> Caller {
        match self {
            Self::Shared(name) => Caller::Client(Arc::clone(name)),
            Self::Person(person) => Caller::Person(person.name.as_str().into()),
        }
    }

    /// Waits until the identity's token is revoked. A shared token lasts as long as the server.
    pub(crate) async fn revoked(&self) {
        match self.revocation() {
            None => std::future::pending().await,
            Some(revoked) => revoked.cancelled().await,
        }
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.revocation().is_some_and(|revoked| revoked.is_cancelled())
    }

    /// Returns the token that is cancelled when the identity's token is revoked. `None` for a
    /// shared token.
    pub(crate) fn revocation(&self) -> Option<&CancellationToken> {
        match self {
            Self::Shared(_) => None,
            Self::Person(person) => Some(&person.revoked),
        }
    }
}

#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) server: Server,
    pub(crate) identity: Identity,
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
    _end: Arc<EndOfSession>,
}

impl Session {
    pub(crate) fn new(server: Server, identity: Identity) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            _end: Arc::new(EndOfSession::new(server.downgrade(), id)),
            server,
            id,
            identity,
            owner: None,
            level: Arc::new(Mutex::new(LogLevel::Info)),
            output: None,
            memory: Arc::default(),
        }
    }

    /// Returns the current tools, as far as this identity may use them.
    pub(crate) fn generation(&self) -> Arc<Generation> {
        let generation = self.server.generation();
        match &self.identity {
            Identity::Shared(_) => generation,
            Identity::Person(person) => generation.for_person(&person.name),
        }
    }

    /// Returns the definitions of the current tools, as far as this identity may use them.
    ///
    /// # Errors
    ///
    /// If the thread that reads them panics.
    pub(crate) async fn catalog(&self) -> Result<Arc<Catalog>, ErrorData> {
        if let Some(catalog) = self.generation().known_catalog() {
            return Ok(catalog);
        }
        // Reads the cached descriptions of local tools.
        self.server.background().described(LISTING_TIME).await;
        let generation = self.generation();
        let read = tokio::task::spawn_blocking(move || generation.catalog());
        read.await.map_err(|error| internal(&error))
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

    /// Returns the account that is charged for a request: over HTTP the person, or the client with
    /// this shared token, address, name and version; and its session for its calls. Standard input
    /// has one client.
    pub(crate) fn account(&self, context: &RequestContext<RoleServer>) -> Account {
        if self.output.is_some() {
            return Account::default();
        }
        let parts = context.extensions.get::<Parts>();
        let peer = parts.and_then(|parts| parts.extensions.get());
        let info = context.client_info();
        let (name, version) = info.as_ref().map_or(("", ""), |info| (&info.name, &info.version));
        let account = Account::of_client(client(&self.identity, peer, name, version));
        match Client::of(context).is_stateless {
            true => account,
            false => account.in_session(&self.id.to_string()),
        }
    }

    /// Like [`new`](Self::new), for a client with one stream for all answers: a program that the
    /// user of this process started, or that started it as this user. Data that tools store for it
    /// belongs to the user, as on the command line.
    pub(crate) fn with_output(server: Server, output: Arc<Output>) -> Self {
        let owner = Some(Caller::this_user());
        let identity = Identity::Shared("stdio".into());
        Self { output: Some(output), owner, ..Self::new(server, identity) }
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

#[cfg(test)]
mod tests {
    use kitbag_config::PersonName;

    use super::*;

    #[test]
    fn all_clients_of_a_person_have_one_share() {
        let person = |name: &str| {
            let name = PersonName::new(name).unwrap();
            Identity::Person(AuthenticatedPerson { name, revoked: CancellationToken::new() })
        };
        let peers = [Peer([127, 0, 0, 1].into()), Peer([127, 0, 0, 2].into())];
        let share =
            |identity: &Identity, at: usize, name| client(identity, peers.get(at), name, "1");
        let (ann, ben) = (person("ann"), person("ben"));
        assert_eq!(share(&ann, 0, "a"), share(&ann, 1, "b"));
        assert_ne!(share(&ann, 0, "a"), share(&ben, 0, "a"));
        let shared = Identity::Shared("http".into());
        assert_ne!(share(&shared, 0, "a"), share(&shared, 0, "b"));
        assert_ne!(share(&shared, 0, "a"), share(&shared, 1, "a"));
        // A name cannot look like another identity.
        let shared = Identity::Shared("ann".into());
        assert_ne!(shared.caller().to_string(), ann.caller().to_string());
        assert_ne!(shared.caller().storage_name(), ann.caller().storage_name());
    }
}
