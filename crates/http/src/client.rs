//! What the requests of all tools share.

use std::sync::{Arc, OnceLock};

use kitbag_policy::http::ProxyRules;
use rustls::ClientConfig;
use tokio::runtime::Handle;

use crate::error::RequestError;
use crate::io::IoThread;
use crate::pool::Pool;
use crate::resolve::{Nameservers, Resolver};
use crate::tls::Roots;

/// Sends the requests of tools. Clones are the same client.
///
/// Made without cost: its thread, its resolver and its roots are set up by the first
/// request that a grant allows. The thread ends with the last clone.
#[derive(Clone, Default)]
pub struct Client(pub(crate) Arc<Shared>);

/// How a [`Client`] is set up.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// The authorities that it trusts. Default: those of the system.
    pub roots: Roots,
    /// Who resolves names. Default: what the system says.
    pub nameservers: Nameservers,
    /// The proxies, and what goes without them. Default: none.
    pub proxies: ProxyRules,
}

#[derive(Default)]
pub(crate) struct Shared {
    options: ClientOptions,
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
    pub(crate) resolver: Resolver,
    pub(crate) pool: Pool,
    // The last field, so that its tasks find the others gone.
    io: OnceLock<Result<IoThread, String>>,
}

impl Client {
    /// Makes a client. Nothing is started, read or created.
    pub fn new(options: ClientOptions) -> Self {
        let resolver = Resolver::new(options.nameservers.clone());
        Self(Arc::new(Shared { options, resolver, ..Shared::default() }))
    }

    /// Whether a request was allowed, and what that takes was set up.
    pub fn is_started(&self) -> bool {
        self.0.io.get().is_some()
    }
}

impl Shared {
    /// The runtime of the connections. The first use starts its thread.
    pub(crate) fn runtime(&self) -> Result<&Handle, RequestError> {
        let io = self.io.get_or_init(|| IoThread::start().map_err(|error| error.to_string()));
        io.as_ref().map(IoThread::handle).map_err(|error| RequestError::Internal(error.clone()))
    }

    /// What a connection with TLS is set up with. The first use reads the roots.
    pub(crate) fn tls(&self) -> Result<Arc<ClientConfig>, RequestError> {
        let made =
            self.tls.get_or_init(|| self.options.roots.config().map_err(|error| error.to_string()));
        made.clone().map_err(RequestError::Internal)
    }

    pub(crate) fn proxies(&self) -> &ProxyRules {
        &self.options.proxies
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("is_started", &self.is_started()).finish_non_exhaustive()
    }
}
