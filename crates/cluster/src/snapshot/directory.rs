//! The files of a snapshot on this machine.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use kitbag_base::ContentDigest;
use kitbag_fs_guard::sys::{create_private_directories, private_file};

use super::error::SnapshotError;
use super::manifest::{FileEntry, Manifest};

/// Returns whether a directory has exactly the files of the manifest.
pub(super) fn is_complete(directory: &Path, manifest: &Manifest) -> bool {
    let mut found = BTreeMap::new();
    visit(directory, directory, &mut found).is_ok() && found == manifest.files
}

/// Visits the files below a directory. A link or a device is an error.
fn visit(root: &Path, directory: &Path, found: &mut BTreeMap<String, FileEntry>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let kind = fs::symlink_metadata(&path)?;
        if kind.is_dir() {
            visit(root, &path, found)?;
        } else if kind.is_file() {
            let mut options = OpenOptions::new();
            let file = private_file(options.read(true)).open(&path)?;
            let (digest, size) = kitbag_state::trust::digest_of_reader(file)?;
            let name = path.strip_prefix(root).ok().and_then(Path::to_str);
            let name = name.ok_or_else(|| io::Error::other("not a path of a snapshot"))?;
            found.insert(name.to_owned(), FileEntry { digest, size });
        } else {
            return Err(io::Error::other("not a regular file"));
        }
    }
    Ok(())
}

/// Writes one file of a snapshot, after checking its content.
pub(super) fn write(
    directory: &Path,
    path: &str,
    entry: &FileEntry,
    bytes: &[u8],
) -> Result<(), SnapshotError> {
    check(path, entry, bytes)?;
    let target = directory.join(path);
    let write = || {
        create_private_directories(target.parent().unwrap_or(directory))?;
        let mut options = OpenOptions::new();
        let mut file = private_file(options.write(true).create_new(true)).open(&target)?;
        file.write_all(bytes)
    };
    write().map_err(|error| SnapshotError::local(&target, error))
}

/// Checks the content of a file.
pub(super) fn check(path: &str, entry: &FileEntry, bytes: &[u8]) -> Result<(), SnapshotError> {
    let digest = ContentDigest(blake3::hash(bytes).into());
    match digest == entry.digest && bytes.len() as u64 == entry.size {
        true => Ok(()),
        false => Err(SnapshotError::Content { path: path.to_owned(), expected: entry.digest }),
    }
}

/// Moves a written directory to its final path. Another process may have been faster.
pub(super) fn settle(
    written: tempfile::TempDir,
    target: PathBuf,
    manifest: &Manifest,
) -> Result<PathBuf, SnapshotError> {
    if fs::rename(written.path(), &target).is_ok() {
        // The directory is no longer temporary.
        let _ = written.keep();
        return Ok(target);
    }
    if is_complete(&target, manifest) {
        return Ok(target);
    }
    // The existing directory was changed.
    fs::remove_dir_all(&target).map_err(|error| SnapshotError::local(&target, error))?;
    fs::rename(written.path(), &target).map_err(|error| SnapshotError::local(&target, error))?;
    let _ = written.keep();
    Ok(target)
}
