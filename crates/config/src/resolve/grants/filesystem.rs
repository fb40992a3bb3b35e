//! Directories that are granted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kitbag_base::FileId;
use kitbag_base::text::shown;
use kitbag_contract::ToolName;
use kitbag_fs_guard::{Guard, GuardedPaths, ProtectedNames, repository_above};
use kitbag_policy::{Access, DirectoryGrant, GuestPath};

use crate::config::{ConfiguredTool, workspace_grant, writable};
use crate::format::DirectoryGrantConfig;
use crate::format::spanned::{At, Written};
use crate::layers::origin::{Origin, Sourced};
use crate::layers::path::is_fixed;
use crate::read::file::Layer;
use crate::read::sources::BuiltinTool;
use crate::report::text::shown_path;
use crate::report::{DiagnosticKind, Problem};
use crate::resolve::resolver::{Linked, Resolver};
use crate::trust::destinations::is_led;

/// The most directories that one tool is granted. Each takes a handle of the
/// call, and each is compared with each.
const MAX_GRANTS: usize = 64;

/// A grant that is being checked: what of it could be understood.
struct Grant<'a> {
    at: At<'a, DirectoryGrantConfig>,
    host: Option<PathBuf>,
    /// Of a directory that was looked at.
    identity: Option<FileId>,
    guest: Option<GuestPath>,
    access: Access,
    include: Vec<String>,
    protected: Option<Vec<String>>,
    is_enabled: bool,
}

impl Resolver<'_> {
    /// The directories that a tool may reach. Whether they exist is looked at only
    /// where the tool is enabled.
    pub(super) fn directories(
        &mut self,
        mut layers: Vec<At<'_, Vec<Written<DirectoryGrantConfig>>>>,
        is_enabled: bool,
        builtin: Option<&BuiltinTool<'_>>,
    ) -> Sourced<Vec<DirectoryGrant>> {
        let Some(effective) = layers.pop() else {
            let Some(builtin) = builtin else {
                return Sourced::default(vec![self.workspace_grant(Access::ReadOnly)]);
            };
            let access = builtin.workspace.filter(|_| is_enabled);
            let grants = access.map(|access| self.workspace_grant(access)).into_iter().collect();
            return Sourced { value: grants, origin: Origin::Tool };
        };
        if self.is_untrusted() && effective.file.layer() == Layer::Workspace {
            let held = self.directories(layers, is_enabled, builtin);
            let own = builtin.map(|builtin| given_by_call(builtin).collect::<Vec<_>>());
            let granted = self.narrowed(effective, &held.value, &own.unwrap_or_default());
            return effective.sourced(granted);
        }
        // A weaker layer is overridden, but must be valid all the same.
        for weaker in layers {
            for grant in weaker.value {
                self.guest_path(grant.at(weaker.file));
                self.include(grant.at(weaker.file));
                self.protected(grant.at(weaker.file));
            }
        }
        let (count, most) = (effective.value.len(), MAX_GRANTS);
        let grants: Vec<_> = effective
            .value
            .iter()
            .map(|grant| self.grant(grant.at(effective.file), is_enabled))
            .collect();
        if let Some(builtin) = builtin {
            self.check_given_by_call(&grants, builtin);
        }
        if count > most {
            let message = format!(
                "{count} directories are granted, and {most} is the most; grant one that holds them"
            );
            self.report.at(effective, refused(message));
        } else {
            for (index, grant) in grants.iter().enumerate() {
                if let Some(problem) =
                    grants[..index].iter().find_map(|other| grant.conflict(other))
                {
                    self.report.at(grant.at, refused(problem));
                }
            }
        }
        effective.sourced(grants.into_iter().filter_map(Grant::finish).collect())
    }

    /// The directories of an untrusted workspace that are in the directories that the tool has
    /// anyway: read-only, without files that look like secrets, and at the guest paths that they
    /// have anyway, since rules of the user name files by these. `given` are the guest paths of
    /// directories that calls bring.
    fn narrowed(
        &mut self,
        list: At<'_, Vec<Written<DirectoryGrantConfig>>>,
        held: &[DirectoryGrant],
        given: &[GuestPath],
    ) -> Vec<DirectoryGrant> {
        let mut granted: Vec<DirectoryGrant> = Vec::new();
        for grant in list.value.iter().take(MAX_GRANTS) {
            let DirectoryGrantConfig { host, guest, mode: _, include: _, protected: _ } =
                &grant.value;
            let Ok(path) = self.bases.absolute(&host.value) else { continue };
            let Ok(directory) = self.directory(&path) else { continue };
            if GuestPath::new(guest.value.as_str()).is_err() {
                continue;
            }
            let within = |held: &DirectoryGrant| {
                let below = directory.path.strip_prefix(&held.host).ok()?;
                let secrets = self.guard.secrets();
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

    /// Refuses grants where a built-in finds what its calls are given.
    fn check_given_by_call(&mut self, grants: &[Grant<'_>], builtin: &BuiltinTool<'_>) {
        for grant in grants {
            let Some(guest) = &grant.guest else { continue };
            let mut own = given_by_call(builtin);
            let Some(own) = own.find(|own| own.overlaps(guest)) else { continue };
            let message = format!(
                "`{}` overlaps `{}`, which each call of the built-in `{}` is given by itself; use \
                 another guest path",
                shown(guest.as_str()),
                shown(own.as_str()),
                builtin.name
            );
            self.report.at(grant.at, refused(message));
        }
    }

    /// The workspace, as a tool gets it of which configuration says nothing.
    fn workspace_grant(&mut self, access: Access) -> DirectoryGrant {
        let host = self.canonical_root.to_owned();
        let identity = self.directory(&host).ok().map(|directory| directory.identity);
        DirectoryGrant { access, ..workspace_grant(host, identity) }
    }

    /// Why no grant may make a directory writable; its path is canonical.
    fn never_writable(&self, host: &Path) -> Option<String> {
        if let Some(guarded) = self.guard.guarded_above(host) {
            return Some(format!(
                "`{}` cannot be granted for writing: no tool may change `{}`; use `mode = \"ro\"`, \
                 or another directory",
                shown_path(host),
                shown_path(&guarded)
            ));
        }
        let repository = repository_above(host)?;
        Some(format!(
            "`{}` cannot be granted for writing: git takes `{}` for a repository without a working \
             tree, in which a tool could leave commands that git runs; use `mode = \"ro\"`, or \
             another directory",
            shown_path(host),
            shown_path(&repository)
        ))
    }

    /// Why the workspace cannot be granted for writing.
    pub(in crate::resolve) fn workspace_never_writable(&self) -> Option<String> {
        self.never_writable(self.canonical_root)
    }

    /// Refuses grants whose links one of these tools could have made.
    pub(in crate::resolve) fn check_links(&mut self, tools: &BTreeMap<ToolName, ConfiguredTool>) {
        let linked = std::mem::take(&mut self.linked);
        if linked.is_empty() {
            return;
        }
        let writable = writable(tools).collect();
        let guard = Guard::new(GuardedPaths { writable, ..GuardedPaths::default() });
        for Linked { file, span, host, links, piece } in linked {
            let Some(link) = guard.writable_link(&links) else { continue };
            let reason = format!(
                "`{}` is a symbolic link in a directory that a tool may write; grant the directory \
                 that it leads to",
                shown(&link.path.to_string_lossy()),
            );
            self.report.span_of(&file, span, not_granted(&host, &reason), (piece, Vec::new()));
        }
    }

    fn guest_path(&mut self, grant: At<'_, DirectoryGrantConfig>) -> Option<GuestPath> {
        let at = grant.inner(|grant| Some(&grant.guest))?;
        GuestPath::new(at.value).map_err(|error| self.report.at(at, refused(error))).ok()
    }

    fn include(&mut self, grant: At<'_, DirectoryGrantConfig>) -> Vec<String> {
        grant.inner(|grant| grant.include.as_ref()).map(|at| self.globs(at)).unwrap_or_default()
    }

    fn protected(&mut self, grant: At<'_, DirectoryGrantConfig>) -> Option<Vec<String>> {
        let at = grant.inner(|grant| grant.protected.as_ref())?;
        let mut names = Vec::with_capacity(at.value.len());
        for name in at.value.iter().map(|name| name.at(at.file)) {
            match ProtectedNames::new(&[name.value]) {
                Ok(_) => names.push(name.value.clone()),
                Err(_) => {
                    let message = format!(
                        "`{}` is no name that can be protected; write the name of a file or \
                         directory, such as `.envrc`, one with the directory that it lies in, such \
                         as `.vscode/tasks.json`, or an extension, such as `*.code-workspace`",
                        shown(name.value)
                    );
                    self.report.at(name, refused(message));
                }
            }
        }
        Some(names)
    }

    fn grant<'a>(&mut self, at: At<'a, DirectoryGrantConfig>, is_enabled: bool) -> Grant<'a> {
        let guest = self.guest_path(at);
        let include = self.include(at);
        let protected = self.protected(at);
        let access = at.value.mode.as_ref().map(|mode| mode.value).unwrap_or_default();
        if at.value.host.value == DirectoryGrant::TEMPORARY {
            let host = Some(DirectoryGrant::TEMPORARY.into());
            // Nothing that another program runs lies there.
            let (access, include, protected) = (Access::ReadWrite, Vec::new(), Some(Vec::new()));
            return Grant {
                at,
                host,
                identity: None,
                guest,
                access,
                include,
                protected,
                is_enabled,
            };
        }
        let mut identity = None;
        let host = at.inner(|grant| Some(&grant.host)).and_then(|host| {
            let path = self.path(host)?;
            if !is_enabled {
                return Some(path);
            }
            let directory = match self.directory(&path) {
                Ok(directory) => directory,
                Err(reason) => {
                    self.report.at(host, not_granted(&path, &reason));
                    return None;
                }
            };
            let canonical = directory.path;
            if !self.trust.is_trusted()
                && !is_fixed(host.value)
                && !canonical.starts_with(self.canonical_root)
            {
                let reason = format!(
                    "a link leads out of the workspace, to `{}`, and the workspace is not trusted",
                    shown_path(&canonical)
                );
                self.report.at(host, not_granted(&path, &reason));
                return None;
            }
            if let Some(private) = self.guard.private_above(&canonical) {
                let message = format!(
                    "`{}` cannot be granted: no tool reads `{}`, where kitbag keeps secrets; grant \
                     another directory",
                    shown_path(&canonical),
                    shown_path(&private)
                );
                self.report.at(host, refused(message));
                return None;
            }
            if access == Access::ReadWrite
                && let Some(message) = self.never_writable(&canonical)
            {
                self.report.at(host, refused(message));
                return None;
            }
            if let Err(error) = self.owners.check_links(&directory.links) {
                let reason = error.to_string();
                self.report.at(host, not_granted(&path, &reason));
                return None;
            }
            if !directory.links.is_empty() {
                let is_own = host.file.layer() == Layer::User;
                if !is_own && is_led(&directory.links, self.canonical_root) {
                    self.through_links.insert(canonical.clone());
                }
                let (file, links) = (host.file.clone(), directory.links);
                let piece = self.report.at_piece().clone();
                self.linked.push(Linked { file, span: host.span, host: path, links, piece });
            }
            identity = Some(directory.identity);
            Some(canonical)
        });
        Grant { at, host, identity, guest, access, include, protected, is_enabled }
    }
}

/// A directory that cannot be granted.
fn refused(message: impl std::fmt::Display) -> Problem {
    Problem::new(DiagnosticKind::Grant(DirectoryGrant::KEY), message)
}

/// A directory that cannot be granted for a reason of its own.
fn not_granted(host: &Path, reason: &str) -> Problem {
    refused(format_args!("directory `{}` cannot be granted: {reason}", shown_path(host)))
}

/// Whether some of these grants are for writing.
pub(super) fn writes(grants: &[Written<DirectoryGrantConfig>]) -> bool {
    let mut modes = grants.iter().filter_map(|grant| grant.value.mode.as_ref());
    modes.any(|mode| mode.value == Access::ReadWrite)
}

/// Where a built-in finds what its calls are given.
fn given_by_call(builtin: &BuiltinTool<'_>) -> impl Iterator<Item = GuestPath> {
    builtin.given_by_call.iter().flat_map(|guest| GuestPath::new(*guest))
}

impl Grant<'_> {
    /// Why the two cannot stand side by side: one would hide the other, or one
    /// would allow what the other forbids.
    fn conflict(&self, other: &Self) -> Option<String> {
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
        // Directories that were not looked at are not canonical, so nothing can
        // be said of them.
        if let (Some(host), Some(other), true) = (&self.host, &other.host, self.is_enabled)
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
