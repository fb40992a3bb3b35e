//! The mode of a file that takes the place of another.
//!
//! WASI has no modes. A tool that replaces a file by a new one, so that nothing is lost where
//! it is killed, would take the executable bit from it, and give everybody what only its
//! owner could read. So the host gives a file that was made in this call the mode, the owner
//! and the access control list of the one whose place it takes.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, fchown};

use kitbag_fs_guard::sys::open_at;
use kitbag_fs_guard::{OpenAs, Stat};
use rustix::fs::Mode;
use rustix::io::Errno;

/// How the names begin of files that replace others: they are the user's alone until then.
const PRIVATE: &str = ".kitbag-tmp-";

/// The bits that are copied: not those that let a program run as another user or group,
/// which were given to other content.
const COPIED: u32 = 0o777;

const GROUP: u32 = 0o070;

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
pub(crate) fn copy_permissions(
    (old, old_name, old_stat): (&File, &str, &Stat),
    (new, new_name, new_stat): (&File, &str, &Stat),
) -> io::Result<()> {
    let new = open_at(new, new_name, OpenAs::File)?;
    let found = Stat::of(&new)?;
    if found.id() != new_stat.id() {
        return Err(Errno::BUSY.into());
    }
    let mut mode = old_stat.mode() & COPIED;
    let (owner, group) = (old_stat.owner(), old_stat.group());
    if (found.owner(), found.group()) != (owner, group) {
        let (owner, group) = (Some(owner), Some(group));
        // A process without the right to give files to another owner can still give them to
        // one of its own groups.
        let given = fchown(&new, owner, group).or_else(|_| fchown(&new, None, group));
        if given.is_err() {
            mode &= !GROUP;
        }
    }
    // The mode shows the list's mask as the rights of the group.
    if copy_access_list(open_at(old, old_name, OpenAs::File), &new).is_err() {
        mode &= !GROUP;
    }
    let before = Stat::of(&new)?.mode();
    if before == mode {
        return Ok(());
    }
    match new.set_permissions(Permissions::from_mode(mode)) {
        // A file system without modes.
        Err(_) if before & !mode == 0 => Ok(()),
        result => result,
    }
}

/// Copies the access control list, or takes away the one that the new file has from its
/// directory.
#[cfg(target_os = "linux")]
fn copy_access_list(old: io::Result<File>, new: &File) -> io::Result<()> {
    use rustix::fs::{XattrFlags, fgetxattr, fremovexattr, fsetxattr};
    /// Source: `XATTR_NAME_POSIX_ACL_ACCESS` of Linux.
    const NAME: &str = "system.posix_acl_access";
    /// A list of 8 bytes for each entry, of which a file system takes some hundreds.
    const LIST_BYTES: usize = 64 << 10;
    let mut list = vec![0; LIST_BYTES];
    let none = |error| matches!(error, Errno::NODATA | Errno::NOTSUP);
    match fgetxattr(old?, NAME, &mut list[..]) {
        Ok(length) => Ok(fsetxattr(new, NAME, &list[..length], XattrFlags::empty())?),
        Err(error) if none(error) => match fremovexattr(new, NAME) {
            Err(error) if !none(error) => Err(error.into()),
            _ => Ok(()),
        },
        Err(error) => Err(error.into()),
    }
}

/// Elsewhere lists are kept beside the mode, which is not their mask.
#[cfg(not(target_os = "linux"))]
fn copy_access_list(_: io::Result<File>, _: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use kitbag_fs_guard::sys::mode_of_metadata;

    use super::*;

    fn stat(path: &Path) -> Stat {
        Stat::of_path(path).unwrap()
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
        copy_permissions((&handle, "old", &stat(&old)), (&handle, "new", &stat(&new))).unwrap();
        mode_of_metadata(&fs::metadata(&new).unwrap())
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
        let result = copy_permissions((&handle, "old", &old), (&handle, "new", &other));
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::ResourceBusy);
    }

    #[test]
    fn what_replaces_a_file_is_private_until_then() {
        assert_eq!(of_new_file(".kitbag-tmp-1").as_raw_mode(), 0o600);
        assert_eq!(of_new_file("a").as_raw_mode(), 0o666);
    }
}
