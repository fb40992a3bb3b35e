//! What a person trusts of one workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::time::{Duration, SystemTime};

use kitbag_base::ContentDigest;
use kitbag_base::text::shown;
use serde::{Deserialize, Serialize};

/// The form of the file.
pub(crate) const VERSION: u32 = 1;

/// What a person trusts of one workspace: what this content asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustRecord {
    /// The form of the file.
    pub(crate) version: u32,
    /// The canonical path of the workspace.
    pub workspace: String,
    /// When it was trusted, in seconds since 1970.
    pub(crate) seconds: u64,
    /// The files that configure it, by their paths in the workspace.
    pub files: BTreeMap<String, ContentDigest>,
    /// Components, by their paths: in the workspace, or absolute. `None`: there was no such
    /// file.
    pub components: BTreeMap<String, Option<ContentDigest>>,
    /// The places that the configuration names outside of the workspace, or by its links.
    pub places: BTreeSet<TrustedPlace>,
}

/// A place that the configuration of a workspace names: outside of it, or where a link in it
/// leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustedPlace {
    /// What names it: ``topic `keys` ``, or ``tool `backup` ``.
    pub by: String,
    /// Its canonical path.
    pub path: String,
    /// What is done there: `read`, or `read and write`.
    pub access: String,
}

/// An edit of a workspace since a person trusted it.
///
/// Reads as a cause: `` `.kitbag/config.toml` changed since you trusted it ``.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceEdit {
    /// A file or component was added.
    Added(String),
    /// A file has another content.
    Changed(String),
    /// A file or component is gone.
    Removed(String),
    /// What the configuration names leads to other places.
    Places,
}

/// The digest of a content.
pub fn digest_of(bytes: &[u8]) -> ContentDigest {
    ContentDigest(blake3::hash(bytes).into())
}

/// The digest of everything that can be read, and its size. Only a part is in memory at a time.
///
/// # Errors
///
/// Those of the reader.
pub fn digest_of_reader(mut reader: impl io::Read) -> io::Result<(ContentDigest, u64)> {
    let mut hasher = blake3::Hasher::new();
    let size = io::copy(&mut reader, &mut hasher)?;
    Ok((ContentDigest(hasher.finalize().into()), size))
}

impl TrustRecord {
    /// A record of now, with nothing in it.
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

    /// When it was trusted.
    pub fn time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.seconds)
    }

    /// The digest of all that is trusted, whenever that was.
    pub fn digest(&self) -> ContentDigest {
        let all = (&self.workspace, &self.files, &self.components, &self.places);
        digest_of(&serde_json::to_vec(&all).expect("every key is a string"))
    }

    /// How these files differ from those that are trusted.
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
    /// The file or component, by its path in the workspace.
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
            Self::Places => f.write_str("a path leads elsewhere since you trusted it"),
        }
    }
}
