//! The user whose process this is, and what others may do.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;

use rustix::fs::fgetxattr;
use rustix::io::Errno;

/// The user with whose rights this process acts.
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The user who started this process.
pub fn real_user() -> u32 {
    rustix::process::getuid().as_raw()
}

/// The permissions of a file that is the user's alone.
pub fn private_permissions() -> Permissions {
    Permissions::from_mode(0o600)
}

/// The permissions of a directory that is the user's alone.
pub fn private_directory_permissions() -> Permissions {
    Permissions::from_mode(0o700)
}

/// The permissions of any new file, before the user's mask takes some of them away.
pub fn new_permissions() -> Permissions {
    Permissions::from_mode(0o666)
}

/// Whether a file has an access control list, by which other users than those of its group may
/// write it; the bits for the group stand for these then. What cannot be found out counts as one.
pub(crate) fn has_access_list(file: &File) -> bool {
    let mut byte = [0_u8; 1];
    #[cfg(target_os = "linux")]
    let none = [Errno::NODATA, Errno::OPNOTSUPP];
    #[cfg(not(target_os = "linux"))]
    let none = [Errno::OPNOTSUPP];
    match fgetxattr(file, "system.posix_acl_access", &mut byte) {
        Err(error) => !none.contains(&error),
        Ok(_) => true,
    }
}
