//! The file of counters: private, locked during changes, replaced atomically.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use crate::{Lock, StateError, WorkspaceState, check_file, open};
use serde::{Deserialize, Serialize};

use crate::rates::entries::Entries;
use crate::rates::error::{CountsError, TakeError};

/// The time that a call waits for other processes. Each takes far less than a millisecond, unless
/// it is stopped.
const LOCK_TIME: Duration = Duration::from_secs(10);

/// Maximum number of bytes that are read from the file.
const MOST_BYTES: u64 = 8 << 20;

/// The version of the file format.
const VERSION: u32 = 1;

/// The file with the counters of a workspace.
#[derive(Debug)]
pub(crate) struct CountsFile(WorkspaceState);

/// The content of the file.
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

    /// Changes the content exclusively. If `change` fails, the file is unchanged.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&mut Entries) -> Result<(), TakeError>,
    ) -> Result<(), TakeError> {
        let directory = self.0.make().map_err(CountsError::from)?;
        let (path, lock) = (directory.join("rates.json"), directory.join("rates.lock"));
        // Locked until this is dropped.
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
        Ok(Content { version, .. }) => {
            Err(format!("it has format {version} of a different kitbag version"))
        }
        // Starting from zero would let more calls pass than the rate allows.
        Err(error) => Err(format!("{error}; remove it to start counting from zero")),
    }
}

fn write(partial: &Path, path: &Path, spent: Entries) -> io::Result<()> {
    let text = serde_json::to_vec(&Content { version: VERSION, spent })?;
    match fs::remove_file(partial) {
        // A process that was killed left it.
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut file = open(partial, OpenOptions::new().write(true).create_new(true))?;
    file.write_all(&text)?;
    file.sync_data()?;
    fs::rename(partial, path)
}
