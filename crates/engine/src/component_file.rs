//! The file of a component: opened once, checked on the descriptor, and read.

use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::{Read, Seek, Take};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_base::{ContentDigest, FileId};
use kitbag_contract::Pin;
use kitbag_fs_guard::{FileKind, OpenAs, Owners, Stat, open};

use crate::cache::digest_of;
use crate::content::check_size;
use crate::limits::COMPONENT_BYTES;
use crate::load_error::LoadError;

/// The file of a component, and who may have written it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentFile {
    /// An absolute path with no symbolic link on the way.
    pub path: PathBuf,
    /// How it is made sure that no other user has written the file. `None`: the caller
    /// vouches for it.
    pub owners: Option<Arc<Owners>>,
    /// The digests that its content must have, all of them. Default: any will do.
    pub pins: Arc<[Pin]>,
}

/// By the path alone, since a call looks its component up and files differ by it.
impl Hash for ComponentFile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.path.hash(state);
    }
}

impl From<PathBuf> for ComponentFile {
    /// A file that the caller vouches for.
    fn from(path: PathBuf) -> Self {
        Self { path, owners: None, pins: Arc::default() }
    }
}

/// What tells whether a file is still the one that was loaded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    id: FileId,
    /// In bytes.
    pub size: u64,
    modified: (i64, i64),
}

/// A component's file, open and known to be one.
pub struct OpenComponent<'a> {
    /// As messages name it.
    pub path: &'a Path,
    /// The digests that its content must have.
    pub pins: &'a [Pin],
    file: File,
    /// The file as it was when it was opened.
    pub stamp: Stamp,
}

impl Stamp {
    /// The stamp of what a path leads to now, by whatever links: where it is another
    /// file, that one is opened and checked.
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
    /// Opens a component's file, unless it is too large, no file at all, or another
    /// user may have written it.
    pub fn new(file: &'a ComponentFile) -> Result<Self, LoadError> {
        let path = &*file.path;
        let opened = match &file.owners {
            Some(owners) => owners.open(path).map_err(|error| LoadError::from_owner(path, error)),
            None => open(path, OpenAs::File).map_err(|error| LoadError::from_open(path, error)),
        };
        Ok(Self { pins: &file.pins, ..Self::of(path, opened?)? })
    }

    /// What was opened, which may still grow while it is read, and is read no further
    /// than it takes to tell. Messages name it as `path`.
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

    /// The file from its start, and a little more of it than it may have.
    fn content(&mut self) -> Result<Take<&File>, LoadError> {
        self.file.rewind().map_err(|error| LoadError::from_io(self.path, &error))?;
        Ok((&self.file).take(COMPONENT_BYTES.as_u64() + 1))
    }

    /// The digest of its content. The file is read a piece at a time and never
    /// mapped: a build that writes it in place would end this process.
    pub fn digest(&mut self) -> Result<ContentDigest, LoadError> {
        let digest = digest_of(self.content()?);
        let (digest, length) = digest.map_err(|error| LoadError::from_io(self.path, &error))?;
        check_size(self.path, length)?;
        Ok(digest)
    }

    /// Its content.
    pub fn read(&mut self) -> Result<Vec<u8>, LoadError> {
        let mut content = Vec::with_capacity(usize::try_from(self.stamp.size).unwrap_or(0));
        let read = self.content()?.read_to_end(&mut content);
        read.map_err(|error| LoadError::from_io(self.path, &error))?;
        check_size(self.path, content.len() as u64)?;
        Ok(content)
    }
}

/// Reads a component's file by whatever links lead to it, unless it is too large
/// or no file at all.
///
/// # Errors
///
/// [`LoadError`] names the file and what it is instead.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    let real = path.canonicalize().map_err(|error| LoadError::from_io(path, &error))?;
    let opened = open(&real, OpenAs::File).map_err(|error| LoadError::from_open(path, error))?;
    OpenComponent::of(path, opened)?.read()
}
