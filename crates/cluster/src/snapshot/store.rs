//! Snapshots on NATS: publishing, reading and watching them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use async_nats::Client;
use async_nats::jetstream::kv::{self, Operation, UpdateErrorKind};
use async_nats::jetstream::object_store::{self, GetErrorKind, ObjectStore};
use async_nats::jetstream::{self, Context};
use bytes::Bytes;
use futures_util::StreamExt as _;
use kitbag_base::ContentDigest;
use kitbag_state::SharedState;
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

use super::directory::{check, is_complete, settle, write};
use super::error::SnapshotError;
use super::known::{Known, KnownSnapshots};
use super::manifest::{FILE_BYTES, FileEntry, MANIFEST_BYTES, Manifest, SignedManifest, VERSION};
use crate::identity::Identity;
use crate::members::Members;
use crate::names::Names;

/// The pause before a lost watch is started again.
const PAUSE: Duration = Duration::from_secs(1);

/// The time for one file.
const FILE_TIME: Duration = Duration::from_secs(120);

/// The number of old manifests that NATS keeps, for people.
const HISTORY: i64 = 16;

/// The snapshots of one workspace.
pub struct SnapshotStore {
    names: Names,
    manifests: kv::Store,
    files: ObjectStore,
}

/// A snapshot to publish.
pub struct NewSnapshot {
    /// The machines that may take part.
    pub members: Members,
    /// The files, by their paths in the workspace, as the person reviewed them.
    pub files: BTreeMap<String, NewFile>,
}

/// The content of a file to publish.
pub enum NewFile {
    /// The bytes.
    Bytes(Vec<u8>),
    /// A file on this machine, which must have this digest.
    File(PathBuf, ContentDigest),
}

/// The manifests that are published after this was created, and the newest before.
pub struct SnapshotWatch<'a> {
    store: &'a SnapshotStore,
    watch: Option<kv::Watch>,
}

impl SnapshotStore {
    /// Opens the snapshots of a workspace.
    ///
    /// # Errors
    ///
    /// [`SnapshotError::Missing`] if there are none.
    pub async fn open(client: &Client, names: &Names) -> Result<Self, SnapshotError> {
        let context = jetstream::new(client.clone());
        let missing = |error: &str| {
            // Without the permission to look, nor the stream, there is no better answer.
            tracing::debug!(error, "the snapshots cannot be opened");
            SnapshotError::Missing(names.workspace().to_owned())
        };
        let manifests = context.get_key_value(names.snapshot_bucket()).await;
        let manifests = manifests.map_err(|error| missing(&error.to_string()))?;
        let files = context.get_object_store(names.component_store()).await;
        let files = files.map_err(|error| missing(&error.to_string()))?;
        Ok(Self { names: names.clone(), manifests, files })
    }

    /// Opens the snapshots of a workspace, and creates their place on NATS with this number of
    /// copies if it does not exist.
    ///
    /// # Errors
    ///
    /// [`SnapshotError::Nats`].
    pub async fn create(
        client: &Client,
        names: &Names,
        replicas: usize,
    ) -> Result<Self, SnapshotError> {
        let context: Context = jetstream::new(client.clone());
        let failed = SnapshotError::nats("creating the store of snapshots");
        let manifests = match context.get_key_value(names.snapshot_bucket()).await {
            Ok(found) => found,
            Err(_) => {
                let config = kv::Config {
                    bucket: names.snapshot_bucket(),
                    description: "kitbag: signed configuration".to_owned(),
                    history: HISTORY,
                    max_value_size: i32::try_from(MANIFEST_BYTES).expect("a small number"),
                    num_replicas: replicas,
                    ..kv::Config::default()
                };
                let created = context.create_key_value(config).await;
                created.map_err(|error| failed(error.into()))?
            }
        };
        let files = match context.get_object_store(names.component_store()).await {
            Ok(found) => found,
            Err(_) => {
                let config = object_store::Config {
                    bucket: names.component_store(),
                    description: Some("kitbag: files of snapshots by digest".to_owned()),
                    num_replicas: replicas,
                    ..object_store::Config::default()
                };
                let created = context.create_object_store(config).await;
                created.map_err(|error| failed(error.into()))?
            }
        };
        Ok(Self { names: names.clone(), manifests, files })
    }

    /// Returns the newest manifest, before its signature is checked. `None`: no person has
    /// published the workspace.
    ///
    /// # Errors
    ///
    /// [`SnapshotError`] if it cannot be read.
    pub async fn newest(&self) -> Result<Option<SignedManifest>, SnapshotError> {
        let value = self.entry().await?.and_then(|(_, value)| value);
        value.map(|value| SignedManifest::parse(self.names.workspace(), &value)).transpose()
    }

    /// Returns the newest manifest if one of these publishers signed it.
    ///
    /// # Errors
    ///
    /// [`SnapshotError`] if it cannot be read.
    pub async fn valid(
        &self,
        publishers: &BTreeSet<String>,
    ) -> Result<Option<Manifest>, SnapshotError> {
        let value = self.entry().await?.and_then(|(_, value)| value);
        Ok(value.and_then(|value| self.verified(&value, publishers)))
    }

    /// Publishes a snapshot, with a number above that of the newest valid one and the last that
    /// this machine knows. `publishers` are the keys that may have signed the newest one.
    ///
    /// The files are stored first, so that a published manifest is complete.
    ///
    /// # Errors
    ///
    /// [`SnapshotError::Conflict`] if another person published in the meantime.
    pub async fn publish(
        &self,
        identity: &Identity,
        publishers: &BTreeSet<String>,
        known: &KnownSnapshots,
        new: NewSnapshot,
    ) -> Result<Manifest, SnapshotError> {
        let workspace = self.names.workspace();
        let newest = self.entry().await?;
        let revision = newest.as_ref().map_or(0, |(revision, _)| *revision);
        // One that is not signed is replaced. Its number means nothing.
        let newest = newest.and_then(|(_, value)| self.verified(&value?, publishers));
        let last = known.find(workspace)?.map_or(0, |known| known.counter);
        let last = last.max(newest.map_or(0, |manifest| manifest.counter));
        let counter = last.checked_add(1).ok_or_else(|| SnapshotError::Invalid {
            workspace: workspace.to_owned(),
            reason: "its number is the highest possible".to_owned(),
        })?;
        let mut files = BTreeMap::new();
        for (path, file) in new.files {
            let bytes = file.read(&path)?;
            let digest = ContentDigest(blake3::hash(&bytes).into());
            let entry = FileEntry { digest, size: bytes.len() as u64 };
            self.put(&entry, &bytes).await?;
            files.insert(path, entry);
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let manifest = Manifest {
            version: VERSION,
            workspace: workspace.to_owned(),
            counter,
            seconds: now.as_secs(),
            publisher: identity.public().to_owned(),
            members: new.members,
            files,
        };
        let signed = manifest.sign(identity)?;
        let value = serde_json::to_vec(&signed).expect("two strings");
        let stored = self.manifests.update(workspace, value.into(), revision).await;
        stored.map_err(|error| match error.kind() {
            UpdateErrorKind::WrongLastRevision => SnapshotError::Conflict(workspace.to_owned()),
            _ => SnapshotError::nats("publishing the snapshot")(error.into()),
        })?;
        known.record(workspace, Known { counter, digest: signed.digest() })?;
        Ok(manifest)
    }

    /// Writes the files of a manifest below a cache directory, and returns the workspace. Files that
    /// are there are checked again.
    ///
    /// # Errors
    ///
    /// [`SnapshotError::Content`] if a file is not the one that was published.
    pub async fn unpack(
        &self,
        cache: &Path,
        digest: ContentDigest,
        manifest: &Manifest,
    ) -> Result<PathBuf, SnapshotError> {
        let place = SharedState::new(cache, "cluster");
        let place =
            place.make().map_err(|error| SnapshotError::local(&error.path, &error.reason))?;
        let target = place.join(format!("{}-{digest}", manifest.workspace));
        if is_complete(&target, manifest) {
            return Ok(target);
        }
        let partial = tempfile::Builder::new().prefix(".partial-").tempdir_in(place);
        let partial = partial.map_err(|error| SnapshotError::local(place, error))?;
        for (path, entry) in &manifest.files {
            let bytes = self.get(path, entry).await?;
            write(partial.path(), path, entry, &bytes)?;
        }
        settle(partial, target, manifest)
    }

    /// Watches for new manifests. The first is the newest that exists.
    pub fn watch(&self) -> SnapshotWatch<'_> {
        SnapshotWatch { store: self, watch: None }
    }

    /// Returns the revision of the newest value, and the value unless it was deleted.
    async fn entry(&self) -> Result<Option<(u64, Option<Bytes>)>, SnapshotError> {
        let entry = self.manifests.entry(self.names.workspace()).await;
        let failed = SnapshotError::nats("reading the snapshot");
        let entry = entry.map_err(|error| failed(error.into()))?;
        Ok(entry.map(|entry| {
            let is_value = entry.operation == Operation::Put;
            (entry.revision, is_value.then_some(entry.value))
        }))
    }

    fn verified(&self, value: &[u8], publishers: &BTreeSet<String>) -> Option<Manifest> {
        let workspace = self.names.workspace();
        let signed = SignedManifest::parse(workspace, value).ok()?;
        signed.verify(workspace, publishers).ok()
    }

    /// Stores a file by its digest, unless it is stored.
    async fn put(&self, entry: &FileEntry, bytes: &[u8]) -> Result<(), SnapshotError> {
        let name = entry.digest.to_string();
        if self.files.info(&name).await.is_ok_and(|info| info.size as u64 == entry.size)
            // A file that was replaced would make every machine refuse the snapshot.
            && self.get(&name, entry).await.is_ok()
        {
            return Ok(());
        }
        let stored = self.files.put(name.as_str(), &mut &bytes[..]).await;
        stored.map_err(|error| SnapshotError::nats("storing a file")(error.into()))?;
        Ok(())
    }

    /// Returns the content of a file, if it is as published.
    async fn get(&self, path: &str, entry: &FileEntry) -> Result<Vec<u8>, SnapshotError> {
        let changed = || SnapshotError::Content { path: path.to_owned(), expected: entry.digest };
        let read = async {
            let object = self.files.get(entry.digest.to_string()).await;
            let object = object.map_err(|error| match error.kind() {
                GetErrorKind::NotFound => changed(),
                _ => SnapshotError::nats("reading a file")(error.into()),
            })?;
            let mut bytes = Vec::new();
            // At most one byte more than expected, regardless of the stored size.
            let read = object.take(entry.size + 1).read_to_end(&mut bytes).await;
            // Among others if the object differs from its own description.
            read.map_err(|_| changed())?;
            Ok(bytes)
        };
        // An object that misses a part would be waited for without end.
        let bytes = timeout(FILE_TIME, read).await.map_err(|_| SnapshotError::Nats {
            action: "reading a file",
            reason: format!("no answer within {} s", FILE_TIME.as_secs()),
        })??;
        check(path, entry, &bytes)?;
        Ok(bytes)
    }
}

impl SnapshotWatch<'_> {
    /// Waits for the next manifest, before its signature is checked. Values that are not manifests
    /// are skipped; a lost connection is waited for.
    pub async fn next(&mut self) -> SignedManifest {
        let workspace = self.store.names.workspace();
        loop {
            let Some(watch) = &mut self.watch else {
                match self.store.manifests.watch_with_history(workspace).await {
                    Ok(watch) => self.watch = Some(watch),
                    Err(error) => {
                        tracing::debug!(%error, "the snapshots cannot be watched");
                        tokio::time::sleep(PAUSE).await;
                    }
                }
                continue;
            };
            match watch.next().await {
                Some(Ok(entry)) if entry.operation == Operation::Put => {
                    match SignedManifest::parse(workspace, &entry.value) {
                        Ok(manifest) => return manifest,
                        Err(error) => tracing::warn!(%error, "a snapshot is ignored"),
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => {
                    self.watch = None;
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

impl NewFile {
    fn read(self, path: &str) -> Result<Vec<u8>, SnapshotError> {
        let (file, digest) = match self {
            Self::Bytes(bytes) => return Ok(bytes),
            Self::File(file, digest) => (file, digest),
        };
        let mut bytes = Vec::new();
        let read =
            File::open(&file).and_then(|file| file.take(FILE_BYTES + 1).read_to_end(&mut bytes));
        read.map_err(|error| SnapshotError::local(&file, error))?;
        match ContentDigest(blake3::hash(&bytes).into()) == digest {
            true => Ok(bytes),
            false => Err(SnapshotError::Content { path: path.to_owned(), expected: digest }),
        }
    }
}

impl Names {
    /// Returns the name of the bucket with the manifests of snapshots.
    pub fn snapshot_bucket(&self) -> String {
        format!("kitbag-snapshots-{}", self.workspace())
    }

    /// Returns the name of the object store with the files of snapshots.
    pub fn component_store(&self) -> String {
        format!("kitbag-components-{}", self.workspace())
    }
}
