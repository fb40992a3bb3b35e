//! Where a path inside a granted directory really leads.
//!
//! The walk opens one component after the other without following links, and
//! expands links itself, so every name that the path passes through is seen.
//! What it answers is an open directory and one name in it; whoever changes a
//! link or a directory behind its back changes nothing about that.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, readlinkat, statat};
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

/// Names that a tool never changes, whatever it was granted: the hooks and the
/// configuration in there are run by, or steer, what runs outside the sandbox.
/// Compared without case, since some file systems do.
const PROTECTED: [&str; 2] = [".git", ".kitbag"];

/// How many links are followed before the path is refused, as in Linux.
const LINKS: usize = 40;

/// Where a path leads.
#[derive(Debug)]
pub(super) struct Target {
    /// The directory that holds the last component, where that is not the
    /// directory from which the path starts.
    pub(super) parent: Option<File>,
    /// The last component: a name, or `.` for the directory itself. Where the
    /// path was to be followed to its end it is no link.
    pub(super) name: String,
    /// Whether it is, or lies in, a protected directory.
    pub(super) is_protected: bool,
}

/// Follows a path from a directory, and the last component too if asked to.
///
/// A component that does not exist ends the walk with an error unless it is
/// the last one.
pub(super) fn resolve(start: &File, path: &str, follow: bool) -> FsResult<Target> {
    if path.is_empty() {
        return Err(ErrorCode::NoEntry.into());
    }
    let mut walk = Walk { start, opened: Vec::new(), rest: VecDeque::new() };
    walk.push_front(path)?;
    let mut links = 0;
    while let Some(name) = walk.rest.pop_front() {
        match name.as_str() {
            "." => continue,
            ".." => {
                // Above the directory from which it starts a path may not go.
                walk.opened.pop().ok_or(ErrorCode::NotPermitted)?;
                continue;
            }
            _ => {}
        }
        // `a/.` and `a/` are the directory `a`, and mean it even as a link.
        let is_last = walk.rest.is_empty();
        let kind = match statat(walk.here(), &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => FileType::from_raw_mode(stat.st_mode),
            Err(rustix::io::Errno::NOENT) if walk.rest.iter().all(|name| name == ".") => {
                return Ok(walk.end(name));
            }
            Err(error) => return Err(from_errno(error)),
        };
        match kind {
            FileType::Symlink if !is_last || follow => {
                links += 1;
                if links > LINKS {
                    return Err(ErrorCode::Loop.into());
                }
                let link = readlinkat(walk.here(), &name, Vec::new()).map_err(from_errno)?;
                let link = link.into_string().map_err(|_| ErrorCode::IllegalByteSequence)?;
                walk.push_front(&link)?;
            }
            _ if is_last => return Ok(walk.end(name)),
            FileType::Directory => walk.enter(name)?,
            _ => return Err(ErrorCode::NotDirectory.into()),
        }
    }
    // The path ended in a directory that was entered: `.`, `a/..` or `a/.`.
    Ok(walk.end(".".into()))
}

struct Walk<'a> {
    start: &'a File,
    /// The directories below `start` that the walk is in: name and handle.
    opened: Vec<(String, File)>,
    /// Components that are still to be walked.
    rest: VecDeque<String>,
}

impl Walk<'_> {
    fn here(&self) -> &File {
        self.opened.last().map_or(self.start, |(_, directory)| directory)
    }

    fn push_front(&mut self, path: &str) -> FsResult<()> {
        if path.starts_with('/') {
            return Err(ErrorCode::NotPermitted.into());
        }
        let mut components: Vec<_> = path.split('/').filter(|name| !name.is_empty()).collect();
        if path.ends_with('/') {
            components.push(".");
        }
        for name in components.into_iter().rev() {
            self.rest.push_front(name.to_owned());
        }
        Ok(())
    }

    fn enter(&mut self, name: String) -> FsResult<()> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let directory =
            openat(self.here().as_fd(), &name, flags, Mode::empty()).map_err(from_errno)?;
        self.opened.push((name, directory.into()));
        Ok(())
    }

    fn end(mut self, name: String) -> Target {
        let is_protected =
            self.opened.iter().map(|(name, _)| name).chain([&name]).any(|name| is_protected(name));
        Target { parent: self.opened.pop().map(|(_, directory)| directory), name, is_protected }
    }
}

/// Whether a name is one that a tool never changes.
pub(crate) fn is_protected(name: &str) -> bool {
    PROTECTED.iter().any(|protected| name.eq_ignore_ascii_case(protected))
}

/// An error of the system as a guest is told.
pub(super) fn from_errno(error: rustix::io::Errno) -> wasmtime_wasi::p2::FsError {
    ErrorCode::from(io::Error::from(error)).into()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A directory with `a/b/`, `a/file`, `.git/hooks/`, and links to them.
    fn fixture() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let path = |path: &str| dir.path().join(path);
        fs::create_dir_all(path("a/b")).unwrap();
        fs::create_dir_all(path(".git/hooks")).unwrap();
        fs::write(path("a/file"), "x").unwrap();
        for (target, link) in [
            (".git", "g"),
            ("../.git/hooks", "a/h"),
            ("g/hooks", "gg"),
            ("/etc", "absolute"),
            ("..", "up"),
            ("loop", "loop"),
            ("a/file", "f"),
            (".git/new", "dangling"),
        ] {
            symlink(target, path(link)).unwrap();
        }
        dir
    }

    fn check(path: &str, follow: bool, expected: Result<(&str, bool), ErrorCode>) {
        let dir = fixture();
        let target = resolve(&File::open(dir.path()).unwrap(), path, follow);
        let found = target
            .map(|target| (target.name, target.is_protected))
            .map_err(|error| error.downcast().unwrap());
        let found = found.as_ref().map(|(name, protected)| (name.as_str(), *protected));
        assert_eq!(
            found.map_err(|code| format!("{code:?}")),
            expected.map_err(|code| format!("{code:?}")),
            "{path}"
        );
    }

    #[test]
    fn a_plain_path_ends_at_its_last_component() {
        check("a/file", true, Ok(("file", false)));
        check("a/b", true, Ok(("b", false)));
        check("a/b/", true, Ok((".", false)));
        check("a/b/..", true, Ok((".", false)));
        check("a/./b/../file", true, Ok(("file", false)));
        check("new", true, Ok(("new", false)));
        check("f", true, Ok(("file", false)));
        check("f", false, Ok(("f", false)));
    }

    #[test]
    fn what_is_protected_is_seen_on_every_way_to_it() {
        for path in [
            ".git",
            ".GIT",
            ".git/",
            ".git/config",
            ".git/hooks/x",
            "g/config",
            "a/h/x",
            "gg/x",
            "a/../g/x",
            "dangling",
            ".kitbag",
            "a/.kitbag/config.toml",
            "new/../.git",
        ] {
            let exists = path != "a/.kitbag/config.toml" && path != "new/../.git" && path != ".GIT";
            let dir = fixture();
            let target = resolve(&File::open(dir.path()).unwrap(), path, true);
            match target {
                Ok(target) => assert!(target.is_protected, "{path}"),
                Err(_) => assert!(!exists, "{path}"),
            }
        }
        check("g", false, Ok(("g", false)));
        check(".gitignore", true, Ok((".gitignore", false)));
    }

    #[test]
    fn a_path_does_not_leave_the_directory() {
        for path in ["..", "a/../..", "/etc/passwd", "absolute", "absolute/passwd", "up", "up/x"] {
            check(path, true, Err(ErrorCode::NotPermitted));
        }
    }

    #[test]
    fn a_path_that_leads_nowhere_says_so() {
        check("", true, Err(ErrorCode::NoEntry));
        check("none/x", true, Err(ErrorCode::NoEntry));
        check("a/file/x", true, Err(ErrorCode::NotDirectory));
        check("loop", true, Err(ErrorCode::Loop));
        check("a\0b", true, Err(ErrorCode::Invalid));
    }
}
