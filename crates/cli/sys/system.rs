//! Facts about the system, for `kitbag doctor`.

use std::io;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

/// The type of a file system.
pub(crate) struct FileSystem {
    pub(crate) name: &'static str,
    /// Its files are on another machine, or in a program.
    pub(crate) is_remote: bool,
}

/// The types of file systems on Linux, by their magic numbers (statfs(2)).
#[cfg(target_os = "linux")]
const FILE_SYSTEMS: [(u32, &str, bool); 13] = [
    (0x0000_ef53, "ext4", false),
    (0x5846_5342, "xfs", false),
    (0x9123_683e, "btrfs", false),
    (0x2fc1_2fc1, "zfs", false),
    (0xf2f5_2010, "f2fs", false),
    (0x0102_1994, "tmpfs", false),
    (0x794c_7630, "overlay", false),
    (0x0000_6969, "nfs", true),
    (0x0000_517b, "smb", true),
    (0xfe53_4d42, "smb2", true),
    (0xff53_4d42, "cifs", true),
    (0x0102_1997, "9p", true),
    (0x6573_5546, "fuse", true),
];

/// Returns the type of the file system at a path.
///
/// # Errors
///
/// If the path cannot be examined.
#[cfg(target_os = "linux")]
pub(crate) fn file_system(path: &Path) -> io::Result<FileSystem> {
    let found = rustix::fs::statfs(path)?.f_type;
    // The numbers have 32 bits; some systems extend their sign.
    let is_it =
        |(magic, _, _): &&(u32, &str, bool)| found.to_le_bytes()[..4] == magic.to_le_bytes();
    let known = FILE_SYSTEMS.iter().find(is_it);
    let (_, name, is_remote) = known.copied().unwrap_or((0, "of another type", false));
    Ok(FileSystem { name, is_remote })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn file_system(_: &Path) -> io::Result<FileSystem> {
    Ok(FileSystem { name: "unknown", is_remote: false })
}

/// Returns whether the system call `openat2` works. `None`: the system has no such call.
#[cfg(target_os = "linux")]
pub(crate) fn has_openat2() -> Option<bool> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Some(openat2(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve).is_ok())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn has_openat2() -> Option<bool> {
    None
}

/// Returns the limits of a process on its address space and on open files. `None`: unlimited.
pub(crate) fn process_limits() -> (Option<u64>, Option<u64>) {
    (getrlimit(Resource::As).current, getrlimit(Resource::Nofile).current)
}
