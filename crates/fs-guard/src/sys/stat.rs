//! What is known of a file.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use kitbag_base::FileId;
use rustix::fs::{AtFlags, FileType, fstat, lstat, stat, statat};

/// What the system knows of a file at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Stat(rustix::fs::Stat);

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A pipe with a name.
    Fifo,
    /// A socket with a name.
    Socket,
    /// A device that is read in characters.
    CharacterDevice,
    /// A device that is read in blocks.
    BlockDevice,
    /// Something else, or a file system does not say what.
    Unknown,
}

impl Stat {
    /// What a handle is open on.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn of(file: &File) -> io::Result<Self> {
        Ok(Self(fstat(file)?))
    }

    /// What has a name in a directory: a link itself, where it is one.
    ///
    /// # Errors
    ///
    /// Those of the system; [`io::ErrorKind::NotFound`] where there is nothing.
    pub fn at(directory: &File, name: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self(statat(directory, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// What a name in a directory leads to, by whatever links.
    ///
    /// # Errors
    ///
    /// As for [`at`](Self::at).
    pub fn following_links_at(directory: &File, name: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self(statat(directory, name.as_ref(), AtFlags::empty())?))
    }

    /// What lies at a path: a link itself, where it is one.
    ///
    /// # Errors
    ///
    /// As for [`at`](Self::at).
    pub fn of_path(path: &Path) -> io::Result<Self> {
        Ok(Self(lstat(path)?))
    }

    /// What a path leads to, by whatever links.
    ///
    /// # Errors
    ///
    /// As for [`at`](Self::at).
    pub fn following_links(path: &Path) -> io::Result<Self> {
        Ok(Self(stat(path)?))
    }

    /// What tells the file from everything else.
    #[allow(clippy::unnecessary_cast, reason = "the number has 32 bits and a sign on macOS")]
    pub fn id(&self) -> FileId {
        FileId { device: self.0.st_dev as u64, inode: self.0.st_ino }
    }

    /// What it is.
    pub fn kind(&self) -> FileKind {
        FileType::from_raw_mode(self.0.st_mode).into()
    }

    /// Its size, in bytes.
    pub fn size(&self) -> u64 {
        u64::try_from(self.0.st_size).unwrap_or(0)
    }

    /// How many names it has.
    #[allow(clippy::useless_conversion, reason = "the number has other widths elsewhere")]
    pub fn link_count(&self) -> u64 {
        u64::from(self.0.st_nlink)
    }

    /// When it was last changed: seconds since 1970, and nanoseconds of the next one.
    #[allow(clippy::unnecessary_cast, reason = "the number has a sign on macOS")]
    pub fn modified_at(&self) -> (i64, i64) {
        (self.0.st_mtime, self.0.st_mtime_nsec as i64)
    }

    /// The user that it belongs to.
    pub fn owner(&self) -> u32 {
        self.0.st_uid
    }

    /// The group that it belongs to.
    pub fn group(&self) -> u32 {
        self.0.st_gid
    }

    /// Who may do what with it, as the bits of `chmod` say it.
    #[allow(clippy::useless_conversion, reason = "the number is wider on Linux than elsewhere")]
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

/// What tells a file from everything else, by what the standard library knows of it.
pub fn id_of_metadata(metadata: &Metadata) -> FileId {
    FileId { device: metadata.dev(), inode: metadata.ino() }
}

/// The user that a file belongs to.
pub fn owner_of_metadata(metadata: &Metadata) -> u32 {
    metadata.uid()
}

/// Who may do what with a file, as the bits of `chmod` say it.
pub fn mode_of_metadata(metadata: &Metadata) -> u32 {
    metadata.mode() & 0o7777
}
