//! Directories of the host that a tool can use.

mod consent;

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use kitbag_base::FileId;
use kitbag_base::text::shown;
use kitbag_contract::{PROTECTED_BY_DEFAULT, WORKSPACE_GUEST_PATH};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Grants;
use crate::consent::{Ability, GrantText, Risk, Surroundings};
use crate::decision::{Decision, MissingGrant};
use crate::kind::{DefaultCeiling, Effects, GrantForm, Kind, KindInfo, KindRequest, RefusalWords};

/// A directory of the host that a tool can use.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DirectoryGrant {
    /// The directory on the host: absolute, without symbolic links. Not visible to the guest. With
    /// [`TEMPORARY`](Self::TEMPORARY), each run has its own directory; below
    /// [`ROOTS`](Self::ROOTS), other machines have the directory.
    pub host: PathBuf,
    /// The directory's path in the guest.
    pub guest: GuestPath,
    /// The permitted access.
    pub access: Access,
    /// Globs of paths in the directory that look like secrets but may be opened. A directory that
    /// looks like a secret, or is in one that does, is open as a whole.
    pub include: Vec<String>,
    /// Names of files that may not be changed despite write access, since another program would run
    /// them. `None`: the built-in list.
    pub protected: Option<Vec<String>>,
    /// The identity of the directory when the grant was checked. The host refuses any other
    /// directory. `None`: any.
    pub identity: Option<FileId>,
}

/// A directory that a tool requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedDirectory {
    /// The path at which the tool expects the directory.
    pub guest: String,
    /// The requested access.
    #[serde(default)]
    pub mode: Access,
}

/// A file or directory that a tool tries to reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRequest {
    /// The guest path.
    pub guest: GuestPath,
    /// The access.
    pub access: Access,
}

/// A file in a granted directory that a tool may not use.
///
/// Formatted as `` `/workspace/.env` looks like a secret, which a tool opens … ``.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedFile {
    /// The guest path of the granted directory that contains the file.
    pub directory: GuestPath,
    /// The path in the directory, with all links resolved. Untrusted.
    pub path: String,
    /// The reason.
    pub why: FileRefusal,
}

/// Why a tool may not use a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRefusal {
    /// The file looks like a secret, and no grant names it.
    Secret,
    /// kitbag stores its own secrets there, so no grant opens the file.
    Private,
    /// Another program would run the file, and the tool tried to change it.
    Protected,
    /// The file does not exist, and its name starts with a dot, like names of files that configure
    /// programs.
    NewDotName,
}

/// The access to a granted directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Access {
    /// Read files and list directories.
    #[default]
    #[serde(rename = "ro")]
    ReadOnly,
    /// Read and change. `.git`, `.hg`, `.jj` and `.kitbag` remain read-only at any depth.
    #[serde(rename = "rw")]
    ReadWrite,
}

/// An absolute path in the guest: `/`, or `/` and names, without empty, `.` or `..` components.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GuestPath(String);

/// The error for a string that is not a guest path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "guest path `{}` must be absolute, such as `/data`, without empty, `.` or `..` components",
    shown(path)
)]
pub struct GuestPathError {
    /// The invalid path.
    pub path: String,
}

/// Decides whether a granted directory contains the path and permits the access.
pub(crate) fn decide(grants: &[DirectoryGrant], request: &PathRequest) -> Decision {
    let allows = |grant: &&DirectoryGrant| {
        grant.guest.contains(&request.guest) && grant.access.includes(request.access)
    };
    match grants.iter().find(allows) {
        Some(grant) => Decision::Allowed { by: grant.to_string() },
        None => Decision::Denied {
            reason: format!("no granted directory contains `{request}`"),
            missing: Some(request.missing()),
        },
    }
}

/// Returns the protected names of a grant, including the name of the built-in list.
fn protected_names(protected: &Option<Vec<String>>) -> Vec<&str> {
    match protected {
        Some(names) => names.iter().map(String::as_str).collect(),
        None => vec![PROTECTED_BY_DEFAULT],
    }
}

impl DirectoryGrant {
    /// Returns true if this grant covers another grant: its directory or one below, at the matching
    /// guest path or below, with no more access. Compares paths only; the host checks links.
    pub fn holds(&self, other: &Self) -> bool {
        // Names every field, so that a new field cannot give a call more access by accident.
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
            // Globs are relative to the directory, so the globs of a different directory match
            // different files.
            && (include.is_empty()
                || *host == self.host && include.iter().all(|glob| self.include.contains(glob)))
    }
}

/// The kind of these grants. They have no ceiling, because the trust screen shows the
/// directories outside the workspace.
pub(crate) const KIND: KindInfo = KindInfo {
    absent: Some("no directory"),
    imports: Some("wasi:filesystem/"),
    ceiling: DefaultCeiling::Unlimited,
    refusals: Some(RefusalWords {
        kind: "file",
        access: "use `{}`",
        reasons: &[
            ("secret", "it looks like a secret"),
            ("private", "kitbag keeps its own secrets there"),
            ("protected", "another program would run it"),
            ("guarded", "no tool may change it"),
            ("read-only", "it is read-only"),
            ("outside", "it is outside the granted directories"),
            ("special", "it is not a file or directory"),
        ],
    }),
    ..KindInfo::new(DirectoryGrant::KEY, "files", GrantForm::List)
};

impl Kind for Vec<DirectoryGrant> {
    fn info(&self) -> &'static KindInfo {
        &KIND
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

    fn uncovered(&self, own: &Grants) -> Option<String> {
        let is_held = |grant: &DirectoryGrant| own.directories.iter().any(|own| own.holds(grant));
        self.iter().find(|grant| !is_held(grant)).map(DirectoryGrant::to_string)
    }

    fn singles(&self) -> Vec<Grants> {
        self.iter().map(|grant| vec![grant.clone()].into()).collect()
    }

    fn texts(&self, around: &Surroundings<'_>) -> Vec<GrantText> {
        self.iter().map(|grant| consent::text(grant, around)).collect()
    }
}

impl KindRequest for PathRequest {
    fn info(&self) -> &'static KindInfo {
        &KIND
    }

    fn decide(&self, grants: &Grants) -> Decision {
        decide(&grants.directories, self)
    }

    fn brief(&self) -> String {
        brief(self.access, &self.guest)
    }

    fn is_given_by_call(&self) -> bool {
        !self.is_workspace()
    }

    /// A directory that contains the path or is below it is a part.
    fn is_granted_in_part(&self, grants: &Grants) -> bool {
        grants.directories.iter().any(|grant| grant.guest.overlaps(&self.guest))
    }

    /// Only the guest path of a requested directory is known.
    fn consent(&self, _: bool) -> (Option<Ability>, Vec<Risk>) {
        let ability = match self.access {
            Access::ReadOnly => Ability::ReadInside,
            Access::ReadWrite => Ability::WriteInside,
        };
        (self.is_workspace().then_some(ability), Vec::new())
    }
}

impl DirectoryGrant {
    /// The key of these grants.
    pub const KEY: &'static str = "filesystem";

    /// The host path of an empty directory that is created for a run and removed
    /// afterwards.
    pub const TEMPORARY: &'static str = "$TEMP";

    /// The host path of the roots: directories that each machine of a cluster names.
    pub const ROOTS: &'static str = "$ROOT";

    /// Returns true if each run has its own directory.
    pub fn is_temporary(&self) -> bool {
        self.host.as_os_str() == Self::TEMPORARY
    }

    /// Returns the name of the root that contains the directory, if this machine does not have it.
    /// The host path is then `$ROOT/NAME`, or below.
    pub fn missing_root(&self) -> Option<&str> {
        self.host.strip_prefix(Self::ROOTS).ok()?.iter().next()?.to_str()
    }

    /// Returns true if the host path is a directory of this machine.
    pub fn is_here(&self) -> bool {
        !self.is_temporary() && self.missing_root().is_none()
    }
}

impl GuestPath {
    /// Returns the path of a relative path in this directory. `None` if the path is not Unicode or
    /// has other components than names.
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
    /// Converts to a request. `None` if the path cannot be granted.
    pub fn request(&self) -> Option<PathRequest> {
        let guest = GuestPath::new(self.guest.as_str()).ok()?;
        Some(PathRequest { guest, access: self.mode })
    }
}

impl PathRequest {
    /// Returns true if the path is in the workspace.
    pub fn is_workspace(&self) -> bool {
        self.guest.as_str() == WORKSPACE_GUEST_PATH
    }

    /// Returns the request for the directory to grant, since a grant is for a directory and never
    /// for a file: the workspace for paths in it, otherwise the parent directory. `is_directory`
    /// tells whether the path is known to be a directory.
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

    /// Returns the grant that would allow the request. Its host directory is the workspace, or the
    /// placeholder `DIRECTORY`.
    pub fn missing(&self) -> MissingGrant {
        self.missing_in("DIRECTORY")
    }

    /// Returns the grant of this host directory that would allow the request. A request for the
    /// workspace is granted the workspace.
    pub fn missing_in(&self, host: &str) -> MissingGrant {
        let host = quoted(if self.is_workspace() { "." } else { host });
        let guest = quoted(self.guest.as_str());
        let entry = format!("{{ host = {host}, guest = {guest}, mode = \"{}\" }}", self.access);
        MissingGrant::of_list(DirectoryGrant::KEY, entry)
    }
}

impl RefusedFile {
    /// Returns the guest path of the file.
    pub fn guest(&self) -> String {
        format!("{}/{}", self.directory.as_str().trim_end_matches('/'), self.path)
    }

    /// Returns the value of `protected` that lets a tool create a dot name, in TOML.
    pub fn as_exception(&self) -> String {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        format!("[\"{PROTECTED_BY_DEFAULT}\", {}]", quoted(&format!("!{name}")))
    }

    /// Returns the glob that would allow the file, as an element of `include` in TOML.
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
                "`{guest}` looks like a secret; a tool may use it only if its grant includes \
                 it"
            ),
            FileRefusal::Private => {
                write!(f, "no tool may read `{guest}`, where kitbag keeps secrets")
            }
            FileRefusal::Protected => write!(
                f,
                "other programs can run code from `{guest}`; a tool may change it only if its \
                 grant has `protected = []`"
            ),
            FileRefusal::NewDotName => write!(
                f,
                "`{guest}` does not exist; a tool may create a name that starts with a dot only if \
                 `protected` in its grant excludes the name"
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

/// Formats a string in TOML.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

impl Access {
    /// Returns true if this access permits everything that `other` permits.
    pub fn includes(self, other: Self) -> bool {
        self == Self::ReadWrite || other == Self::ReadOnly
    }
}

impl GuestPath {
    /// Creates a guest path if the string is valid.
    ///
    /// # Errors
    ///
    /// [`GuestPathError`] contains the string if it does not have the form above.
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

    /// Returns the path as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if `other` is this path or is below it.
    pub fn contains(&self, other: &Self) -> bool {
        other
            .0
            .strip_prefix(self.0.trim_end_matches('/'))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns true if the paths are equal or one is below the other.
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
            let Self { access, guest, .. } = self;
            return write!(f, "{access}  {guest} ← an empty directory for each call");
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
mod tests;
