//! File modes when one file replaces another.
//!
//! WASI has no modes. A tool that writes a new file and renames it over the old one, to lose
//! nothing if it is killed, would drop the executable bit and make a private file readable by
//! everyone. So a file that was created in this call gets the mode, owner and access control list
//! of the file that it replaces.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, fchown};

use kitbag_fs_guard::sys::open_at;
use kitbag_fs_guard::{OpenAs, Stat};
use rustix::fs::Mode;
use rustix::io::Errno;

/// Name prefix of temporary files. They are private to the user until they replace a file.
const PRIVATE: &str = ".kitbag-tmp-";

/// The bits that are copied. Excludes setuid and setgid, which were granted to other content.
const COPIED: u32 = 0o777;

const GROUP: u32 = 0o070;

/// Returns the mode of a new file with this name, before the umask.
pub(super) fn of_new_file(name: &str) -> Mode {
    match name.starts_with(PRIVATE) {
        true => Mode::RUSR | Mode::WUSR,
        false => Mode::from_raw_mode(0o666),
    }
}

/// Copies permissions of the file to be replaced to a new file, given by its directory, its name
/// and its identity when found. If a part cannot be copied, the new file has fewer rights than the
/// old one, never more.
///
/// # Errors
///
/// Fails if the new file has been replaced, or if it would be more accessible than the old one.
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
        // A process that may not change the owner may still set one of its own groups.
        let given = fchown(&new, owner, group).or_else(|_| fchown(&new, None, group));
        if given.is_err() {
            mode &= !GROUP;
        }
    }
    // With an access control list, the mode shows the mask of the list as the group rights.
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

/// Copies the access control list, or removes the list that the new file inherited from its
/// directory.
#[cfg(target_os = "linux")]
fn copy_access_list(old: io::Result<File>, new: &File) -> io::Result<()> {
    use rustix::fs::{XattrFlags, fgetxattr, fremovexattr, fsetxattr};
    /// Source: `XATTR_NAME_POSIX_ACL_ACCESS` of Linux.
    const NAME: &str = "system.posix_acl_access";
    /// A list has 8 bytes per entry; file systems allow some hundreds of entries.
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

/// Other systems keep lists separate from the mode, which is not their mask.
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

    /// Returns the mode of a new file after it replaces an old one.
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
    fn the_mode_is_copied_without_setuid_and_setgid() {
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
    fn a_replaced_new_file_gets_no_permissions() {
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
    fn temporary_files_are_private() {
        assert_eq!(of_new_file(".kitbag-tmp-1").as_raw_mode(), 0o600);
        assert_eq!(of_new_file("a").as_raw_mode(), 0o666);
    }
}
