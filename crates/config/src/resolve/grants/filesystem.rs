//! Grants of directories.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use kitbag_base::FileId;
use kitbag_base::text::{shown, shown_path};
use kitbag_contract::ToolName;
use kitbag_fs_guard::{Guard, GuardedPaths, ProtectedNames, canonical, repository_above};
use kitbag_policy::{Access, DirectoryGrant, GuestPath};

use crate::config::{ConfiguredTool, workspace_grant, writable};
use crate::format::span::{At, Written};
use crate::format::{DirectoryGrantConfig, GrantsConfig, grants_writing};
use crate::layers::origin::{Origin, Sourced};
use crate::layers::path::is_fixed;
use crate::read::file::Layer;
use crate::read::sources::{BuiltinTool, PYTHON};
use crate::report::{DiagnosticKind, GrantedLink, Problem, Report};
use crate::resolve::context::{Context, Directory, valid};
use crate::resolve::grants::beyond::Grantee;
use crate::resolve::grants::kind::{ConfigKind, Merge, of_kind};
use crate::resolve::user::secret_files;

/// The maximum number of directories that one tool is granted. Each takes a handle of the call, and
/// every pair is compared.
const MAX_GRANTS: usize = 64;

/// The longest name of a root.
const ROOT_NAME_BYTES: usize = 32;

/// The valid parts of a grant that is being checked.
struct Grant<'a> {
    at: At<'a, DirectoryGrantConfig>,
    host: Option<PathBuf>,
    /// The identity of a directory that was opened.
    identity: Option<FileId>,
    guest: Option<GuestPath>,
    access: Access,
    include: Vec<String>,
    protected: Option<Vec<String>>,
}

pub(super) const KIND: ConfigKind =
    ConfigKind { key: DirectoryGrant::KEY, merge, ceiling: None, call: None };

fn merge(merge: &mut Merge<'_, '_>, report: &mut Report) {
    let layers = merge.layers(|grants| grants.filesystem.as_ref());
    let directories = granted(merge.context, layers, merge.grantee, report);
    merge.grants.set(|grants| &mut grants.directories, directories);
}

/// Returns the layer of the configuration whose grants let a tool change files. `layers` are the
/// layers of the tool, the weakest first.
pub(crate) fn writes(layers: &[At<'_, GrantsConfig>]) -> Option<Layer> {
    let effective = of_kind(layers, |grants| grants.filesystem.as_ref()).pop()?;
    grants_writing(effective.value).then(|| effective.file.layer())
}

pub(crate) fn names_directories(layers: &[At<'_, GrantsConfig>]) -> bool {
    !of_kind(layers, |grants| grants.filesystem.as_ref()).is_empty()
}

/// Returns the granted directories. Those of an enabled tool are opened.
fn granted(
    context: &Context<'_>,
    mut layers: Vec<At<'_, Vec<Written<DirectoryGrantConfig>>>>,
    grantee: Grantee<'_>,
    report: &mut Report,
) -> Sourced<Vec<DirectoryGrant>> {
    let Grantee { builtin, is_enabled, .. } = grantee;
    let Some(effective) = layers.pop() else {
        let Some(builtin) = builtin else {
            return Sourced::default(vec![of_workspace(context, Access::ReadOnly)]);
        };
        let access = builtin.workspace.filter(|_| is_enabled);
        let grants = access.map(|access| of_workspace(context, access)).into_iter().collect();
        return Sourced { value: grants, origin: Origin::Tool };
    };
    if context.is_untrusted() && effective.file.layer() == Layer::Workspace {
        let held = granted(context, layers, grantee, report);
        let own = builtin.map(|builtin| given_by_call(builtin).collect::<Vec<_>>());
        let granted = narrowed(context, effective, &held.value, &own.unwrap_or_default());
        return effective.sourced(granted);
    }
    // A weaker layer is overridden, but must also be valid.
    for at in layers.iter().flat_map(|list| list.value.iter().map(|grant| grant.at(list.file))) {
        guest_path(at, report);
        include(at, report);
        protected(at, report);
    }
    let (count, most) = (effective.value.len(), MAX_GRANTS);
    let grants = effective.value.iter().map(|written| written.at(effective.file));
    let grants: Vec<_> = grants.map(|at| grant(context, at, grantee, report)).collect();
    if let Some(builtin) = builtin {
        check_given_by_call(&grants, builtin, report);
    }
    if count > most {
        let message = format!(
            "{count} directories are granted; the limit is {most}: grant one that contains them"
        );
        report.at(effective, refused(message));
    } else {
        for (index, grant) in grants.iter().enumerate() {
            let mut others = grants[..index].iter();
            if let Some(problem) = others.find_map(|other| grant.conflict(other, is_enabled)) {
                report.at(grant.at, refused(problem));
            }
        }
    }
    effective.sourced(grants.into_iter().filter_map(Grant::finish).collect())
}

/// Returns the directories of an untrusted workspace that are within the tool's other directories:
/// read-only, without files that look like secrets, and at the guest paths that they have there,
/// since rules of the user name files by these paths. `given` are the guest paths of directories
/// that calls give to the tool.
fn narrowed(
    context: &Context<'_>,
    list: At<'_, Vec<Written<DirectoryGrantConfig>>>,
    held: &[DirectoryGrant],
    given: &[GuestPath],
) -> Vec<DirectoryGrant> {
    let mut granted: Vec<DirectoryGrant> = Vec::new();
    for grant in list.value.iter().take(MAX_GRANTS) {
        let DirectoryGrantConfig { host, guest, mode: _, include: _, protected: _ } = &grant.value;
        let Ok(path) = context.bases.absolute(&host.value) else { continue };
        let Ok(directory) = context.directories.get(&path) else { continue };
        if GuestPath::new(guest.value.as_str()).is_err() {
            continue;
        }
        let within = |held: &DirectoryGrant| {
            let below = directory.path.strip_prefix(&held.host).ok()?;
            let secrets = context.guard.secrets();
            let is_hidden = secrets.need_own_grant(&held.host, below, None);
            (!is_hidden).then(|| held.guest.join(below)).flatten()
        };
        let Some(guest) = held.iter().find_map(within) else { continue };
        let is_free = given.iter().all(|given| !given.overlaps(&guest))
            && granted.iter().all(|other| other.guest != guest);
        if is_free {
            let (host, identity) = (directory.path, Some(directory.identity));
            let grant = workspace_grant(host, identity);
            granted.push(DirectoryGrant { guest, ..grant });
        }
    }
    granted
}

fn check_given_by_call(grants: &[Grant<'_>], builtin: &BuiltinTool<'_>, report: &mut Report) {
    for grant in grants {
        let Some(guest) = &grant.guest else { continue };
        let mut own = given_by_call(builtin);
        let Some(own) = own.find(|own| own.overlaps(guest)) else { continue };
        let message = format!(
            "`{}` overlaps `{}`, which every call of the built-in `{}` receives automatically; use \
             another guest path",
            shown(guest.as_str()),
            shown(own.as_str()),
            builtin.name
        );
        report.at(grant.at, refused(message));
    }
}

/// Returns the default grant of the workspace.
fn of_workspace(context: &Context<'_>, access: Access) -> DirectoryGrant {
    let host = context.canonical_root.to_owned();
    let identity = context.directories.get(&host).ok().map(|directory| directory.identity);
    DirectoryGrant { access, ..workspace_grant(host, identity) }
}

/// Returns the reason why no grant may make a directory writable. The path is canonical.
pub(crate) fn never_writable(context: &Context<'_>, host: &Path) -> Option<String> {
    if let Some(guarded) = context.guard.guarded_above(host) {
        return Some(format!(
            "`{}` cannot be granted for writing: no tool may change `{}`; use `mode = \"ro\"`, \
             or another directory",
            shown_path(host),
            shown_path(&guarded)
        ));
    }
    let repository = repository_above(host)?;
    Some(format!(
        "`{}` cannot be granted for writing: `{}` looks like a bare git repository, in which a \
         tool could leave commands for git to run; use `mode = \"ro\"`, or another directory",
        shown_path(host),
        shown_path(&repository)
    ))
}

pub(crate) fn workspace_never_writable(context: &Context<'_>) -> Option<String> {
    never_writable(context, context.canonical_root)
}

/// Refuses grants through links that one of these tools could have made.
pub(crate) fn check_links(
    tools: &BTreeMap<ToolName, ConfiguredTool>,
    links: Vec<GrantedLink>,
    report: &mut Report,
) {
    if links.is_empty() {
        return;
    }
    let writable = writable(tools).collect();
    let guard = Guard::new(GuardedPaths { writable, ..GuardedPaths::default() });
    for GrantedLink { file, span, host, links, piece, .. } in links {
        let Some(link) = guard.writable_link(&links) else { continue };
        let reason = format!(
            "`{}` is a symbolic link in a directory that a tool may write; grant its target",
            shown(&link.path.to_string_lossy()),
        );
        report.span_of(&file, span, not_granted(&host, &reason), (piece, Vec::new()));
    }
}

fn guest_path(grant: At<'_, DirectoryGrantConfig>, report: &mut Report) -> Option<GuestPath> {
    let at = grant.inner(|grant| Some(&grant.guest))?;
    GuestPath::new(at.value).map_err(|error| report.at(at, refused(error))).ok()
}

fn include(grant: At<'_, DirectoryGrantConfig>, report: &mut Report) -> Vec<String> {
    grant
        .inner(|grant| grant.include.as_ref())
        .map(|at| secret_files::globs(at, report))
        .unwrap_or_default()
}

fn protected(grant: At<'_, DirectoryGrantConfig>, report: &mut Report) -> Option<Vec<String>> {
    let names = grant.inner(|grant| grant.protected.as_ref())?;
    Some(valid(names, report, |name| match ProtectedNames::new(&[name]) {
        Ok(_) => Ok(name.to_owned()),
        Err(_) => Err(refused(format_args!(
            "`{}` cannot be protected; write a name such as `.envrc`, a name with its directory \
             such as `.vscode/tasks.json`, or an extension such as `*.code-workspace`",
            shown(name)
        ))),
    }))
}

fn grant<'a>(
    context: &Context<'_>,
    at: At<'a, DirectoryGrantConfig>,
    grantee: Grantee<'_>,
    report: &mut Report,
) -> Grant<'a> {
    let Grantee { builtin, is_enabled, .. } = grantee;
    let guest = guest_path(at, report);
    let include = include(at, report);
    let protected = protected(at, report);
    let mode = at.value.mode.as_ref();
    let mut access = mode.map(|mode| mode.value).unwrap_or_default();
    // After a question a script runs again from its start, so it must not have changed anything.
    if let Some(mode) = mode
        && access == Access::ReadWrite
        && builtin.is_some_and(|builtin| builtin.name == PYTHON)
    {
        access = Access::ReadOnly;
        if is_enabled {
            let message = "scripts do not get `mode = \"rw\"`: they read files, and change them with \
                           tools such as `write_file`";
            report.warn(Problem::from(message).at(mode.at(at.file).origin()));
        }
    }
    let grant = Grant { at, host: None, identity: None, guest, access, include, protected };
    let host = at.value.host.at(at.file);
    if host.value == DirectoryGrant::TEMPORARY {
        let host = Some(DirectoryGrant::TEMPORARY.into());
        // This directory has no files that other programs run.
        let (access, include, protected) = (Access::ReadWrite, Vec::new(), Some(Vec::new()));
        return Grant { host, access, include, protected, ..grant };
    }
    let root = match root(context, host.value) {
        Ok(root) => root,
        Err(message) => {
            report.at(host, refused(message));
            return grant;
        }
    };
    let path = match &root {
        None => context.path(host, report),
        Some(Root { directory: None, .. }) => {
            return Grant { host: Some(host.value.into()), ..grant };
        }
        Some(Root { directory: Some(directory), below }) => Some(directory.join(below)),
    };
    let Some(path) = path else { return grant };
    if !is_enabled {
        return Grant { host: Some(path), ..grant };
    }
    let directory = directory(context, host, path.clone(), access, report).and_then(|found| {
        match root.and_then(|root| root.directory) {
            Some(directory) if !found.0.starts_with(canonical(directory)) => {
                Err(not_granted(&path, "a link leads out of the root"))
            }
            _ => Ok(found),
        }
    });
    match directory {
        Ok((path, identity)) => Grant { host: Some(path), identity: Some(identity), ..grant },
        Err(problem) => {
            report.at(host, problem);
            grant
        }
    }
}

/// A directory in a root.
struct Root<'a> {
    /// The root on this machine, if it has one of this name.
    directory: Option<&'a Path>,
    /// The path in the root.
    below: &'a Path,
}

/// Reads a host path such as `$ROOT/NAME/PATH`. `None`: it is another path.
fn root<'a>(context: &Context<'a>, host: &'a str) -> Result<Option<Root<'a>>, String> {
    let Some(rest) = host.strip_prefix(DirectoryGrant::ROOTS) else { return Ok(None) };
    let Some(rest) = rest.strip_prefix('/') else {
        return if rest.is_empty() { Err(invalid_root(host)) } else { Ok(None) };
    };
    let (name, below) = rest.split_once('/').unwrap_or((rest, ""));
    let is_letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let is_name = (1..=ROOT_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_letter);
    let below = Path::new(below);
    let is_below = below.components().all(|part| matches!(part, Component::Normal(_)));
    if !is_name || !is_below {
        return Err(invalid_root(host));
    }
    let directory = context.sources.roots.get(name).map(PathBuf::as_path);
    Ok(Some(Root { directory, below }))
}

fn invalid_root(host: &str) -> String {
    format!(
        "`{}` is not a directory in a root: write `$ROOT/NAME` or `$ROOT/NAME/PATH`; the name has 1 \
         to {ROOT_NAME_BYTES} lower-case letters, digits and `-`, and the path has no `..`",
        shown(host)
    )
}

/// Returns the canonical directory at a path, if it can be granted.
fn directory(
    context: &Context<'_>,
    host: At<'_, String>,
    path: PathBuf,
    access: Access,
    report: &mut Report,
) -> Result<(PathBuf, FileId), Problem> {
    let not_granted = |reason: String| not_granted(&path, &reason);
    let Directory { path: canonical, identity, links } =
        context.directories.get(&path).map_err(not_granted)?;
    if !context.trust.is_trusted()
        && !is_fixed(host.value)
        && !canonical.starts_with(context.canonical_root)
    {
        return Err(not_granted(format!(
            "a link leads out of the workspace, to `{}`, and the workspace is not trusted",
            shown_path(&canonical)
        )));
    }
    if let Some(private) = context.guard.private_above(&canonical) {
        return Err(refused(format_args!(
            "`{}` cannot be granted: no tool may read `{}`, where kitbag keeps secrets; grant \
             another directory",
            shown_path(&canonical),
            shown_path(&private)
        )));
    }
    if access == Access::ReadWrite
        && let Some(message) = never_writable(context, &canonical)
    {
        return Err(refused(message));
    }
    context.owners.check_links(&links).map_err(|error| not_granted(error.to_string()))?;
    if !links.is_empty() {
        report.link(host, path, canonical.clone(), links);
    }
    Ok((canonical, identity))
}

fn refused(message: impl std::fmt::Display) -> Problem {
    Problem::new(DiagnosticKind::Grant(DirectoryGrant::KEY), message)
}

/// Returns the problem for a directory that cannot be granted.
fn not_granted(host: &Path, reason: &str) -> Problem {
    refused(format_args!("directory `{}` cannot be granted: {reason}", shown_path(host)))
}

fn given_by_call(builtin: &BuiltinTool<'_>) -> impl Iterator<Item = GuestPath> {
    builtin.given_by_call.iter().flat_map(|guest| GuestPath::new(*guest))
}

impl Grant<'_> {
    /// Returns the reason why two grants conflict: one would hide the other, or one would allow
    /// access that the other forbids.
    fn conflict(&self, other: &Self, is_enabled: bool) -> Option<String> {
        if let (Some(guest), Some(other)) = (&self.guest, &other.guest)
            && guest == other
        {
            return Some(format!(
                "two directories are granted as `{}`; give one of them another guest path",
                shown(guest.as_str())
            ));
        }
        if self.access == other.access {
            return None;
        }
        let overlap = |path: &str, other_path: &str| {
            format!(
                "`{}` (`{}`) and `{}` (`{}`) overlap; give them the same mode, or keep them apart",
                shown(path),
                self.access,
                shown(other_path),
                other.access
            )
        };
        if let (Some(guest), Some(other)) = (&self.guest, &other.guest)
            && guest.overlaps(other)
        {
            return Some(overlap(guest.as_str(), other.as_str()));
        }
        // Directories that were not opened are not canonical, so they cannot be compared.
        if let (Some(host), Some(other), true) = (&self.host, &other.host, is_enabled)
            && (host.starts_with(other) || other.starts_with(host))
        {
            return Some(overlap(&host.to_string_lossy(), &other.to_string_lossy()));
        }
        None
    }

    fn finish(self) -> Option<DirectoryGrant> {
        let Self { access, include, protected, identity, .. } = self;
        let (host, guest) = (self.host?, self.guest?);
        Some(DirectoryGrant { host, guest, access, include, protected, identity })
    }
}
