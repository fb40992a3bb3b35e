//! State that the requests of all tools share.

use std::sync::{Arc, OnceLock};

use kitbag_policy::http::ProxyRules;
use rustls::ClientConfig;
use tokio::runtime::Handle;

use crate::error::RequestError;
use crate::io::IoThread;
use crate::pool::Pool;
use crate::recordings::Recordings;
use crate::resolve::{Nameservers, Resolver};
use crate::tls::Roots;

/// Sends the requests of tools. Clones refer to the same client.
///
/// Cheap to create: the first request that a grant allows sets up the thread, the resolver and the
/// root certificates. The thread ends with the last clone.
#[derive(Clone, Default)]
pub struct Client(pub(crate) Arc<Shared>);

/// The options of a [`Client`].
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// The trusted certificate authorities. Default: those of the system.
    pub roots: Roots,
    /// The name servers. Default: those of the system.
    pub nameservers: Nameservers,
    /// The proxies and their exceptions. Default: none.
    pub proxies: ProxyRules,
    /// The responses that replace all servers, for tests of tools. Default: none.
    pub recordings: Option<Recordings>,
}

#[derive(Default)]
pub(crate) struct Shared {
    options: ClientOptions,
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
    pub(crate) resolver: Resolver,
    pub(crate) pool: Pool,
    // The last field, so that its tasks are dropped after the others.
    io: OnceLock<Result<IoThread, String>>,
}

impl Client {
    /// Creates a client. Starts no thread, and reads and creates no files.
    pub fn new(options: ClientOptions) -> Self {
        let resolver = Resolver::new(options.nameservers.clone());
        Self(Arc::new(Shared { options, resolver, ..Shared::default() }))
    }

    /// Returns true if a request was allowed and the client was set up.
    pub fn is_started(&self) -> bool {
        self.0.io.get().is_some()
    }
}

impl Shared {
    /// Returns the runtime of the connections. The first use starts its thread.
    pub(crate) fn runtime(&self) -> Result<&Handle, RequestError> {
        let io = self.io.get_or_init(|| IoThread::start().map_err(|error| error.to_string()));
        io.as_ref().map(IoThread::handle).map_err(|error| RequestError::Internal(error.clone()))
    }

    /// Returns the TLS configuration. The first use reads the root certificates.
    pub(crate) fn tls(&self) -> Result<Arc<ClientConfig>, RequestError> {
        let made =
            self.tls.get_or_init(|| self.options.roots.config().map_err(|error| error.to_string()));
        made.clone().map_err(RequestError::Internal)
    }

    pub(crate) fn recordings(&self) -> Option<&Recordings> {
        self.options.recordings.as_ref()
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
