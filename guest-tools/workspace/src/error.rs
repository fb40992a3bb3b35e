//! Descriptions of system errors.

use std::fs::File;
use std::io;

use kitbag_sdk::ErrorInfo;

use crate::cut::shown;
use crate::entries::{Granted, Kind, granted, report_outside, stat, stat_link};
use crate::location::Location;
use crate::nearest::nearest_paths;

/// The names of entries that no tool may change.
const SEALED: [&str; 4] = [".git", ".hg", ".jj", ".kitbag"];

/// Explains why an operation on a path failed, and how to fix it. `action` is the attempted action,
/// such as `read` or `written`.
///
/// The host has a single error (`EPERM`) for all refusals: a path outside of the granted
/// directories, a secret, a change in a read-only directory, or a change of an entry that no tool
/// may change. This function determines the reason. After the error for a secret the host adds the
/// configuration line that allows it.
pub fn explain(location: &Location, action: &str, error: &io::Error) -> ErrorInfo {
    let given = shown(&location.given);
    let failed = |why: &str| ErrorInfo::new(format!("`{given}` cannot be {action}: {why}"));
    match error.raw_os_error() {
        Some(libc::EPERM) => failed(&refused(location)),
        // The guest's C library knows only the granted directories.
        Some(libc::ENOENT) if !is_granted(location) => failed(&refused(location)),
        Some(libc::ENOENT) => missing(location),
        Some(libc::EACCES) => failed("the permissions of the file system do not allow it"),
        Some(libc::EEXIST) => ErrorInfo::new(format!("`{given}` exists already")),
        Some(libc::EISDIR) => failed("it is a directory"),
        Some(libc::ENOTDIR) => failed("a part of the path, or the path itself, is not a directory"),
        Some(libc::ENOTEMPTY) => failed("the directory is not empty"),
        Some(libc::ELOOP) => failed("its symbolic links form a loop"),
        Some(libc::ENAMETOOLONG) => failed("the name is too long"),
        Some(libc::EILSEQ) => failed("a name in the path is not Unicode"),
        Some(libc::EXDEV) => failed("it cannot be moved to another file system"),
        Some(libc::EROFS) => failed("the file system is read-only"),
        Some(libc::ENOSPC) => {
            failed("the disk is full, or the call has written as much as its limit allows")
        }
        Some(libc::EDQUOT) => failed("the quota of the disk is used up"),
        Some(libc::EFBIG) => failed("the file would be larger than the system allows"),
        Some(libc::EBUSY) => failed("it is in use").transient(),
        Some(libc::ENOTSUP) => failed("it is a FIFO, a socket or a device"),
        Some(libc::EINVAL) => failed("the system does not accept such a path"),
        _ => failed(&error.to_string()),
    }
}

/// Refuses a change that the host would refuse, as far as that is known in advance: for a tool that
/// asks a person first.
///
/// # Errors
///
/// As for [`explain`].
pub fn check_changeable(location: &Location, action: &str) -> Result<(), ErrorInfo> {
    let directories = granted();
    let inside = directories.iter().filter(|directory| is_inside(location, directory));
    let is_writable = inside.max_by_key(|it| it.path.len()).is_some_and(|it| it.is_writable);
    if !is_writable || location.path.split('/').any(is_sealed) {
        return Err(explain(location, action, &io::Error::from_raw_os_error(libc::EPERM)));
    }
    match stat_link(&location.path) {
        // The host refuses to open it, and names the setting that would allow it.
        Ok(found) if found.kind == Kind::Secret => match File::open(&location.path) {
            Err(error) => Err(explain(location, action, &error)),
            Ok(_) => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Returns true if no tool may change entries with this name or anything in a directory with this
/// name.
pub fn is_sealed(name: &str) -> bool {
    SEALED.contains(&name.to_lowercase().as_str())
}

/// Returns true if a path is in a granted directory.
pub fn is_granted(location: &Location) -> bool {
    granted().iter().any(|directory| is_inside(location, directory))
}

fn is_inside(location: &Location, directory: &Granted) -> bool {
    let rest = location.path.strip_prefix(directory.path.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Lists the paths of granted directories for a message.
fn listed(directories: &[Granted]) -> String {
    let paths: Vec<_> = directories.iter().map(|it| format!("`{}`", it.path)).collect();
    match paths.as_slice() {
        [] => "nothing".to_owned(),
        paths => paths.join(", "),
    }
}

/// Returns true if a path starts with a Windows drive or server, as in `C:\src` and `\\host\share`.
/// The host has already replaced such paths of granted directories.
fn is_of_windows(path: &str) -> bool {
    match path.as_bytes() {
        [drive, b':', b'\\' | b'/', ..] => drive.is_ascii_alphabetic(),
        bytes => bytes.starts_with(br"\\"),
    }
}

/// Explains why the host refuses a path.
fn refused(location: &Location) -> String {
    let directories = granted();
    let inside = |directory: &&Granted| is_inside(location, directory);
    let paths = listed(&directories);
    let Some(directory) = directories.iter().filter(inside).max_by_key(|it| it.path.len()) else {
        report_outside(&location.path);
        let inner = location.path.trim_start_matches('/');
        let is_there = |directory: &Granted| {
            directory.path != "/" && stat(&format!("{}/{inner}", directory.path)).is_ok()
        };
        let hint = match directories.iter().any(is_there) {
            true if inner.is_empty() => "and `.` is that directory".to_owned(),
            true => format!("`{inner}` is there"),
            false => "such as `src/main.rs`".to_owned(),
        };
        return format!(
            "it is outside the granted directories ({paths}); paths are relative to them, {hint}"
        );
    };
    let found = stat(&location.path);
    if found.as_ref().is_ok_and(|it| it.kind == Kind::Secret) {
        return "it looks like a secret".to_owned();
    }
    let leads_out = |error: &io::Error| error.raw_os_error() == Some(libc::EPERM);
    if found.as_ref().is_err_and(leads_out) {
        return match stat_link(&location.path) {
            Ok(link) if link.kind == Kind::Link => {
                format!("the link leads out of the granted directories ({paths})")
            }
            _ => format!("it leads out of the granted directories ({paths}), or into a secret"),
        };
    }
    if !directory.is_writable {
        return format!("`{}` is granted read-only", directory.path);
    }
    match location.path.split('/').find(|name| is_sealed(name)) {
        Some(name) => format!("tools may not change `{}`", shown(name)),
        None => "it has the name of a secret, or belongs to a repository, to the configuration of \
                 kitbag or to its files, which tools may not change"
            .to_owned(),
    }
}

/// Explains a missing path, with the existing alternatives.
fn missing(location: &Location) -> ErrorInfo {
    let given = shown(&location.given);
    if stat_link(&location.path).is_ok_and(|it| it.kind == Kind::Link) {
        return ErrorInfo::new(format!("`{given}` is a link whose target does not exist"));
    }
    if is_of_windows(&location.given) {
        return ErrorInfo::new(format!(
            "`{given}` is outside the granted directories ({}); use a relative path, such as \
             `src/main.rs`",
            listed(&granted())
        ));
    }
    let near = match bare(location) {
        Some(path) => vec![path],
        None => nearest_paths(location),
    };
    let near: Vec<_> = near.iter().map(|path| format!("`{}`", shown(path))).collect();
    let near = match near.as_slice() {
        [] => String::new(),
        near => format!("; nearest: {}", near.join(", ")),
    };
    ErrorInfo::new(format!("`{given}` does not exist{near}"))
}

/// Returns the path without a leading mark or trailing line number, as in `@src/main.rs:12`, if it
/// exists.
fn bare(location: &Location) -> Option<String> {
    let is_place = |text: &str| {
        let text = text.trim_start_matches('L');
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let mut given = location.given.as_str();
    while let Some((path, _)) = given.rsplit_once([':', '#']).filter(|(_, place)| is_place(place)) {
        given = path;
    }
    let removed = location.given.len() - given.len();
    let path = location.path.get(..location.path.len().checked_sub(removed)?)?;
    let (path, given) = match given.strip_prefix('@') {
        Some(name) => (format!("{}{name}", path.strip_suffix(given)?), name),
        None => (path.to_owned(), given),
    };
    (given != location.given && stat(&path).is_ok()).then(|| given.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use kitbag_sdk::Call;

    use super::*;

    #[test]
    fn errors_name_the_given_path_and_a_fix() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("main.rs"), "").unwrap();
        symlink("nowhere", directory.path().join("link")).unwrap();
        let call = Call::new("t", directory.path().to_str().unwrap(), "{}", "{}");
        let check = |given: &str, expected: &str| {
            let location = Location::new(&call, given).unwrap();
            let error = fs::read_dir(&location.path).unwrap_err();
            assert_eq!(explain(&location, "listed", &error).message, expected);
        };
        check("mian.rs", "`mian.rs` does not exist; nearest: `main.rs`");
        check("link", "`link` is a link whose target does not exist");
        check("xyz", "`xyz` does not exist");
        for given in [r"C:\src\a.rs", "d:/src/a.rs", r"\\host\share\a.rs"] {
            let expected = format!(
                "`{given}` is outside the granted directories (`/`); use a relative path, such \
                 as `src/main.rs`"
            );
            check(given, &expected);
        }
        check("c:a", "`c:a` does not exist");
        for given in ["main.rs:12", "main.rs:12:5", "main.rs#L12", "@main.rs", "@main.rs:1"] {
            check(given, &format!("`{given}` does not exist; nearest: `main.rs`"));
        }
        check(
            "main.rs",
            "`main.rs` cannot be listed: a part of the path, or the path itself, is not a \
             directory",
        );
        check(
            &"a".repeat(300),
            &format!("`{}…` cannot be listed: the name is too long", "a".repeat(200)),
        );
    }

    #[test]
    fn host_refusals_are_explained() {
        let refused = |path: &str| {
            let location = Location { given: path.into(), path: path.into() };
            let error = io::Error::from_raw_os_error(libc::EPERM);
            explain(&location, "written", &error).message
        };
        assert_eq!(
            refused("/x/.GIT/config"),
            "`/x/.GIT/config` cannot be written: tools may not change `.GIT`"
        );
    }
}
