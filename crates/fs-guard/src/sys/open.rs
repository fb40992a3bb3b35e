//! Opens files, directories and handles.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

/// The way to open an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenAs {
    /// A handle for any entry, including a link, that can be neither read nor written.
    Handle,
    /// A handle for a directory. [`open`](crate::open) checks its file system.
    Directory,
    /// A directory whose entries can be read.
    Entries,
    /// A readable file. Opening never blocks; the caller must check the file type on the
    /// descriptor.
    File,
}

/// Opens any entry, including a link, as a handle without access to its contents.
#[cfg(target_os = "linux")]
const HANDLE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Other systems have only readable handles; opening one does not block.
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

/// Opens for reading without blocking: the entry may be a FIFO or a terminal.
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

/// Opens an entry of a directory. Does not follow links: a link is opened only as a handle and is
/// an error otherwise.
///
/// # Errors
///
/// Errors of the system; see [`is_link_error`](super::is_link_error) for a link.
pub fn open_at(directory: &File, name: impl AsRef<Path>, as_what: OpenAs) -> io::Result<File> {
    open_in(directory, name.as_ref(), as_what.flags())
}

/// Opens the target of a directory entry for reading. Follows links.
///
/// # Errors
///
/// Errors of the system.
pub fn open_following_links_at(directory: &File, name: &Path) -> io::Result<File> {
    open_in(directory, name, READ)
}

/// Reopens a directory handle to read its entries.
///
/// # Errors
///
/// Errors of the system.
pub fn read_again(directory: &File) -> io::Result<File> {
    open_in(directory, Path::new("."), ENTRIES)
}

/// Opens a directory to read its entries. Does not follow a link at the end of the path.
///
/// # Errors
///
/// As for [`open_at`].
pub fn open_directory(path: &Path) -> io::Result<File> {
    open_in(CWD, path, OpenAs::Entries.flags())
}

/// Opens a directory to read its entries. Follows links.
///
/// # Errors
///
/// Errors of the system.
pub fn open_directory_following_links(path: &Path) -> io::Result<File> {
    open_in(CWD, path, ENTRIES)
}

/// Opens a handle to the root directory.
pub(crate) fn open_root() -> io::Result<File> {
    open_in(CWD, Path::new("/"), HANDLE)
}

/// Opens an absolute path without links in one system call. Returns `None` if the path has a link
/// or the system call is not available.
#[cfg(target_os = "linux")]
pub(crate) fn open_without_links(path: &Path, as_what: OpenAs) -> io::Result<Option<File>> {
    use rustix::fs::{ResolveFlags, openat2};
    use rustix::io::Errno;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    // With both flags, a link at the end would itself be opened.
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

/// Returns the target of the link that a handle refers to. macOS uses the link's current path.
///
/// # Errors
///
/// Errors of the system; always an error on systems other than Linux and Apple's.
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

/// Creates a directory that only the user can access.
///
/// # Errors
///
/// Errors of the system; [`io::ErrorKind::AlreadyExists`] if the path exists.
pub fn create_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Creates a directory and its missing parents. Only the user can access them.
///
/// # Errors
///
/// Errors of the system.
pub fn create_private_directories(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Adds the mode of a file that only the user can access.
pub fn with_private_mode(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Adds the private mode, refuses links and does not block on a FIFO.
pub fn private_file(options: &mut OpenOptions) -> &mut OpenOptions {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    with_private_mode(options).custom_flags(flags.bits().cast_signed())
}

/// Adds the flag that prevents blocking on a FIFO.
pub fn nonblocking(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed())
}

fn open_in(directory: impl AsFd, name: &Path, flags: OFlags) -> io::Result<File> {
    Ok(openat(directory, name, flags, Mode::empty())?.into())
}
