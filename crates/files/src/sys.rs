//! What differs between systems: what a handle of a file is, how a path is opened without
//! links, and which file systems the kernel shows itself in.
//!
//! Everything else of this crate is what every Unix has. Linux is where it is tested.

use std::ffi::CString;
use std::fs::Metadata;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use kitbag_contract::FileId;
use rustix::fs::{OFlags, Stat, fstatfs};
#[cfg(not(target_os = "linux"))]
use rustix::io::Errno;

/// Opens anything, a link itself among it, as a handle that is only looked at.
pub const HANDLE: OFlags = handle();

#[cfg(target_os = "linux")]
const fn handle() -> OFlags {
    OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC)
}

/// Elsewhere a handle can be read from, and opening it does not wait.
#[cfg(not(target_os = "linux"))]
const fn handle() -> OFlags {
    let flags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
    flags.union(LINK_ITSELF).union(OFlags::CLOEXEC)
}

/// `O_SYMLINK`. Source: `bsd/sys/fcntl.h` of macOS.
#[cfg(target_vendor = "apple")]
const LINK_ITSELF: OFlags = OFlags::from_bits_retain(0x20_0000);
#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
const LINK_ITSELF: OFlags = OFlags::NOFOLLOW;

/// Opens an absolute path on which no link lies, in one call of the kernel.
///
/// # Errors
///
/// `ENOSYS` where the system has no such call, `ELOOP` for a link.
#[cfg(target_os = "linux")]
pub(crate) fn open_without_links(path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::{CWD, Mode, ResolveFlags, openat2};
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    // With both flags a link at the end would be opened itself.
    openat2(CWD, path, flags - OFlags::NOFOLLOW, Mode::empty(), resolve)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn open_without_links(_: &Path, _: OFlags) -> rustix::io::Result<OwnedFd> {
    Err(Errno::NOSYS)
}

/// Reads the link that a handle is open on.
///
/// # Errors
///
/// What the system says.
#[cfg(target_os = "linux")]
pub fn read_link(link: &OwnedFd) -> rustix::io::Result<CString> {
    rustix::fs::readlinkat(link, "", Vec::new())
}

/// Reads the link that a handle is open on, by the path that it has now.
///
/// # Errors
///
/// What the system says.
#[cfg(target_vendor = "apple")]
pub fn read_link(link: &OwnedFd) -> rustix::io::Result<CString> {
    rustix::fs::readlink(rustix::fs::getpath(link)?, Vec::new())
}

/// Reads no link: this system has no way to do that by a handle.
///
/// # Errors
///
/// Always `ENOSYS`.
#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
pub fn read_link(_: &OwnedFd) -> rustix::io::Result<CString> {
    Err(Errno::NOSYS)
}

/// What tells a file from everything else.
#[allow(clippy::unnecessary_cast, reason = "the number has 32 bits and a sign on macOS")]
pub fn id_of(stat: &Stat) -> FileId {
    FileId { device: stat.st_dev as u64, inode: stat.st_ino }
}

/// The same of what the standard library knows of a file.
pub(crate) fn id_of_metadata(metadata: &Metadata) -> FileId {
    FileId { device: metadata.dev(), inode: metadata.ino() }
}

/// When a file was last changed: seconds since 1970, and nanoseconds of the next one.
#[allow(clippy::unnecessary_cast, reason = "the number has a sign on macOS")]
pub fn modified_at(stat: &Stat) -> (i64, i64) {
    (stat.st_mtime, stat.st_mtime_nsec as i64)
}

/// The type of a file and who may do what with it.
#[allow(clippy::useless_conversion, reason = "the number is wider on Linux than elsewhere")]
pub fn mode_of(stat: &Stat) -> u32 {
    u32::from(stat.st_mode)
}

/// The name of the file system in which a file lies, where that is one in which the
/// kernel shows itself, its processes or its devices.
#[cfg(target_os = "linux")]
pub(crate) fn kernel_file_system(fd: impl AsFd) -> io::Result<Option<&'static str>> {
    // The kernel's numbers have 32 bits; the field's size depends on the processor.
    let magic = fstatfs(fd)?.f_type as u32;
    Ok(KERNEL.iter().find(|(known, _)| *known == magic).map(|(_, name)| *name))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn kernel_file_system(fd: impl AsFd) -> io::Result<Option<&'static str>> {
    let found = fstatfs(fd)?;
    let name = found.f_fstypename.iter().take_while(|&&byte| byte != 0);
    let name: Vec<u8> = name.map(|&byte| byte.cast_unsigned()).collect();
    Ok(KERNEL.iter().find(|known| known.as_bytes() == name).copied())
}

/// File systems in which the kernel shows itself, its processes or its devices.
///
/// Source: `include/uapi/linux/magic.h`, and for those that are not there the
/// file system's own source.
#[cfg(target_os = "linux")]
const KERNEL: &[(u32, &str)] = &[
    (0x0000_9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x7363_6673, "securityfs"),
    (0x6265_6570, "configfs"),
    (0xcafe_4a11, "bpf"),
    (0x6165_676c, "pstore"),
    (0xde5e_81e4, "efivarfs"),
    (0xf97c_ff8c, "selinuxfs"),
    (0x4341_5d53, "smackfs"),
    (0x4249_4e4d, "binfmt_misc"),
    (0x0000_1cd1, "devpts"),
    (0x1980_0202, "mqueue"),
    (0x6e73_6673, "nsfs"),
    (0x6573_5543, "fusectl"),
    (0x6759_6969, "rpc_pipefs"),
    (0x5a3c_69f0, "apparmorfs"),
    (0x6c6f_6f70, "binderfs"),
    (0x0765_5821, "resctrl"),
];
#[cfg(not(target_os = "linux"))]
const KERNEL: &[&str] = &["devfs", "procfs", "fdescfs", "linprocfs", "linsysfs"];
