//! The user of this process, and permissions.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;

use rustix::fs::fgetxattr;
use rustix::io::Errno;

/// Returns the effective user id of this process.
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns the real user id of this process.
pub fn real_user() -> u32 {
    rustix::process::getuid().as_raw()
}

/// Returns the permissions of a file that only the user can access.
pub fn private_permissions() -> Permissions {
    Permissions::from_mode(0o600)
}

/// Returns the permissions of a directory that only the user can access.
pub fn private_directory_permissions() -> Permissions {
    Permissions::from_mode(0o700)
}

/// Returns the permissions of a new file before the umask is applied.
pub fn new_permissions() -> Permissions {
    Permissions::from_mode(0o666)
}

/// Returns true if a file has an access control list, through which other users than members of its
/// group may write it; the group bits are then the mask of the list. Also true if that is unknown.
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
