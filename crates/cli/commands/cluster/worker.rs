//! `kitbag worker`.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kitbag_cluster::presence::{Presence, RENEWAL, Readiness, Workers};
use kitbag_cluster::snapshot::SignedManifest;
use kitbag_cluster::{
    Drain, Execute, Identity, OLDEST_WIRE_VERSION, Queue, WIRE_VERSION, Worker, WorkerOptions,
};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::join::{Joined, Unpacked};
use super::{ClusterArgs, root, run};
use crate::commands::Global;
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

/// The time that running calls have to end after the first signal.
const DRAIN: Duration = Duration::from_secs(30);

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag worker --nats nats://localhost --publisher UABC…
  kitbag worker --nats tls://nats.example --root data=/srv/data --places 4

The first Ctrl-C or SIGTERM lets running calls end, for at most 30 seconds. Calls that have changed
and sent nothing by then are handed back to the queue.")]
pub(crate) struct Args {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Run the tools with grants of this root (`$ROOT/NAME`) in this directory
    #[arg(long = "root", value_name = "NAME=DIR", value_parser = root)]
    roots: Vec<(String, PathBuf)>,
    /// Run this many calls at once [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    places: Option<u16>,
}

/// Why a worker stopped to take calls.
enum Stop {
    Signal,
    Newer(Box<SignedManifest>),
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let signal = Arc::new(Notify::new());
        notify_on_signal(&signal).map_err(CliError::cluster)?;
        let roots: BTreeMap<_, _> = self.roots.iter().cloned().collect();
        let identity = Arc::new(self.cluster.machine()?.identity);
        run(async {
            let joined = Joined::new(&self.cluster).await?;
            let mut unpacked = joined.newest().await?;
            loop {
                let stop = self.work(&global, &joined, &unpacked, &roots, &identity, &signal);
                match stop.await? {
                    Stop::Signal => return Ok(Exit::Done),
                    Stop::Newer(signed) => match joined.unpack(&signed).await {
                        Ok(newer) => unpacked = newer,
                        Err(error) => output::warn(&format!(
                            "the newer snapshot is not used: {}",
                            error.report()
                        )),
                    },
                }
            }
        })
    }

    /// Runs calls with one snapshot, until a signal or a newer snapshot.
    async fn work(
        &self,
        global: &Global,
        joined: &Joined,
        unpacked: &Unpacked,
        roots: &BTreeMap<String, PathBuf>,
        identity: &Arc<Identity>,
        signal: &Arc<Notify>,
    ) -> Result<Stop, CliError> {
        unpacked.trust(global, roots)?;
        let kitbag = unpacked.builder(global, roots).as_server().build()?;
        let toolbox = Arc::new(kitbag.toolbox().clone());
        let names = joined.machine.names.clone();
        let queue = Queue::open(joined.client.clone(), names.clone()).await;
        let queue = queue.map_err(CliError::cluster)?;
        let mut options =
            WorkerOptions { roots: roots.keys().cloned().collect(), ..WorkerOptions::default() };
        if let Some(places) = self.places {
            options.places = usize::from(places);
        }
        let tools = toolbox.summaries().count();
        let executor: Arc<dyn Execute> = Arc::clone(&toolbox) as _;
        let members = unpacked.manifest.members.clone();
        let worker = Worker::new(queue, Arc::clone(identity), members, executor, &options).await;
        let worker = worker.map_err(CliError::cluster)?;
        let drain = worker.drain();
        let workers =
            Workers::create(&joined.client, &names, 1).await.map_err(CliError::cluster)?;
        let presence = Presence {
            id: drain.instance().to_owned(),
            key: identity.public().to_owned(),
            kitbag: env!("CARGO_PKG_VERSION").to_owned(),
            wire: (OLDEST_WIRE_VERSION, WIRE_VERSION),
            snapshot: Some((unpacked.manifest.counter, unpacked.digest)),
            tools,
            roots: roots.keys().cloned().collect(),
            places: options.places,
            since: seconds(),
            readiness: Readiness::Ready,
            ..Presence::default()
        };
        let announcing = announce(workers, presence, drain.clone());
        output::note(&format!(
            "worker {} runs calls of `{}` with snapshot {} and {tools} tools",
            drain.instance(),
            names.workspace(),
            unpacked.manifest.counter
        ));
        let mut running = tokio::spawn(worker.run());
        let mut watch = joined.store.watch();
        let stop = tokio::select! {
            ended = &mut running => {
                announcing.abort();
                return ended.map_err(CliError::cluster)?.map_err(CliError::cluster)
                    .map(|()| Stop::Signal);
            }
            () = signal.notified() => Stop::Signal,
            newer = newer(joined, &mut watch, unpacked) => Stop::Newer(Box::new(newer)),
        };
        drain.begin();
        if tokio::time::timeout(DRAIN, &mut running).await.is_err() {
            drain.finish();
            running.await.map_err(CliError::cluster)?.map_err(CliError::cluster)?;
        }
        // Sends the last state and leaves the list.
        announcing.await.ok();
        joined.client.flush().await.ok();
        Ok(stop)
    }
}

/// Waits for an acceptable snapshot other than this one. A worker must not stop its calls for one
/// that is forged or old.
async fn newer(
    joined: &Joined,
    watch: &mut kitbag_cluster::snapshot::SnapshotWatch<'_>,
    unpacked: &Unpacked,
) -> SignedManifest {
    loop {
        let signed = watch.next().await;
        if signed.digest() == unpacked.digest {
            continue;
        }
        match joined.accept(&signed) {
            Ok(_) => return signed,
            Err(error) => output::warn(&error.to_string()),
        }
    }
}

/// Announces a worker until it is drained, and then removes it from the list.
fn announce(workers: Workers, mut presence: Presence, drain: Drain) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            (presence.running, presence.ended) = (drain.running(), drain.counts().answered);
            if drain.is_draining() {
                presence.readiness = Readiness::Draining;
            }
            if drain.is_ended() {
                workers.leave(&presence).await.ok();
                return;
            }
            workers.announce(&presence).await.ok();
            tokio::time::timeout(RENEWAL, drain.changed()).await.ok();
        }
    })
}

fn notify_on_signal(notify: &Arc<Notify>) -> std::io::Result<()> {
    let (mut reader, writer) = std::io::pipe()?;
    for signal in [SIGINT, SIGTERM] {
        low_level::pipe::register(signal, writer.try_clone()?)?;
    }
    let notify = Arc::clone(notify);
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        while reader.read_exact(&mut [0]).is_ok() {
            notify.notify_one();
        }
    })?;
    Ok(())
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}
