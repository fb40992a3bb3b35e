//! What a tool may reach.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::WORKSPACE_GUEST_PATH;
use crate::text::shown;

/// Everything that one tool may reach. Empty by default: a tool holds nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Directories, in the order in which they were granted.
    pub directories: Vec<DirectoryGrant>,
}

/// One directory of the host, as a tool sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DirectoryGrant {
    /// The directory on the host; absolute, with no symbolic link on the way. The
    /// guest never learns it.
    pub host: PathBuf,
    /// Where the guest finds it.
    pub guest: GuestPath,
    /// What the guest may do in there.
    pub access: Access,
    /// The directory that was there when the grant was checked. The host gives
    /// no other one. `None`: any.
    pub identity: Option<FileId>,
}

/// What tells a file or a directory from everything else on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// The device that it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

/// What a tool may do inside a granted directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Access {
    /// Read files, list directories; change nothing.
    #[default]
    #[serde(rename = "ro")]
    ReadOnly,
    /// Read and change. `.git`, `.hg`, `.jj` and `.kitbag` stay read-only at any
    /// depth.
    #[serde(rename = "rw")]
    ReadWrite,
}

/// An absolute path inside the guest: `/`, or `/` and names, with no empty
/// component, no `.` and no `..`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GuestPath(String);

/// A text is not a path inside the guest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "guest path `{}` must be absolute, such as `/data`, without empty, `.` or `..` components",
    shown(path)
)]
pub struct GuestPathError {
    /// The text as it was given.
    pub path: String,
}

impl Grants {
    /// Guest path of the directory that a tool works in: `/workspace` where
    /// that is granted, else the first granted directory, else `/`.
    ///
    /// Contract: `wit/tool.wit`, record `context`, field `root`.
    pub fn root(&self) -> &str {
        let guests = || self.directories.iter().map(|grant| grant.guest.as_str());
        guests()
            .find(|guest| *guest == WORKSPACE_GUEST_PATH)
            .or_else(|| guests().next())
            .unwrap_or("/")
    }
}

impl GuestPath {
    /// Checks a text and takes it as a guest path.
    ///
    /// # Errors
    ///
    /// [`GuestPathError`] holds the text when it is not in the form above.
    pub fn new(path: impl Into<String>) -> Result<Self, GuestPathError> {
        let path = path.into();
        let is_clean = |component: &str| {
            !matches!(component, "" | "." | "..") && !component.contains(char::is_control)
        };
        match path.strip_prefix('/') {
            Some("") => Ok(Self(path)),
            Some(rest) if rest.split('/').all(is_clean) => Ok(Self(path)),
            _ => Err(GuestPathError { path }),
        }
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether one of the two paths lies within the other, or they are equal.
    pub fn overlaps(&self, other: &Self) -> bool {
        let within = |inner: &str, outer: &str| {
            inner
                .strip_prefix(outer.trim_end_matches('/'))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        within(&self.0, &other.0) || within(&other.0, &self.0)
    }
}

impl FromStr for GuestPath {
    type Err = GuestPathError;

    fn from_str(path: &str) -> Result<Self, Self::Err> {
        Self::new(path)
    }
}

impl TryFrom<String> for GuestPath {
    type Error = GuestPathError;

    fn try_from(path: String) -> Result<Self, Self::Error> {
        Self::new(path)
    }
}

impl From<GuestPath> for String {
    fn from(path: GuestPath) -> Self {
        path.0
    }
}

impl fmt::Display for GuestPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ReadOnly => "ro",
            Self::ReadWrite => "rw",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: bool) {
        assert_eq!(GuestPath::new(path).is_ok(), expected, "{path:?}");
    }

    #[test]
    fn a_guest_path_is_absolute_and_clean() {
        check("/", true);
        check("/data", true);
        check("/data/in put", true);
        check("", false);
        check("data", false);
        check("/data/", false);
        check("/data//x", false);
        check("/data/../etc", false);
        check("/./data", false);
        check("/da\0ta", false);
    }

    fn check_overlap(a: &str, b: &str, expected: bool) {
        let (a, b) = (GuestPath::new(a).unwrap(), GuestPath::new(b).unwrap());
        assert_eq!(a.overlaps(&b), expected, "{a} {b}");
        assert_eq!(b.overlaps(&a), expected, "{b} {a}");
    }

    #[test]
    fn paths_overlap_by_whole_components() {
        check_overlap("/data", "/data", true);
        check_overlap("/data", "/data/in", true);
        check_overlap("/", "/data", true);
        check_overlap("/data", "/database", false);
        check_overlap("/a/b", "/a/c", false);
    }

    #[test]
    fn the_root_prefers_the_workspace() {
        let grant = |guest: &str| DirectoryGrant {
            host: PathBuf::from("/tmp"),
            guest: guest.parse().unwrap(),
            access: Access::ReadOnly,
            identity: None,
        };
        let check = |guests: &[&str], expected: &str| {
            let grants = Grants { directories: guests.iter().map(|guest| grant(guest)).collect() };
            assert_eq!(grants.root(), expected);
        };
        check(&[], "/");
        check(&["/subjects", "/other"], "/subjects");
        check(&["/subjects", "/workspace"], "/workspace");
    }
}
