//! The entries of a directory and their types.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Dir, DirEntry};

use super::stat::FileKind;

/// Iterates over the entries of a directory, without `.` and `..`.
#[derive(Debug)]
pub struct Entries(Dir);

/// An entry of a directory.
#[derive(Debug)]
pub struct Entry(DirEntry);

impl Entries {
    /// Opens a directory for reading from its start. The given handle is not affected.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn read(directory: &File) -> io::Result<Self> {
        Ok(Self(Dir::read_from(directory)?))
    }

    /// Reads a directory from the current position of a readable handle.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn of(directory: File) -> io::Result<Self> {
        Ok(Self(Dir::new(directory)?))
    }
}

impl Iterator for Entries {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.0.read()? {
                Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
                Ok(entry) => return Some(Ok(Entry(entry))),
                Err(error) => return Some(Err(error.into())),
            }
        }
    }
}

impl Entry {
    /// Returns the name.
    pub fn name(&self) -> &OsStr {
        OsStr::from_bytes(self.0.file_name().to_bytes())
    }

    /// Returns the type of the entry; links are not followed. Some file systems report no type.
    pub fn kind(&self) -> FileKind {
        self.0.file_type().into()
    }
}
