//! The streams of a connection to a server, and the process behind them.

use std::pin::Pin;
use std::sync::Arc;

use kitbag_policy::SecretName;
use kitbag_policy::server::{ServerName, ServerProcess};
use kitbag_secrets::SecretValue;
use tokio::io::{AsyncRead, AsyncWrite};

/// A connection to a server over two streams, and the process behind them.
pub struct Link {
    /// The messages of the server.
    pub read: Box<dyn AsyncRead + Send + Unpin>,
    /// The messages for the server.
    pub write: Box<dyn AsyncWrite + Send + Unpin>,
    /// The process, which ends when this is dropped. `None`: the server has no process of its own.
    pub process: Option<Box<dyn RunningProcess>>,
}

/// The future of a process.
pub type ProcessFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A process of a server.
pub trait RunningProcess: Send + Sync {
    /// Waits until the process has ended, and returns how, as a phrase such as `exit status: 1`.
    fn ended(&self) -> ProcessFuture<'_, String>;

    /// Ends the process and all of its children. It may have some time to end by itself.
    fn end(&self) -> ProcessFuture<'_, ()>;

    /// Returns the last lines that the process wrote to its standard error.
    fn last_errors(&self) -> String;
}

/// Starts processes of servers. Tests and embedding programs may run servers inside their own
/// process.
pub trait Connect: Send + Sync {
    /// Starts a server. `secrets` has the values of the secrets in its environment. Called on the
    /// thread of the server, inside its runtime; the thread lives as long as the connection.
    ///
    /// # Errors
    ///
    /// The reason, for a person.
    fn connect(
        &self,
        name: &ServerName,
        process: &ServerProcess,
        secrets: &[(SecretName, Arc<SecretValue>)],
    ) -> Result<Link, String>;
}
