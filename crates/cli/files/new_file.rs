//! Files that did not exist before: whole or not there at all.

use std::fs::Permissions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use kitbag_fs_guard::sys::{new_permissions, private_permissions};
use tempfile::NamedTempFile;

/// Writes a file under a name that nothing else has, synced, ready to be persisted. It
/// gets the permissions of another file, `like`, or those of any new one.
pub(crate) fn write(
    directory: &Path,
    content: &[u8],
    like: Option<&Permissions>,
) -> io::Result<NamedTempFile> {
    // A copy of a private file is private from the start.
    let permissions = if like.is_some() { private_permissions() } else { new_permissions() };
    let mut options = tempfile::Builder::new();
    options.prefix(".kitbag-").permissions(permissions);
    let mut file = options.tempfile_in(directory)?;
    file.write_all(content)?;
    if let Some(like) = like {
        file.as_file().set_permissions(like.clone())?;
    }
    file.as_file().sync_all()?;
    Ok(file)
}

/// Gives a file the first of some paths at which nothing lies, and returns that. `None`,
/// where all are taken.
pub(crate) fn persist(
    mut file: NamedTempFile,
    paths: impl IntoIterator<Item = PathBuf>,
) -> io::Result<Option<PathBuf>> {
    for path in paths {
        match file.persist_noclobber(&path) {
            Ok(_) => return Ok(Some(path)),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => file = error.file,
            Err(error) => return Err(error.error),
        }
    }
    Ok(None)
}
