//! The list of running workers: each worker renews a value that expires.

use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::{self, kv};
use futures_util::TryStreamExt as _;
use kitbag_base::ContentDigest;
use serde::{Deserialize, Serialize};

use crate::names::Names;

/// The time between two renewals.
pub const RENEWAL: Duration = Duration::from_secs(5);

/// The time after which a worker that renews nothing is gone: three renewals may be lost.
const EXPIRY: Duration = Duration::from_secs(20);

/// The maximum size of a value.
const VALUE_BYTES: i32 = 64 << 10;

/// The state of one worker, as it describes itself.
///
/// Fields of a newer version are ignored, and missing fields have their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Presence {
    /// The id of the process: unique among the workers of the workspace.
    pub id: String,
    /// The public key of the worker.
    pub key: String,
    /// The version of kitbag.
    pub kitbag: String,
    /// The oldest and the newest version of the wire format that the worker reads.
    pub wire: (u32, u32),
    /// The number and the digest of the snapshot that the worker runs.
    pub snapshot: Option<(u64, ContentDigest)>,
    /// The number of tools that the worker can run.
    pub tools: usize,
    /// The names of the worker's roots.
    pub roots: BTreeSet<String>,
    /// The calls that run now.
    pub running: usize,
    /// The calls that may run at once.
    pub places: usize,
    /// The calls that ended since the start.
    pub ended: u64,
    /// The time of the start, in seconds since 1970.
    pub since: u64,
    /// The readiness for calls.
    pub readiness: Readiness,
}

/// The readiness of a worker for calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Readiness {
    /// The worker loads its tools.
    #[default]
    Starting,
    /// The worker takes calls.
    Ready,
    /// The worker ends its calls and takes no more.
    Draining,
    /// A state of a newer version.
    #[serde(other)]
    Unknown,
}

/// The list of workers on NATS.
#[derive(Clone)]
pub struct Workers {
    bucket: kv::Store,
}

/// An error of the list of workers.
#[derive(Debug, thiserror::Error)]
#[error("the list of workers cannot be used: {0}")]
pub struct WorkersError(String);

impl Workers {
    /// Opens the list of a workspace.
    ///
    /// # Errors
    ///
    /// [`WorkersError`] if there is none, or NATS refuses.
    pub async fn open(client: &Client, names: &Names) -> Result<Self, WorkersError> {
        let context = jetstream::new(client.clone());
        let bucket = context.get_key_value(names.worker_bucket()).await.map_err(failed)?;
        Ok(Self { bucket })
    }

    /// Opens the list of a workspace, and creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// [`WorkersError`] if NATS refuses.
    pub async fn create(
        client: &Client,
        names: &Names,
        replicas: usize,
    ) -> Result<Self, WorkersError> {
        Self::create_with(client, names, replicas, EXPIRY).await
    }

    async fn create_with(
        client: &Client,
        names: &Names,
        replicas: usize,
        expiry: Duration,
    ) -> Result<Self, WorkersError> {
        if let Ok(found) = Self::open(client, names).await {
            return Ok(found);
        }
        let config = kv::Config {
            bucket: names.worker_bucket(),
            description: "kitbag: running workers".to_owned(),
            history: 1,
            max_age: expiry,
            max_value_size: VALUE_BYTES,
            num_replicas: replicas,
            // Nothing is lost that is not sent again within seconds.
            storage: jetstream::stream::StorageType::Memory,
            ..kv::Config::default()
        };
        let context = jetstream::new(client.clone());
        let bucket = context.create_key_value(config).await.map_err(failed)?;
        Ok(Self { bucket })
    }

    /// Announces the state of a worker. Repeat it after each change, and every [`RENEWAL`].
    ///
    /// # Errors
    ///
    /// [`WorkersError`] if NATS cannot be reached or refuses.
    pub async fn announce(&self, presence: &Presence) -> Result<(), WorkersError> {
        let value = serde_json::to_vec(presence).expect("every key is a string");
        self.bucket.put(key(presence), value.into()).await.map_err(failed)?;
        Ok(())
    }

    /// Removes a worker that ends.
    ///
    /// # Errors
    ///
    /// [`WorkersError`] if NATS cannot be reached or refuses. The value then expires.
    pub async fn leave(&self, presence: &Presence) -> Result<(), WorkersError> {
        self.bucket.purge(key(presence)).await.map_err(failed)
    }

    /// Returns the running workers, by id. A value that cannot be read, or that is at the key
    /// of another worker, is omitted.
    ///
    /// # Errors
    ///
    /// [`WorkersError`] if NATS cannot be reached or refuses.
    pub async fn all(&self) -> Result<Vec<Presence>, WorkersError> {
        let keys: Vec<String> =
            self.bucket.keys().await.map_err(failed)?.try_collect().await.map_err(failed)?;
        let mut workers = Vec::new();
        for name in keys {
            let value = self.bucket.get(&name).await.map_err(failed)?;
            let presence = value.and_then(|value| serde_json::from_slice::<Presence>(&value).ok());
            workers.extend(presence.filter(|presence| key(presence) == name));
        }
        workers.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(workers)
    }
}

impl Names {
    /// Returns the name of the bucket with the workers.
    pub fn worker_bucket(&self) -> String {
        format!("kitbag-workers-{}", self.workspace())
    }
}

/// The key of a worker. A worker may write only below its public key.
fn key(presence: &Presence) -> String {
    format!("{}.{}", presence.key, presence.id)
}

fn failed(error: impl std::fmt::Display) -> WorkersError {
    WorkersError(error.to_string())
}

#[cfg(test)]
mod tests {
    use kitbag_test_servers::NatsServer;
    use serde_json::json;

    use super::*;
    use crate::{Identity, Nats, connect};

    #[test]
    fn a_newer_worker_is_readable() {
        let value = json!({ "id": "a", "readiness": "resting", "cores": 8 });
        let presence: Presence = serde_json::from_value(value).unwrap();
        assert_eq!((presence.id.as_str(), presence.readiness), ("a", Readiness::Unknown));
    }

    #[tokio::test]
    async fn workers_come_change_leave_and_expire() {
        let server = NatsServer::start();
        let nats = Nats { urls: vec![server.url()], ..Nats::default() };
        let client = connect(&nats, &Identity::generate()).await.unwrap();
        let names = Names::new("team").unwrap();
        assert!(Workers::open(&client, &names).await.is_err());
        let expiry = Duration::from_secs(1);
        let workers = Workers::create_with(&client, &names, 1, expiry).await.unwrap();
        assert_eq!(workers.all().await.unwrap(), []);
        let one = |id: &str| Presence { id: id.into(), key: "UA".into(), ..Presence::default() };
        let (a, b) = (one("a"), one("b"));
        workers.announce(&a).await.unwrap();
        workers.announce(&b).await.unwrap();
        let a = Presence { readiness: Readiness::Draining, ..a };
        workers.announce(&a).await.unwrap();
        assert_eq!(workers.all().await.unwrap(), [a.clone(), b.clone()]);
        workers.leave(&a).await.unwrap();
        assert_eq!(workers.all().await.unwrap(), [b]);
        while !workers.all().await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
