//! The file of counts: private, locked while it changes, replaced whole.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use kitbag_contract::text::shown;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::{CountsError, Entries, TakeError, short};

/// How long a call waits for other processes that count theirs. Each takes far less than a
/// millisecond, or is stopped.
const LOCK_TIME: Duration = Duration::from_secs(10);

/// The most bytes of a file that are read.
const MOST_BYTES: u64 = 8 << 20;

/// The form of the file.
const VERSION: u32 = 1;

/// Where the counts of a workspace are kept.
#[derive(Debug)]
pub(crate) struct CountsFile {
    state: PathBuf,
    workspace: PathBuf,
    /// From the state directory down to that of the workspace.
    directories: OnceLock<[PathBuf; 3]>,
}

/// What the file holds.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    spent: Entries,
}

impl CountsFile {
    pub(crate) fn new(state: &Path, workspace: &Path) -> Self {
        let (state, workspace) = (state.to_owned(), workspace.to_owned());
        Self { state, workspace, directories: OnceLock::new() }
    }

    /// The directories, by the path of the workspace without links: that is the same,
    /// whichever way led to it.
    fn directories(&self) -> &[PathBuf; 3] {
        self.directories.get_or_init(|| {
            let workspace = self.workspace.canonicalize();
            let workspace = workspace.as_deref().unwrap_or(&self.workspace);
            let hash = blake3::hash(workspace.as_os_str().as_encoded_bytes());
            let all = self.state.join("workspaces");
            let own = all.join(short(&hash));
            [self.state.clone(), all, own]
        })
    }

    /// Changes what the file holds while no other process does. Where `change` fails, the
    /// file stays as it is.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&mut Entries) -> Result<(), TakeError>,
    ) -> Result<(), TakeError> {
        let directories = self.directories();
        for directory in directories {
            make_private(directory).map_err(|reason| failed(directory, reason))?;
        }
        let [.., directory] = directories;
        let (path, lock) = (directory.join("rates.json"), directory.join("rates.lock"));
        // It is locked until this is dropped.
        let _lock = locked(&lock).map_err(|reason| failed(&lock, reason))?;
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

/// Makes a directory of the user's alone where it is missing, and what is missing above it,
/// and looks whose it is.
fn make_private(directory: &Path) -> Result<(), String> {
    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent).map_err(|error| error.to_string())?;
    }
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error.to_string()),
        _ => {
            let found = fs::symlink_metadata(directory).map_err(|error| error.to_string())?;
            if !found.is_dir() {
                return Err("it is not a directory".into());
            }
            private(&found, 0o077, directory)
        }
    }
}

/// Looks whether something belongs to the user and others have none of these rights.
fn private(found: &fs::Metadata, others: u32, path: &Path) -> Result<(), String> {
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!("it belongs to user {}", found.uid()));
    }
    match found.mode() & others {
        0 => Ok(()),
        _ => Err(format!(
            "it is open to others (mode {:03o}); close it with `chmod go= {}`",
            found.mode() & 0o777,
            shown(&path.to_string_lossy()),
        )),
    }
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Neither a link nor a FIFO leads elsewhere or blocks.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.custom_flags(flags.bits().cast_signed()).mode(0o600).open(path)
}

/// Opens and locks a file that stays there, since other processes wait for it.
fn locked(path: &Path) -> Result<File, String> {
    let mut options = OpenOptions::new();
    let file = open(path, options.read(true).write(true).create(true));
    let file = file.map_err(|error| error.to_string())?;
    let until = Instant::now() + LOCK_TIME;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                thread::sleep(Duration::from_millis(1));
            }
            Err(TryLockError::WouldBlock) => {
                let waited = LOCK_TIME.as_secs();
                return Err(format!("another process has had it locked for {waited} s"));
            }
            Err(TryLockError::Error(error)) => return Err(error.to_string()),
        }
    }
}

fn read(path: &Path) -> Result<Entries, String> {
    let file = match open(path, OpenOptions::new().read(true)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Entries::default()),
        other => other.map_err(|error| error.to_string())?,
    };
    let found = file.metadata().map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("it is not a file".into());
    }
    private(&found, 0o022, path)?;
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
