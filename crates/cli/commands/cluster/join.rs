//! A machine that takes part: it accepts the newest snapshot, unpacks it, and trusts exactly its
//! content.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kitbag::base::ContentDigest;
use kitbag::{Builder, Caller, Places};
use kitbag_cluster::snapshot::{Known, Manifest, SignedManifest, SnapshotError, SnapshotStore};

use kitbag_cluster::Client;

use super::{ClusterArgs, Machine};
use crate::commands::{Global, built};
use crate::error::CliError;

/// A machine with the newest snapshot of its workspace.
pub(crate) struct Joined {
    pub(crate) machine: Machine,
    pub(crate) client: Client,
    pub(crate) store: SnapshotStore,
}

/// A snapshot on this machine.
pub(crate) struct Unpacked {
    pub(crate) manifest: Manifest,
    pub(crate) digest: ContentDigest,
    /// The directory with the files, which is a workspace.
    pub(crate) workspace: PathBuf,
}

impl Joined {
    /// Connects to NATS and opens the snapshots.
    pub(crate) async fn new(args: &ClusterArgs) -> Result<Self, CliError> {
        let machine = args.machine()?;
        let client = args.connect(&machine).await?;
        let store = SnapshotStore::open(&client, &machine.names).await?;
        Ok(Self { machine, client, store })
    }

    /// Accepts, records and unpacks the newest snapshot.
    pub(crate) async fn newest(&self) -> Result<Unpacked, CliError> {
        let name = self.machine.names.workspace();
        let newest = self.store.newest().await?;
        let signed = newest.ok_or_else(|| SnapshotError::Missing(name.to_owned()))?;
        self.unpack(&signed).await
    }

    /// Accepts a snapshot, if a publisher signed it and it is not older than the last one.
    pub(crate) fn accept(&self, signed: &SignedManifest) -> Result<Manifest, SnapshotError> {
        let Machine { names, publishers, .. } = &self.machine;
        let last = self.machine.known().find(names.workspace())?;
        signed.accept(names.workspace(), publishers, last)
    }

    /// Accepts, records and unpacks a snapshot.
    pub(crate) async fn unpack(&self, signed: &SignedManifest) -> Result<Unpacked, CliError> {
        let manifest = self.accept(signed)?;
        let (names, known) = (&self.machine.names, self.machine.known());
        let digest = signed.digest();
        let places = Places::from_environment(std::env::vars_os());
        let cache = places.cache.ok_or_else(|| {
            CliError::Usage("neither `HOME` nor `KITBAG_CACHE_DIR` is set".to_owned())
        })?;
        let cache = std::path::absolute(&cache).unwrap_or(cache);
        let workspace = self.store.unpack(&cache, digest, &manifest).await?;
        // Only a complete snapshot replaces an older one.
        known.record(names.workspace(), Known { counter: manifest.counter, digest })?;
        Ok(Unpacked { manifest, digest, workspace })
    }
}

impl Unpacked {
    /// Trusts the workspace on this machine, after comparing its content with the manifest: the
    /// publisher reviewed these files, and no others. Components are pinned by the record.
    pub(crate) fn trust(
        &self,
        global: &Global,
        roots: &BTreeMap<String, PathBuf>,
    ) -> Result<(), CliError> {
        let kitbag = built(self.builder(global, roots).ask_trust())?;
        let question = kitbag.trust_question()?;
        let record = &question.record;
        let files = record.files.iter().map(|(path, digest)| (path, Some(*digest)));
        let components = record.components.iter().map(|(path, digest)| (path, *digest));
        for (path, digest) in files.chain(components) {
            let published = self.manifest.files.get(path).map(|entry| entry.digest);
            if digest.is_none() || published != digest {
                let path = path.clone();
                let expected = published.unwrap_or(ContentDigest([0; 32]));
                return Err(SnapshotError::Content { path, expected }.into());
            }
        }
        if question.is_news() {
            question.give(&Caller::this_user())?;
        }
        Ok(())
    }

    /// Starts to build the toolbox of the snapshot, with this machine's user config above it.
    pub(crate) fn builder(&self, global: &Global, roots: &BTreeMap<String, PathBuf>) -> Builder {
        // Data of tools outlives a snapshot.
        let state = self.workspace.with_file_name(&self.manifest.workspace);
        let builder = global.builder().workspace(&self.workspace).state_path(state);
        roots.iter().fold(builder, |builder, (name, directory)| builder.root(name, directory))
    }
}
