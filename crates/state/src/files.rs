//! Small JSON files of the state, which are replaced as a whole.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Lock, StateError, check_file, open};

/// The time that a process waits for another process that changes the files of a directory.
const LOCK_TIME: Duration = Duration::from_secs(10);

/// Locks the files of a directory.
pub(crate) fn lock(directory: &Path) -> Result<Lock, StateError> {
    let path = directory.join("lock");
    Lock::take(&path, LOCK_TIME).map_err(|reason| failed(&path, reason))
}

/// Reads a file that no other user can have written. Returns `None` if it does not exist.
pub(crate) fn read<T: DeserializeOwned>(path: &Path, most: u64) -> Result<Option<T>, StateError> {
    let unreadable = |error: io::Error| failed(path, error);
    let file = match open(path, OpenOptions::new().read(true)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(unreadable)?,
    };
    let found = file.metadata().map_err(unreadable)?;
    check_file(&found, path).map_err(|reason| failed(path, reason))?;
    let mut text = Vec::new();
    file.take(most).read_to_end(&mut text).map_err(unreadable)?;
    serde_json::from_slice(&text).map(Some).map_err(|error| failed(path, error))
}

/// Writes a file atomically. The files of its directory must be locked.
pub(crate) fn write<T: Serialize>(path: &Path, value: &T) -> Result<(), StateError> {
    let partial = {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.with_file_name(format!(".{name}"))
    };
    let write = || {
        remove(&partial).map_err(io::Error::other)?;
        let mut file = open(&partial, OpenOptions::new().write(true).create_new(true))?;
        file.write_all(&serde_json::to_vec(value)?)?;
        file.sync_data()?;
        fs::rename(&partial, path)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&partial);
        failed(path, error)
    })
}

/// Removes a file. Returns true if it existed.
pub(crate) fn remove(path: &Path) -> Result<bool, StateError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed(path, error)),
    }
}

fn failed(path: &Path, reason: impl ToString) -> StateError {
    StateError { path: path.to_owned(), reason: reason.to_string() }
}
