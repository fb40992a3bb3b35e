//! The last snapshot that this machine accepted, in its state directory.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use kitbag_base::ContentDigest;
use kitbag_fs_guard::sys::private_file;
use kitbag_state::{Lock, SharedState};
use serde::{Deserialize, Serialize};

use super::error::SnapshotError;

/// Maximum size of the file.
const FILE_BYTES: u64 = 1 << 20;

/// The time that a process waits for another process that changes the file.
const LOCK_TIME: Duration = Duration::from_secs(10);

/// A snapshot that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// The number of the snapshot.
    pub counter: u64,
    /// The digest of its manifest.
    pub digest: ContentDigest,
}

/// The accepted snapshots by name of the workspace. Accesses no files until it is used.
#[derive(Debug)]
pub struct KnownSnapshots {
    state: SharedState,
}

impl KnownSnapshots {
    /// Creates the list in the state directory, whose path must be absolute.
    pub fn new(state: &Path) -> Self {
        Self { state: SharedState::new(state, "cluster") }
    }

    /// Returns the last snapshot of a workspace that was accepted.
    ///
    /// # Errors
    ///
    /// [`SnapshotError::Local`] if the file cannot be read. A missing file is not an error.
    pub fn find(&self, workspace: &str) -> Result<Option<Known>, SnapshotError> {
        let found =
            self.state.find().map_err(|error| SnapshotError::local(&error.path, &error.reason))?;
        let Some(directory) = found else { return Ok(None) };
        Ok(read(&directory.join("snapshots.json"))?.get(workspace).copied())
    }

    /// Records that a snapshot was accepted. A higher number stays.
    ///
    /// # Errors
    ///
    /// [`SnapshotError::Local`] if the file cannot be written.
    pub fn record(&self, workspace: &str, known: Known) -> Result<(), SnapshotError> {
        let made =
            self.state.make().map_err(|error| SnapshotError::local(&error.path, &error.reason));
        let directory = made?;
        let lock = directory.join("lock");
        let _lock =
            Lock::take(&lock, LOCK_TIME).map_err(|reason| SnapshotError::local(&lock, reason))?;
        let path = directory.join("snapshots.json");
        let mut all = read(&path)?;
        if all.get(workspace).is_some_and(|last| last.counter >= known.counter) {
            return Ok(());
        }
        all.insert(workspace.to_owned(), known);
        write(&path, &serde_json::to_vec(&all).expect("every key is a string"))
            .map_err(|error| SnapshotError::local(&path, error))
    }
}

fn read(path: &Path) -> Result<BTreeMap<String, Known>, SnapshotError> {
    let mut options = OpenOptions::new();
    let file: File = match private_file(options.read(true)).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        opened => opened.map_err(|error| SnapshotError::local(path, error))?,
    };
    let mut text = Vec::new();
    let read = file.take(FILE_BYTES).read_to_end(&mut text);
    read.map_err(|error| SnapshotError::local(path, error))?;
    serde_json::from_slice(&text).map_err(|error| SnapshotError::local(path, error))
}

/// Writes a file atomically. The caller holds the lock.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let partial = path.with_extension("partial");
    let mut options = OpenOptions::new();
    let mut file = private_file(options.write(true).create(true).truncate(true)).open(&partial)?;
    file.write_all(bytes)?;
    file.sync_data()?;
    fs::rename(&partial, path)
}
