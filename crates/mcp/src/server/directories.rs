//! The directories of a tree that are watched: no links, nothing of the kernel's own,
//! and a bounded number.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use kitbag_fs_guard::check_file_system;
use kitbag_fs_guard::sys::open_directory_following_links;

/// How many directories of topics are watched, all together. Linux lets a user have
/// 8,192 watches at least, which other programs need too.
pub(crate) const MOST: usize = 4_096;

/// How many entries of a topic are looked at, which is as many as a topic may have.
pub(crate) const ENTRIES: usize = 100_000;

/// Adds a directory and those below it, until there are as many as may be. Returns
/// whether that was all of them.
pub(crate) fn add_tree(root: &Path, directories: &mut BTreeSet<PathBuf>) -> bool {
    let mut entries_left = ENTRIES;
    // Level by level, so that what is left out is what lies deepest.
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
            // The type of the entry itself: a link is none.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                found.push_back(entry.path());
            }
        }
    }
    true
}

/// Whether a path is a directory, and no link to one, of a file system that keeps
/// files.
fn is_watchable(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) && !is_of_kernel(path)
}

/// Whether a directory is on a file system that shows the kernel's state as files.
/// What cannot be found out is.
pub(crate) fn is_of_kernel(path: &Path) -> bool {
    // Nothing else is opened: what takes the place of the directory may be a FIFO. One
    // that cannot be read cannot be watched either.
    let directory = open_directory_following_links(path);
    directory.map_or(true, |directory| check_file_system(&directory).is_err())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_what_is_the_kernels_are_left_out() {
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
