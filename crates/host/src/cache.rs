//! Compiled components on disk.
//!
//! What lies here is native code, so the directory is private: ours, mode
//! 0700, no link. Every entry is a file of ours, named by the digest of the
//! component it was made from and of the engine's settings, written whole, and
//! carries the digest of what it holds. Whatever does not fit is not executed
//! but compiled again and replaced. Of several processes that miss the same
//! entry one makes it. `host` has no directory of its own: the caller decides.

mod compile_lock;
mod entry;
mod prune;

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use blake3::Hasher;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fstat, fsync, mkdirat, openat, renameat, unlinkat,
};
use rustix::io::Errno;

pub(crate) use self::entry::{Entry, Verified};
use crate::described::Described;
use crate::engines::{Metering, SETTINGS};

/// What an entry's file name ends in.
const EXTENSION: &str = ".kitbag";

/// What the name of a file that is being written starts with.
const PARTIAL: &str = ".partial-";

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

/// What names an entry: the component's content under one engine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key([u8; 32]);

impl Key {
    /// The key of a component with this content, and how long the content is.
    ///
    /// # Errors
    ///
    /// Where the content cannot be read.
    pub(crate) fn of(content: impl Read, metering: Metering) -> io::Result<(Self, u64)> {
        let mut hasher = Hasher::new();
        for part in [
            env!("CARGO_PKG_VERSION"),
            SETTINGS,
            match metering {
                Metering::Off => "",
                Metering::Fuel => "fuel",
            },
            std::env::consts::ARCH,
            std::env::consts::OS,
        ] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let before = hasher.count();
        hasher.update_reader(content)?;
        Ok((Self(*hasher.finalize().as_bytes()), hasher.count() - before))
    }

    fn file_name(self) -> String {
        format!("{self}{EXTENSION}")
    }
}

impl DiskCache {
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
            files.retain(|entry| entry.name.ends_with(EXTENSION));
            files
        })
    }

    /// Removes every entry, finished or not, and returns those it removed.
    /// Other files are left alone. Whoever waits for an entry that is being made
    /// then makes one too.
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
        files.retain(|file| !compile_lock::is_lock(&file.name));
        Ok(files)
    }

    /// Opens the entry of a key, if there is one that is ours.
    pub(crate) fn load(&self, key: Key) -> Result<Option<Entry>, CacheProblem> {
        let Some(directory) = self.open(false)? else { return Ok(None) };
        let name = key.file_name();
        let problem = |reason| self.distrust(key, reason);
        // Not blocking, for the case that somebody has put a FIFO there.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match openat(&directory, &name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(problem("a symbolic link".into())),
            Err(error) => return Err(problem(format!("unreadable ({})", io::Error::from(error)))),
        };
        let stat = private(&file, FileType::RegularFile).map_err(problem)?;
        prune::touch(&file, &stat);
        Entry::open(key, file.into()).map(Some).map_err(problem)
    }

    /// Says why an entry is not used.
    pub(crate) fn distrust(&self, key: Key, reason: String) -> CacheProblem {
        CacheProblem::Entry { name: key.file_name(), reason }
    }

    /// Writes an entry, whole or not at all, and then removes what there is no room
    /// for any more.
    pub(crate) fn store(
        &self,
        key: Key,
        artifact: &[u8],
        described: &Described,
    ) -> Result<(), CacheProblem> {
        let Some(directory) = self.open(true)? else { return Ok(()) };
        let rest = entry::after(key, artifact, described);
        let parts = [artifact, &rest];
        let name = key.file_name();
        write_whole(&directory, &name, &parts).map_err(|error| CacheProblem::Write {
            path: self.path.clone(),
            reason: error.to_string(),
        })?;
        prune::prune(directory.as_fd(), &name);
        Ok(())
    }

    /// Opens the directory and checks that it is private.
    fn open(&self, create: bool) -> Result<Option<OwnedFd>, CacheProblem> {
        let problem = |reason: String| CacheProblem::Directory { path: self.path.clone(), reason };
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let opened = match rustix::fs::open(&self.path, flags, Mode::empty()) {
            Err(Errno::NOENT) if create => make_private(&self.path)
                .and_then(|()| Ok(rustix::fs::open(&self.path, flags, Mode::empty())?)),
            other => other.map_err(io::Error::from),
        };
        match opened {
            Ok(directory) => {
                private(&directory, FileType::Directory).map_err(|reason| {
                    problem(format!(
                        "it is {reason}; make it yours alone with `chmod 700`, or name another"
                    ))
                })?;
                Ok(Some(directory))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !create => Ok(None),
            Err(error)
                if matches!(Errno::from_io_error(&error), Some(Errno::LOOP | Errno::NOTDIR)) =>
            {
                Err(problem("it is a symbolic link or no directory; name a directory".into()))
            }
            Err(error) => Err(problem(error.to_string())),
        }
    }

    /// Our files in the directory, by name: entries, finished or not, and lock files.
    fn files(&self, action: &'static str) -> Result<Vec<CacheEntry>, CacheError> {
        let listing = match std::fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(|error| self.error(action, error))?,
        };
        let mut files = Vec::new();
        for entry in listing {
            let entry = entry.map_err(|error| self.error(action, error))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name.ends_with(EXTENSION)
                || name.starts_with(PARTIAL)
                || compile_lock::is_lock(&name)
            {
                // Gone in between: nothing to list.
                let Ok(metadata) = entry.metadata() else { continue };
                files.push(CacheEntry { name, size: metadata.len() });
            }
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    fn error(&self, action: &'static str, source: io::Error) -> CacheError {
        CacheError { path: self.path.clone(), action, source }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Looks at a file or directory that has to be ours alone, or says what is wrong with
/// it.
fn private(fd: impl AsFd, kind: FileType) -> Result<Stat, String> {
    let stat = fstat(fd).map_err(|error| io::Error::from(error).to_string())?;
    if FileType::from_raw_mode(stat.st_mode) != kind {
        return Err("of another kind".into());
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err("owned by somebody else".into());
    }
    let mode = Mode::from_raw_mode(stat.st_mode);
    if mode.intersects(Mode::WGRP | Mode::WOTH) {
        return Err(format!("writable by others (mode {:03o})", mode.bits() & 0o777));
    }
    // Reading it would tell others which tools are used; only the directory's
    // mode decides that.
    if kind == FileType::Directory && mode.intersects(Mode::RWXG | Mode::RWXO) {
        return Err(format!("open to others (mode {:03o})", mode.bits() & 0o777));
    }
    Ok(stat)
}

/// Makes a directory that is ours alone, and what is missing above it.
fn make_private(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match mkdirat(rustix::fs::CWD, path, Mode::RWXU) {
        // Another process was faster; whose it is is checked next.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Writes a file beside its place and moves it there.
fn write_whole(directory: &OwnedFd, name: &str, parts: &[&[u8]]) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let partial = format!("{PARTIAL}{}-{number}", std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let open = || openat(directory, &partial, flags, Mode::RUSR | Mode::WUSR);
    let file = match open() {
        // Left behind by a process that had our number and was killed.
        Err(Errno::EXIST) => {
            unlinkat(directory, &partial, AtFlags::empty())?;
            open()?
        }
        other => other?,
    };
    let mut file = File::from(file);
    let written = parts
        .iter()
        .try_for_each(|part| file.write_all(part))
        .and_then(|()| Ok(fsync(&file)?))
        .and_then(|()| Ok(renameat(directory, &partial, directory, name)?));
    if written.is_err() {
        // The first error is the one to report.
        let _ = unlinkat(directory, &partial, AtFlags::empty());
    }
    written
}

#[cfg(test)]
mod tests;
