//! Directory entries, and targets of paths.
//!
//! `std::fs` ends a listing at a name that is not Unicode, and cannot distinguish a file that looks
//! like a secret, whose type the host hides, from a device. A tool's own tests, which have no host,
//! use `std::fs`.

use std::io;
use std::ops::ControlFlow;
use std::time::SystemTime;

#[cfg(not(target_family = "wasm"))]
use self::native as system;
#[cfg(target_family = "wasm")]
use self::wasi as system;

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A file or a directory that looks like a secret, which the host does not open.
    Secret,
    /// Anything else: a device, a FIFO, a socket. The host does not open it.
    Other,
}

/// The metadata of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The type.
    pub kind: Kind,
    /// The size in bytes.
    pub size: u64,
    /// The number of hard links.
    pub links: u64,
    /// The time of the last change of its content.
    pub modified: Option<SystemTime>,
}

/// The entries that a listing omitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// The number of names that are not Unicode. Tools cannot use them.
    pub unnamed: u64,
}

/// A directory that the tool is granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The guest path.
    pub path: String,
    /// True if the tool may change its content.
    pub is_writable: bool,
}

/// Returns the metadata at a path. Follows symbolic links.
///
/// # Errors
///
/// Errors of the system; [`explain`](crate::explain) describes them.
pub fn stat(path: &str) -> io::Result<Stat> {
    system::stat(path, true)
}

/// Returns the metadata at a path. Does not follow a symbolic link.
///
/// # Errors
///
/// Errors of the system; [`explain`](crate::explain) describes them.
pub fn stat_link(path: &str) -> io::Result<Stat> {
    system::stat(path, false)
}

/// Visits the entries of a directory in arbitrary order, until `visit` breaks.
///
/// # Errors
///
/// Errors of the system; [`explain`](crate::explain) describes them.
pub fn list(path: &str, visit: impl FnMut(&str, Kind) -> ControlFlow<()>) -> io::Result<Listed> {
    system::list(path, visit)
}

/// Returns the directories that the tool is granted. In a tool's own tests: `/`, writable.
pub fn granted() -> Vec<Granted> {
    system::granted()
}

/// Sends the host an absolute path outside the granted directories, so that it logs the refusal.
/// Otherwise the guest itself would refuse such a path.
pub(crate) fn report_outside(path: &str) {
    system::report_outside(path);
}

#[cfg(target_family = "wasm")]
impl From<wasip2::filesystem::types::DescriptorType> for Kind {
    fn from(kind: wasip2::filesystem::types::DescriptorType) -> Self {
        use wasip2::filesystem::types::DescriptorType;
        match kind {
            DescriptorType::RegularFile => Self::File,
            DescriptorType::Directory => Self::Directory,
            DescriptorType::SymbolicLink => Self::Link,
            // The host reports this type for a name that looks like a secret.
            DescriptorType::Unknown => Self::Secret,
            _ => Self::Other,
        }
    }
}

#[cfg(not(target_family = "wasm"))]
impl From<std::fs::FileType> for Kind {
    fn from(kind: std::fs::FileType) -> Self {
        match kind {
            it if it.is_file() => Self::File,
            it if it.is_dir() => Self::Directory,
            it if it.is_symlink() => Self::Link,
            _ => Self::Other,
        }
    }
}

/// The parts of [`list`](crate::list) and [`stat`](crate::stat), for a tool that keeps directories
/// open.
#[cfg(target_family = "wasm")]
pub mod wasi {
    use std::io;
    use std::ops::ControlFlow;
    use std::time::{Duration, UNIX_EPOCH};

    use wasip2::filesystem::preopens::get_directories;
    use wasip2::filesystem::types::{Descriptor, DescriptorFlags, ErrorCode, OpenFlags, PathFlags};

    use super::{Granted, Kind, Listed, Stat};

    pub(super) fn stat(path: &str, follow: bool) -> io::Result<Stat> {
        let (directory, path) = find(path)?;
        let stat = directory.stat_at(flags(follow), &path).map_err(error)?;
        let modified = stat.data_modification_timestamp;
        let since = |at: wasip2::clocks::wall_clock::Datetime| {
            UNIX_EPOCH.checked_add(Duration::new(at.seconds, at.nanoseconds))
        };
        let (kind, modified) = (stat.type_.into(), modified.and_then(since));
        Ok(Stat { kind, size: stat.size, links: stat.link_count, modified })
    }

    pub(super) fn list(
        path: &str,
        visit: impl FnMut(&str, Kind) -> ControlFlow<()>,
    ) -> io::Result<Listed> {
        let (directory, path) = find(path)?;
        let (open, read) = (OpenFlags::DIRECTORY, DescriptorFlags::READ);
        list_open(&directory.open_at(flags(true), &path, open, read).map_err(error)?, visit)
    }

    /// Visits the entries of an open directory in arbitrary order, until `visit` breaks.
    ///
    /// # Errors
    ///
    /// Errors of the system; [`explain`](crate::explain) describes them.
    pub fn list_open(
        directory: &Descriptor,
        mut visit: impl FnMut(&str, Kind) -> ControlFlow<()>,
    ) -> io::Result<Listed> {
        let entries = directory.read_directory().map_err(error)?;
        let mut listed = Listed::default();
        loop {
            match entries.read_directory_entry() {
                Ok(Some(entry)) => {
                    if visit(&entry.name, entry.type_.into()).is_break() {
                        return Ok(listed);
                    }
                }
                Ok(None) => return Ok(listed),
                // Each error is for a single entry; more entries may follow.
                Err(ErrorCode::IllegalByteSequence) => listed.unnamed += 1,
                Err(ErrorCode::NoEntry) => {}
                Err(code) => return Err(error(code)),
            }
        }
    }

    pub(super) fn granted() -> Vec<Granted> {
        let granted = |(directory, path): (Descriptor, String)| {
            let flags = directory.get_flags();
            let is_writable = flags.is_ok_and(|it| it.contains(DescriptorFlags::MUTATE_DIRECTORY));
            Granted { path, is_writable }
        };
        get_directories().into_iter().map(granted).collect()
    }

    /// Returns the granted directory that contains a path, and the path in it.
    fn find(path: &str) -> io::Result<(Descriptor, String)> {
        let inside = |(directory, name): (Descriptor, String)| {
            let rest = path.strip_prefix(name.trim_end_matches('/'))?;
            if !(rest.is_empty() || rest.starts_with('/')) {
                return None;
            }
            let rest = rest.trim_start_matches('/');
            let rest = if rest.is_empty() { "." } else { rest };
            Some((name.len(), directory, rest.to_owned()))
        };
        let found = get_directories().into_iter().filter_map(inside).max_by_key(|it| it.0);
        let Some((_, directory, path)) = found else {
            report_outside(path);
            return Err(error(ErrorCode::NotPermitted));
        };
        Ok((directory, path))
    }

    pub(super) fn report_outside(path: &str) {
        if let Some((directory, _)) = get_directories().into_iter().next() {
            let _ = directory.stat_at(PathFlags::empty(), path);
        }
    }

    fn flags(follow: bool) -> PathFlags {
        if follow { PathFlags::SYMLINK_FOLLOW } else { PathFlags::empty() }
    }

    /// Converts an error code to the error of `std::fs`.
    pub fn error(code: ErrorCode) -> io::Error {
        io::Error::from_raw_os_error(match code {
            ErrorCode::Access => libc::EACCES,
            ErrorCode::BadDescriptor => libc::EBADF,
            ErrorCode::Busy => libc::EBUSY,
            ErrorCode::Exist => libc::EEXIST,
            ErrorCode::IllegalByteSequence => libc::EILSEQ,
            ErrorCode::InsufficientMemory => libc::ENOMEM,
            ErrorCode::InsufficientSpace => libc::ENOSPC,
            ErrorCode::Invalid => libc::EINVAL,
            ErrorCode::IsDirectory => libc::EISDIR,
            ErrorCode::Loop => libc::ELOOP,
            ErrorCode::NameTooLong => libc::ENAMETOOLONG,
            ErrorCode::NoEntry => libc::ENOENT,
            ErrorCode::NotDirectory => libc::ENOTDIR,
            ErrorCode::NotEmpty => libc::ENOTEMPTY,
            ErrorCode::NotPermitted => libc::EPERM,
            ErrorCode::Quota => libc::EDQUOT,
            ErrorCode::ReadOnly => libc::EROFS,
            ErrorCode::Unsupported => libc::ENOTSUP,
            ErrorCode::CrossDevice => libc::EXDEV,
            _ => libc::EIO,
        })
    }
}

#[cfg(not(target_family = "wasm"))]
mod native {
    use std::ops::ControlFlow;
    use std::os::unix::fs::MetadataExt;
    use std::{fs, io};

    use super::{Granted, Kind, Listed, Stat};

    pub(super) fn stat(path: &str, follow: bool) -> io::Result<Stat> {
        let found = if follow { fs::metadata(path)? } else { fs::symlink_metadata(path)? };
        let (kind, modified) = (found.file_type().into(), found.modified().ok());
        Ok(Stat { kind, size: found.len(), links: found.nlink(), modified })
    }

    pub(super) fn list(
        path: &str,
        mut visit: impl FnMut(&str, Kind) -> ControlFlow<()>,
    ) -> io::Result<Listed> {
        let mut listed = Listed::default();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            match entry.file_name().to_str() {
                Some(name) if visit(name, entry.file_type()?.into()).is_break() => break,
                Some(_) => {}
                None => listed.unnamed += 1,
            }
        }
        Ok(listed)
    }

    pub(super) fn granted() -> Vec<Granted> {
        vec![Granted { path: "/".into(), is_writable: true }]
    }

    pub(super) fn report_outside(_: &str) {}
}
