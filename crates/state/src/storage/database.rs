//! The database file: created atomically, opened with checks, one connection per thread.
//!
//! This module never opens the file itself, but only checks it by name. POSIX locks belong to a
//! process, so closing the file would release the locks of this process's other connections.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::{Lock, StateError, WorkspaceState, check_file, open};
use kitbag_base::FileId;
use kitbag_fs_guard::sys::id_of_metadata;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::storage::error::StorageError;

/// The file name.
const NAME: &str = "storage.db";

/// Files that SQLite creates next to the database.
const BESIDE: [&str; 2] = ["storage.db-wal", "storage.db-shm"];

/// The application id in the header of the file: `kbst`.
const APPLICATION: i32 = 0x6b62_7374;

/// The version of the schema.
const VERSION: i32 = 1;

/// Maximum number of idle connections that are kept.
const IDLE: usize = 8;

/// Maximum time that an operation waits for others.
const MOST_WAIT: Duration = Duration::from_secs(5);

const SCHEMA: &str = "
    CREATE TABLE namespaces (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        -- The number of its entries, and the bytes of their keys and values.
        keys INTEGER NOT NULL DEFAULT 0,
        bytes INTEGER NOT NULL DEFAULT 0,
        -- The number that its next entry gets.
        next INTEGER NOT NULL DEFAULT 1
    ) STRICT;
    CREATE TABLE entries (
        -- The namespace, and in the lower 40 bits the number of the entry.
        id INTEGER PRIMARY KEY,
        namespace INTEGER NOT NULL,
        key TEXT NOT NULL,
        value BLOB NOT NULL,
        UNIQUE (namespace, key)
    ) STRICT;
";

/// Reads every column of the tables.
const COLUMNS: &str = "
    SELECT namespaces.id, name, keys, bytes, next, entries.id, namespace, key, value
    FROM namespaces, entries";

/// The file of a workspace.
#[derive(Debug)]
pub(crate) struct Database {
    state: WorkspaceState,
    idle: Mutex<Vec<Opened>>,
    writing: Turn,
}

/// A connection and the file that it belongs to.
#[derive(Debug)]
struct Opened {
    connection: Connection,
    file: FileId,
}

impl Database {
    pub(crate) fn new(state: WorkspaceState) -> Self {
        Self { state, idle: Mutex::default(), writing: Turn::default() }
    }

    /// Runs a transaction and waits for others until then.
    pub(crate) fn with<T>(
        &self,
        until: Option<Instant>,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure>,
    ) -> Result<T, StorageError> {
        let wait = wait(until);
        let path = self.state.path().join(NAME);
        let mut opened = self.opened(&path, wait)?;
        let failed = |error| StorageError::of(error, &path);
        opened.connection.busy_timeout(wait).map_err(failed)?;
        let done = work(&mut opened.connection);
        match done {
            Ok(done) => {
                self.keep(opened);
                Ok(done)
            }
            Err(Failure::Refused(error)) => {
                self.keep(opened);
                Err(error)
            }
            // The next operation checks the file first.
            Err(Failure::Sqlite(error)) => Err(failed(error)),
        }
    }

    /// Like [`with`](Self::with), serialized within this process, which is faster than retrying.
    pub(crate) fn write<T>(
        &self,
        until: Option<Instant>,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure>,
    ) -> Result<T, StorageError> {
        let _turn = self.writing.take(wait(until)).ok_or(StorageError::Busy)?;
        self.with(until, work)
    }

    /// Returns true if the file exists. Does not create it.
    pub(crate) fn exists(&self) -> Result<bool, StorageError> {
        let Some(directory) = self.state.find()? else { return Ok(false) };
        Ok(self.found(&directory.join(NAME))?.is_some())
    }

    /// Closes idle connections.
    pub(crate) fn close_idle(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn opened(&self, path: &Path, wait: Duration) -> Result<Opened, StorageError> {
        let file = match self.found(path)? {
            Some(file) => file,
            None => self.create(wait)?,
        };
        let kept = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            // Connections to a file that was moved away.
            let others: Vec<_> = idle.extract_if(.., |opened| opened.file != file).collect();
            let kept = idle.pop();
            drop(idle);
            drop(others);
            kept
        };
        match kept {
            Some(opened) => Ok(opened),
            None => {
                self.state.make()?;
                Ok(Opened { connection: connect(path, wait)?, file })
            }
        }
    }

    fn keep(&self, opened: Opened) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE {
            idle.push(opened);
        }
    }

    /// Returns the identity of the file if it exists.
    fn found(&self, path: &Path) -> Result<Option<FileId>, StorageError> {
        match fs::symlink_metadata(path) {
            Ok(found) => {
                check_file(&found, path).map_err(|reason| unusable(path, reason))?;
                if found.len() == 0 {
                    // SQLite would treat it as a new database.
                    return Err(damaged(path, "it is empty"));
                }
                Ok(Some(id_of_metadata(&found)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let directory = path.parent().unwrap_or(path);
                let left = BESIDE.iter().find(|name| directory.join(name).exists());
                match left {
                    // Another process may still use the file under another name, and its log here
                    // would be mixed into a new file. Or the file was created meanwhile.
                    Some(left) if !path.exists() => {
                        Err(damaged(path, &format!("it is missing, but `{left}` exists")))
                    }
                    Some(_) => self.found(path),
                    None => Ok(None),
                }
            }
            Err(error) => Err(unusable(path, error.to_string())),
        }
    }

    /// Creates the file under a temporary name and renames it.
    fn create(&self, wait: Duration) -> Result<FileId, StorageError> {
        let directory = self.state.make()?;
        let (path, lock) = (directory.join(NAME), directory.join("storage.lock"));
        // Locked until this is dropped.
        let _lock = Lock::take(&lock, wait).map_err(|reason| unusable(&lock, reason))?;
        if let Some(made) = self.found(&path)? {
            return Ok(made);
        }
        let partial = directory.join(".storage.db");
        let failed = |error: io::Error| unusable(&partial, error.to_string());
        for name in [".storage.db", ".storage.db-wal", ".storage.db-shm"] {
            match fs::remove_file(directory.join(name)) {
                // A process that was killed left it.
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
        // SQLite gives its other files the same mode.
        open(&partial, OpenOptions::new().write(true).create_new(true)).map_err(failed)?;
        fill(&partial).map_err(|error| StorageError::of(error, &partial))?;
        fs::rename(&partial, &path).map_err(failed)?;
        match self.found(&path)? {
            Some(made) => Ok(made),
            None => Err(unusable(&path, "it was removed".to_owned())),
        }
    }
}

/// Creates the tables in an empty file.
fn fill(path: &Path) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.execute_batch(&format!("BEGIN; {SCHEMA} COMMIT"))?;
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", VERSION)?;
    connection.close().map_err(|(_, error)| error)
}

fn connect(path: &Path, wait: Duration) -> Result<Connection, StorageError> {
    let failed = |error| StorageError::of(error, path);
    // The directory is private, but its path may contain a link.
    let whole = match path.parent().map(Path::canonicalize) {
        Some(Ok(directory)) => directory.join(NAME),
        Some(Err(error)) => return Err(unusable(path, error.to_string())),
        None => path.to_owned(),
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(whole, flags).map_err(failed)?;
    connection.busy_timeout(wait).map_err(failed)?;
    let checkpoint = |on: bool| {
        let config = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        connection.set_db_config(config, !on).map(drop).map_err(failed)
    };
    // The log is not written to a file before it is known to be intact.
    checkpoint(false)?;
    prepare(&connection, path)?;
    checkpoint(true)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// Checks that the file is one of ours, and sets options that are not stored in it.
fn prepare(connection: &Connection, path: &Path) -> Result<(), StorageError> {
    let failed = |error| StorageError::of(error, path);
    let number = |name: &str| {
        connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0)).map_err(failed)
    };
    if number("application_id")? != APPLICATION {
        return Err(damaged(path, "it is another program's database"));
    }
    match number("user_version")? {
        VERSION => {}
        version => {
            let reason = format!("it has format {version} of a different kitbag version");
            return Err(damaged(path, &reason));
        }
    }
    connection.prepare(COLUMNS).map_err(failed)?;
    // A file that others changed must not make SQLite run more than our statements.
    let defend = |config, on| connection.set_db_config(config, on).map(drop).map_err(failed);
    defend(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    defend(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    defend(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    defend(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    let set = [
        ("cell_size_check", "ON"),
        // Limits the write-ahead log, so that it shrinks again after growing.
        ("journal_size_limit", "4194304"),
        ("synchronous", "NORMAL"),
        ("temp_store", "MEMORY"),
    ];
    for (name, value) in set {
        connection.pragma_update(None, name, value).map_err(failed)?;
    }
    Ok(())
}

/// Why an operation failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The operation was refused.
    Refused(StorageError),
    /// SQLite returned an error.
    Sqlite(rusqlite::Error),
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Serializes writers.
#[derive(Debug, Default)]
struct Turn {
    is_taken: Mutex<bool>,
    is_free: Condvar,
}

/// The turn, held until this is dropped.
struct Taken<'a>(&'a Turn);

impl Turn {
    /// Returns `None` if it takes longer.
    fn take(&self, wait: Duration) -> Option<Taken<'_>> {
        let is_taken = self.is_taken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.is_free.wait_timeout_while(is_taken, wait, |is_taken| *is_taken);
        let (mut is_taken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() && *is_taken {
            return None;
        }
        *is_taken = true;
        Some(Taken(self))
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *self.0.is_taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.is_free.notify_one();
    }
}

/// Returns the time to wait for others.
fn wait(until: Option<Instant>) -> Duration {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    left.map_or(MOST_WAIT, |left| left.min(MOST_WAIT))
}

fn unusable(path: &Path, reason: String) -> StorageError {
    StorageError::Unusable(StateError { path: PathBuf::from(path), reason })
}

fn damaged(path: &Path, reason: &str) -> StorageError {
    StorageError::Damaged { path: path.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_end_with_the_time_of_the_call() {
        let now = Instant::now();
        assert_eq!(wait(Some(now)), Duration::ZERO);
        assert!(wait(Some(now + MOST_WAIT)) <= MOST_WAIT);
        assert_eq!(wait(Some(now + Duration::from_secs(3600))), MOST_WAIT);
        assert_eq!(wait(None), MOST_WAIT);
    }
}
