//! Tools on many machines, over NATS.

mod join;
pub(crate) mod publish;
mod publishable;
mod remote;
pub(crate) mod worker;
pub(crate) mod workers;

pub(crate) use remote::Remote;

use std::collections::BTreeSet;
use std::future::Future;
use std::path::{Path, PathBuf};

use kitbag::Places;
use kitbag::contract::ErrorKind;
use kitbag_cluster::snapshot::{KnownSnapshots, SnapshotError};
use kitbag_cluster::{Client, Identity, Names, Nats, connect, is_public_key};

use crate::error::CliError;

// The connection and the workspace of a command. No doc comment, which clap would take for the
// command's.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ClusterArgs {
    /// A NATS server: `nats://HOST:PORT`, or `tls://HOST:PORT`, which requires TLS. Repeat it for
    /// each server of a NATS cluster
    #[arg(long, value_name = "URL", help_heading = "Options of the cluster")]
    nats: Vec<String>,
    /// The name of the workspace on NATS: lower-case letters, digits and `-`
    #[arg(
        long,
        value_name = "NAME",
        default_value = "default",
        help_heading = "Options of the cluster"
    )]
    name: String,
    /// This machine's key [default: `cluster/key` in the state directory, created if missing]
    #[arg(long, value_name = "FILE", help_heading = "Options of the cluster")]
    key_file: Option<PathBuf>,
    /// A credentials file of NATS, for servers that check tokens. Its key is then this machine's key
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "key_file",
        help_heading = "Options of the cluster"
    )]
    creds: Option<PathBuf>,
    /// Certificates in PEM that alone may sign the server's certificate [default: the system's]
    #[arg(long, value_name = "FILE", help_heading = "Options of the cluster")]
    tls_roots: Option<PathBuf>,
    /// Accept snapshots that were published with this key. Repeat it for several people [default:
    /// only this machine's key]
    #[arg(long, value_name = "KEY", value_parser = public_key, help_heading = "Options of the cluster")]
    publisher: Vec<String>,
}

/// The parts of a machine in a cluster that need no connection.
pub(crate) struct Machine {
    pub(crate) names: Names,
    pub(crate) identity: Identity,
    pub(crate) publishers: BTreeSet<String>,
    pub(crate) state: PathBuf,
}

impl ClusterArgs {
    /// Reads this machine's key, and creates it if there is none.
    pub(crate) fn machine(&self) -> Result<Machine, CliError> {
        let names = Names::new(&self.name).map_err(|error| CliError::Usage(error.to_string()))?;
        let places = Places::from_environment(std::env::vars_os());
        let state = places.state.ok_or_else(|| {
            CliError::Usage("neither `HOME` nor `KITBAG_STATE_DIR` is set".to_owned())
        })?;
        let state = std::path::absolute(&state.value).unwrap_or(state.value);
        let identity = match self.key_file.as_ref().or(self.creds.as_ref()) {
            Some(path) => Identity::load(path).map_err(CliError::cluster)?,
            None => {
                let directory = kitbag_state::SharedState::new(&state, "cluster");
                let directory = directory.make().map_err(CliError::cluster)?;
                Identity::load_or_create(&directory.join("key")).map_err(CliError::cluster)?
            }
        };
        let mut publishers: BTreeSet<_> = self.publisher.iter().cloned().collect();
        if publishers.is_empty() {
            publishers.insert(identity.public().to_owned());
        }
        Ok(Machine { names, identity, publishers, state })
    }

    /// Connects to NATS.
    pub(crate) async fn connect(&self, machine: &Machine) -> Result<Client, CliError> {
        if self.nats.is_empty() {
            return Err(CliError::Usage("name a NATS server with `--nats URL`".to_owned()));
        }
        let nats = Nats {
            urls: self.nats.clone(),
            credentials: self.creds.clone(),
            roots: self.tls_roots.clone(),
        };
        connect(&nats, &machine.identity).await.map_err(CliError::cluster)
    }

    /// Returns whether a server is named.
    pub(crate) fn is_used(&self) -> bool {
        !self.nats.is_empty()
    }

    /// The servers, for messages.
    pub(crate) fn servers(&self) -> String {
        self.nats.join(", ")
    }
}

impl Machine {
    /// The snapshots that this machine accepted.
    pub(crate) fn known(&self) -> KnownSnapshots {
        KnownSnapshots::new(&self.state)
    }
}

impl CliError {
    /// Wraps an error of a cluster.
    pub(crate) fn cluster(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Cluster(Box::new(error))
    }
}

impl From<SnapshotError> for CliError {
    fn from(error: SnapshotError) -> Self {
        Self::cluster(error)
    }
}

/// Classifies an error of a cluster.
pub(crate) fn kind(error: &(dyn std::error::Error + 'static)) -> ErrorKind {
    match error.downcast_ref::<SnapshotError>() {
        Some(
            SnapshotError::Publisher { .. }
            | SnapshotError::Signature(_)
            | SnapshotError::Older { .. }
            | SnapshotError::Fork { .. },
        ) => ErrorKind::Untrusted,
        Some(SnapshotError::Content { .. }) => ErrorKind::Changed,
        Some(SnapshotError::File { .. }) => ErrorKind::Usage,
        _ => ErrorKind::Inaccessible,
    }
}

/// Runs a future on this thread.
pub(crate) fn run<T>(future: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(CliError::cluster)?;
    let result = runtime.block_on(future);
    runtime.shutdown_background();
    result
}

fn public_key(text: &str) -> Result<String, String> {
    match is_public_key(text) {
        true => Ok(text.to_owned()),
        false => {
            Err("a public key has 56 letters and digits, and starts with `U`; `kitbag workers \
                      --key` prints that of a machine"
                .to_owned())
        }
    }
}

/// Reads a root: `NAME=DIR`.
pub(crate) fn root(text: &str) -> Result<(String, PathBuf), String> {
    let (name, directory) = text.split_once('=').ok_or("write NAME=DIR")?;
    kitbag_cluster::Root::named(name).map_err(|error| error.to_string())?;
    let directory = Path::new(directory).canonicalize();
    let directory = directory.map_err(|error| format!("the directory cannot be used: {error}"))?;
    match directory.is_dir() {
        true => Ok((name.to_owned(), directory)),
        false => Err("it is not a directory".to_owned()),
    }
}
