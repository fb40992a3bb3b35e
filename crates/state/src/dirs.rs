//! The state directory: kitbag's persistent data, outside every workspace.
//!
//! Each workspace has a part of its own, named by a hash of its canonical path. Directories are
//! created on first use and are private to the user; a directory that another user could have
//! changed is refused.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use kitbag_base::text::shown;
use kitbag_fs_guard::sys::{
    create_private_directory, effective_user, mode_of_metadata, owner_of_metadata, private_file,
};

/// The part of the state directory for one workspace. Accesses no files until it is used.
#[derive(Debug)]
pub struct WorkspaceState {
    state: PathBuf,
    workspace: PathBuf,
    /// The directories from the state directory down to the workspace's directory.
    directories: OnceLock<[PathBuf; 3]>,
}

/// The part of the state directory that all workspaces share. Accesses no files until it is used.
#[derive(Debug)]
pub struct SharedState {
    /// The state directory and the directory in it.
    directories: [PathBuf; 2],
}

/// Why a directory or file of the state cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` cannot be used: {reason}", shown(&path.to_string_lossy()))]
pub struct StateError {
    /// The directory or file.
    pub path: PathBuf,
    /// The problem and its fix.
    pub reason: String,
}

/// A lock between processes. It is released when this is dropped or the process ends.
#[derive(Debug)]
pub struct Lock {
    /// Keeps the lock.
    _file: File,
}

impl WorkspaceState {
    /// Creates the part of a workspace. Both paths must be absolute.
    pub fn new(state: &Path, workspace: &Path) -> Self {
        let (state, workspace) = (state.to_owned(), workspace.to_owned());
        Self { state, workspace, directories: OnceLock::new() }
    }

    /// Returns the directory of the workspace. Creates it with mode 0700 if it does not exist.
    ///
    /// # Errors
    ///
    /// [`StateError`] if it cannot be created, or another user could have changed it.
    pub fn make(&self) -> Result<&Path, StateError> {
        make_all(self.directories())
    }

    /// Returns the directory of the workspace if it exists. Creates nothing.
    ///
    /// # Errors
    ///
    /// As for [`make`](Self::make).
    pub fn find(&self) -> Result<Option<&Path>, StateError> {
        find_all(self.directories())
    }

    /// Returns the path of the directory, which need not exist.
    pub fn path(&self) -> &Path {
        let [.., own] = self.directories();
        own
    }

    /// Returns the directories. They depend on the canonical path of the workspace, so that links
    /// do not matter.
    fn directories(&self) -> &[PathBuf; 3] {
        self.directories.get_or_init(|| {
            let workspace = self.workspace.canonicalize();
            let workspace = workspace.as_deref().unwrap_or(&self.workspace);
            let hash = blake3::hash(workspace.as_os_str().as_encoded_bytes());
            let all = self.state.join("workspaces");
            let own = all.join(&hash.to_hex()[..32]);
            [self.state.clone(), all, own]
        })
    }
}

impl SharedState {
    /// Creates the shared part with this name. The path must be absolute.
    pub fn new(state: &Path, name: &str) -> Self {
        Self { directories: [state.to_owned(), state.join(name)] }
    }

    /// Returns the directory. Creates it with mode 0700 if it does not exist.
    ///
    /// # Errors
    ///
    /// As for [`WorkspaceState::make`].
    pub fn make(&self) -> Result<&Path, StateError> {
        make_all(&self.directories)
    }

    /// Returns the directory if it exists. Creates nothing.
    ///
    /// # Errors
    ///
    /// As for [`WorkspaceState::make`].
    pub fn find(&self) -> Result<Option<&Path>, StateError> {
        find_all(&self.directories)
    }
}

impl Lock {
    /// Locks a file. Creates it if it does not exist and never removes it, since other processes
    /// wait for it.
    ///
    /// # Errors
    ///
    /// The reason, if another process holds the lock for longer than `wait`.
    pub fn take(path: &Path, wait: Duration) -> Result<Self, String> {
        let file = open(path, OpenOptions::new().read(true).write(true).create(true));
        let file = file.map_err(|error| error.to_string())?;
        let until = Instant::now() + wait;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    thread::sleep(Duration::from_millis(1));
                }
                Err(TryLockError::WouldBlock) => {
                    let waited = wait.as_secs();
                    return Err(format!("another process has held its lock for {waited} s"));
                }
                Err(TryLockError::Error(error)) => return Err(error.to_string()),
            }
        }
    }
}

/// Opens a file of the state; a new file has mode 0600. Does not follow links or block on a FIFO.
///
/// # Errors
///
/// Errors of the system; [`io::ErrorKind::FilesystemLoop`] for a link.
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    private_file(options).open(path)
}

/// Checks that metadata is of a file that belongs to the user and that other users cannot
/// change.
///
/// # Errors
///
/// The reason and its fix.
pub(crate) fn check_file(found: &fs::Metadata, path: &Path) -> Result<(), String> {
    match found.is_file() {
        true => private(found, 0o022, path),
        false => Err("it is not a file".into()),
    }
}

fn failed(path: &Path, reason: String) -> StateError {
    StateError { path: path.to_owned(), reason }
}

/// Creates nested directories if one of them is missing, and returns the innermost.
fn make_all(directories: &[PathBuf]) -> Result<&Path, StateError> {
    if let Some(found) = find_all(directories)? {
        return Ok(found);
    }
    for directory in directories {
        make_private(directory).map_err(|reason| failed(directory, reason))?;
    }
    Ok(innermost(directories))
}

/// Looks for nested directories and returns the innermost.
fn find_all(directories: &[PathBuf]) -> Result<Option<&Path>, StateError> {
    for directory in directories {
        match is_private_directory(directory) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(directory, error.to_string())),
        }
    }
    Ok(Some(innermost(directories)))
}

fn innermost(directories: &[PathBuf]) -> &Path {
    directories.last().expect("the state directory is in the list")
}

/// Creates a private directory and its missing parents, and checks its owner.
fn make_private(directory: &Path) -> Result<(), String> {
    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent).map_err(|error| error.to_string())?;
    }
    match create_private_directory(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error.to_string()),
        _ => is_private_directory(directory).map_err(|error| error.to_string()),
    }
}

/// Checks that a path is a directory that belongs to the user and is closed to others.
fn is_private_directory(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    match found.is_dir() {
        true => private(&found, 0o077, path).map_err(io::Error::other),
        false => Err(io::Error::other("it is not a directory")),
    }
}

/// Checks that a file belongs to the user and that others do not have these permissions.
fn private(found: &fs::Metadata, others: u32, path: &Path) -> Result<(), String> {
    let (owner, mode) = (owner_of_metadata(found), mode_of_metadata(found));
    if owner != effective_user() {
        return Err(format!("it belongs to user {owner}"));
    }
    match mode & others {
        0 => Ok(()),
        _ => Err(format!(
            "it is open to others (mode {:03o}); close it with `chmod go= {}`",
            mode & 0o777,
            shown(&path.to_string_lossy()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use tempfile::TempDir;

    use super::*;

    /// Creates a state directory that does not exist yet.
    fn state() -> (TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("a/state");
        (directory, state)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn directories_are_created_on_demand_and_private() {
        let (_directory, state) = state();
        let own = WorkspaceState::new(&state, Path::new("/w"));
        assert_eq!(own.find().unwrap(), None);
        assert!(!state.exists());
        let path = own.make().unwrap();
        assert_eq!((mode(&state), mode(path)), (0o700, 0o700));
        assert_eq!(own.find().unwrap(), Some(path));
        assert_eq!(own.make().unwrap(), path);
    }

    #[test]
    fn links_share_the_part_of_their_workspace() {
        let (directory, state) = state();
        let (workspace, link) = (directory.path().join("w"), directory.path().join("link"));
        fs::create_dir(&workspace).unwrap();
        symlink(&workspace, &link).unwrap();
        let path = |workspace: &Path| WorkspaceState::new(&state, workspace).path().to_owned();
        assert_eq!(path(&workspace), path(&link));
        assert_ne!(path(&workspace), path(directory.path()));
    }

    #[test]
    fn directories_open_to_others_are_refused() {
        let (directory, state) = state();
        let own = WorkspaceState::new(&state, Path::new("/w"));
        own.make().unwrap();
        let refused = |own: &WorkspaceState| {
            let error = own.make().unwrap_err();
            assert_eq!(own.find().unwrap_err(), error);
            error.to_string()
        };
        for path in [&*state, own.path()] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
            let error = refused(&own);
            assert!(
                error.contains("open to others (mode 755); close it with `chmod go= "),
                "{error}"
            );
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
        }
        let link = directory.path().join("link");
        symlink(&state, &link).unwrap();
        let linked = WorkspaceState::new(&link, Path::new("/w"));
        assert!(refused(&linked).contains("it is not a directory"));
        fs::remove_dir(own.path()).unwrap();
        symlink(directory.path(), own.path()).unwrap();
        assert!(refused(&own).contains("it is not a directory"));
    }

    #[test]
    fn files_are_private_and_links_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let file = open(&path, OpenOptions::new().write(true).create_new(true)).unwrap();
        assert_eq!(mode(&path), 0o600);
        check_file(&file.metadata().unwrap(), &path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
        let error = check_file(&file.metadata().unwrap(), &path).unwrap_err();
        assert!(error.contains("mode 620"), "{error}");
        let link = directory.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(open(&link, OpenOptions::new().read(true)).is_err());
    }

    #[test]
    fn locks_are_exclusive() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let lock = Lock::take(&path, Duration::ZERO).unwrap();
        let error = Lock::take(&path, Duration::ZERO).unwrap_err();
        assert!(error.contains("another process has held its lock"), "{error}");
        drop(lock);
        // A process that another test starts holds the lock until it runs its program.
        Lock::take(&path, Duration::from_secs(10)).unwrap();
    }
}
