//! Where a path inside a granted directory really leads.
//!
//! The walk opens one component after the other without following links, and
//! expands links itself, so every name that the path passes through is seen.
//! What it answers is an open directory and one name in it; a party that changes a
//! link or a directory behind its back changes nothing about that.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::iter;

use kitbag_base::FileId;
use kitbag_fs_guard::sys::{open_at, read_link};
use kitbag_fs_guard::{FileKind, OpenAs, Stat, check_file_system, is_guarded};
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

/// How many links are followed before the path is refused, as in Linux.
const LINKS: usize = 40;

/// The longest path with its end, as in Linux.
const PATH_BYTES: usize = 4096;

#[derive(Debug)]
pub(super) struct Target {
    start: FileId,
    /// The directories below the one from which the path starts; the last one
    /// holds the last component.
    pub(super) directories: Vec<Found>,
    /// The last component: a name, or `.` for the directory itself. Where the
    /// path was to be followed to its end it is no link.
    pub(super) name: String,
    pub(super) found: Option<Found>,
    /// Whether it is, or lies in, a directory with a guarded name.
    pub(super) is_guarded: bool,
}

#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) handle: File,
    pub(super) stat: Stat,
}

impl Target {
    /// The directory that holds the last component.
    pub(super) fn parent(&self) -> FileId {
        self.directories.last().map_or(self.start, Found::id)
    }

    /// The names that the path goes through, with all links followed.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.directory_names().chain([&*self.name])
    }

    /// The entries that the path goes through, and the last component: each with the
    /// directory that holds it, its name, and what is there.
    pub(super) fn entries(&self) -> impl Iterator<Item = (FileId, &str, Option<&Stat>)> {
        let last = (self.parent(), &*self.name, self.found.as_ref().map(|found| &found.stat));
        self.directory_entries().chain([last])
    }

    /// The same without the last component.
    pub(super) fn directory_entries(&self) -> impl Iterator<Item = (FileId, &str, Option<&Stat>)> {
        let parents = iter::once(self.start).chain(self.directories.iter().map(Found::id));
        let found = self.directories.iter().map(|found| (&*found.name, Some(&found.stat)));
        parents.zip(found).map(|(parent, (name, stat))| (parent, name, stat))
    }

    /// The names that the path goes through, without the last component.
    pub(super) fn directory_names(&self) -> impl Iterator<Item = &str> {
        self.directories.iter().map(|found| &*found.name)
    }
}

impl Found {
    pub(super) fn of(name: String, handle: File) -> FsResult<Self> {
        let stat = Stat::of(&handle)?;
        Ok(Self { name, handle, stat })
    }

    /// Opens an entry of a directory that has this device. Nothing of the
    /// kernel's own file systems is found, wherever they are mounted.
    fn at(directory: &File, device: u64, name: String) -> FsResult<Self> {
        let handle = open_at(directory, &name, OpenAs::Handle)?;
        let found = Self::of(name, handle)?;
        found.check(device)?;
        Ok(found)
    }

    /// Refuses what is on another device, if that is one of the kernel's own.
    pub(super) fn check(&self, device: u64) -> FsResult<()> {
        if self.id().device != device {
            check_file_system(&self.handle).map_err(|_| ErrorCode::NotPermitted)?;
        }
        Ok(())
    }

    pub(super) fn id(&self) -> FileId {
        self.stat.id()
    }

    pub(super) fn kind(&self) -> FileKind {
        self.stat.kind()
    }

    pub(super) fn link(&self) -> FsResult<String> {
        let link = read_link(&self.handle)?;
        let text = link.into_os_string().into_string();
        text.map_err(|_| ErrorCode::IllegalByteSequence.into())
    }
}

/// Follows a path from a directory, and the last component too if asked to.
///
/// A component that does not exist ends the walk with an error unless it is
/// the last one.
pub(super) fn resolve(start: &File, path: &str, follow: bool) -> FsResult<Target> {
    if path.is_empty() {
        return Err(ErrorCode::NoEntry.into());
    }
    if path.len() >= PATH_BYTES {
        return Err(ErrorCode::NameTooLong.into());
    }
    let id = Stat::of(start)?.id();
    let mut walk = Walk { start, id, opened: Vec::new(), rest: VecDeque::new() };
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
        let (directory, device) = walk.here();
        let handle = match open_at(directory, &name, OpenAs::Handle) {
            Ok(handle) => handle,
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && walk.rest.iter().all(|name| name == ".") =>
            {
                return Ok(walk.end(name, None));
            }
            Err(error) => return Err(error.into()),
        };
        let found = Found::of(name, handle)?;
        found.check(device)?;
        match found.kind() {
            FileKind::Link if !is_last || follow => {
                links += 1;
                if links > LINKS {
                    return Err(ErrorCode::Loop.into());
                }
                walk.push_front(&found.link()?)?;
            }
            _ if is_last => return Ok(walk.end(found.name.clone(), Some(found))),
            FileKind::Directory => walk.opened.push(found),
            _ => return Err(ErrorCode::NotDirectory.into()),
        }
    }
    // The path ended in a directory that was entered: `.`, `a/..` or `a/.`.
    let (directory, device) = walk.here();
    let found = Found::at(directory, device, ".".into())?;
    Ok(walk.end(".".into(), Some(found)))
}

struct Walk<'a> {
    start: &'a File,
    id: FileId,
    /// The directories below `start` that the walk is in.
    opened: Vec<Found>,
    rest: VecDeque<String>,
}

impl Walk<'_> {
    fn here(&self) -> (&File, u64) {
        match self.opened.last() {
            Some(found) => (&found.handle, found.id().device),
            None => (self.start, self.id.device),
        }
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

    fn end(self, name: String, found: Option<Found>) -> Target {
        let directories = self.opened;
        let is_guarded =
            directories.iter().map(|found| &found.name).chain([&name]).any(|name| is_guarded(name));
        Target { start: self.id, directories, name, found, is_guarded }
    }
}

/// Whether the text of a link leads out of the granted directory, from a
/// directory that is so deep in it. What goes up once it has gone down counts as
/// leading out, since that depends on what is a link on its way.
pub(super) fn leads_out(link: &str, depth: usize) -> bool {
    let names = || link.split('/').filter(|name| !matches!(*name, "" | "."));
    let up = names().take_while(|name| *name == "..").count();
    link.starts_with('/') || up > depth || names().skip(up).any(|name| name == "..")
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
            .map(|target| (target.name, target.is_guarded))
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
                Ok(target) => assert!(target.is_guarded, "{path}"),
                Err(_) => assert!(!exists, "{path}"),
            }
        }
        check("g", false, Ok(("g", false)));
        check(".gitignore", true, Ok((".gitignore", false)));
    }

    #[test]
    fn a_link_goes_up_no_further_than_it_is_deep_and_then_only_down() {
        for (link, depth, expected) in [
            ("a", 0, false),
            ("./a//b/", 0, false),
            ("..", 0, true),
            ("..", 1, false),
            ("./../a", 1, false),
            ("../..", 1, true),
            ("a/..", 1, true),
            ("/a", 9, true),
            ("...", 0, false),
            ("", 0, false),
        ] {
            assert_eq!(leads_out(link, depth), expected, "{link:?} {depth}");
        }
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
