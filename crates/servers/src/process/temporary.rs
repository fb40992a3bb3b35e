//! Private temporary directories of confined servers.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::sys;

const PREFIX: &str = "kitbag-server-";
/// A younger directory may not be locked yet.
const AGE: Duration = Duration::from_secs(60);

/// A private temporary directory. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Temporary {
    path: PathBuf,
    _directory: TempDir,
    /// Shows that the directory is in use. The system releases it when kitbag ends.
    _lock: File,
}

impl Temporary {
    /// Creates a directory in `parent`, and removes those of kitbags that were killed.
    pub(super) fn new(parent: &Path) -> io::Result<Self> {
        remove_old(parent, AGE);
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let lock = sys::lock_directory(directory.path())?;
        // As all paths of a confinement.
        let path = directory.path().canonicalize()?;
        Ok(Self { path, _directory: directory, _lock: lock })
    }

    /// Returns the path, without links.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Removes directories that no kitbag uses, as far as that is possible.
fn remove_old(parent: &Path, age: Duration) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let path = entry.path();
        // The lock fails for links, and for directories of other users.
        if !is_ours || !is_old(&path, age) || sys::lock_directory(&path).is_err() {
            continue;
        }
        if let Err(error) = fs::remove_dir_all(&path) {
            tracing::debug!("`{}` is not removed: {error}", path.display());
        }
    }
}

fn is_old(path: &Path, age: Duration) -> bool {
    let modified = path.symlink_metadata().and_then(|metadata| metadata.modified());
    modified.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|it| it >= age))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_without_a_kitbag_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let used = Temporary::new(parent.path()).unwrap();
        let target = parent.path().join("target");
        for directory in ["kitbag-server-left/inside", "target", "other"] {
            fs::create_dir_all(parent.path().join(directory)).unwrap();
        }
        std::os::unix::fs::symlink(&target, parent.path().join("kitbag-server-link")).unwrap();
        remove_old(parent.path(), AGE);
        assert!(parent.path().join("kitbag-server-left").exists(), "it is young");
        remove_old(parent.path(), Duration::ZERO);
        assert!(!parent.path().join("kitbag-server-left").exists());
        assert!(used.path().exists() && target.exists() && parent.path().join("other").exists());
        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }
}
