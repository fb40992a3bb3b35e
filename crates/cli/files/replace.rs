//! Atomic replacement of the user's files, with an optional backup.

use std::fs::{self, Permissions};
use std::io;
use std::path::{Path, PathBuf};

use crate::files::new_file;

/// Ending of a backup's name, followed by a number if there are several.
#[cfg(feature = "serve")]
const BACKUP: &str = "backup";

#[cfg(feature = "serve")]
const BACKUPS: u32 = 1_000;

pub(crate) struct Original {
    path: PathBuf,
    content: Option<Vec<u8>>,
}

impl Original {
    /// Reads a file and follows links. A missing file is empty.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        match fs::canonicalize(path) {
            Ok(path) => {
                let content = Some(fs::read(&path)?);
                Ok(Self { path, content })
            }
            // A dangling link is not replaced.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
                Ok(Self { path: path.to_owned(), content: None })
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn content(&self) -> &[u8] {
        self.content.as_deref().unwrap_or_default()
    }

    pub(crate) fn written(&self) -> Option<&[u8]> {
        self.content.as_deref()
    }

    /// Replaces the content. Permissions and links to the file are kept.
    pub(crate) fn replace(&mut self, content: &[u8]) -> io::Result<()> {
        self.put(content, |_| Ok(None))?;
        self.content = Some(content.to_owned());
        Ok(())
    }

    /// Replaces the content and returns the path of a backup copy.
    #[cfg(feature = "serve")]
    pub(crate) fn replace_with_backup(&self, content: &[u8]) -> io::Result<Option<PathBuf>> {
        self.put(content, |old| {
            let copy = new_file::write(self.directory(), old, Some(&self.permissions()?))?;
            let backup = new_file::persist(copy, (1..=BACKUPS).map(|number| self.backup(number)))?;
            let full = || io::Error::other(format!("it already has {BACKUPS} backups"));
            backup.ok_or_else(full).map(Some)
        })
    }

    /// Replaces the content after `keep` has run on the old file.
    fn put(
        &self,
        content: &[u8],
        keep: impl FnOnce(&[u8]) -> io::Result<Option<PathBuf>>,
    ) -> io::Result<Option<PathBuf>> {
        let directory = self.directory();
        fs::create_dir_all(directory)?;
        let Some(old) = &self.content else {
            let new = new_file::write(directory, content, None)?;
            return new.persist_noclobber(&self.path).map(|_| None).map_err(|error| error.error);
        };
        let new = new_file::write(directory, content, Some(&self.permissions()?))?;
        if fs::read(&self.path)? != *old {
            return Err(io::Error::other("another program changed it meanwhile; try again"));
        }
        let kept = keep(old)?;
        new.persist(&self.path).map_err(|error| error.error)?;
        Ok(kept)
    }

    fn directory(&self) -> &Path {
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        directory.unwrap_or(Path::new("."))
    }

    fn permissions(&self) -> io::Result<Permissions> {
        Ok(fs::metadata(&self.path)?.permissions())
    }

    #[cfg(feature = "serve")]
    fn backup(&self, number: u32) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        match number {
            1 => name.push(format!(".{BACKUP}")),
            number => name.push(format!(".{BACKUP}-{number}")),
        }
        self.path.with_file_name(name)
    }
}
