//! Where a search begins: a path of the arguments as a granted directory and a path in it.

use std::borrow::Cow;
use std::io;

use kitbag_sdk::{Call, ErrorInfo};
use kitbag_workspace::{Kind, Location, explain, granted, stat};

use crate::files::Directory;

/// Where a search begins.
pub(crate) struct Place {
    /// The granted directory.
    pub(crate) root: Directory,
    /// Its guest path.
    guest: String,
    /// What stands before a path in it when that is shown: nothing where it is the call's
    /// root, else its guest path and `/`.
    pub(crate) shown_root: String,
    /// The path in it, without `.`, `..` and `/` at its ends. Empty for itself.
    pub(crate) path: String,
    /// Whether that is a directory.
    pub(crate) is_directory: bool,
}

impl Place {
    /// Finds what a call names by `path`.
    pub(crate) fn find(call: &Call, path: &str) -> Result<Self, ErrorInfo> {
        let location = Location::new(call, path)?;
        let failed = |error: &io::Error| explain(&location, "searched", error);
        let kind = stat(&location.path).map_err(|error| failed(&error))?.kind;
        if !matches!(kind, Kind::File | Kind::Directory) {
            let why = match kind {
                Kind::Secret => "looks like a secret",
                _ => "is no file",
            };
            return Err(ErrorInfo::new(format!("`{path}` cannot be searched: it {why}")));
        }
        let root = root_of(call, &location.path);
        let inner = without_dots(&location.path[root.len()..]).ok_or_else(|| {
            ErrorInfo::new(format!("`{path}` leads out of `{root}`, the directory that holds it"))
        })?;
        let shown_root = if root == call.root() { String::new() } else { format!("{root}/") };
        let directory = Directory::granted(&root).map_err(|error| failed(&error))?;
        let is_directory = kind == Kind::Directory;
        Ok(Self { root: directory, guest: root, shown_root, path: inner, is_directory })
    }

    /// Globs by the paths below the root, of which some begin with a guest path:
    /// `/workspace/src/**` is `/src/**`.
    ///
    /// # Errors
    ///
    /// One that begins with another granted directory.
    pub(crate) fn globs(&self, globs: &[String]) -> Result<Vec<String>, ErrorInfo> {
        globs.iter().map(|glob| self.glob(glob)).collect()
    }

    fn glob(&self, given: &str) -> Result<String, ErrorInfo> {
        let (sign, glob) = match given.strip_prefix('!') {
            Some(glob) => ("!", glob),
            None => ("", given),
        };
        let below = |root: &str| {
            let rest = glob.strip_prefix(root.trim_end_matches('/'))?;
            (rest.is_empty() || rest.starts_with('/')).then_some(rest)
        };
        match below(&self.guest).filter(|_| self.guest != "/") {
            Some("" | "/") => return Ok(format!("{sign}/**")),
            Some(rest) => return Ok(format!("{sign}{rest}")),
            None => {}
        }
        let other = granted().into_iter().find(|it| it.path != "/" && below(&it.path).is_some());
        match other {
            Some(other) => Err(ErrorInfo::new(format!(
                "`{given}` in `globs` is not below `path`; to search there, set `path` to `{}`",
                other.path
            ))),
            None => {
                let glob = glob.strip_prefix("./").unwrap_or(glob);
                // What is wanted is in the directory.
                let below = if sign.is_empty() && glob.ends_with('/') { "**" } else { "" };
                Ok(format!("{sign}{glob}{below}"))
            }
        }
    }
}

/// The granted directory that a path lies in: the call's root before others.
fn root_of(call: &Call, path: &str) -> String {
    let is_in = |root: &str| {
        path.strip_prefix(root.trim_end_matches('/'))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if is_in(call.root()) {
        return call.root().to_owned();
    }
    let roots = granted().into_iter().map(|granted| granted.path).filter(|root| is_in(root));
    roots.max_by_key(String::len).unwrap_or_else(|| "/".into())
}

/// A relative path without `.`, `..` and empty components, or none where it leads out.
fn without_dots(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// A path on one line: what would end the line or is no character of a text is escaped.
pub(crate) fn shown(path: &str) -> Cow<'_, str> {
    if !path.contains(char::is_control) {
        return path.into();
    }
    let spell = |character: char| match character.is_control() {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    };
    path.chars().map(spell).collect::<String>().into()
}

/// What an error of the operating system means, after the path.
pub(crate) fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "may not be read: no permission, or it looks like a secret".into()
        }
        _ if is_full(error) => {
            "has more than 16 MiB, the most that a pattern over several lines is searched in".into()
        }
        _ => format!("cannot be read: {error}"),
    }
}

/// Whether it is what `grep-searcher` says at the limit of memory that it is given.
pub(crate) fn is_full(error: &io::Error) -> bool {
    error.to_string().contains("allocation limit")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_taken_out_of_a_path_that_stays_inside() {
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(without_dots(path).as_deref(), expected, "{path}");
        };
        check("", Some(""));
        check("/", Some(""));
        check("./a//b/.", Some("a/b"));
        check("a/../b", Some("b"));
        check("a/..", Some(""));
        check("a/../..", None);
        check("../a", None);
    }

    #[test]
    fn a_path_is_one_line() {
        assert_eq!(shown("a b/ä.rs"), "a b/ä.rs");
        assert_eq!(shown("a\nb\u{1b}[1m"), "a\\nb\\u{1b}[1m");
    }
}
