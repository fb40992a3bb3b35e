//! The streams of a connection to a server, and the process behind them.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kitbag_policy::SecretName;
use kitbag_policy::server::{ServerName, ServerProcess};
use kitbag_secrets::SecretValue;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::process::{self, RunningServer, ServerHandle};

/// The time in which a server has to end without being killed.
const GRACE: Duration = Duration::from_secs(2);

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
pub trait RunningProcess: Send {
    /// Waits until the process has ended, and returns how, as a phrase such as `exit status: 1`.
    fn ended(&mut self) -> ProcessFuture<'_, String>;

    /// Ends the process and all of its children. It may have some time to end without being killed.
    fn end(&mut self) -> ProcessFuture<'_, ()>;

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

/// Starts processes of the system.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    /// The environment of kitbag, from which servers inherit some variables.
    pub environment: HashMap<OsString, OsString>,
    /// The directory in which temporary directories of confined servers are created.
    pub temporary: PathBuf,
    /// Paths that no confined server may reach: kitbag's state, configuration and cache.
    pub hidden: Vec<PathBuf>,
    /// Paths that no confined server may change: `.kitbag` and `kitbag.lock` of the workspace.
    pub fixed: Vec<PathBuf>,
}

impl Connect for Processes {
    fn connect(
        &self,
        name: &ServerName,
        server: &ServerProcess,
        secrets: &[(SecretName, Arc<SecretValue>)],
    ) -> Result<Link, String> {
        let start = process::Start {
            name: name.as_str(),
            secrets,
            environment: &self.environment,
            temporary: &self.temporary,
            hidden: &self.hidden,
            fixed: &self.fixed,
            namespaces: true,
        };
        let started = process::start(server, &start).map_err(|error| error.to_string())?;
        let RunningServer { stdin, stdout, process } = started;
        let process: Box<dyn RunningProcess> = Box::new(process);
        Ok(Link { read: Box::new(stdout), write: Box::new(stdin), process: Some(process) })
    }
}

impl RunningProcess for ServerHandle {
    fn ended(&mut self) -> ProcessFuture<'_, String> {
        Box::pin(async { ServerHandle::ended(self).await.to_string() })
    }

    fn end(&mut self) -> ProcessFuture<'_, ()> {
        Box::pin(async {
            ServerHandle::end(self, GRACE).await;
        })
    }

    fn last_errors(&self) -> String {
        ServerHandle::last_errors(self)
    }
}
