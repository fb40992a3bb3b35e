//! The start of a search: a granted directory and a path in it.

use std::borrow::Cow;
use std::io;

use kitbag_sdk::{Call, ErrorInfo};
use kitbag_workspace::{Kind, Location, explain, granted, stat};

use crate::files::Directory;

/// The start of a search.
pub(crate) struct SearchRoot {
    /// The granted directory.
    pub(crate) root: Directory,
    /// The guest path.
    guest: String,
    /// The prefix of displayed paths: empty for the call's root, otherwise the guest path and `/`.
    pub(crate) shown_root: String,
    /// The path in the granted directory, without `.`, `..` and trailing `/`. Empty for the
    /// directory itself.
    pub(crate) path: String,
    /// True if it is a directory.
    pub(crate) is_directory: bool,
}

impl SearchRoot {
    /// Resolves the `path` argument of a call.
    pub(crate) fn find(call: &Call, path: &str) -> Result<Self, ErrorInfo> {
        let location = Location::new(call, path)?;
        let failed = |error: &io::Error| explain(&location, "searched", error);
        let kind = stat(&location.path).map_err(|error| failed(&error))?.kind;
        if !matches!(kind, Kind::File | Kind::Directory) {
            let why = match kind {
                Kind::Secret => "looks like a secret",
                _ => "is not a file",
            };
            return Err(ErrorInfo::new(format!("`{path}` cannot be searched: it {why}")));
        }
        let root = root_of(call, &location.path);
        let inner = without_dots(&location.path[root.len()..]).ok_or_else(|| {
            ErrorInfo::new(format!(
                "`{path}` leads out of `{root}`, the directory that contains it"
            ))
        })?;
        let shown_root = if root == call.root() { String::new() } else { format!("{root}/") };
        let directory = Directory::granted(&root).map_err(|error| failed(&error))?;
        let is_directory = kind == Kind::Directory;
        Ok(Self { root: directory, guest: root, shown_root, path: inner, is_directory })
    }

    /// Converts globs to paths below the root. Some start with a guest path: `/workspace/src/**`
    /// becomes `/src/**`.
    ///
    /// # Errors
    ///
    /// A glob starts with another granted directory.
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
                // The wanted entries are in the directory.
                let below = if sign.is_empty() && glob.ends_with('/') { "**" } else { "" };
                Ok(format!("{sign}{glob}{below}"))
            }
        }
    }
}

/// Returns the granted directory that contains a path, preferably the call's root.
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

/// Returns a relative path without `.`, `..` and empty components. `None` if it leads outside.
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

/// Formats a path on one line: escapes line endings and invalid characters.
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

/// Describes an error of the operating system, as the text after the path.
pub(crate) fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "may not be read: no permission, or it looks like a secret".into()
        }
        _ if is_full(error) => {
            "has more than 16 MiB, the limit for a pattern over several lines".into()
        }
        _ => format!("cannot be read: {error}"),
    }
}

/// Returns true for the error of `grep-searcher` at its memory limit.
pub(crate) fn is_full(error: &io::Error) -> bool {
    error.to_string().contains("allocation limit")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_removed_from_inner_paths() {
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
    fn paths_are_shown_on_one_line() {
        assert_eq!(shown("a b/ä.rs"), "a b/ä.rs");
        assert_eq!(shown("a\nb\u{1b}[1m"), "a\\nb\\u{1b}[1m");
    }
}
