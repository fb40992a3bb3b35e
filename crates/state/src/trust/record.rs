//! The trust record of one workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::time::{Duration, SystemTime};

use kitbag_base::ContentDigest;
use kitbag_base::text::shown;
use serde::{Deserialize, Serialize};

/// The version of the file format.
pub(crate) const VERSION: u32 = 1;

/// The trusted content of one workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustRecord {
    /// The version of the file format.
    pub(crate) version: u32,
    /// The canonical path of the workspace.
    pub workspace: String,
    /// The time of trust, in seconds since 1970.
    pub(crate) seconds: u64,
    /// The files that configure the workspace, by path in the workspace.
    pub files: BTreeMap<String, ContentDigest>,
    /// Components, by path in the workspace or absolute path. `None`: the file did not exist.
    pub components: BTreeMap<String, Option<ContentDigest>>,
    /// The places outside the workspace, or behind its links, that the configuration names.
    pub places: BTreeSet<TrustedPlace>,
}

/// A place that a workspace's configuration names: outside it, or the target of a link in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustedPlace {
    /// The item that names the place: ``topic `keys` `` or ``tool `backup` ``.
    pub by: String,
    /// The canonical path.
    pub path: String,
    /// The access: `read`, or `read and write`.
    pub access: String,
}

/// A change of a workspace since a person trusted it.
///
/// Formatted as a cause: `` `.kitbag/config.toml` changed since you trusted it ``.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceEdit {
    /// A file or component was added.
    Added(String),
    /// The content of a file changed.
    Changed(String),
    /// A file or component was removed.
    Removed(String),
    /// The named places changed.
    Places,
}

/// Returns the digest of some content.
pub fn digest_of(bytes: &[u8]) -> ContentDigest {
    ContentDigest(blake3::hash(bytes).into())
}

/// Returns the digest and size of everything that can be read. Does not load all of it into memory.
///
/// # Errors
///
/// Errors of the reader.
pub fn digest_of_reader(mut reader: impl io::Read) -> io::Result<(ContentDigest, u64)> {
    let mut hasher = blake3::Hasher::new();
    let size = io::copy(&mut reader, &mut hasher)?;
    Ok((ContentDigest(hasher.finalize().into()), size))
}

impl TrustRecord {
    /// Creates an empty record with the current time.
    pub fn new(workspace: impl Into<String>) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            version: VERSION,
            workspace: workspace.into(),
            seconds: now.as_secs(),
            files: BTreeMap::new(),
            components: BTreeMap::new(),
            places: BTreeSet::new(),
        }
    }

    /// Returns the time of trust.
    pub fn time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.seconds)
    }

    /// Returns the digest of all trusted content, independent of the time.
    pub fn digest(&self) -> ContentDigest {
        let all = (&self.workspace, &self.files, &self.components, &self.places);
        digest_of(&serde_json::to_vec(&all).expect("every key is a string"))
    }

    /// Compares files with the trusted ones.
    pub fn changes<'a>(
        &'a self,
        files: impl IntoIterator<Item = (&'a str, ContentDigest)>,
    ) -> Vec<WorkspaceEdit> {
        let mut left: BTreeMap<_, _> =
            self.files.iter().map(|(path, digest)| (path.as_str(), *digest)).collect();
        let mut changes = Vec::new();
        for (path, digest) in files {
            match left.remove(path) {
                None => changes.push(WorkspaceEdit::Added(path.to_owned())),
                Some(trusted) if trusted != digest => {
                    changes.push(WorkspaceEdit::Changed(path.to_owned()));
                }
                Some(_) => {}
            }
        }
        changes.extend(left.into_keys().map(|path| WorkspaceEdit::Removed(path.to_owned())));
        changes
    }
}

impl WorkspaceEdit {
    /// Returns the path of the file or component in the workspace.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Added(path) | Self::Changed(path) | Self::Removed(path) => Some(path),
            Self::Places => None,
        }
    }
}

impl fmt::Display for WorkspaceEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(path) => {
                write!(f, "`{}` was added since you trusted the workspace", shown(path))
            }
            Self::Changed(path) => write!(f, "`{}` changed since you trusted it", shown(path)),
            Self::Removed(path) => {
                write!(f, "`{}` was removed since you trusted the workspace", shown(path))
            }
            Self::Places => f.write_str("the target of a path changed since you trusted it"),
        }
    }
}
