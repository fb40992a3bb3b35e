//! The manifest of a snapshot: its format, its signature, and the rule that accepts it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kitbag_base::ContentDigest;
use serde::{Deserialize, Serialize};

use super::error::SnapshotError;
use super::known::Known;
use crate::identity::{Identity, Purpose, is_signed};
use crate::members::Members;

/// The version of the format.
pub(super) const VERSION: u64 = 1;

/// The maximum size of a manifest with its signature: within the largest message of a NATS server
/// with its default settings (1 MiB). About 5,000 files.
pub(super) const MANIFEST_BYTES: usize = 900 << 10;

/// The maximum size of one file.
pub(super) const FILE_BYTES: u64 = 256 << 20;

/// The maximum size of all files together.
const TOTAL_BYTES: u64 = 1 << 30;

/// The signed content of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the format.
    pub(super) version: u64,
    /// The name of the workspace.
    pub workspace: String,
    /// The number of the snapshot, which is higher than the number of each earlier snapshot.
    pub counter: u64,
    /// The time of publication, in seconds since 1970. Only for people.
    pub seconds: u64,
    /// The public key of the publisher.
    pub publisher: String,
    /// The machines that may take part.
    pub members: Members,
    /// The files, by their paths in the workspace.
    pub files: BTreeMap<String, FileEntry>,
}

/// A file of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// The BLAKE3 digest of the content.
    pub digest: ContentDigest,
    /// The size in bytes.
    pub size: u64,
}

/// A manifest as it is stored, before its signature is checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedManifest {
    /// The manifest in JSON. These bytes are signed.
    manifest: String,
    /// The signature in Base64.
    signature: String,
}

impl Manifest {
    /// Signs the manifest.
    pub(super) fn sign(&self, identity: &Identity) -> Result<SignedManifest, SnapshotError> {
        self.check()?;
        let manifest = serde_json::to_string(self).expect("every key is a string");
        if manifest.len() + 256 > MANIFEST_BYTES {
            return Err(self.invalid(format!("it has too many files ({})", self.files.len())));
        }
        let signature = BASE64.encode(identity.sign(Purpose::Snapshot, manifest.as_bytes()));
        Ok(SignedManifest { manifest, signature })
    }

    /// Checks what every reader relies on.
    fn check(&self) -> Result<(), SnapshotError> {
        let mut total = 0u64;
        for (path, file) in &self.files {
            let reason = match file.size {
                _ if !is_inside(path) => "its path is not in the workspace",
                size if size > FILE_BYTES => "it is larger than 256 MiB",
                size => {
                    total = total.saturating_add(size);
                    continue;
                }
            };
            return Err(SnapshotError::File { path: path.clone(), reason: reason.to_owned() });
        }
        match total > TOTAL_BYTES {
            true => Err(self.invalid("its files are larger than 1 GiB together".to_owned())),
            false => Ok(()),
        }
    }

    fn invalid(&self, reason: String) -> SnapshotError {
        SnapshotError::Invalid { workspace: self.workspace.clone(), reason }
    }
}

impl SignedManifest {
    /// Parses the value of the key of a workspace.
    pub(super) fn parse(workspace: &str, value: &[u8]) -> Result<Self, SnapshotError> {
        let invalid = |error: serde_json::Error| SnapshotError::Invalid {
            workspace: workspace.to_owned(),
            reason: error.to_string(),
        };
        serde_json::from_slice(value).map_err(invalid)
    }

    /// The digest of the signed bytes, which identifies the snapshot.
    pub fn digest(&self) -> ContentDigest {
        ContentDigest(blake3::hash(self.manifest.as_bytes()).into())
    }

    /// Accepts the manifest as the snapshot of a workspace. `known` is the last one that this
    /// machine accepted; the same one is accepted again.
    ///
    /// # Errors
    ///
    /// [`SnapshotError`] if the publisher is not accepted, the signature is not valid, or the
    /// snapshot is older.
    pub fn accept(
        &self,
        workspace: &str,
        publishers: &BTreeSet<String>,
        known: Option<Known>,
    ) -> Result<Manifest, SnapshotError> {
        let manifest = self.verify(workspace, publishers)?;
        let (workspace, counter) = (workspace.to_owned(), manifest.counter);
        match known {
            Some(known) if counter < known.counter => {
                Err(SnapshotError::Older { workspace, counter, known: known.counter })
            }
            Some(known) if counter == known.counter && self.digest() != known.digest => {
                Err(SnapshotError::Fork { workspace, counter })
            }
            _ => Ok(manifest),
        }
    }

    /// Checks the signature and the content, but not the number.
    pub(super) fn verify(
        &self,
        workspace: &str,
        publishers: &BTreeSet<String>,
    ) -> Result<Manifest, SnapshotError> {
        /// The parts that tell how to read the rest.
        #[derive(Deserialize)]
        struct Head {
            version: u64,
            publisher: String,
        }
        let invalid =
            |reason: String| SnapshotError::Invalid { workspace: workspace.to_owned(), reason };
        let head: Head =
            serde_json::from_str(&self.manifest).map_err(|error| invalid(error.to_string()))?;
        if !publishers.contains(&head.publisher) {
            let workspace = workspace.to_owned();
            return Err(SnapshotError::Publisher { workspace, publisher: head.publisher });
        }
        let signature = BASE64.decode(&self.signature).unwrap_or_default();
        let bytes = self.manifest.as_bytes();
        if !is_signed(&head.publisher, Purpose::Snapshot, bytes, &signature) {
            return Err(SnapshotError::Signature(workspace.to_owned()));
        }
        if head.version != VERSION {
            let workspace = workspace.to_owned();
            return Err(SnapshotError::Version { workspace, version: head.version });
        }
        let manifest: Manifest =
            serde_json::from_str(&self.manifest).map_err(|error| invalid(error.to_string()))?;
        if manifest.workspace != workspace {
            return Err(invalid(format!("it is a snapshot of `{}`", manifest.workspace)));
        }
        manifest.check()?;
        Ok(manifest)
    }
}

/// Returns whether a path names a file in the workspace in the only way to write it.
pub(super) fn is_inside(path: &str) -> bool {
    let is_normal = |part: Component<'_>| matches!(part, Component::Normal(_));
    let parts = Path::new(path);
    !path.is_empty()
        && !path.contains(['\\', '\0'])
        && parts.components().all(is_normal)
        && parts.components().collect::<std::path::PathBuf>().to_str() == Some(path)
}
