//! The front end of a cluster in a server: its tools run on workers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc;

use kitbag::{Builder, Toolbox};
use kitbag_cluster::{FrontEnd, FrontEndOptions, Queue};

use super::ClusterArgs;
use super::join::{Joined, Unpacked};
use crate::commands::Global;
use crate::error::CliError;

/// The connection of a server to its workers. The thread of the connection ends with the process.
#[derive(Clone)]
pub(crate) struct Remote {
    front_end: Arc<FrontEnd>,
    unpacked: Arc<Unpacked>,
}

impl Remote {
    /// Connects, and accepts the newest snapshot.
    pub(crate) fn start(args: &ClusterArgs, global: &Global) -> Result<Self, CliError> {
        let (sender, started) = mpsc::sync_channel(1);
        let args = args.clone();
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = match runtime {
                Ok(runtime) => runtime,
                Err(error) => return drop(sender.send(Err(CliError::cluster(error)))),
            };
            runtime.block_on(async {
                let connected = connect(&args).await;
                let is_connected = connected.is_ok();
                if sender.send(connected).is_ok() && is_connected {
                    std::future::pending::<()>().await;
                }
            });
        };
        let thread = std::thread::Builder::new().name("nats".into()).spawn(run);
        thread.map_err(CliError::cluster)?;
        let (front_end, unpacked) = started.recv().map_err(CliError::cluster)??;
        unpacked.trust(global, &BTreeMap::new())?;
        Ok(Self { front_end, unpacked: Arc::new(unpacked) })
    }

    /// Starts to build the toolbox of the snapshot. It has no roots.
    pub(crate) fn builder(&self, global: &Global) -> Builder {
        self.unpacked.builder(global, &BTreeMap::new())
    }

    /// Returns the toolbox whose tools run on workers.
    pub(crate) fn attach(&self, toolbox: &Toolbox) -> Toolbox {
        toolbox.with_remote(Arc::clone(&self.front_end) as _)
    }
}

async fn connect(args: &ClusterArgs) -> Result<(Arc<FrontEnd>, Unpacked), CliError> {
    let identity = Arc::new(args.machine()?.identity);
    let joined = Joined::new(args).await?;
    let unpacked = joined.newest().await?;
    let queue = Queue::open(joined.client.clone(), joined.machine.names.clone()).await;
    let queue = queue.map_err(CliError::cluster)?;
    let members = unpacked.manifest.members.clone();
    let front_end = FrontEnd::new(queue, identity, members, FrontEndOptions::default()).await;
    Ok((front_end.map_err(CliError::cluster)?, unpacked))
}
