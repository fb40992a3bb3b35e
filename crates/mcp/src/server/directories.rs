//! The watched directories of a tree: without links and kernel file systems, and limited in number.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use kitbag_fs_guard::check_file_system;
use kitbag_fs_guard::sys::open_directory_following_links;

/// Maximum number of watched topic directories in total. Linux allows a user at least 8,192
/// watches, and other programs need some of them.
pub(crate) const MOST: usize = 4_096;

/// Maximum number of entries that are examined in a topic. It is also the topic's limit.
pub(crate) const ENTRIES: usize = 100_000;

/// Adds a directory and its subdirectories up to the limit. Returns whether all were added.
pub(crate) fn add_tree(root: &Path, directories: &mut BTreeSet<PathBuf>) -> bool {
    let mut entries_left = ENTRIES;
    // Breadth first, so that the deepest directories are omitted.
    let mut found = VecDeque::from([root.to_owned()]);
    while let Some(directory) = found.pop_front() {
        if !is_watchable(&directory) || directories.contains(&directory) {
            continue;
        }
        if directories.len() == MOST {
            return false;
        }
        let entries = fs::read_dir(&directory);
        directories.insert(directory);
        for entry in entries.into_iter().flatten().flatten() {
            if entries_left == 0 {
                return false;
            }
            entries_left -= 1;
            // The type of the entry itself, which is not a directory for a link.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                found.push_back(entry.path());
            }
        }
    }
    true
}

/// Returns whether a path is a directory, not a link, on a file system that stores files.
fn is_watchable(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) && !is_of_kernel(path)
}

/// Returns whether a directory is on a file system that presents kernel state as files. Also
/// returns `true` if it cannot be examined.
pub(crate) fn is_of_kernel(path: &Path) -> bool {
    // Opens only a directory: a FIFO may have replaced it. A directory that cannot be read cannot
    // be watched either.
    let directory = open_directory_following_links(path);
    directory.map_or(true, |directory| check_file_system(&directory).is_err())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_kernel_file_systems_are_skipped() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        std::os::unix::fs::symlink("..", root.join("a/up")).unwrap();
        std::os::unix::fs::symlink("a", root.join("link")).unwrap();
        let mut found = BTreeSet::new();
        assert!(add_tree(root, &mut found));
        assert_eq!(
            found,
            BTreeSet::from(["", "a", "a/b"].map(|path| match path {
                "" => root.to_owned(),
                path => root.join(path),
            }))
        );
        let mut found = BTreeSet::new();
        assert!(add_tree(&root.join("link"), &mut found));
        assert!(add_tree(Path::new("/proc"), &mut found));
        assert!(add_tree(Path::new("/sys"), &mut found));
        assert_eq!(found, BTreeSet::new());
    }
}
