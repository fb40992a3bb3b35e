//! A server to connect to.

use std::sync::Arc;
use std::time::Duration;

use kitbag_policy::SecretGrant;
use kitbag_policy::http::Deny;
use kitbag_policy::server::{Era, ServerAddress, ServerName};
use kitbag_secrets::Secrets;

/// A server, with everything that a connection to it needs.
#[derive(Clone, Debug)]
pub struct ServerTarget {
    /// The name. One server runs under a name at a time.
    pub name: ServerName,
    /// The address. A different address under the same name replaces the server.
    pub address: Arc<ServerAddress>,
    /// The era that the server spoke when it was added. `None`: both are tried.
    pub era: Option<Era>,
    /// The time without calls after which the server ends.
    pub idle: Duration,
    /// The secrets of the server.
    pub secrets: TargetSecrets,
    /// The URLs that no request may reach.
    pub deny: Arc<Deny>,
}

/// The secrets that a server receives.
#[derive(Clone, Debug, Default)]
pub struct TargetSecrets {
    /// The source of the values.
    pub source: Arc<Secrets>,
    /// The secret of a remote server, with its placement and destinations. Empty for a process.
    pub grants: Vec<SecretGrant>,
}

impl ServerTarget {
    /// The default of [`idle`](Self::idle).
    pub const IDLE: Duration = Duration::from_secs(600);
}
