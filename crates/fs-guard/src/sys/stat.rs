//! File metadata.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use kitbag_base::FileId;
use rustix::fs::{AtFlags, FileType, fstat, lstat, stat, statat};

/// The metadata of a file at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Stat(rustix::fs::Stat);

/// The type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A FIFO.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
    /// Another or unknown type.
    Unknown,
}

impl Stat {
    /// Returns the metadata of an open file.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn of(file: &File) -> io::Result<Self> {
        Ok(Self(fstat(file)?))
    }

    /// Returns the metadata of a directory entry. Does not follow links.
    ///
    /// # Errors
    ///
    /// Errors of the system; [`io::ErrorKind::NotFound`] if the entry does not exist.
    pub fn at(directory: &File, name: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self(statat(directory, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Returns the metadata of a directory entry's target. Follows links.
    ///
    /// # Errors
    ///
    /// As for [`at`](Self::at).
    pub fn following_links_at(directory: &File, name: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self(statat(directory, name.as_ref(), AtFlags::empty())?))
    }

    /// Returns the metadata at a path. Does not follow a link at its end.
    ///
    /// # Errors
    ///
    /// As for [`at`](Self::at).
    pub fn of_path(path: &Path) -> io::Result<Self> {
        Ok(Self(lstat(path)?))
    }

    /// Returns the metadata of a path's target. Follows links.
    ///
    /// # Errors
    ///
    /// As for [`at`](Self::at).
    pub fn following_links(path: &Path) -> io::Result<Self> {
        Ok(Self(stat(path)?))
    }

    /// Returns the identity of the file.
    #[allow(clippy::unnecessary_cast, reason = "the number is signed and has 32 bits on macOS")]
    pub fn id(&self) -> FileId {
        FileId { device: self.0.st_dev as u64, inode: self.0.st_ino }
    }

    /// Returns the type of the file.
    pub fn kind(&self) -> FileKind {
        FileType::from_raw_mode(self.0.st_mode).into()
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        u64::try_from(self.0.st_size).unwrap_or(0)
    }

    /// Returns the number of hard links.
    #[allow(
        clippy::useless_conversion,
        reason = "the number has a different width on other systems"
    )]
    pub fn link_count(&self) -> u64 {
        u64::from(self.0.st_nlink)
    }

    /// Returns the time of the last modification: seconds since 1970, and nanoseconds.
    #[allow(clippy::unnecessary_cast, reason = "the number is signed on macOS")]
    pub fn modified_at(&self) -> (i64, i64) {
        (self.0.st_mtime, self.0.st_mtime_nsec as i64)
    }

    /// Returns the time of the last access, in the form of [`modified_at`](Self::modified_at).
    #[allow(clippy::unnecessary_cast, reason = "the number is signed on macOS")]
    pub fn accessed_at(&self) -> (i64, i64) {
        (self.0.st_atime, self.0.st_atime_nsec as i64)
    }

    /// Returns the time of the last change of content or metadata, in the form of
    /// [`modified_at`](Self::modified_at).
    #[allow(clippy::unnecessary_cast, reason = "the number is signed on macOS")]
    pub fn changed_at(&self) -> (i64, i64) {
        (self.0.st_ctime, self.0.st_ctime_nsec as i64)
    }

    /// Returns the user id of the owner.
    pub fn owner(&self) -> u32 {
        self.0.st_uid
    }

    /// Returns the group id.
    pub fn group(&self) -> u32 {
        self.0.st_gid
    }

    /// Returns the permissions, as the bits of `chmod`.
    #[allow(
        clippy::useless_conversion,
        reason = "the number is wider on Linux than on other systems"
    )]
    pub fn mode(&self) -> u32 {
        u32::from(self.0.st_mode) & 0o7777
    }
}

impl From<FileType> for FileKind {
    fn from(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            FileType::CharacterDevice => Self::CharacterDevice,
            FileType::BlockDevice => Self::BlockDevice,
            FileType::Unknown => Self::Unknown,
        }
    }
}

/// Returns the identity of a file from the standard library's metadata.
pub fn id_of_metadata(metadata: &Metadata) -> FileId {
    FileId { device: metadata.dev(), inode: metadata.ino() }
}

/// Returns the user id of a file's owner.
pub fn owner_of_metadata(metadata: &Metadata) -> u32 {
    metadata.uid()
}

/// Returns the permissions of a file, as the bits of `chmod`.
pub fn mode_of_metadata(metadata: &Metadata) -> u32 {
    metadata.mode() & 0o7777
}
