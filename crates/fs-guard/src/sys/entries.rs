//! What a directory holds, with what each entry is.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Dir, DirEntry};

use super::stat::FileKind;

/// The entries of a directory, read as they are asked for, without the two that every
/// directory has.
#[derive(Debug)]
pub struct Entries(Dir);

/// An entry of a directory.
#[derive(Debug)]
pub struct Entry(DirEntry);

impl Entries {
    /// Reads a directory from its start, by a handle that stays what it is.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn read(directory: &File) -> io::Result<Self> {
        Ok(Self(Dir::read_from(directory)?))
    }

    /// Reads a directory by a handle that can be read, from where that stands.
    ///
    /// # Errors
    ///
    /// Those of the system.
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
    /// Its name.
    pub fn name(&self) -> &OsStr {
        OsStr::from_bytes(self.0.file_name().to_bytes())
    }

    /// What it is: a link itself, where it is one. Not every file system says.
    pub fn kind(&self) -> FileKind {
        self.0.file_type().into()
    }
}
