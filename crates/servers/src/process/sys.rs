//! Processes, namespaces and filters of the system.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open};

pub(super) use tokio::net::unix::pipe;

#[cfg(target_os = "linux")]
pub(super) use self::linux::{Keeper, start, support};
#[cfg(not(target_os = "linux"))]
pub(super) use self::other::{Keeper, start, support};
use super::confinement::Rules;

/// A program to start.
pub(super) struct Job<'a> {
    pub(super) program: &'a Path,
    pub(super) command: &'a [String],
    pub(super) variables: &'a HashMap<OsString, OsString>,
    pub(super) directory: &'a Path,
    pub(super) rules: Option<&'a Rules>,
}

/// A program that was started.
pub(super) struct Started {
    pub(super) keeper: Keeper,
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// A step that failed.
pub(super) struct Failure {
    pub(super) step: &'static str,
    pub(super) error: std::io::Error,
}

impl Failure {
    /// Returns a function for `map_err`.
    pub(super) fn at<E: Into<std::io::Error>>(step: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self { step, error: error.into() }
    }
}

/// Opens and locks a directory of this user. The lock ends with the descriptor, or with kitbag.
pub(super) fn lock_directory(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = open(path, flags, Mode::empty())?;
    if fstat(&directory)?.st_uid != rustix::process::geteuid().as_raw() {
        return Err(std::io::Error::from(std::io::ErrorKind::PermissionDenied));
    }
    flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
    Ok(File::from(directory))
}

/// Returns true if a file has a right to be executed.
pub(super) fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}
