//! Host paths in the arguments of built-in tools.
//!
//! Clients pass the host path of the workspace to their models, so models write
//! `/home/ada/project/src/main.rs`, `file:///home/…`, `~/project/…` or, from a client on Windows,
//! `\\wsl.localhost\Ubuntu\home\…`. A path inside the host directory of a grant of the call is
//! replaced with the guest path.
//!
//! Paths are compared as text. The file system is not read, so that a call learns nothing about a
//! path outside its grants. Such a path is unchanged.

mod patch;
mod spelling;

use std::cell::LazyCell;
use std::path::Path;

use kitbag_contract::WORKSPACE_GUEST_PATH;
use kitbag_fs_guard::canonical;
use kitbag_policy::DirectoryGrant;
use serde_json::{Map, Value};

use self::spelling::Spelled;

/// The granted directories that can contain host paths.
pub(crate) struct HostPaths {
    /// Each host path with the guest path of its grant. The host paths do not end in `/`.
    directories: Vec<(String, String)>,
    /// The home directory, for `~`.
    home: Option<String>,
}

impl HostPaths {
    /// Creates the mapping for the directories of a call's grants.
    ///
    /// `root` is the workspace as the user named it, which may be a symbolic link. `home` is the
    /// meaning of `~`.
    pub(crate) fn new(grants: &[DirectoryGrant], root: &Path, home: Option<&Path>) -> Self {
        let text = |path: &Path| {
            let path = path.to_str()?;
            path.starts_with('/').then(|| path.trim_end_matches('/').to_owned())
        };
        let leads_to = LazyCell::new(|| canonical(root));
        let mut directories = Vec::new();
        for grant in grants {
            let guest = grant.guest.as_str().to_owned();
            if grant.host != root && grant.host == *leads_to {
                directories.extend(text(root).map(|root| (root, guest.clone())));
            }
            directories.extend(text(&grant.host).map(|host| (host, guest)));
        }
        Self { directories, home: home.and_then(text) }
    }

    /// Rewrites the arguments of a built-in tool that name files.
    pub(crate) fn rewrite(&self, tool: &str, arguments: &mut Map<String, Value>) {
        for (key, value) in arguments {
            let is_path = is_path(tool, key);
            match (tool, key.as_str(), value) {
                ("apply_patch", "patch", Value::String(patch)) => self.replace(patch, Self::patch),
                (_, _, Value::String(path)) if is_path => self.replace(path, Self::path),
                (_, "paths", Value::Array(paths)) => self.replace_each(paths, Self::path),
                (_, "globs", Value::Array(globs)) => self.replace_each(globs, Self::glob),
                _ => {}
            }
        }
    }

    fn replace(&self, text: &mut String, of: fn(&Self, &str) -> Option<String>) {
        if let Some(replaced) = of(self, text) {
            *text = replaced;
        }
    }

    fn replace_each(&self, values: &mut [Value], of: fn(&Self, &str) -> Option<String>) {
        for value in values {
            if let Value::String(text) = value {
                self.replace(text, of);
            }
        }
    }

    /// Returns the guest path of a path, if it differs from the path itself.
    fn path(&self, given: &str) -> Option<String> {
        match spelling::read(given, self.home.as_deref()) {
            Spelled::Host(candidates) => candidates
                .iter()
                .find_map(|path| self.to_guest(path))
                .map(|(guest, rest)| match (guest, rest.is_empty()) {
                    (WORKSPACE_GUEST_PATH, true) => ".".to_owned(),
                    (WORKSPACE_GUEST_PATH, false) => rest,
                    _ => join(guest, &rest),
                })
                .or_else(|| self.own_path(candidates, given)),
            Spelled::Relative(path) => (path != given).then_some(path),
        }
    }

    /// Returns the guest form of a glob. It stays absolute and begins at a granted directory.
    fn glob(&self, given: &str) -> Option<String> {
        let (sign, glob) = match given.strip_prefix('!') {
            Some(glob) => ("!", glob),
            None => ("", given),
        };
        match spelling::read(glob, self.home.as_deref()) {
            Spelled::Host(candidates) => {
                let mapped = candidates.iter().find_map(|path| self.to_guest(path));
                let mapped = mapped.map(|(guest, rest)| join(guest, &rest));
                Some(format!("{sign}{}", mapped.or_else(|| self.own_path(candidates, glob))?))
            }
            Spelled::Relative(path) if spelling::separates(glob) => Some(format!("{sign}{path}")),
            // A backslash in a glob escapes the next character.
            Spelled::Relative(_) => None,
        }
    }

    /// Returns a path that the tool knows, if it was given in a different spelling, such as a URI.
    fn own_path(&self, candidates: Vec<String>, given: &str) -> Option<String> {
        candidates.into_iter().find(|path| path != given && self.is_guest(path))
    }

    /// Returns true if a path is in a directory by its guest path.
    fn is_guest(&self, path: &str) -> bool {
        self.directories.iter().any(|(_, guest)| {
            let rest = path.strip_prefix(guest.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Returns the guest path of the directory that contains a host path, and the rest of the path.
    /// The innermost directory is used.
    fn to_guest(&self, path: &str) -> Option<(&str, String)> {
        let parts = || path.split('/').filter(|part| !matches!(*part, "" | "."));
        if self.is_guest(path) {
            return None;
        }
        let inside = self.directories.iter().filter_map(|(host, guest)| {
            let mut rest = parts();
            let mut above = host.split('/').filter(|part| !part.is_empty());
            let count = above.clone().count();
            above.all(|part| rest.next() == Some(part)).then(|| {
                let rest: Vec<_> = rest.collect();
                ((count, guest == WORKSPACE_GUEST_PATH), &**guest, rest.join("/"))
            })
        });
        inside.max_by_key(|(order, ..)| *order).map(|(_, guest, rest)| (guest, rest))
    }
}

/// Returns true if an argument of a built-in tool is the path of a file.
fn is_path(tool: &str, key: &str) -> bool {
    key == "path" || key.ends_with("_path") || (tool, key) == ("move_path", "to")
}

/// Returns the absolute paths among the arguments of a built-in tool that name files.
pub(crate) fn named<'a>(tool: &str, arguments: &'a Map<String, Value>) -> Vec<&'a str> {
    let of_key = |(key, value): (&'a String, &'a Value)| match value {
        Value::String(path) if is_path(tool, key) => vec![path.as_str()],
        Value::Array(paths) if key == "paths" => paths.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    arguments.iter().flat_map(of_key).filter(|path| path.starts_with('/')).collect()
}

fn join(guest: &str, rest: &str) -> String {
    match rest {
        "" => guest.to_owned(),
        rest => format!("{}/{rest}", guest.trim_end_matches('/')),
    }
}

#[cfg(test)]
mod tests {
    use kitbag_policy::{Access, GuestPath};
    use serde_json::json;

    use super::*;

    fn grant(host: &str, guest: &str) -> DirectoryGrant {
        DirectoryGrant {
            host: host.into(),
            guest: GuestPath::new(guest).unwrap(),
            access: Access::ReadOnly,
            include: Vec::new(),
            protected: None,
            identity: None,
        }
    }

    /// Returns the paths of Ada's workspace. A directory inside it and one outside are also
    /// granted.
    fn paths() -> HostPaths {
        let grants = [
            grant("/home/ada/my ws", "/workspace"),
            grant("/home/ada/my ws/out", "/out"),
            grant("/mnt/c/data", "/data"),
        ];
        HostPaths::new(&grants, Path::new("/home/ada/my ws"), Some(Path::new("/home/ada")))
    }

    /// Checks each line of a file: a path as a client writes it, and the result. `=` means
    /// unchanged.
    fn check(file: &str, of: fn(&HostPaths, &str) -> Option<String>) {
        let mut cases = 0;
        for line in file.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (given, expected) = line.split_once(" -> ").unwrap();
            let found = of(&paths(), given);
            let found = found.as_deref().unwrap_or("=");
            assert_eq!(found, expected, "{given}");
            cases += 1;
        }
        assert!(cases > 0);
    }

    #[test]
    fn paths_below_a_granted_directory_are_mapped() {
        check(include_str!("host_paths/paths.txt"), HostPaths::path);
    }

    #[test]
    fn globs_below_a_granted_directory_are_mapped() {
        check(include_str!("host_paths/globs.txt"), HostPaths::glob);
    }

    #[test]
    fn only_arguments_that_name_files_are_rewritten() {
        let check = |tool: &str, given: Value, expected: Value| {
            let mut arguments = given.as_object().unwrap().clone();
            paths().rewrite(tool, &mut arguments);
            assert_eq!(Value::from(arguments), expected);
        };
        let host = "/home/ada/my ws/a";
        check(
            "move_path",
            json!({ "path": host, "to": host, "text": host }),
            json!({ "path": "a", "to": "a", "text": host }),
        );
        check(
            "convert_data",
            json!({ "path": host, "to": host }),
            json!({ "path": "a", "to": host }),
        );
        check("read_file", json!({ "paths": [host, 1, "b"] }), json!({ "paths": ["a", 1, "b"] }));
        check(
            "diff_text",
            json!({ "new_path": host, "new": host }),
            json!({ "new_path": "a", "new": host }),
        );
        check(
            "find_files",
            json!({ "globs": [format!("!{host}/**")] }),
            json!({ "globs": ["!/workspace/a/**"] }),
        );
    }

    #[test]
    fn absolute_paths_of_arguments_are_named() {
        let check = |tool: &str, given: Value, expected: &[&str]| {
            assert_eq!(named(tool, given.as_object().unwrap()), expected);
        };
        check("read_file", json!({ "path": "/a", "text": "/b" }), &["/a"]);
        check("read_file", json!({ "path": "a", "paths": ["/b", "c", 1] }), &["/b"]);
        check("move_path", json!({ "path": "/a", "to": "/b" }), &["/a", "/b"]);
        check("convert_data", json!({ "old_path": "/a", "to": "/b" }), &["/a"]);
    }

    #[test]
    fn the_name_of_a_linked_workspace_is_mapped() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().canonicalize().unwrap().join("real");
        let link = directory.path().join("link");
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let grants = [grant(real.to_str().unwrap(), "/workspace")];
        let paths = HostPaths::new(&grants, &link, None);
        for path in [&real, &link] {
            assert_eq!(paths.path(path.join("a").to_str().unwrap()).as_deref(), Some("a"));
        }
        assert_eq!(paths.path("~/link/a"), None);
    }

    #[test]
    fn without_a_grant_nothing_is_mapped() {
        let paths = HostPaths::new(&[], Path::new("/home/ada/ws"), Some(Path::new("/home/ada")));
        assert_eq!(paths.path("/home/ada/ws/a"), None);
    }
}
