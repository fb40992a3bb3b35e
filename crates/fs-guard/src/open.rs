//! Opens and locates paths.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use kitbag_base::FileId;
use kitbag_base::text::shown;

use crate::sys::{self, FileKind, OpenAs, Stat, open_at};

/// The most links to follow in one path, as in Linux.
const LINKS: usize = 40;

/// Why a path was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path contains a symbolic link.
    #[error("`{}` is a symbolic link", shown(&path.to_string_lossy()))]
    Link {
        /// The first link on the path.
        path: PathBuf,
    },
    /// The path is on a file system that exposes the kernel.
    #[error("it is in a file system of type `{name}`, which gives access to the kernel")]
    Kernel {
        /// The type of the file system.
        name: &'static str,
    },
    /// The system returned an error.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The target of a path.
#[derive(Debug)]
pub struct Located {
    /// The path without links, `.` and `..`.
    pub path: PathBuf,
    /// A handle to the target.
    pub handle: File,
    /// The metadata of the target.
    pub stat: Stat,
    /// The links that were followed.
    pub links: Vec<Link>,
}

/// A followed link.
#[derive(Clone, Debug)]
pub struct Link {
    /// The path of the link, without links before its last component.
    pub path: PathBuf,
    /// The parent directories of the link, from the root down.
    pub within: Vec<FileId>,
}

impl Located {
    /// Returns the identity of the target.
    pub fn id(&self) -> FileId {
        self.stat.id()
    }

    /// Returns true if the target is a directory.
    pub fn is_directory(&self) -> bool {
        self.stat.kind() == FileKind::Directory
    }
}

/// Opens an absolute path without links.
///
/// # Errors
///
/// [`OpenError::Link`] if any component is a link; [`OpenError::Kernel`] for a directory on a file
/// system that cannot be granted.
pub fn open(path: &Path, as_what: OpenAs) -> Result<(File, Stat), OpenError> {
    let opened = match sys::open_without_links(path, as_what)? {
        Some(opened) => opened,
        // The path contains a link, whose name is needed, or the system call is not available.
        None => open_by_hand(path, as_what, |_, _| Ok(()))?,
    };
    let stat = Stat::of(&opened)?;
    if as_what == OpenAs::Directory {
        check_file_system(&opened)?;
    }
    Ok((opened, stat))
}

/// Opens a path as [`open`] does, component by component. Calls `enter` with each directory before
/// opening anything in it, and with the directory's depth below the root.
pub(crate) fn open_by_hand(
    path: &Path,
    as_what: OpenAs,
    mut enter: impl FnMut(&File, usize) -> io::Result<()>,
) -> Result<File, OpenError> {
    let mut here = sys::open_root()?;
    let parts = path.components().filter(|part| *part != Component::RootDir);
    let last = parts.clone().count();
    let link = |depth| OpenError::Link { path: path.components().take(depth + 1).collect() };
    for (part, depth) in parts.zip(1..) {
        enter(&here, depth - 1)?;
        let name = Path::new(part.as_os_str());
        let as_what = if depth == last { as_what } else { OpenAs::Directory };
        match open_at(&here, name, as_what) {
            Ok(opened) if depth < last => here = opened,
            // A link can be opened as a handle.
            Ok(opened) if kind(&opened)? == FileKind::Link => return Err(link(depth)),
            Ok(opened) => return Ok(opened),
            Err(error) => {
                return Err(match kind(&open_at(&here, name, OpenAs::Handle)?)? {
                    FileKind::Link => link(depth),
                    _ => error.into(),
                });
            }
        }
    }
    Ok(open_at(&here, ".", as_what)?)
}

/// Resolves an absolute path and records the links on it. The caller decides whether these links
/// may be followed.
///
/// # Errors
///
/// [`OpenError::Io`] if the path does not exist; [`OpenError::Kernel`] for a link of procfs, whose
/// target differs from its text.
pub fn locate(path: &Path) -> Result<Located, OpenError> {
    let is_plain = path.components().all(|part| part != Component::ParentDir);
    if is_plain {
        match open(path, OpenAs::Handle) {
            Ok((handle, stat)) => {
                let path = path.components().collect();
                return Ok(Located { path, handle, stat, links: Vec::new() });
            }
            Err(OpenError::Link { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let path = &std::path::absolute(path)?;
    let mut walk = Walk { above: Vec::new(), rest: VecDeque::new(), links: Vec::new() };
    let mut here = (sys::open_root()?, OsString::new());
    prepend(&mut walk.rest, path);
    while let Some(part) = walk.rest.pop_front() {
        if part == ".." {
            // The parent of the root is the root.
            here = walk.above.pop().unwrap_or(here);
            continue;
        }
        let next = open_at(&here.0, &part, OpenAs::Handle)?;
        if kind(&next)? != FileKind::Link {
            walk.above.push(std::mem::replace(&mut here, (next, part)));
            continue;
        }
        // The target of a procfs link differs from its text.
        check_file_system(&here.0)?;
        let target = sys::read_link(&next)?;
        walk.follow(&here, &part)?;
        if target.has_root() {
            walk.above.clear();
            here = (sys::open_root()?, OsString::new());
        }
        prepend(&mut walk.rest, &target);
    }
    let stat = Stat::of(&here.0)?;
    let path = walk.path(&here);
    Ok(Located { path, handle: here.0, stat, links: walk.links })
}

/// A directory and its name in its parent.
type Named = (File, OsString);

struct Walk {
    above: Vec<Named>,
    rest: VecDeque<OsString>,
    links: Vec<Link>,
}

impl Walk {
    fn path(&self, here: &Named) -> PathBuf {
        let names = self.above.iter().chain([here]).map(|(_, name)| name);
        Path::new("/").join(names.collect::<PathBuf>())
    }

    fn follow(&mut self, here: &Named, name: &OsString) -> io::Result<()> {
        if self.links.len() == LINKS {
            return Err(sys::too_many_links());
        }
        let directories = self.above.iter().chain([here]).map(|(directory, _)| directory);
        let within = directories.map(|directory| Ok(Stat::of(directory)?.id()));
        let within = within.collect::<io::Result<_>>()?;
        self.links.push(Link { path: self.path(here).join(name), within });
        Ok(())
    }
}

/// Refuses files on file systems that expose the kernel.
///
/// # Errors
///
/// [`OpenError::Kernel`] names the type of the file system.
pub fn check_file_system(file: &File) -> Result<(), OpenError> {
    match sys::kernel_file_system(file)? {
        Some(name) => Err(OpenError::Kernel { name }),
        None => Ok(()),
    }
}

/// Returns the canonical form of an absolute path. The end of the path and the targets of links
/// need not exist.
pub fn canonical(path: &Path) -> PathBuf {
    path.canonicalize()
        .unwrap_or_else(|_| resolve("/".into(), path, |entry, _| entry.read_link().ok()))
}

/// Resolves an absolute path as the kernel does and returns the result. Calls `link` with the
/// link-free path of each entry and whether it is the last known one; `link` returns the text of a
/// link. Entries need not exist. `start` is a prefix of the path without links.
pub(crate) fn resolve(
    start: PathBuf,
    path: &Path,
    mut link: impl FnMut(&Path, bool) -> Option<PathBuf>,
) -> PathBuf {
    let mut rest = VecDeque::new();
    prepend(&mut rest, path.strip_prefix(&start).unwrap_or(path));
    let (mut here, mut links) = (start, 0);
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            // The parent of the root is the root.
            here.pop();
            continue;
        }
        here.push(part);
        let Some(target) = link(&here, rest.is_empty()) else { continue };
        links += 1;
        if links > LINKS {
            break;
        }
        here.pop();
        if target.has_root() {
            here = "/".into();
        }
        prepend(&mut rest, &target);
    }
    here
}

/// Prepends the components of a path.
fn prepend(rest: &mut VecDeque<OsString>, path: &Path) {
    let parts = path.components().filter_map(|part| match part {
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        Component::ParentDir | Component::Normal(_) => Some(part.as_os_str().to_owned()),
    });
    for part in parts.collect::<Vec<_>>().into_iter().rev() {
        rest.push_front(part);
    }
}

fn kind(file: &File) -> io::Result<FileKind> {
    Ok(Stat::of(file)?.kind())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Creates a directory with `a/b/file` and links: `in` to `a/b`, `over` to `in/..`.
    fn fixture() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        fs::create_dir_all(path.join("a/b")).unwrap();
        fs::write(path.join("a/b/file"), "x").unwrap();
        symlink("a/b", path.join("in")).unwrap();
        symlink("in/..", path.join("over")).unwrap();
        symlink(path.join("a"), path.join("absolute")).unwrap();
        symlink("loop", path.join("loop")).unwrap();
        (directory, path)
    }

    type Opener = fn(&Path, OpenAs) -> Result<FileId, OpenError>;

    /// With and without the system call.
    const OPENERS: [Opener; 2] = [
        |path, as_what| open(path, as_what).map(|(_, stat)| stat.id()),
        |path, as_what| {
            let opened = open_by_hand(path, as_what, |_, _| Ok(()))?;
            Ok(Stat::of(&opened)?.id())
        },
    ];

    #[test]
    fn only_paths_without_links_are_opened() {
        let (_directory, path) = fixture();
        for open in OPENERS {
            for (inside, as_what) in [
                ("a/b", OpenAs::Directory),
                ("a/../a/./b", OpenAs::Directory),
                ("a/b/file", OpenAs::File),
                ("a/b/file", OpenAs::Handle),
            ] {
                let id = open(&path.join(inside), as_what).unwrap();
                assert_eq!(id, locate(&path.join(inside)).unwrap().id(), "{inside}");
            }
            for (inside, link, as_what) in [
                ("in", "in", OpenAs::Directory),
                ("in/file", "in", OpenAs::File),
                ("a/../in/file", "a/../in", OpenAs::Handle),
                ("loop", "loop", OpenAs::Handle),
            ] {
                match open(&path.join(inside), as_what) {
                    Err(OpenError::Link { path: found }) => assert_eq!(found, path.join(link)),
                    other => panic!("{inside}: {other:?}"),
                }
            }
            for inside in ["a/b/file", "none", "a/b/file/x"] {
                let opened = open(&path.join(inside), OpenAs::Directory);
                assert!(matches!(opened, Err(OpenError::Io(_))), "{inside}: {opened:?}");
            }
            assert!(open(Path::new("/"), OpenAs::Directory).is_ok());
        }
    }

    #[test]
    fn located_paths_list_their_links() {
        let (_directory, path) = fixture();
        let check = |inside: &str, expected: &str, links: &[&str]| {
            let located = locate(&path.join(inside)).unwrap();
            assert_eq!(located.path, path.join(expected), "{inside}");
            let found: Vec<_> = located.links.iter().map(|link| link.path.clone()).collect();
            let links: Vec<_> = links.iter().map(|link| path.join(link)).collect();
            assert_eq!(found, links, "{inside}");
            for link in &located.links {
                let parent = locate(link.path.parent().unwrap()).unwrap();
                assert_eq!(link.within.last(), Some(&parent.id()), "{inside}");
                assert_eq!(link.within.len(), link.path.ancestors().count() - 1, "{inside}");
            }
        };
        check("a/b/file", "a/b/file", &[]);
        check("in/file", "a/b/file", &["in"]);
        check("in/../b", "a/b", &["in"]);
        check("over/b", "a/b", &["over", "in"]);
        check("absolute/b", "a/b", &["absolute"]);
        assert!(matches!(locate(&path.join("loop")), Err(OpenError::Io(_))));
        assert!(matches!(locate(&path.join("none/x")), Err(OpenError::Io(_))));
    }

    #[test]
    fn kernel_file_systems_are_refused() {
        for path in ["/proc", "/sys"] {
            let opened = open(Path::new(path), OpenAs::Directory);
            assert!(matches!(opened, Err(OpenError::Kernel { .. })), "{path}: {opened:?}");
        }
        for path in ["/proc/self", "/proc/self/cwd", "/proc/self/root/etc"] {
            let located = locate(Path::new(path));
            assert!(matches!(located, Err(OpenError::Kernel { .. })), "{path}: {located:?}");
        }
    }
}
