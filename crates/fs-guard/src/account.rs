//! Kitbag's own files, independent of environment and configuration: the default locations of the
//! account and the running program.

use std::collections::{HashSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use kitbag_base::FileId;

use crate::names::{fold, is_guarded};
use crate::owner::{home, read_system_file};
use crate::protected_names::ProtectedNames;
use crate::sys::{
    Entries, FileKind, Stat, effective_user, id_of_metadata, open_directory, program_file,
};

/// Kitbag's default locations below a home directory, and the user config, which may be a dangling
/// link.
pub const USUAL_PLACES: [&str; 4] =
    [".config/kitbag", ".config/kitbag/config.toml", ".cache/kitbag", ".local/state/kitbag"];

/// The locations that tools may not read: rate counters, the encrypted secret store and its key.
const PRIVATE_PLACES: [&str; 2] = [".local/state/kitbag", ".config/kitbag/secrets.key"];

/// Returns the default locations below the effective user's home directory in `/etc/passwd`. The
/// variable `HOME` may name a different directory.
pub(crate) fn places_of_account() -> Vec<PathBuf> {
    below_home(&USUAL_PLACES)
}

/// Returns the locations of the account that tools may not read.
pub(crate) fn private_places_of_account() -> Vec<PathBuf> {
    below_home(&PRIVATE_PLACES)
}

fn below_home(places: &[&str]) -> Vec<PathBuf> {
    let homes = homes_of_account().into_iter();
    homes.flat_map(|home| places.iter().map(move |place| home.join(place))).collect()
}

/// Returns the home directories of the effective user in `/etc/passwd`.
pub(crate) fn homes_of_account() -> Vec<PathBuf> {
    let user = effective_user();
    let accounts = read_system_file("/etc/passwd").unwrap_or_default();
    let homes = accounts.lines().filter_map(|line| home(line, user));
    homes.filter(|home| home.has_root()).collect()
}

/// Returns the path of the running program and its identity, which is known even if the file was
/// moved.
pub(crate) fn program() -> (Option<PathBuf>, Option<FileId>) {
    let path = std::env::current_exe().ok();
    let found = program_file();
    let found = found.or_else(|| fs::metadata(path.as_ref()?).ok());
    (path, found.map(|found| id_of_metadata(&found)))
}

/// The most entries of kitbag's directories that are inspected.
const KEPT_ENTRIES: usize = 1 << 16;

/// Returns the regular files that the paths name or contain at any depth, or `None` if there are
/// too many.
pub(crate) fn files_in(paths: &[PathBuf]) -> Option<HashSet<FileId>> {
    let mut files = HashSet::new();
    let mut left = KEPT_ENTRIES;
    let mut ahead = Vec::new();
    for path in paths {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => ahead.push(path.clone()),
            Ok(found) => {
                files.insert(id_of_metadata(&found));
            }
            Err(_) => {}
        }
    }
    while let Some(path) = ahead.pop() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            left = left.checked_sub(1)?;
            let Ok(found) = entry.metadata() else { continue };
            if found.is_dir() {
                ahead.push(entry.path());
            } else if found.is_file() {
                files.insert(id_of_metadata(&found));
            }
        }
    }
    Some(files)
}

/// The most directories that are searched for links with sealed names, below each directory that a
/// tool may write. A call waits for the search: with 20,000 directories on a busy disk and a cold
/// cache, 16,384 took more than 30 seconds.
const SEARCHED_DIRECTORIES: usize = 1 << 11;

/// Finds the links below a directory whose names are guarded or in `protected`, and the links in a
/// `.kitbag` for its configuration, its tools or one tool. Searches breadth first. Skips other file
/// systems and the targets of links.
pub(crate) fn sealed_links(top: &Path, protected: &ProtectedNames) -> Vec<PathBuf> {
    /// The kind of directory that contains an entry.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Parent {
        Ordinary,
        Kitbag,
        Tools,
    }
    let mut links = Vec::new();
    let mut ahead = VecDeque::from([(top.to_owned(), Parent::Ordinary)]);
    let mut device = None;
    for _ in 0..SEARCHED_DIRECTORIES {
        let Some((path, place)) = ahead.pop_front() else { break };
        let Ok(directory) = open_directory(&path) else { continue };
        let Ok(stat) = Stat::of(&directory) else { continue };
        if *device.get_or_insert(stat.id().device) != stat.id().device {
            continue;
        }
        let Ok(entries) = Entries::read(&directory) else { continue };
        for entry in entries.flatten() {
            let name = entry.name();
            let kind = match entry.kind() {
                FileKind::Unknown => {
                    Stat::at(&directory, name).map_or(FileKind::Unknown, |stat| stat.kind())
                }
                kind => kind,
            };
            let (is_link, is_directory) = (kind == FileKind::Link, kind == FileKind::Directory);
            if !is_link && !is_directory {
                continue;
            }
            let text = name.to_string_lossy();
            let inner = path.join(name);
            let is_sealed = match place {
                Parent::Ordinary => {
                    let is_protected = || {
                        let within = path.file_name().map(|name| name.to_string_lossy());
                        protected.matches_in(within.as_deref(), &text) || protected.are_in(&text)
                    };
                    is_guarded(&text) || is_link && is_protected()
                }
                Parent::Kitbag => matches!(&*fold(&text), "config.toml" | "tools"),
                Parent::Tools => true,
            };
            match (place, is_sealed) {
                (_, true) if is_link => links.push(inner),
                (Parent::Ordinary, false) if is_directory => ahead.push_back((inner, place)),
                (Parent::Ordinary, true) if fold(&text) == ".kitbag" => {
                    ahead.push_back((inner, Parent::Kitbag));
                }
                (Parent::Kitbag, true) => ahead.push_back((inner, Parent::Tools)),
                _ => {}
            }
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_with_sealed_names_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for path in ["a/b", ".github", ".kitbag/tools/in", ".kitbag/notes", ".git/hooks"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        for link in [
            "a/.git",
            "a/b/.HG",
            "a/plain",
            "a/.envrc",
            "a/.vscode",
            ".github/workflows",
            "a/tasks.json",
            ".kitbag/config.toml",
            ".kitbag/readme",
            ".kitbag/notes/x",
            ".kitbag/tools/x.wasm",
            ".kitbag/tools/in/x.wasm",
            ".git/config",
        ] {
            symlink("elsewhere", root.join(link)).unwrap();
        }
        // Not followed, since it would form a cycle.
        symlink("..", root.join("a/up")).unwrap();
        let mut found = sealed_links(root, &ProtectedNames::default());
        found.sort();
        let sealed = [".kitbag/config.toml", ".kitbag/tools/x.wasm", "a/.git", "a/b/.HG"];
        let protected = [".github/workflows", "a/.envrc", "a/.vscode"];
        let mut expected = [&sealed[..], &protected].concat();
        expected.sort();
        assert_eq!(found, expected.iter().map(|link| root.join(link)).collect::<Vec<_>>());
        let none = ProtectedNames::new::<&str>(&[]).unwrap();
        let mut found = sealed_links(root, &none);
        found.sort();
        assert_eq!(found, sealed.map(|link| root.join(link)));
    }

    #[test]
    fn kept_files_are_found_at_any_depth() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join("cache/deep")).unwrap();
        for file in ["cache/deep/entry", "key", "other"] {
            fs::write(root.join(file), "").unwrap();
        }
        let paths = ["cache", "key", "nowhere"].map(|path| root.join(path));
        let found = files_in(&paths).unwrap();
        let id = |path: &str| id_of_metadata(&fs::metadata(root.join(path)).unwrap());
        assert_eq!(found, HashSet::from([id("cache/deep/entry"), id("key")]));
    }

    #[test]
    fn the_running_program_is_identified() {
        let (path, id) = program();
        let found = fs::metadata(path.unwrap()).unwrap();
        assert_eq!(id, Some(id_of_metadata(&found)));
    }
}
