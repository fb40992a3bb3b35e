//! Paths in files: their bases and their canonical forms.

use std::path::{Component, Path, PathBuf};

use crate::report::Problem;
use kitbag_base::text::shown;
use kitbag_fs_guard::{Link, canonical};

/// The directories that paths in a file can be relative to.
pub(crate) struct Bases<'a> {
    /// The workspace; absolute.
    pub(crate) root: &'a Path,
    pub(crate) home: Option<&'a Path>,
}

impl Bases<'_> {
    pub(crate) fn absolute(&self, text: &str) -> Result<PathBuf, Problem> {
        if text.is_empty() {
            return Err("the path is empty; write `.` for the workspace".into());
        }
        if is_url(text) {
            return Err(Problem::from(format!(
                "`{}` is a URL, but must be the path of a file; `kitbag add URL#sha256=DIGEST` \
                 downloads a tool and shows its requests",
                shown(text)
            )));
        }
        let path = match in_home(text) {
            Some(rest) => {
                let home = self.home.ok_or_else(|| {
                    format!(
                        "`{}` cannot be resolved: the home directory is unknown; write an absolute \
                         path",
                        shown(text)
                    )
                })?;
                home.join(rest)
            }
            None => self.root.join(text),
        };
        Ok(clean(&path))
    }
}

/// Returns whether a string is a URL, such as `https://example.com/tool.wasm` or `oci://…`.
fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

/// Returns whether a path means the same file in every workspace. This is true of a URL, which is
/// refused when it is read.
pub(crate) fn is_fixed(text: &str) -> bool {
    is_url(text) || in_home(text).is_some() || Path::new(text).is_absolute()
}

/// Returns a path without `.`, doubled separators, and `..` at the root.
///
/// Any other `..` stays: if the component before it is a symbolic link, the operating system
/// continues from the parent of the link's target.
pub(crate) fn clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir if clean.has_root() && clean.parent().is_none() => {}
            component => clean.push(component),
        }
    }
    clean
}

/// Returns a path whose lexical parents are its parents: without `..`, and with links resolved if
/// the path had a `..`.
pub fn settled(path: &Path) -> PathBuf {
    let clean = clean(path);
    let goes_up = clean.components().any(|component| component == Component::ParentDir);
    if goes_up { canonical(&clean) } else { clean }
}

/// Returns whether a directory is the root of the file system, or contains the home directory.
pub(crate) fn holds(directory: &Path, home: Option<&Path>) -> bool {
    let directory = canonical(directory);
    directory.parent().is_none() || home.is_some_and(|home| canonical(home).starts_with(&directory))
}

/// Returns the part after `~` or `~/` if a path starts with it.
fn in_home(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('~')?;
    // Further separators after the first would make the rest absolute.
    if rest.is_empty() {
        Some(rest)
    } else {
        rest.strip_prefix('/').map(|rest| rest.trim_start_matches('/'))
    }
}

/// Returns whether one of the followed links is in the workspace, by its canonical path.
pub(crate) fn is_led(links: &[Link], root: &Path) -> bool {
    links.iter().any(|link| link.path.starts_with(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_path_leads_to_the_same_place() {
        let check =
            |path: &str, expected: &str| assert_eq!(clean(Path::new(path)).as_os_str(), expected);
        check("/a/./b//c/.", "/a/b/c");
        check("/../../a", "/a");
        check("/a/../b", "/a/../b");
        check("/", "/");
    }

    #[test]
    fn a_path_is_relative_to_the_workspace_or_the_home_directory() {
        let bases = Bases { root: Path::new("/w"), home: Some(Path::new("/h")) };
        let check = |text: &str, expected: &str| {
            assert_eq!(bases.absolute(text).unwrap().as_os_str(), expected, "{text}");
        };
        check("a", "/w/a");
        check(".", "/w");
        check("/a", "/a");
        check("~", "/h");
        check("~/a", "/h/a");
        check("~//a", "/h/a");
        check("~a", "/w/~a");
        let homeless = Bases { root: Path::new("/w"), home: None };
        let refused = |bases: &Bases<'_>, text: &str, expected: &str| {
            let problem = bases.absolute(text).unwrap_err();
            assert!(problem.message.starts_with(expected), "{problem:?}");
        };
        refused(&homeless, "~/a", "`~/a` cannot be resolved: the home directory is unknown");
        refused(&homeless, "", "the path is empty");
        for url in ["https://a.test/x.wasm", "HTTP://a.test", "oci://a/b", "file:///x"] {
            refused(&bases, url, &format!("`{url}` is a URL"));
        }
        check("a:/b", "/w/a:/b");
        check("a b://c", "/w/a b:/c");
    }

    #[test]
    fn missing_paths_have_a_canonical_form() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("real")).unwrap();
        std::os::unix::fs::symlink("real", real.join("link")).unwrap();
        std::os::unix::fs::symlink("link/../later", real.join("dangling")).unwrap();
        let check = |path: &str, expected: &str| {
            assert_eq!(canonical(&real.join(path)).as_os_str(), real.join(expected).as_os_str());
        };
        check("link", "real");
        check("link/a/b", "real/a/b");
        check("none", "none");
        check("dangling/a", "later/a");
    }
}
