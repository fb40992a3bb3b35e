//! Resolves a path to a preopened directory and a name in it.

use kitbag_sdk::{Call, ErrorInfo};
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::Descriptor;

use crate::arguments::Arguments;
use crate::sentence::Refusal;

/// The directories that the host preopened.
pub(crate) struct Places(Vec<(Descriptor, String)>);

/// A path in a preopened directory.
pub(crate) struct Place<'a> {
    pub(crate) directory: &'a Descriptor,
    pub(crate) path: String,
}

impl Places {
    pub(crate) fn open() -> Self {
        Self(get_directories())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the guest paths of the directories, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.0.iter().map(|(_, name)| name.clone()).collect();
        names.sort();
        names
    }

    /// Resolves two arguments: a path and an optional preopen.
    pub(crate) fn find(
        &self,
        call: &Call,
        arguments: &Arguments,
        [path, preopen]: [&str; 2],
    ) -> Result<Result<Place<'_>, Refusal>, ErrorInfo> {
        let path = arguments.text(path)?;
        Ok(match arguments.optional_text(preopen) {
            Some(preopen) => self.at(preopen, path.to_owned()),
            None => self.find_path(call.root(), path),
        })
    }

    /// Finds the place of a path that starts at a root unless it is absolute.
    pub(crate) fn find_path(&self, root: &str, path: &str) -> Result<Place<'_>, Refusal> {
        let names = self.0.iter().map(|(_, name)| name.as_str());
        match split(names, root, path) {
            Some((preopen, path)) => self.at(&preopen, path),
            None => Err(Refusal::of("no directory")),
        }
    }

    fn at(&self, preopen: &str, path: String) -> Result<Place<'_>, Refusal> {
        let found = self.0.iter().find(|(_, name)| name == preopen);
        let (directory, _) = found.ok_or_else(|| Refusal::of("no directory"))?;
        Ok(Place { directory, path })
    }
}

/// Splits a path into the longest preopen that it is in and the rest.
fn split<'a>(
    preopens: impl Iterator<Item = &'a str> + Clone,
    root: &str,
    path: &str,
) -> Option<(String, String)> {
    // Unchanged if it starts at a preopen: joining would change an empty path or a path of dots.
    if !path.starts_with('/') && preopens.clone().any(|preopen| preopen == root) {
        return Some((root.to_owned(), path.to_owned()));
    }
    let path = match path.strip_prefix('/') {
        Some(_) => path.to_owned(),
        None => format!("{}/{path}", root.trim_end_matches('/')),
    };
    let inside = preopens.filter_map(|preopen| {
        let rest = path.strip_prefix(preopen.trim_end_matches('/'))?;
        match rest.strip_prefix('/') {
            Some(rest) => Some((preopen, rest)),
            None => rest.is_empty().then_some((preopen, rest)),
        }
    });
    let (preopen, rest) = inside.max_by_key(|(preopen, _)| preopen.len())?;
    Some((preopen.to_owned(), if rest.is_empty() { "." } else { rest }.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(preopens: &[&str], root: &str, path: &str, expected: Option<(&str, &str)>) {
        let found = split(preopens.iter().copied(), root, path);
        let found = found.as_ref().map(|(preopen, rest)| (preopen.as_str(), rest.as_str()));
        assert_eq!(found, expected);
    }

    #[test]
    fn an_absolute_path_is_in_the_longest_preopen() {
        let preopens = ["/a", "/a/b", "/ab"];
        check(&preopens, "/a", "/a/c", Some(("/a", "c")));
        check(&preopens, "/a", "/a/b/c", Some(("/a/b", "c")));
        check(&preopens, "/a", "/a/b", Some(("/a/b", ".")));
        check(&preopens, "/a", "/a/b/", Some(("/a/b", ".")));
        check(&preopens, "/a", "/a/bc", Some(("/a", "bc")));
        check(&preopens, "/a", "/ab/../x", Some(("/ab", "../x")));
        check(&preopens, "/a", "/etc/passwd", None);
        check(&["/"], "/", "/etc/passwd", Some(("/", "etc/passwd")));
    }

    #[test]
    fn relative_paths_start_at_the_root_unchanged() {
        for path in ["", ".", "..", "a/../../b", "a/", "a\0b"] {
            check(&["/a"], "/a", path, Some(("/a", path)));
        }
        check(&["/a"], "/a/b", "c", Some(("/a", "b/c")));
        check(&["/a"], "/", "a/b", Some(("/a", "b")));
        check(&[], "/", "a", None);
    }
}
