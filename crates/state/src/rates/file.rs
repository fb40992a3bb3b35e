//! The file of counts: private, locked while it changes, replaced whole.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use crate::{Lock, StateError, WorkspaceState, check_file, open};
use serde::{Deserialize, Serialize};

use crate::rates::entries::Entries;
use crate::rates::error::{CountsError, TakeError};

/// How long a call waits for other processes that count theirs. Each takes far less than a
/// millisecond, or is stopped.
const LOCK_TIME: Duration = Duration::from_secs(10);

/// The most bytes of a file that are read.
const MOST_BYTES: u64 = 8 << 20;

/// The form of the file.
const VERSION: u32 = 1;

/// Where the counts of a workspace are kept.
#[derive(Debug)]
pub(crate) struct CountsFile(WorkspaceState);

/// What the file holds.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    spent: Entries,
}

impl CountsFile {
    pub(crate) fn new(state: WorkspaceState) -> Self {
        Self(state)
    }

    /// Changes what the file holds while no other process does. Where `change` fails, the
    /// file stays as it is.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&mut Entries) -> Result<(), TakeError>,
    ) -> Result<(), TakeError> {
        let directory = self.0.make().map_err(CountsError::from)?;
        let (path, lock) = (directory.join("rates.json"), directory.join("rates.lock"));
        // It is locked until this is dropped.
        let _lock = Lock::take(&lock, LOCK_TIME).map_err(|reason| failed(&lock, reason))?;
        let mut entries = read(&path).map_err(|reason| failed(&path, reason))?;
        change(&mut entries)?;
        let partial = directory.join(".rates.json");
        write(&partial, &path, entries).map_err(|error| failed(&path, error.to_string()))?;
        Ok(())
    }
}

fn failed(path: &Path, reason: String) -> CountsError {
    CountsError { path: path.to_owned(), reason }
}

impl From<StateError> for CountsError {
    fn from(StateError { path, reason }: StateError) -> Self {
        Self { path, reason }
    }
}

fn read(path: &Path) -> Result<Entries, String> {
    let file = match open(path, OpenOptions::new().read(true)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Entries::default()),
        other => other.map_err(|error| error.to_string())?,
    };
    let found = file.metadata().map_err(|error| error.to_string())?;
    check_file(&found, path)?;
    let mut text = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut text).map_err(|error| error.to_string())?;
    let content = match text.len() as u64 > MOST_BYTES {
        true => Err("it is too large".to_owned()),
        false => serde_json::from_slice::<Content>(&text).map_err(|error| error.to_string()),
    };
    match content {
        Ok(Content { version: VERSION, spent }) => Ok(spent),
        Ok(Content { version, .. }) => Err(format!("it has the form {version} of another kitbag")),
        // Counting anew would let more calls pass than the rate allows.
        Err(error) => Err(format!("{error}; remove it to count anew")),
    }
}

fn write(partial: &Path, path: &Path, spent: Entries) -> io::Result<()> {
    let text = serde_json::to_vec(&Content { version: VERSION, spent })?;
    match fs::remove_file(partial) {
        // Left behind by a process that was killed.
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut file = open(partial, OpenOptions::new().write(true).create_new(true))?;
    file.write_all(&text)?;
    file.sync_data()?;
    fs::rename(partial, path)
}
