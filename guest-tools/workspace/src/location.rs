//! A path of the arguments.

use kitbag_sdk::{Call, ErrorInfo};

use crate::cut::shown;

/// Maximum length of a path on common systems.
const PATH_BYTES: usize = 4_096;

/// A path as the caller gave it, and its guest path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The path as the caller gave it, for answers and errors.
    pub given: String,
    /// The absolute guest path, for `std::fs` and the functions of this crate.
    pub path: String,
}

impl Location {
    /// Parses a path of the arguments, relative to the root of the call or absolute. A trailing `/`
    /// is removed.
    ///
    /// # Errors
    ///
    /// The path is empty, is too long, contains a NUL byte or is a URL.
    pub fn new(call: &Call, given: &str) -> Result<Self, ErrorInfo> {
        if given.is_empty() {
            return Err(ErrorInfo::new("a path is empty; `.` is the working directory"));
        }
        if given.len() > PATH_BYTES {
            let (bytes, shown) = (given.len(), shown(given));
            let message = format!("a path has {bytes} bytes; the limit is {PATH_BYTES}: `{shown}`");
            return Err(ErrorInfo::new(message));
        }
        if given.contains('\0') {
            let escaped = given.replace('\0', "\\0");
            let message =
                format!("`{}` has a NUL byte, which a path may not have", shown(&escaped));
            return Err(ErrorInfo::new(message));
        }
        if let Some(scheme) = url_scheme(given) {
            let way_out = match scheme.to_ascii_lowercase().as_str() {
                "http" | "https" => "; the tool `fetch` reads URLs",
                _ => "",
            };
            let message =
                format!("`{}` is a URL, but must be the path of a file{way_out}", shown(given));
            return Err(ErrorInfo::new(message));
        }
        let trimmed = given.trim_end_matches('/');
        let trimmed = if trimmed.is_empty() { "/" } else { trimmed };
        Ok(Self { given: trimmed.to_owned(), path: call.path(trimmed) })
    }

    /// Like [`new`](Self::new), for a path that must be a file.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new), and if the path ends with `/`, like the path of a directory.
    pub fn of_file(call: &Call, given: &str) -> Result<Self, ErrorInfo> {
        match given.ends_with('/') {
            true => Err(ErrorInfo::new(format!(
                "`{}` ends with `/`, so it is the path of a directory, not of a file",
                shown(given)
            ))),
            false => Self::new(call, given),
        }
    }

    /// Returns the location of an entry of this directory.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        let join = |directory: &str| match directory.trim_end_matches('/') {
            "." => name.to_owned(),
            directory => format!("{directory}/{name}"),
        };
        Self {
            given: join(&self.given),
            path: format!("{}/{name}", self.path.trim_end_matches('/')),
        }
    }

    /// Returns the parent directory, and the name in it. `None` for `/` and for a path that ends
    /// with `.` or `..`.
    pub fn split(&self) -> Option<(Self, &str)> {
        let (directory, name) = self.path.rsplit_once('/')?;
        if matches!(name, "" | "." | "..") {
            return None;
        }
        let given = self.given.rsplit_once('/').map_or(".", |(directory, _)| directory);
        let absolute = |path: &str| if path.is_empty() { "/".to_owned() } else { path.to_owned() };
        Some((Self { given: absolute(given), path: absolute(directory) }, name))
    }
}

/// Returns the scheme of a text that is a URL with a host, and so is not meant as a path.
fn url_scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    (is_scheme && !scheme.eq_ignore_ascii_case("file")).then_some(scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(given: &str) -> Location {
        Location::new(&Call::new("t", "/workspace", "{}", "{}"), given).unwrap()
    }

    #[test]
    fn a_path_is_relative_to_the_root_or_absolute() {
        for (given, shown, path) in [
            ("a/b", "a/b", "/workspace/a/b"),
            ("a/", "a", "/workspace/a"),
            (".", ".", "/workspace/."),
            ("/data/x", "/data/x", "/data/x"),
            ("/", "/", "/"),
        ] {
            assert_eq!(location(given), Location { given: shown.into(), path: path.into() });
        }
    }

    #[test]
    fn invalid_paths_are_refused() {
        let call = Call::new("t", "/workspace", "{}", "{}");
        let message = |given| Location::new(&call, given).unwrap_err().message;
        assert_eq!(message(""), "a path is empty; `.` is the working directory");
        assert_eq!(message("a\0b"), "`a\\0b` has a NUL byte, which a path may not have");
    }

    #[test]
    fn a_path_is_split_and_joined() {
        let split = |given| {
            let location = location(given);
            location.split().map(|(above, name)| (above.given, above.path, name.to_owned()))
        };
        let expected = |given: &str, path: &str, name: &str| {
            Some((given.to_owned(), path.to_owned(), name.to_owned()))
        };
        assert_eq!(split("a/b"), expected("a", "/workspace/a", "b"));
        assert_eq!(split("b"), expected(".", "/workspace", "b"));
        assert_eq!(split("/b"), expected("/", "/", "b"));
        assert_eq!(split("a/.."), None);
        assert_eq!(split("."), None);
        assert_eq!(location(".").join("b").given, "b");
        assert_eq!(location("a").join("b").given, "a/b");
        assert_eq!(location("/").join("b").path, "/b");
    }
}
