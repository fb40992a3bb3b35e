//! Directories of the host, as a tool sees them.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use kitbag_base::FileId;
use kitbag_base::text::shown;
use kitbag_contract::{PROTECTED_BY_DEFAULT, WORKSPACE_GUEST_PATH};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::decision::{Decision, MissingGrant};
use crate::kind::{Effects, Kind, KindRequest, Reach};

/// One directory of the host, as a tool sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DirectoryGrant {
    /// The directory on the host; absolute, with no symbolic link on the way. The
    /// guest never learns it. [`TEMPORARY`](Self::TEMPORARY): each run has one of its own.
    pub host: PathBuf,
    /// Where the guest finds it.
    pub guest: GuestPath,
    /// What the guest may do in there.
    pub access: Access,
    /// Globs of the files in there that look like secrets and that it may open all the
    /// same, by their paths. In a directory that is, or lies in, what looks like a secret
    /// itself it may open everything.
    pub include: Vec<String>,
    /// Names of files in there that it does not change although it may write: those by which
    /// another program would run something. `None`: the built-in list.
    pub protected: Option<Vec<String>>,
    /// The directory that was there when the grant was checked. The host gives
    /// no other one. `None`: any.
    pub identity: Option<FileId>,
}

/// A directory that a tool would like to be granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedDirectory {
    /// Where the tool looks for it.
    pub guest: String,
    /// What the tool does in there.
    #[serde(default)]
    pub mode: Access,
}

/// A file or a directory that a tool wants to reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRequest {
    /// Where the guest looks for it.
    pub guest: GuestPath,
    /// What the guest does there.
    pub access: Access,
}

/// A file that a tool was refused although it lies in a granted directory.
///
/// Reads as `` `/workspace/.env` looks like a secret, which a tool opens … ``.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedFile {
    /// Where the guest finds the granted directory that holds it.
    pub directory: GuestPath,
    /// Its path in there, with all links followed. Untrusted.
    pub path: String,
    /// Why.
    pub why: FileRefusal,
}

/// Why a tool was refused a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRefusal {
    /// It looks like a secret that no grant names.
    Secret,
    /// kitbag keeps its own secrets there, so that no grant opens it.
    Private,
    /// Another program would run something by it, and it was to be changed.
    Protected,
    /// It does not exist, and its name starts with a dot, as the names of files do that configure
    /// programs.
    NewDotName,
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

/// Whether a granted directory holds the path and allows what is done there.
pub(crate) fn decide(grants: &[DirectoryGrant], request: &PathRequest) -> Decision {
    let allows = |grant: &&DirectoryGrant| {
        grant.guest.contains(&request.guest) && grant.access.includes(request.access)
    };
    match grants.iter().find(allows) {
        Some(grant) => Decision::Allowed { by: grant.to_string() },
        None => Decision::Denied {
            reason: format!("no granted directory has `{request}`"),
            missing: Some(request.missing()),
        },
    }
}

/// The first of these grants that none of `own` holds.
pub(crate) fn beyond(grants: &[DirectoryGrant], own: &[DirectoryGrant]) -> Option<String> {
    let is_held = |grant: &DirectoryGrant| own.iter().any(|own| own.holds(grant));
    grants.iter().find(|grant| !is_held(grant)).map(DirectoryGrant::to_string)
}

/// The names that a grant protects, of which one stands for the built-in list.
fn protected_names(protected: &Option<Vec<String>>) -> Vec<&str> {
    match protected {
        Some(names) => names.iter().map(String::as_str).collect(),
        None => vec![PROTECTED_BY_DEFAULT],
    }
}

impl DirectoryGrant {
    /// Whether this grant holds all of another one: its directory, or one in it, with no
    /// more access, and found where the guest finds this one or below. By their paths
    /// alone, so whether a link leads elsewhere is left to the host.
    pub fn holds(&self, other: &Self) -> bool {
        // Each field, so that one that is added here gives a call no more by accident.
        let Self { host, guest, access, include, protected, identity: _ } = other;
        let protects = || {
            let (own, other) = (protected_names(&self.protected), protected_names(protected));
            let is_exception = |name: &&&str| name.starts_with('!');
            own.iter().filter(|name| !is_exception(name)).all(|name| other.contains(name))
                && other.iter().filter(is_exception).all(|name| own.contains(name))
        };
        let mut parts = host.components();
        parts.all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
            && host.starts_with(&self.host)
            && self.guest.contains(guest)
            && self.access.includes(*access)
            && (*access == Access::ReadOnly || protects())
            // Globs are of paths in the directory, so those of another one mean other files.
            && (include.is_empty()
                || *host == self.host && include.iter().all(|glob| self.include.contains(glob)))
    }
}

impl Kind for Vec<DirectoryGrant> {
    fn key(&self) -> &'static str {
        DirectoryGrant::KEY
    }

    fn reach(&self) -> Reach {
        Reach::Directory
    }

    fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    fn effects(&self) -> Effects {
        let changes =
            |grant: &DirectoryGrant| grant.access == Access::ReadWrite && !grant.is_temporary();
        let changes = self.iter().any(changes);
        Effects { changes, open_world: false }
    }

    fn lines(&self) -> Vec<String> {
        self.iter().map(DirectoryGrant::to_string).collect()
    }

    fn brief(&self) -> Vec<String> {
        self.iter().map(|grant| brief(grant.access, &grant.guest)).collect()
    }

    fn to_json(&self) -> Value {
        let entry = |grant: &DirectoryGrant| {
            let mut entry = json!({
                "host": grant.host.to_string_lossy(),
                "guest": grant.guest,
                "mode": grant.access,
            });
            if !grant.include.is_empty() {
                entry["include"] = json!(grant.include);
            }
            if let Some(protected) = &grant.protected {
                entry["protected"] = json!(protected);
            }
            entry
        };
        self.iter().map(entry).collect()
    }
}

impl KindRequest for PathRequest {
    fn reach(&self) -> Reach {
        Reach::Directory
    }

    fn brief(&self) -> String {
        brief(self.access, &self.guest)
    }

    fn is_given_by_call(&self) -> bool {
        !self.is_workspace()
    }
}

impl DirectoryGrant {
    /// The key of these grants.
    pub const KEY: &'static str = "filesystem";

    /// What stands for a directory that is made for a run, empty, and removed after it.
    pub const TEMPORARY: &'static str = "$TEMP";

    /// Whether each run has a directory of its own.
    pub fn is_temporary(&self) -> bool {
        self.host.as_os_str() == Self::TEMPORARY
    }
}

impl GuestPath {
    /// The path of what is at a relative path in this directory. `None`: the path is not
    /// Unicode, or not one of names alone.
    pub fn join(&self, below: &Path) -> Option<Self> {
        let mut path = self.0.trim_end_matches('/').to_owned();
        for part in below.components() {
            let Component::Normal(name) = part else { return None };
            path.push('/');
            path.push_str(name.to_str()?);
        }
        if path.is_empty() {
            path.push('/');
        }
        Self::new(path).ok()
    }
}

impl RequestedDirectory {
    /// The same as a request. `None` where the path cannot be granted.
    pub fn request(&self) -> Option<PathRequest> {
        let guest = GuestPath::new(self.guest.as_str()).ok()?;
        Some(PathRequest { guest, access: self.mode })
    }
}

impl PathRequest {
    /// Whether it is about the workspace.
    pub fn is_workspace(&self) -> bool {
        self.guest.as_str() == WORKSPACE_GUEST_PATH
    }

    /// The request for the directory to grant so that the tool reaches this path, since a grant is
    /// of a directory and never of a file: the workspace for what is in it, else the directory
    /// above. `is_directory` says whether the path is known to be a directory itself.
    pub fn to_grant(&self, is_directory: bool) -> Self {
        let path = self.guest.as_str();
        let workspace = GuestPath(WORKSPACE_GUEST_PATH.to_owned());
        let above = match path.rsplit_once('/') {
            Some(("", _)) | None => "/",
            Some((above, _)) => above,
        };
        let guest = match is_directory {
            _ if workspace.contains(&self.guest) => workspace,
            true => self.guest.clone(),
            false => GuestPath(above.to_owned()),
        };
        Self { guest, access: self.access }
    }

    /// What would allow it.
    pub fn missing(&self) -> MissingGrant {
        let host = if self.is_workspace() { "." } else { "DIRECTORY" };
        let guest = quoted(self.guest.as_str());
        let entry = format!("{{ host = \"{host}\", guest = {guest}, mode = \"{}\" }}", self.access);
        MissingGrant::of_list(DirectoryGrant::KEY, entry)
    }
}

impl RefusedFile {
    /// The file, as the guest names it.
    pub fn guest(&self) -> String {
        format!("{}/{}", self.directory.as_str().trim_end_matches('/'), self.path)
    }

    /// The value of `protected` that lets a tool create a name with a dot, in TOML.
    pub fn as_exception(&self) -> String {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        format!("[\"{PROTECTED_BY_DEFAULT}\", {}]", quoted(&format!("!{name}")))
    }

    /// The glob that would allow it, as an element of `include` in TOML.
    pub fn as_include(&self) -> String {
        let mut glob = String::new();
        for char in self.path.chars() {
            match char {
                '*' | '?' | '[' => glob.extend(['[', char, ']']),
                char => glob.push(char),
            }
        }
        quoted(&glob)
    }
}

impl fmt::Display for RefusedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guest = self.guest();
        let guest = shown(&guest);
        match self.why {
            FileRefusal::Secret => write!(
                f,
                "`{guest}` looks like a secret, which a tool opens and changes only where its \
                 grant includes it"
            ),
            FileRefusal::Private => {
                write!(f, "no tool reads `{guest}`, where kitbag keeps secrets")
            }
            FileRefusal::Protected => write!(
                f,
                "`{guest}` is one of the names by which another program runs something, which a \
                 tool changes only where its grant says `protected = []`"
            ),
            FileRefusal::NewDotName => write!(
                f,
                "`{guest}` does not exist, and a tool creates a file or directory whose name \
                 starts with a dot only where its grant excepts that name from `protected`"
            ),
        }
    }
}

fn brief(access: Access, guest: &GuestPath) -> String {
    match access {
        Access::ReadOnly => format!("reads {guest}"),
        Access::ReadWrite => format!("writes {guest}"),
    }
}

/// A text as a string in TOML.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

impl Access {
    /// Whether this permits everything that the other does.
    pub fn includes(self, other: Self) -> bool {
        self == Self::ReadWrite || other == Self::ReadOnly
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

    /// Whether the other path is this one or lies within it.
    pub fn contains(&self, other: &Self) -> bool {
        other
            .0
            .strip_prefix(self.0.trim_end_matches('/'))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Whether one of the two paths lies within the other, or they are equal.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.contains(other) || other.contains(self)
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

impl fmt::Display for DirectoryGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_temporary() {
            return write!(
                f,
                "{}  {} ← a directory of its own in each run",
                self.access, self.guest
            );
        }
        let host = self.host.to_string_lossy();
        write!(f, "{}  {} ← {}", self.access, self.guest, shown(&host))?;
        if !self.include.is_empty() {
            write!(f, ", with {}", shown(&self.include.join(", ")))?;
        }
        match &self.protected {
            None => {}
            Some(names) if names.is_empty() => f.write_str(", protects nothing")?,
            Some(names) => write!(f, ", protects {}", shown(&names.join(", ")))?,
        }
        Ok(())
    }
}

impl fmt::Display for PathRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}", self.access, shown(self.guest.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
    fn a_missing_grant_is_an_entry_of_the_list() {
        let check = |guest: &str, access: Access, expected: &str| {
            let request = PathRequest { guest: guest.parse().unwrap(), access };
            let Decision::Denied { missing: Some(missing), .. } = decide(&[], &request) else {
                panic!("allowed")
            };
            assert_eq!((missing.key, &*missing.entry), ("filesystem", expected));
        };
        let workspace = "{ host = \".\", guest = \"/workspace\", mode = \"rw\" }";
        check("/workspace", Access::ReadWrite, workspace);
        let quoted = "{ host = \"DIRECTORY\", guest = \"/a\\\"b\", mode = \"ro\" }";
        check("/a\"b", Access::ReadOnly, quoted);
    }

    #[test]
    fn the_directory_to_grant_is_never_a_file() {
        let check = |path: &str, is_directory: bool, expected: &str| {
            let request = PathRequest { guest: path.parse().unwrap(), access: Access::ReadWrite };
            let directory = request.to_grant(is_directory);
            assert_eq!((directory.guest.as_str(), directory.access), (expected, Access::ReadWrite));
        };
        for is_directory in [false, true] {
            check("/workspace", is_directory, "/workspace");
            check("/workspace/docs/a.md", is_directory, "/workspace");
        }
        check("/etc/passwd", false, "/etc");
        check("/etc/ssl", true, "/etc/ssl");
        check("/data", true, "/data");
        check("/notes.txt", false, "/");
        check("/", false, "/");
    }

    fn access() -> impl Strategy<Value = Access> {
        prop_oneof![Just(Access::ReadOnly), Just(Access::ReadWrite)]
    }

    /// Few names, so that paths lie in each other, and one that begins like another.
    fn names() -> impl Strategy<Value = Vec<&'static str>> {
        prop::collection::vec(prop_oneof![Just("a"), Just("ab"), Just("b")], 0..4)
    }

    fn path(names: &[&str]) -> GuestPath {
        GuestPath::new(format!("/{}", names.join("/"))).unwrap()
    }

    fn grant((names, access): &(Vec<&str>, Access)) -> DirectoryGrant {
        let guest = path(names);
        DirectoryGrant {
            host: "/h".into(),
            guest,
            access: *access,
            include: Vec::new(),
            protected: None,
            identity: None,
        }
    }

    #[test]
    fn a_grant_holds_no_secrets_that_it_does_not_include() {
        let grant = |host: &str, include: &[&str]| DirectoryGrant {
            host: host.into(),
            guest: "/data".parse().unwrap(),
            access: Access::ReadOnly,
            include: include.iter().copied().map(String::from).collect(),
            protected: None,
            identity: None,
        };
        let own = grant("/w", &[".env", "keys/*"]);
        let check = |host: &str, include: &[&str], expected: bool| {
            assert_eq!(own.holds(&grant(host, include)), expected, "{host} {include:?}");
        };
        check("/w", &[], true);
        check("/w", &["keys/*"], true);
        check("/w", &["*"], false);
        check("/w/sub", &[], true);
        check("/w/sub", &[".env"], false);
    }

    #[test]
    fn a_grant_holds_another_one_that_protects_as_much() {
        let grant = |access, protected: Option<&[&str]>| DirectoryGrant {
            host: "/w".into(),
            guest: "/data".parse().unwrap(),
            access,
            include: Vec::new(),
            protected: protected.map(|names| names.iter().copied().map(String::from).collect()),
            identity: None,
        };
        let check = |own: Option<&[&str]>, other: Option<&[&str]>, expected: bool| {
            let [own, read] = [(Access::ReadWrite, own), (Access::ReadOnly, other)]
                .map(|(access, protected)| grant(access, protected));
            let written = grant(Access::ReadWrite, other);
            assert_eq!(own.holds(&written), expected, "{own} {written}");
            assert!(own.holds(&read), "what is only read needs no protection");
        };
        check(None, None, true);
        check(None, Some(&[]), false);
        check(None, Some(&["a"]), false);
        check(Some(&[]), None, true);
        check(Some(&[]), Some(&["a"]), true);
        check(Some(&["a"]), Some(&["a", "b"]), true);
        check(Some(&["a", "b"]), Some(&["a"]), false);
        check(Some(&["a"]), None, false);
        // The list by its name is the list, and other names beside it protect more.
        check(None, Some(&["default"]), true);
        check(None, Some(&["default", "a"]), true);
        check(Some(&["default"]), None, true);
        check(Some(&["default", "a"]), None, false);
    }

    #[test]
    fn a_grant_holds_what_lies_in_it_with_no_more_access() {
        let grant = |host: &str, guest: &str, access| DirectoryGrant {
            host: host.into(),
            guest: guest.parse().unwrap(),
            access,
            include: Vec::new(),
            protected: None,
            identity: None,
        };
        let own = grant("/w/data", "/data", Access::ReadOnly);
        let check = |host: &str, guest: &str, access, expected: bool| {
            assert_eq!(own.holds(&grant(host, guest, access)), expected, "{host} {guest} {access}");
        };
        check("/w/data", "/data", Access::ReadOnly, true);
        check("/w/data/in", "/data", Access::ReadOnly, true);
        check("/w/data/in", "/data/in", Access::ReadOnly, true);
        check("/w/data", "/data", Access::ReadWrite, false);
        check("/w", "/data", Access::ReadOnly, false);
        check("/w/database", "/data", Access::ReadOnly, false);
        check("/w/data/..", "/data", Access::ReadOnly, false);
        check("/w/data/in/../../other", "/data", Access::ReadOnly, false);
        check("/w/data", "/other", Access::ReadOnly, false);
        let writes = grant("/w/data", "/data", Access::ReadWrite);
        assert!(writes.holds(&own));
    }

    proptest! {
        #[test]
        fn a_request_is_decided_as_by_a_walk_over_the_names(
            grants in prop::collection::vec((names(), access()), 0..4),
            wanted in names(),
            wanted_access in access(),
        ) {
            let allows = |(names, access): &(Vec<&str>, Access)| {
                wanted.starts_with(names)
                    && (wanted_access == Access::ReadOnly || *access == Access::ReadWrite)
            };
            let expected = grants.iter().any(allows);
            let request = PathRequest { guest: path(&wanted), access: wanted_access };
            let granted: Vec<_> = grants.iter().map(grant).collect();
            let decision = decide(&granted, &request);
            prop_assert_eq!(matches!(decision, Decision::Allowed { .. }), expected);

            // Taking a grant away never opens more.
            for left_out in 0..granted.len() {
                let mut fewer = granted.clone();
                fewer.remove(left_out);
                let is_allowed = matches!(decide(&fewer, &request), Decision::Allowed { .. });
                prop_assert!(expected || !is_allowed);
            }

            // What is named as missing allows the request.
            if let Decision::Denied { .. } = decision {
                let mut more = granted;
                let PathRequest { guest, access } = request.clone();
                more.push(DirectoryGrant { host: "/h".into(), guest, access, include: Vec::new(), protected: None, identity: None });
                let is_allowed = matches!(decide(&more, &request), Decision::Allowed { .. });
                prop_assert!(is_allowed);
            }
        }
    }
}
