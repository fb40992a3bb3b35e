//! The file of a component: opened once, checked on its descriptor, and read.

use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::{Read, Seek, Take};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_base::{ContentDigest, FileId};
use kitbag_contract::Pin;
use kitbag_fs_guard::{FileKind, OpenAs, Owners, Stat, open};

use crate::cache::digest_of;
use crate::limits::{COMPONENT_BYTES, check_size};
use crate::load_error::LoadError;

/// The file of a component, and the users who may have written it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentFile {
    /// An absolute path without symbolic links.
    pub path: PathBuf,
    /// The check that no other user has written the file. `None`: the caller trusts it.
    pub owners: Option<Arc<Owners>>,
    /// The expected digests. All must match. Default: any content.
    pub pins: Arc<[Pin]>,
}

/// Only the path, since calls look up components, whose paths differ.
impl Hash for ComponentFile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.path.hash(state);
    }
}

impl From<PathBuf> for ComponentFile {
    /// Creates a file that the caller trusts.
    fn from(path: PathBuf) -> Self {
        Self { path, owners: None, pins: Arc::default() }
    }
}

/// The properties that show whether a file is still the loaded one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    id: FileId,
    /// The size in bytes.
    pub size: u64,
    modified: (i64, i64),
}

/// The open file of a component.
pub struct OpenComponent<'a> {
    /// The path for messages.
    pub path: &'a Path,
    /// The expected digests.
    pub pins: &'a [Pin],
    file: File,
    /// The properties of the file when it was opened.
    pub stamp: Stamp,
}

impl Stamp {
    /// Returns the stamp of a path's current target, following links. A different file would be
    /// opened and checked again.
    pub fn of(path: &Path) -> Result<Self, LoadError> {
        let found =
            Stat::following_links(path).map_err(|error| LoadError::from_io(path, &error))?;
        Ok(Self::of_file(&found))
    }

    fn of_file(stat: &Stat) -> Self {
        Self { id: stat.id(), size: stat.size(), modified: stat.modified_at() }
    }
}

impl<'a> OpenComponent<'a> {
    /// Opens a component's file. Fails if it is too large, not a regular file, or another user may
    /// have written it.
    pub fn new(file: &'a ComponentFile) -> Result<Self, LoadError> {
        let path = &*file.path;
        let opened = match &file.owners {
            Some(owners) => owners.open(path).map_err(|error| LoadError::from_owner(path, error)),
            None => open(path, OpenAs::File).map_err(|error| LoadError::from_open(path, error)),
        };
        Ok(Self { pins: &file.pins, ..Self::of(path, opened?)? })
    }

    /// Wraps an open file, which messages name as `path`. The file may still grow; reading stops at
    /// the size limit.
    fn of(path: &'a Path, (file, stat): (File, Stat)) -> Result<Self, LoadError> {
        let found = match stat.kind() {
            FileKind::File => None,
            FileKind::Directory => Some("a directory"),
            FileKind::Fifo => Some("a FIFO"),
            FileKind::Socket => Some("a socket"),
            _ => Some("a device"),
        };
        if let Some(found) = found {
            return Err(LoadError::NotAFile { path: path.to_owned(), found });
        }
        let stamp = Stamp::of_file(&stat);
        check_size(path, stamp.size)?;
        Ok(Self { path, pins: &[], file, stamp })
    }

    /// Returns the file from its start, up to slightly more than the size limit.
    fn content(&mut self) -> Result<Take<&File>, LoadError> {
        self.file.rewind().map_err(|error| LoadError::from_io(self.path, &error))?;
        Ok((&self.file).take(COMPONENT_BYTES.as_u64() + 1))
    }

    /// Returns the digest of the content. The file is read in pieces and never mapped: a build that
    /// overwrites it would crash this process.
    pub fn digest(&mut self) -> Result<ContentDigest, LoadError> {
        let digest = digest_of(self.content()?);
        let (digest, length) = digest.map_err(|error| LoadError::from_io(self.path, &error))?;
        check_size(self.path, length)?;
        Ok(digest)
    }

    /// Returns the content.
    pub fn read(&mut self) -> Result<Vec<u8>, LoadError> {
        let mut content = Vec::with_capacity(usize::try_from(self.stamp.size).unwrap_or(0));
        let read = self.content()?.read_to_end(&mut content);
        read.map_err(|error| LoadError::from_io(self.path, &error))?;
        check_size(self.path, content.len() as u64)?;
        Ok(content)
    }
}

/// Reads a component's file and follows links. Fails if it is too large or not a regular file.
///
/// # Errors
///
/// [`LoadError`] names the file and the problem.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    let real = path.canonicalize().map_err(|error| LoadError::from_io(path, &error))?;
    let opened = open(&real, OpenAs::File).map_err(|error| LoadError::from_open(path, error))?;
    OpenComponent::of(path, opened)?.read()
}
