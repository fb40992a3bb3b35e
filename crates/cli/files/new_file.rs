//! New files, written atomically.

use std::fs::Permissions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use kitbag_fs_guard::sys::{new_permissions, private_permissions};
use tempfile::NamedTempFile;

/// Writes a temporary file, synced and ready to be persisted. It gets the permissions of another
/// file, `like`, or the default ones.
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

/// Moves a file to the first free path and returns that path. `None` if all paths are taken.
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
