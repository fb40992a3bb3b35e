//! Compiled components on disk.
//!
//! What lies here is native code, so the directory is private: ours, mode
//! 0700, no link. Every entry is a file of ours, named by the digest of the
//! component it was made from and of the engine's settings, written whole, and
//! carries the digest of what it holds. Whatever does not fit is not executed
//! but compiled again and replaced. What components say of themselves is remembered
//! beside them, by the digest of the component alone. Of several processes that miss the same
//! entry one makes it. `host` has no directory of its own: the caller decides.

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
use kitbag_fs_guard::{FileKind, OpenAs};

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
    /// The file's name.
    pub name: String,
    /// Its size, in bytes.
    pub size: u64,
}

/// Why the cache as a whole, or an entry of it, is not used. Never fatal: the
/// component is compiled again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CacheProblem {
    /// The directory is not private.
    #[error("the cache directory `{}` is not used: {reason}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it, and the way out.
        reason: String,
    },
    /// An entry was not what was written there.
    #[error("the cache entry `{name}` was {reason}; it was compiled again and replaced")]
    Entry {
        /// The file's name.
        name: String,
        /// What was wrong with it.
        reason: String,
    },
    /// An entry cannot be written.
    #[error("the compiled component cannot be kept in `{}`: {reason}", path.display())]
    Write {
        /// The directory.
        path: PathBuf,
        /// What the operating system says.
        reason: String,
    },
}

/// The cache cannot be listed or emptied.
#[derive(Debug, thiserror::Error)]
#[error("the cache directory `{}` cannot be {action}", path.display())]
pub struct CacheError {
    /// The directory.
    pub path: PathBuf,
    /// What was tried: `read` or `emptied`.
    pub action: &'static str,
    /// What the operating system says.
    #[source]
    pub source: io::Error,
}

impl DiskCache {
    /// The most bytes that all entries keep together: 2 GiB, which is a thousand tools
    /// of the usual size.
    pub const MAX_BYTES: u64 = prune::MAX_BYTES;

    /// How long an entry is kept that is not used: 30 days.
    pub const MAX_AGE: Duration = prune::MAX_AGE;

    /// Names the directory; nothing is read or made before the first use.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The finished entries, by name.
    ///
    /// # Errors
    ///
    /// [`CacheError`] where the directory exists and cannot be read.
    pub fn entries(&self) -> Result<Vec<CacheEntry>, CacheError> {
        self.files("read").map(|mut files| {
            files.retain(|entry| names_entry(&entry.name));
            files
        })
    }

    /// Removes every entry, finished or not, and returns those it removed; what is
    /// remembered of components goes with them. Other files, and what has such a name and
    /// is no regular file, are left alone. A process that waits for an entry that is being
    /// compiled then compiles it itself.
    ///
    /// # Errors
    ///
    /// [`CacheError`] where something cannot be removed; what came before it is
    /// gone.
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

    /// Opens the entry of a key, if there is one that is ours.
    pub fn load(&self, key: Key) -> Result<Option<VerifiedEntry>, CacheProblem> {
        let problem = |reason| self.distrust(key, reason);
        match self.open_file(&key.file_name(), problem)? {
            Some(file) => VerifiedEntry::open(key, file).map(Some).map_err(problem),
            None => Ok(None),
        }
    }

    /// What a component said of itself when it was compiled, by whichever version of
    /// kitbag. Nothing where that is not known or cannot be trusted.
    pub fn remembered(&self, component: ContentDigest) -> Option<DescribeResult> {
        let name = description::file_name(component);
        let problem = |reason| CacheProblem::Entry { name: name.clone(), reason };
        let file = self.open_file(&name, problem).ok()??;
        description::read(component, file)
    }

    /// Remembers what a component says of itself; that it says nothing, or nothing that
    /// can be used, is not remembered.
    pub fn remember(
        &self,
        component: ContentDigest,
        described: &DescribeResult,
    ) -> Result<(), CacheProblem> {
        let Some(content) = description::content(component, described) else { return Ok(()) };
        let Some(directory) = self.open(true)? else { return Ok(()) };
        self.write(&directory, &description::file_name(component), &[&content])
    }

    /// Opens a file of the directory that is ours, and notes that it is used.
    fn open_file(
        &self,
        name: &str,
        problem: impl Fn(String) -> CacheProblem,
    ) -> Result<Option<File>, CacheProblem> {
        let Some(directory) = self.open(false)? else { return Ok(None) };
        let file = match open_at(&directory, name, OpenAs::File) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if is_link_error(&error) => return Err(problem("a symbolic link".into())),
            Err(error) => return Err(problem(format!("unreadable ({error})"))),
        };
        let stat = private(&file, FileKind::File).map_err(problem)?;
        prune::touch(&file, &stat);
        Ok(Some(file))
    }

    /// Waits until no other process compiles the entry of a key.
    ///
    /// The entry may be there afterwards, with the lock or without it. `None` means
    /// that another process has compiled it, or that no lock can be had.
    pub fn lock(&self, key: Key, wait: &Wait<'_>) -> Option<CompileLock> {
        CompileLock::acquire(self.open(true).ok()??, key, wait)
    }

    /// Says why an entry is not used.
    pub fn distrust(&self, key: Key, reason: String) -> CacheProblem {
        CacheProblem::Entry { name: key.file_name(), reason }
    }

    /// Writes an entry, whole or not at all, and then removes what there is no room
    /// for any more.
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
                        "it is {reason}; make it yours alone with `chmod 700`, or name another"
                    ))
                })?;
                Ok(Some(directory))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !create => Ok(None),
            Err(error) if is_link_error(&error) || error.kind() == io::ErrorKind::NotADirectory => {
                Err(problem("it is a symbolic link or no directory; name a directory".into()))
            }
            Err(error) => Err(problem(error.to_string())),
        }
    }

    /// Our files in the directory, by name: entries, finished or not, descriptions and
    /// lock files.
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
                // Not made by kitbag; or gone in between, so nothing to list.
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
