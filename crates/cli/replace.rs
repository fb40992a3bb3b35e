//! Replacing a file of the user's: whole or not at all, with what was there kept beside it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::new_file;

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
            let new = new_file::write(directory, content, None)?;
            return new.persist_noclobber(&self.path).map(|_| None).map_err(|error| error.error);
        };
        let permissions = fs::metadata(&self.path)?.permissions();
        let new = new_file::write(directory, content, Some(&permissions))?;
        let copy = new_file::write(directory, old, Some(&permissions))?;
        if fs::read(&self.path)? != *old {
            return Err(io::Error::other("another program has written it meanwhile; try again"));
        }
        let backup = new_file::persist(copy, (1..=BACKUPS).map(|number| self.backup(number)))?;
        let full = || io::Error::other(format!("there are {BACKUPS} copies of it already"));
        let backup = backup.ok_or_else(full)?;
        new.persist(&self.path).map_err(|error| error.error)?;
        Ok(Some(backup))
    }

    /// The path of a copy.
    fn backup(&self, number: u32) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        match number {
            1 => name.push(format!(".{BACKUP}")),
            number => name.push(format!(".{BACKUP}-{number}")),
        }
        self.path.with_file_name(name)
    }
}
