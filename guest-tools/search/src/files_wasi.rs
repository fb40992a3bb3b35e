//! Directories and files through WASI.
//!
//! `std::fs::read_dir` makes a second call for each entry, and opening a file by its whole path
//! makes the host walk that path. Here a listing includes the type of each entry, and a file is
//! opened by its name in the listed directory.

use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

use kitbag_workspace::wasi::{self, error};
use kitbag_workspace::{Kind, Listed};
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{Descriptor, DescriptorFlags, OpenFlags, PathFlags};

/// The number of bytes of the first read, of later reads, and of a read after a short one, which is
/// usually the end. The host clears a buffer of this size for each call, and most files are short.
const FIRST_READ_BYTES: usize = 16 << 10;
const NEXT_READ_BYTES: usize = 64 << 10;
const LAST_READ_BYTES: usize = 1 << 10;

/// An open directory.
pub(crate) struct Directory(Descriptor);

/// An open file, read from its start.
pub(crate) struct File {
    descriptor: Descriptor,
    offset: u64,
    /// The number of bytes of the next read.
    step: usize,
    at_end: bool,
}

impl Directory {
    /// Opens a granted directory by its guest path.
    pub(crate) fn granted(path: &str) -> io::Result<Self> {
        let directories = get_directories();
        let found = directories.into_iter().find(|(_, guest)| guest == path);
        found.map(|(directory, _)| Self(directory)).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Opens a directory below by its relative path; links on it are followed if `follow` is set.
    pub(crate) fn directory(&self, path: &str, follow: bool) -> io::Result<Self> {
        self.open(path, OpenFlags::DIRECTORY, follow).map(Self)
    }

    /// Opens a file below by its relative path.
    pub(crate) fn file(&self, path: &str, follow: bool) -> io::Result<File> {
        let descriptor = self.open(path, OpenFlags::empty(), follow)?;
        Ok(File { descriptor, offset: 0, step: FIRST_READ_BYTES, at_end: false })
    }

    /// Returns the modification time of an entry since 1970. Zero if the file system does not
    /// report it.
    pub(crate) fn modified(&self, name: &str) -> io::Result<Duration> {
        let found = self.0.stat_at(PathFlags::empty(), name).map_err(error)?;
        let time = found.data_modification_timestamp;
        Ok(time.map_or(Duration::ZERO, |time| Duration::new(time.seconds, time.nanoseconds)))
    }

    /// Visits the entries, in the order of the file system.
    pub(crate) fn list(
        &self,
        visit: impl FnMut(&str, Kind) -> ControlFlow<()>,
    ) -> io::Result<Listed> {
        wasi::list_open(&self.0, visit)
    }

    fn open(&self, path: &str, flags: OpenFlags, follow: bool) -> io::Result<Descriptor> {
        let links = if follow { PathFlags::SYMLINK_FOLLOW } else { PathFlags::empty() };
        self.0.open_at(links, path, flags, DescriptorFlags::READ).map_err(error)
    }
}

impl io::Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(self.step);
        if self.at_end || wanted == 0 {
            return Ok(0);
        }
        let (chunk, at_end) = self.descriptor.read(wanted as u64, self.offset).map_err(error)?;
        let taken = chunk.len().min(wanted);
        buffer[..taken].copy_from_slice(&chunk[..taken]);
        self.offset += taken as u64;
        self.step = if taken < wanted { LAST_READ_BYTES } else { NEXT_READ_BYTES };
        self.at_end = at_end || taken == 0;
        Ok(taken)
    }
}
