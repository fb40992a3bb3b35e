//! Compiled components on disk.
//!
//! The cache contains native code, so the directory is private: owned by us, mode 0700, not a link.
//! Every entry is a file that we own. It is named by the digests of its component and of the
//! engine's settings, written atomically, and contains the digest of its content. An entry that
//! fails verification is not executed but compiled again and replaced. Descriptions of components
//! are cached next to the entries, by the digest of the component alone. If several processes miss
//! the same entry, one of them creates it. The caller chooses the directory.

mod compile_lock;
mod description;
mod entry;
mod key;
mod private;
mod prune;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kitbag_base::ContentDigest;
use kitbag_fs_guard::sys::{is_link_error, open_at, open_directory};
use kitbag_fs_guard::{FileKind, OpenAs, Stat};

pub use self::compile_lock::CompileLock;
use self::description::is_description;
pub use self::entry::{VerifiedCode, VerifiedEntry};
pub(crate) use self::key::digest_of;
pub use self::key::{Key, digest_of_bytes};
use self::key::{is_entry, names_entry};
use self::private::{make_private, private, write_whole};
use crate::compile::CompiledCode;
use crate::description::DescribeResult;
use crate::wait::Wait;

/// A private directory of compiled components.
#[derive(Clone, Debug)]
pub struct DiskCache {
    path: PathBuf,
}

/// An entry of the cache, as `kitbag cache` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheEntry {
    /// The name of the file.
    pub name: String,
    /// The size in bytes.
    pub size: u64,
}

/// The reason why the cache or an entry is not used. The component is then compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CacheProblem {
    /// The directory is not private.
    #[error("the cache directory `{}` is not used: {reason}", path.display())]
    Directory {
        /// The path of the directory.
        path: PathBuf,
        /// The problem and its fix.
        reason: String,
    },
    /// An entry was modified.
    #[error("the cache entry `{name}` was {reason}; it was compiled again and replaced")]
    Entry {
        /// The name of the file.
        name: String,
        /// The problem.
        reason: String,
    },
    /// An entry cannot be written.
    #[error("the compiled component cannot be stored in `{}`: {reason}", path.display())]
    Write {
        /// The path of the directory.
        path: PathBuf,
        /// The error of the operating system.
        reason: String,
    },
}

/// Why the cache cannot be listed or emptied.
#[derive(Debug, thiserror::Error)]
#[error("the cache directory `{}` cannot be {action}", path.display())]
pub struct CacheError {
    /// The path of the directory.
    pub path: PathBuf,
    /// The failed operation: `read` or `emptied`.
    pub action: &'static str,
    /// The error of the operating system.
    #[source]
    pub source: io::Error,
}

impl DiskCache {
    /// The maximum size of all entries: 2 GiB, enough for a thousand tools of the usual size.
    pub const MAX_BYTES: u64 = prune::MAX_BYTES;

    /// The age at which an unused entry is removed: 30 days.
    pub const MAX_AGE: Duration = prune::MAX_AGE;

    /// Creates a cache. Nothing is read or created before the first use.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the directory, after creating it if necessary.
    ///
    /// # Errors
    ///
    /// [`CacheProblem`] if the directory is not private.
    pub fn private_path(&self) -> Result<&Path, CacheProblem> {
        self.open(true).map(|_| self.path())
    }

    /// Returns the complete entries, by name.
    ///
    /// # Errors
    ///
    /// [`CacheError`] if the directory exists but cannot be read.
    pub fn entries(&self) -> Result<Vec<CacheEntry>, CacheError> {
        self.files("read").map(|mut files| {
            files.retain(|entry| names_entry(&entry.name));
            files
        })
    }

    /// Returns the complete entries that fail verification, by name. Each is compiled again and
    /// replaced at its next use.
    ///
    /// # Errors
    ///
    /// [`CacheError`] if the directory exists but cannot be read.
    pub fn damaged(&self) -> Result<Vec<CacheEntry>, CacheError> {
        let mut entries = self.entries()?;
        entries
            .retain(|entry| Key::of_file_name(&entry.name).is_some_and(|key| self.is_damaged(key)));
        Ok(entries)
    }

    /// Returns true if an entry exists and fails verification. This is not a use of the entry.
    fn is_damaged(&self, key: Key) -> bool {
        match self.open_private(&key.file_name(), |reason| self.distrust(key, reason)) {
            Ok(Some((file, _))) => {
                let opened = VerifiedEntry::open(key, file);
                !opened.is_ok_and(|entry| entry.artifact().is_ok())
            }
            Err(CacheProblem::Entry { .. }) => true,
            Ok(None) | Err(_) => false,
        }
    }

    /// Removes all entries, complete or not, and all descriptions, and returns the removed entries.
    /// Other files, and objects with such a name that are not regular files, are kept. A process
    /// that waits for an entry to be compiled then compiles it itself.
    ///
    /// # Errors
    ///
    /// [`CacheError`] if a file cannot be removed; those before it are removed.
    pub fn clear(&self) -> Result<Vec<CacheEntry>, CacheError> {
        let mut files = self.files("emptied")?;
        for file in &files {
            match std::fs::remove_file(self.path.join(&file.name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(self.error("emptied", error));
                }
                _ => {}
            }
        }
        files.retain(|file| is_entry(&file.name));
        Ok(files)
    }

    /// Opens the private entry of a key, if any.
    pub fn load(&self, key: Key) -> Result<Option<VerifiedEntry>, CacheProblem> {
        let problem = |reason| self.distrust(key, reason);
        match self.open_file(&key.file_name(), problem)? {
            Some(file) => VerifiedEntry::open(key, file).map(Some).map_err(problem),
            None => Ok(None),
        }
    }

    /// Returns the description of a component from its compilation by any version of kitbag. `None`
    /// if it is not known or not trusted.
    pub fn remembered(&self, component: ContentDigest) -> Option<DescribeResult> {
        let name = description::file_name(component);
        let problem = |reason| CacheProblem::Entry { name: name.clone(), reason };
        let file = self.open_file(&name, problem).ok()??;
        description::read(component, file)
    }

    /// Caches a component's description. A missing or unusable description is not cached.
    pub fn remember(
        &self,
        component: ContentDigest,
        described: &DescribeResult,
    ) -> Result<(), CacheProblem> {
        let Some(content) = description::content(component, described) else { return Ok(()) };
        let Some(directory) = self.open(true)? else { return Ok(()) };
        self.write(&directory, &description::file_name(component), &[&content])
    }

    /// Opens a private file of the directory, and records its use.
    fn open_file(
        &self,
        name: &str,
        problem: impl Fn(String) -> CacheProblem,
    ) -> Result<Option<File>, CacheProblem> {
        let opened = self.open_private(name, problem)?;
        Ok(opened.map(|(file, stat)| {
            prune::touch(&file, &stat);
            file
        }))
    }

    fn open_private(
        &self,
        name: &str,
        problem: impl Fn(String) -> CacheProblem,
    ) -> Result<Option<(File, Stat)>, CacheProblem> {
        let Some(directory) = self.open(false)? else { return Ok(None) };
        let file = match open_at(&directory, name, OpenAs::File) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if is_link_error(&error) => return Err(problem("a symbolic link".into())),
            Err(error) => return Err(problem(format!("unreadable ({error})"))),
        };
        let stat = private(&file, FileKind::File).map_err(problem)?;
        Ok(Some((file, stat)))
    }

    /// Waits until no other process compiles the entry of a key.
    ///
    /// The entry may exist afterwards in both cases. `None` means that another process has compiled
    /// it, or that the lock is not available.
    pub fn lock(&self, key: Key, wait: &Wait<'_>) -> Option<CompileLock> {
        CompileLock::acquire(self.open(true).ok()??, key, wait)
    }

    /// Creates the problem of an entry that is not used.
    pub fn distrust(&self, key: Key, reason: String) -> CacheProblem {
        CacheProblem::Entry { name: key.file_name(), reason }
    }

    /// Writes an entry atomically, and then removes entries beyond the size limit.
    pub fn store(
        &self,
        key: Key,
        artifact: &CompiledCode,
        described: &DescribeResult,
    ) -> Result<(), CacheProblem> {
        let Some(directory) = self.open(true)? else { return Ok(()) };
        let artifact = artifact.bytes();
        let rest = entry::after(key, artifact, described);
        let parts = [artifact, &rest];
        let name = key.file_name();
        self.write(&directory, &name, &parts)?;
        prune::prune(&directory, &name);
        Ok(())
    }

    fn write(&self, directory: &File, name: &str, parts: &[&[u8]]) -> Result<(), CacheProblem> {
        write_whole(directory, name, parts).map_err(|error| CacheProblem::Write {
            path: self.path.clone(),
            reason: error.to_string(),
        })
    }

    /// Opens the directory and checks that it is private.
    fn open(&self, create: bool) -> Result<Option<File>, CacheProblem> {
        let problem = |reason: String| CacheProblem::Directory { path: self.path.clone(), reason };
        let opened = match open_directory(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && create => {
                make_private(&self.path).and_then(|()| open_directory(&self.path))
            }
            other => other,
        };
        match opened {
            Ok(directory) => {
                private(&directory, FileKind::Directory).map_err(|reason| {
                    problem(format!(
                        "it is {reason}; make it private with `chmod 700`, or use another directory"
                    ))
                })?;
                Ok(Some(directory))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !create => Ok(None),
            Err(error) if is_link_error(&error) || error.kind() == io::ErrorKind::NotADirectory => {
                Err(problem("it is not a directory, or it is a symbolic link".into()))
            }
            Err(error) => Err(problem(error.to_string())),
        }
    }

    /// Returns our files in the directory, by name: entries, complete or not, descriptions and lock
    /// files.
    fn files(&self, action: &'static str) -> Result<Vec<CacheEntry>, CacheError> {
        let listing = match std::fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(|error| self.error(action, error))?,
        };
        let mut files = Vec::new();
        for entry in listing {
            let entry = entry.map_err(|error| self.error(action, error))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let is_ours = is_entry(&name) || is_description(&name) || compile_lock::is_lock(&name);
            match entry.metadata() {
                Ok(metadata) if is_ours && metadata.is_file() => {
                    files.push(CacheEntry { name, size: metadata.len() });
                }
                // Not created by kitbag, or removed meanwhile.
                Ok(_) | Err(_) => {}
            }
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    fn error(&self, action: &'static str, source: io::Error) -> CacheError {
        CacheError { path: self.path.clone(), action, source }
    }
}

#[cfg(test)]
mod tests;
