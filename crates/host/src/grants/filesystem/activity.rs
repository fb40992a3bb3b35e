//! Files and directories that a call touches, for its record.

/// Number of paths kept of each kind; further paths are only counted.
const KEPT: usize = 50;

/// Number of paths kept that were only looked at.
const LOOKED_AT: usize = 20;

/// Files and directories that a call touched, as host paths. Directory paths end in `/`.
/// Untrusted: a tool chooses names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileActivity {
    /// Files opened for reading, and listed directories.
    pub read: PathList,
    /// Created, changed or replaced paths.
    pub written: PathList,
    /// Paths that were removed or moved away.
    pub removed: PathList,
    /// Paths that were looked at without being opened, at most twenty.
    pub looked_at: Vec<String>,
    /// Number of paths that were created and then removed. They are not in any list.
    pub temporary: u64,
    /// Paths in `written` that did not exist before.
    made: Vec<String>,
    moved: Vec<Moved>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Moved {
    from: String,
    to: String,
    removed: PathList,
}

/// Distinct paths, in the order in which they were first touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathList {
    /// At most fifty paths.
    pub paths: Vec<String>,
    /// Number of accesses to further paths.
    pub more: u64,
}

impl PathList {
    fn add(&mut self, path: &str) {
        if self.paths.iter().any(|known| known == path) {
            return;
        }
        match self.paths.len() < KEPT {
            true => self.paths.push(path.to_owned()),
            false => self.more += 1,
        }
    }

    fn remove(&mut self, path: &str) {
        self.paths.retain(|known| known != path);
    }
}

impl FileActivity {
    pub(super) fn looked_at(&mut self, path: &str) {
        if self.looked_at.len() < LOOKED_AT && !self.looked_at.iter().any(|known| known == path) {
            self.looked_at.push(path.to_owned());
        }
    }

    pub(super) fn read(&mut self, path: &str) {
        self.read.add(path);
    }

    /// `is_new`: the path did not exist before.
    pub(super) fn wrote(&mut self, path: &str, is_new: bool) {
        if is_new && self.made.len() < KEPT && !self.made.iter().any(|known| known == path) {
            self.made.push(path.to_owned());
        }
        self.written.add(path);
    }

    pub(super) fn removed(&mut self, path: &str) {
        if let Some(at) = self.moved.iter().position(|moved| moved.to == path) {
            // The directory was moved out of the way to be removed, possibly piece by piece.
            let Moved { from, to, .. } = self.moved.remove(at);
            self.forget(&to);
            self.read.paths.retain(|path| !is_in(path, &to));
            self.removed.add(&from);
        } else if let Some(moved) = self.moved.iter_mut().find(|moved| is_in(path, &moved.to)) {
            moved.removed.add(path);
        } else if self.made.iter().any(|known| known == path) {
            self.forget(path);
            self.temporary += 1;
        } else if !self.removed.paths.iter().any(|known| is_in(path, known)) {
            self.removed.add(path);
        }
    }

    /// `is_new`: `to` did not exist before.
    pub(super) fn moved(&mut self, from: &str, to: &str, is_new: bool) {
        if self.made.iter().any(|known| known == from) {
            // A temporary file that replaces another file.
            self.forget(from);
        } else {
            self.removed.add(from);
            if is_new && self.moved.len() < KEPT {
                let (from, to) = (from.to_owned(), to.to_owned());
                self.moved.push(Moved { from, to, removed: PathList::default() });
            }
        }
        self.wrote(to, is_new);
    }

    /// Returns the complete record at the end of the call.
    pub(super) fn finish(mut self) -> Self {
        for Moved { removed, .. } in std::mem::take(&mut self.moved) {
            removed.paths.iter().for_each(|path| self.removed.add(path));
            self.removed.more += removed.more;
        }
        self
    }

    fn forget(&mut self, path: &str) {
        self.made.retain(|known| known != path);
        [&mut self.read, &mut self.written].into_iter().for_each(|list| list.remove(path));
    }
}

/// Returns true if a path is in a directory, whose path ends in `/`.
fn is_in(path: &str, directory: &str) -> bool {
    directory.ends_with('/') && path.len() > directory.len() && path.starts_with(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(touched: &FileActivity, read: &[&str], written: &[&str], removed: &[&str]) {
        assert_eq!(touched.read.paths, read);
        assert_eq!(touched.written.paths, written);
        assert_eq!(touched.removed.paths, removed);
    }

    #[test]
    fn replacing_a_file_is_one_write() {
        let mut touched = FileActivity::default();
        touched.wrote("/w/.lock", true);
        touched.read("/w/a");
        touched.wrote("/w/.tmp", true);
        touched.moved("/w/.tmp", "/w/a", false);
        touched.removed("/w/.lock");
        check(&touched, &["/w/a"], &["/w/a"], &[]);
        assert_eq!(touched.temporary, 1);
    }

    #[test]
    fn removing_a_directory_piece_by_piece_is_one_removal() {
        let mut touched = FileActivity::default();
        touched.read("/w/a/");
        touched.moved("/w/a/", "/w/.old/", true);
        touched.read("/w/.old/");
        touched.read("/w/.old/b/");
        for path in ["/w/.old/b/c", "/w/.old/b/", "/w/.old/d", "/w/.old/"] {
            touched.removed(path);
        }
        let touched = touched.finish();
        check(&touched, &["/w/a/"], &[], &["/w/a/"]);
        assert_eq!(touched.temporary, 0);
    }

    #[test]
    fn a_move_is_a_removal_and_a_write() {
        let mut touched = FileActivity::default();
        touched.moved("/w/a/", "/w/b/", true);
        touched.removed("/w/b/c");
        check(&touched.finish(), &[], &["/w/b/"], &["/w/a/", "/w/b/c"]);
    }

    #[test]
    fn many_paths_are_counted() {
        let mut touched = FileActivity::default();
        for number in 0..60 {
            touched.read(&format!("/w/{number}"));
            touched.read("/w/0");
            touched.looked_at(&format!("/w/{number}"));
        }
        assert_eq!((touched.read.paths.len(), touched.read.more), (KEPT, 10));
        assert_eq!(touched.looked_at.len(), LOOKED_AT);
    }
}
