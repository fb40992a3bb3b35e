//! Resolution of paths in a granted directory.
//!
//! The walk opens one component at a time without following links, and expands links itself, so
//! that it sees every name on the path. The result is an open directory and one name in it, so
//! that later changes to a link or a directory by another party have no effect.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::iter;

use kitbag_base::FileId;
use kitbag_fs_guard::sys::{open_at, read_link};
use kitbag_fs_guard::{FileKind, OpenAs, Stat, check_file_system, is_guarded};
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

/// Maximum number of links followed on a path, as in Linux.
const LINKS: usize = 40;

/// Maximum length of a path with its terminator, as in Linux.
const PATH_BYTES: usize = 4096;

#[derive(Debug)]
pub(super) struct Target {
    start: FileId,
    /// The directories below the starting directory; the last one holds the last component.
    pub(super) directories: Vec<Found>,
    /// The last component: a name, or `.` for the directory itself. Not a link if the path was
    /// followed to its end.
    pub(super) name: String,
    pub(super) found: Option<Found>,
    /// The links on the path: each with its directory.
    pub(super) links: Vec<(FileId, String)>,
    /// True if the path has a guarded name.
    pub(super) is_guarded: bool,
}

#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) handle: File,
    pub(super) stat: Stat,
}

impl Target {
    /// Returns the directory that holds the last component.
    pub(super) fn parent(&self) -> FileId {
        self.directories.last().map_or(self.start, Found::id)
    }

    /// Iterates over the names on the path, with all links followed.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.directory_names().chain([&*self.name])
    }

    /// Iterates over the entries on the path, including the last component: each with its parent
    /// directory, its name and its status.
    pub(super) fn entries(&self) -> impl Iterator<Item = (FileId, &str, Option<&Stat>)> {
        let last = (self.parent(), &*self.name, self.found.as_ref().map(|found| &found.stat));
        self.directory_entries().chain([last])
    }

    /// Iterates over the entries on the path, without the last component.
    pub(super) fn directory_entries(&self) -> impl Iterator<Item = (FileId, &str, Option<&Stat>)> {
        let parents = iter::once(self.start).chain(self.directories.iter().map(Found::id));
        let found = self.directories.iter().map(|found| (&*found.name, Some(&found.stat)));
        parents.zip(found).map(|(parent, (name, stat))| (parent, name, stat))
    }

    /// Iterates over the existing entries on the path and its links, each with its directory.
    pub(super) fn existing(&self) -> impl Iterator<Item = (FileId, &str)> {
        let entries = self.entries().filter(|(_, _, found)| found.is_some());
        let entries = entries.map(|(parent, name, _)| (parent, name));
        entries.chain(self.links.iter().map(|(parent, name)| (*parent, &**name)))
    }

    /// Iterates over the names on the path, without the last component.
    pub(super) fn directory_names(&self) -> impl Iterator<Item = &str> {
        self.directories.iter().map(|found| &*found.name)
    }
}

impl Found {
    pub(super) fn of(name: String, handle: File) -> FsResult<Self> {
        let stat = Stat::of(&handle)?;
        Ok(Self { name, handle, stat })
    }

    /// Opens an entry of a directory on this device. The kernel's own file systems are refused,
    /// wherever they are mounted.
    fn at(directory: &File, device: u64, name: String) -> FsResult<Self> {
        let handle = open_at(directory, &name, OpenAs::Handle)?;
        let found = Self::of(name, handle)?;
        found.check(device)?;
        Ok(found)
    }

    /// Refuses an entry on another device if it is one of the kernel's own file systems.
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

/// Follows a path from a directory, whose identity is `id`, including a link at its last component
/// if `follow` is set.
///
/// A component that does not exist ends the walk with an error, unless it is the last one.
pub(super) fn resolve(start: &File, id: FileId, path: &str, follow: bool) -> FsResult<Target> {
    if path.is_empty() {
        return Err(ErrorCode::NoEntry.into());
    }
    if path.len() >= PATH_BYTES {
        return Err(ErrorCode::NameTooLong.into());
    }
    let mut walk = Walk { start, id, opened: Vec::new(), rest: VecDeque::new(), links: Vec::new() };
    walk.push_front(path)?;
    while let Some(name) = walk.rest.pop_front() {
        match name.as_str() {
            "." => continue,
            ".." => {
                // A path must not go above its starting directory.
                walk.opened.pop().ok_or(ErrorCode::NotPermitted)?;
                continue;
            }
            _ => {}
        }
        // `a/.` and `a/` name the directory `a`, even through a link.
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
                if walk.links.len() == LINKS {
                    return Err(ErrorCode::Loop.into());
                }
                walk.push_front(&found.link()?)?;
                walk.links.push((walk.here_id(), found.name));
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
    /// The open directories between `start` and the current one.
    opened: Vec<Found>,
    rest: VecDeque<String>,
    links: Vec<(FileId, String)>,
}

impl Walk<'_> {
    fn here(&self) -> (&File, u64) {
        let directory = self.opened.last().map_or(self.start, |found| &found.handle);
        (directory, self.here_id().device)
    }

    fn here_id(&self) -> FileId {
        self.opened.last().map_or(self.id, Found::id)
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
        let Self { start: _, id: start, opened: directories, rest: _, links } = self;
        let is_guarded =
            directories.iter().map(|found| &found.name).chain([&name]).any(|name| is_guarded(name));
        Target { start, directories, name, found, links, is_guarded }
    }
}

/// Returns true if the text of a link leads out of the granted directory, for a link at this
/// depth. Going up after going down is refused, since its effect depends on links on the way.
pub(super) fn leads_out(link: &str, depth: usize) -> bool {
    let names = || link.split('/').filter(|name| !matches!(*name, "" | "."));
    let up = names().take_while(|name| *name == "..").count();
    link.starts_with('/') || up > depth || names().skip(up).any(|name| name == "..")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    /// Creates a directory with `a/b/`, `a/file`, `.git/hooks/`, and links to them.
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

    fn resolve_in(directory: &Path, path: &str, follow: bool) -> FsResult<Target> {
        let start = File::open(directory).unwrap();
        let id = Stat::of(&start).unwrap().id();
        resolve(&start, id, path, follow)
    }

    fn check(path: &str, follow: bool, expected: Result<(&str, bool), ErrorCode>) {
        let dir = fixture();
        let target = resolve_in(dir.path(), path, follow);
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
    fn protected_names_are_detected_on_every_path() {
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
            let target = resolve_in(dir.path(), path, true);
            match target {
                Ok(target) => assert!(target.is_guarded, "{path}"),
                Err(_) => assert!(!exists, "{path}"),
            }
        }
        check("g", false, Ok(("g", false)));
        check(".gitignore", true, Ok((".gitignore", false)));
    }

    #[test]
    fn a_link_may_go_up_to_the_root_and_then_only_down() {
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
    fn an_unresolvable_path_has_an_error() {
        check("", true, Err(ErrorCode::NoEntry));
        check("none/x", true, Err(ErrorCode::NoEntry));
        check("a/file/x", true, Err(ErrorCode::NotDirectory));
        check("loop", true, Err(ErrorCode::Loop));
        check("a\0b", true, Err(ErrorCode::Invalid));
    }
}
