//! Opening files and directories, and handles that are only looked at.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

/// How something is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenAs {
    /// A handle that neither reads nor writes; of anything, a link itself among it.
    Handle,
    /// A directory, as such a handle. [`open`](crate::open) checks its file system.
    Directory,
    /// A directory whose entries can be read.
    Entries,
    /// A file that is read. Nothing waits: what it is has to be looked at on the
    /// descriptor.
    File,
}

/// Opens anything, a link itself among it, as a handle that is only looked at.
#[cfg(target_os = "linux")]
const HANDLE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Elsewhere a handle can be read from, and opening it does not wait.
#[cfg(not(target_os = "linux"))]
const HANDLE: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(LINK_ITSELF)
    .union(OFlags::CLOEXEC);

/// `O_SYMLINK`. Source: `bsd/sys/fcntl.h` of macOS.
#[cfg(target_vendor = "apple")]
const LINK_ITSELF: OFlags = OFlags::from_bits_retain(0x20_0000);
#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
const LINK_ITSELF: OFlags = OFlags::NOFOLLOW;

/// Reading without waiting: what is there may be a FIFO, or a terminal.
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// A directory whose entries can be read.
const ENTRIES: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl OpenAs {
    fn flags(self) -> OFlags {
        match self {
            Self::Handle => HANDLE,
            Self::Directory => HANDLE | OFlags::DIRECTORY,
            Self::Entries => ENTRIES | OFlags::NOFOLLOW,
            Self::File => READ | OFlags::NOFOLLOW,
        }
    }
}

/// Opens what has a name in a directory. A link is not followed: it is opened itself as a
/// handle, and an error otherwise.
///
/// # Errors
///
/// Those of the system; see [`is_link_error`](super::is_link_error) for a link.
pub fn open_at(directory: &File, name: impl AsRef<Path>, as_what: OpenAs) -> io::Result<File> {
    open_in(directory, name.as_ref(), as_what.flags())
}

/// Opens for reading what a name in a directory leads to, by whatever links.
///
/// # Errors
///
/// Those of the system.
pub fn open_following_links_at(directory: &File, name: &Path) -> io::Result<File> {
    open_in(directory, name, READ)
}

/// Opens the directory of a handle once more, so that its entries can be read.
///
/// # Errors
///
/// Those of the system.
pub fn read_again(directory: &File) -> io::Result<File> {
    open_in(directory, Path::new("."), ENTRIES)
}

/// Opens a directory whose entries can be read. A link at the end of the path is not followed.
///
/// # Errors
///
/// As for [`open_at`].
pub fn open_directory(path: &Path) -> io::Result<File> {
    open_in(CWD, path, OpenAs::Entries.flags())
}

/// The same, by whatever links.
///
/// # Errors
///
/// Those of the system.
pub fn open_directory_following_links(path: &Path) -> io::Result<File> {
    open_in(CWD, path, ENTRIES)
}

/// A handle of the root directory.
pub(crate) fn open_root() -> io::Result<File> {
    open_in(CWD, Path::new("/"), HANDLE)
}

/// Opens an absolute path on which no link lies, in one call of the kernel. `None` for a link,
/// and where the system has no such call or keeps it from this process.
#[cfg(target_os = "linux")]
pub(crate) fn open_without_links(path: &Path, as_what: OpenAs) -> io::Result<Option<File>> {
    use rustix::fs::{ResolveFlags, openat2};
    use rustix::io::Errno;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    // With both flags a link at the end would be opened itself.
    match openat2(CWD, path, as_what.flags() - OFlags::NOFOLLOW, Mode::empty(), resolve) {
        Ok(opened) => Ok(Some(opened.into())),
        Err(Errno::NOSYS | Errno::PERM | Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn open_without_links(_: &Path, _: OpenAs) -> io::Result<Option<File>> {
    Ok(None)
}

/// Reads the link that a handle is open on: on macOS by the path that it has now.
///
/// # Errors
///
/// Those of the system; always on one that is neither Linux nor Apple's.
pub fn read_link(link: &File) -> io::Result<PathBuf> {
    let text = link_text(link)?;
    Ok(PathBuf::from(OsString::from_vec(text.into_bytes())))
}

#[cfg(target_os = "linux")]
fn link_text(link: &File) -> rustix::io::Result<std::ffi::CString> {
    rustix::fs::readlinkat(link, "", Vec::new())
}

#[cfg(target_vendor = "apple")]
fn link_text(link: &File) -> rustix::io::Result<std::ffi::CString> {
    rustix::fs::readlink(rustix::fs::getpath(link)?, Vec::new())
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn link_text(_: &File) -> rustix::io::Result<std::ffi::CString> {
    Err(rustix::io::Errno::NOSYS)
}

/// Makes a directory that is the user's alone.
///
/// # Errors
///
/// Those of the system; [`io::ErrorKind::AlreadyExists`] where something is there.
pub fn create_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Makes a directory, and those above it that are missing, where it is not there: all of them are
/// the user's alone.
///
/// # Errors
///
/// Those of the system.
pub fn create_private_directories(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The same options, for a file that is the user's alone where it is made.
pub fn with_private_mode(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// The same. Besides, neither a link nor a FIFO in its place leads elsewhere or blocks.
pub fn private_file(options: &mut OpenOptions) -> &mut OpenOptions {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    with_private_mode(options).custom_flags(flags.bits().cast_signed())
}

/// The same options, with which a FIFO does not block.
pub fn nonblocking(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed())
}

fn open_in(directory: impl AsFd, name: &Path, flags: OFlags) -> io::Result<File> {
    Ok(openat(directory, name, flags, Mode::empty())?.into())
}
