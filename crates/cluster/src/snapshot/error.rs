//! Why a snapshot cannot be published or used.

use kitbag_base::ContentDigest;
use kitbag_base::text::shown;

/// An error of publishing or using a snapshot.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// No person has published the workspace.
    #[error(
        "no snapshot of `{0}` is published: run `kitbag publish` in the workspace, with the same \
         `--nats` and `--name`"
    )]
    Missing(String),
    /// The manifest cannot be read.
    #[error("the snapshot of `{workspace}` cannot be read: {reason}")]
    Invalid {
        /// The name of the workspace.
        workspace: String,
        /// The reason.
        reason: String,
    },
    /// The manifest has a format of another version of kitbag.
    #[error(
        "the snapshot of `{workspace}` has format {version}, but this kitbag reads format 1: update \
         kitbag on this machine"
    )]
    Version {
        /// The name of the workspace.
        workspace: String,
        /// The version of the format.
        version: u64,
    },
    /// The publisher is not one of those that this machine accepts.
    #[error(
        "the snapshot of `{workspace}` is published with the key `{}`, which this machine does not \
         accept: to accept it, add `--publisher KEY`",
        shown(publisher)
    )]
    Publisher {
        /// The name of the workspace.
        workspace: String,
        /// The public key.
        publisher: String,
    },
    /// The signature is not valid.
    #[error("the snapshot of `{0}` is refused: its signature is not valid")]
    Signature(String),
    /// The snapshot is older than one that this machine accepted before.
    #[error(
        "the snapshot of `{workspace}` is refused: it has number {counter}, but this machine has \
         accepted number {known}"
    )]
    Older {
        /// The name of the workspace.
        workspace: String,
        /// The number of the snapshot.
        counter: u64,
        /// The highest number that was accepted.
        known: u64,
    },
    /// There are two snapshots with the same number.
    #[error(
        "the snapshot of `{workspace}` is refused: there are two with the number {counter}; publish \
         the workspace again"
    )]
    Fork {
        /// The name of the workspace.
        workspace: String,
        /// The number of both.
        counter: u64,
    },
    /// Another person published at the same time.
    #[error("another snapshot of `{0}` was published in the meantime: publish again")]
    Conflict(String),
    /// A file does not have the digest in the manifest.
    #[error("`{}` is not the file with the digest {expected}", shown(path))]
    Content {
        /// The path in the workspace.
        path: String,
        /// The digest in the manifest, or the digest that was reviewed.
        expected: ContentDigest,
    },
    /// A file cannot be part of a snapshot.
    #[error("`{}` cannot be published: {reason}", shown(path))]
    File {
        /// The path.
        path: String,
        /// The reason.
        reason: String,
    },
    /// A file of this machine cannot be read or written.
    #[error("`{}` cannot be used: {reason}", shown(path))]
    Local {
        /// The path.
        path: String,
        /// The reason.
        reason: String,
    },
    /// NATS refused or failed.
    #[error("{action} at NATS failed: {reason}")]
    Nats {
        /// The attempted action.
        action: &'static str,
        /// The reason.
        reason: String,
    },
}

impl SnapshotError {
    pub(super) fn nats(action: &'static str) -> impl Fn(async_nats::Error) -> Self {
        move |error| Self::Nats { action, reason: error.to_string() }
    }

    pub(super) fn local(path: &std::path::Path, error: impl std::fmt::Display) -> Self {
        let path = path.to_string_lossy().into_owned();
        Self::Local { path, reason: error.to_string() }
    }
}
