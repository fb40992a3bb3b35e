//! Replacing a file of the user's: whole or not at all, with what was there kept beside it.

use std::fs::{self, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// What the name of a copy ends in, with a number where there are several.
const BACKUP: &str = "backup";

/// How many copies there may be.
const BACKUPS: u32 = 1_000;

/// A file as it was read.
pub(crate) struct Original {
    /// Where it lies, without links.
    path: PathBuf,
    content: Option<Vec<u8>>,
}

impl Original {
    /// Reads a file, by whatever links lead to it. One that does not exist is empty.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        match fs::canonicalize(path) {
            Ok(path) => {
                let content = Some(fs::read(&path)?);
                Ok(Self { path, content })
            }
            // A link that leads nowhere stays what it is.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
                Ok(Self { path: path.to_owned(), content: None })
            }
            Err(error) => Err(error),
        }
    }

    /// What it holds.
    pub(crate) fn content(&self) -> &[u8] {
        self.content.as_deref().unwrap_or_default()
    }

    /// Puts something else in its place and returns where a copy of what it held lies. Its
    /// permissions stay, and links that lead to it.
    pub(crate) fn replace(&self, content: &[u8]) -> io::Result<Option<PathBuf>> {
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        fs::create_dir_all(directory)?;
        let Some(old) = &self.content else {
            let new = written(directory, content, Permissions::from_mode(0o666), None)?;
            return new.persist_noclobber(&self.path).map(|_| None).map_err(|error| error.error);
        };
        let metadata = fs::metadata(&self.path)?;
        let new = written(directory, content, Permissions::from_mode(0o600), Some(&metadata))?;
        let copy = written(directory, old, Permissions::from_mode(0o600), Some(&metadata))?;
        if fs::read(&self.path)? != *old {
            return Err(io::Error::other("another program has written it meanwhile; try again"));
        }
        let backup = self.keep(copy)?;
        new.persist(&self.path).map_err(|error| error.error)?;
        Ok(Some(backup))
    }

    /// Gives a copy its name, which no file had.
    fn keep(&self, mut copy: NamedTempFile) -> io::Result<PathBuf> {
        for number in 1..=BACKUPS {
            let mut name = self.path.file_name().unwrap_or_default().to_owned();
            match number {
                1 => name.push(format!(".{BACKUP}")),
                number => name.push(format!(".{BACKUP}-{number}")),
            }
            let path = self.path.with_file_name(name);
            match copy.persist_noclobber(&path) {
                Ok(_) => return Ok(path),
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                    copy = error.file;
                }
                Err(error) => return Err(error.error),
            }
        }
        Err(io::Error::other(format!("there are {BACKUPS} copies of it already")))
    }
}

/// Writes a file under a name that nothing else has, with the permissions of another one.
fn written(
    directory: &Path,
    content: &[u8],
    permissions: Permissions,
    like: Option<&Metadata>,
) -> io::Result<NamedTempFile> {
    let mut options = tempfile::Builder::new();
    let mut file = options.prefix(".kitbag-").permissions(permissions).tempfile_in(directory)?;
    file.write_all(content)?;
    if let Some(like) = like {
        file.as_file().set_permissions(like.permissions())?;
    }
    file.as_file().sync_all()?;
    Ok(file)
}
