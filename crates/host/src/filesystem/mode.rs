//! The mode of a file that takes the place of another.
//!
//! WASI has no modes. A tool that replaces a file by a new one, so that nothing is lost where
//! it is killed, would take the executable bit from it, and give everybody what only its
//! owner could read. So the host gives a file that was made in this call the mode, the owner
//! and the access control list of the one whose place it takes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Gid, Mode, OFlags, Stat, Uid, fchmod, fchown, fstat, openat};
use rustix::io::{Errno, Result};

use kitbag_files::id_of;

/// How the names begin of files that replace others: they are the user's alone until then.
const PRIVATE: &str = ".kitbag-tmp-";

/// The bits that are copied: not those that let a program run as another user or group,
/// which were given to other content.
const COPIED: Mode = Mode::RWXU.union(Mode::RWXG).union(Mode::RWXO);

/// The mode of a new file of this name, before the umask.
pub(super) fn of_new_file(name: &str) -> Mode {
    match name.starts_with(PRIVATE) {
        true => Mode::RUSR | Mode::WUSR,
        false => Mode::from_raw_mode(0o666),
    }
}

/// Gives a new file, by its directory, its name and what was found there, what is
/// remembered of the file that it is going to replace. Where a part of that cannot be given,
/// the new file has fewer rights than the old one, never more.
///
/// # Errors
///
/// The new file is another one by now, or would be open to more than the old one was.
pub(super) fn copy(
    (old, old_name, old_stat): (BorrowedFd<'_>, &str, &Stat),
    (new, new_name, new_stat): (BorrowedFd<'_>, &str, &Stat),
) -> Result<()> {
    let new = open(new, new_name)?;
    let found = fstat(&new)?;
    if id_of(&found) != id_of(new_stat) {
        return Err(Errno::BUSY);
    }
    let mut mode = Mode::from_raw_mode(old_stat.st_mode) & COPIED;
    if (found.st_uid, found.st_gid) != (old_stat.st_uid, old_stat.st_gid) {
        let group = Some(Gid::from_raw(old_stat.st_gid));
        let owner = Some(Uid::from_raw(old_stat.st_uid));
        // A process without the right to give files to another owner can still give them to
        // one of its own groups.
        let given = fchown(&new, owner, group).or_else(|_| fchown(&new, None, group));
        if given.is_err() {
            mode -= Mode::RWXG;
        }
    }
    // The mode shows the list's mask as the rights of the group.
    if copy_access_list(open(old, old_name), &new).is_err() {
        mode -= Mode::RWXG;
    }
    let before = Mode::from_raw_mode(fstat(&new)?.st_mode) & Mode::from_raw_mode(0o7777);
    if before == mode {
        return Ok(());
    }
    match fchmod(&new, mode) {
        // A file system without modes.
        Err(_) if (before - mode).is_empty() => Ok(()),
        result => result,
    }
}

fn open(directory: BorrowedFd<'_>, name: &str) -> Result<OwnedFd> {
    // Not blocking: it may have become a FIFO.
    let flags =
        OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    openat(directory, name, flags, Mode::empty())
}

/// Copies the access control list, or takes away the one that the new file has from its
/// directory.
#[cfg(target_os = "linux")]
fn copy_access_list(old: Result<OwnedFd>, new: impl AsFd) -> Result<()> {
    use rustix::fs::{XattrFlags, fgetxattr, fremovexattr, fsetxattr};
    /// Source: `XATTR_NAME_POSIX_ACL_ACCESS` of Linux.
    const NAME: &str = "system.posix_acl_access";
    /// A list of 8 bytes for each entry, of which a file system takes some hundreds.
    const LIST_BYTES: usize = 64 << 10;
    let mut list = vec![0; LIST_BYTES];
    let none = |error| matches!(error, Errno::NODATA | Errno::NOTSUP);
    match fgetxattr(old?, NAME, &mut list[..]) {
        Ok(length) => fsetxattr(new, NAME, &list[..length], XattrFlags::empty()),
        Err(error) if none(error) => match fremovexattr(new, NAME) {
            Err(error) if !none(error) => Err(error),
            _ => Ok(()),
        },
        Err(error) => Err(error),
    }
}

/// Elsewhere lists are kept beside the mode, which is not their mask.
#[cfg(not(target_os = "linux"))]
fn copy_access_list(_: Result<OwnedFd>, _: impl AsFd) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;

    use super::*;

    fn stat(path: &Path) -> Stat {
        fstat(File::open(path).unwrap()).unwrap()
    }

    /// What becomes of the mode of a new file in the place of an old one.
    fn copied(old_mode: u32, new_mode: u32) -> u32 {
        let directory = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| directory.path().join(name));
        for (path, mode) in [(&old, old_mode), (&new, new_mode)] {
            fs::write(path, "").unwrap();
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        let handle = File::open(directory.path()).unwrap();
        copy((handle.as_fd(), "old", &stat(&old)), (handle.as_fd(), "new", &stat(&new))).unwrap();
        fs::metadata(&new).unwrap().mode() & 0o7777
    }

    #[test]
    fn the_mode_is_that_of_the_old_file_without_the_bits_that_let_it_run_as_another() {
        for (old, new, expected) in [
            (0o644, 0o600, 0o644),
            (0o755, 0o600, 0o755),
            (0o600, 0o644, 0o600),
            (0o6755, 0o644, 0o755),
            (0o1777, 0o644, 0o777),
            (0o644, 0o4755, 0o644),
        ] {
            assert_eq!(copied(old, new), expected, "{old:o} {new:o}");
        }
    }

    #[test]
    fn another_file_than_was_found_gets_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| directory.path().join(name));
        fs::write(&old, "").unwrap();
        fs::write(&new, "").unwrap();
        let handle = File::open(directory.path()).unwrap();
        let (old, other) = (stat(&old), stat(&old));
        let result = copy((handle.as_fd(), "old", &old), (handle.as_fd(), "new", &other));
        assert_eq!(result, Err(Errno::BUSY));
    }

    #[test]
    fn what_replaces_a_file_is_private_until_then() {
        assert_eq!(of_new_file(".kitbag-tmp-1").as_raw_mode(), 0o600);
        assert_eq!(of_new_file("a").as_raw_mode(), 0o666);
    }
}
