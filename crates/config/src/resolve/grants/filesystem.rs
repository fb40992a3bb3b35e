//! Directories that are granted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kitbag_contract::text::shown;
use kitbag_contract::{FileId, ToolName, WORKSPACE_GUEST_PATH};
use kitbag_files::{Guard, GuardedPaths, Link, repository_above};
use kitbag_policy::{Access, DirectoryGrant, GuestPath, RequestedDirectory};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use crate::config::{Tool, writable};
use crate::error::Problem;
use crate::file::SourceFile;
use crate::origin::{Origin, Sourced};
use crate::resolve::Resolver;
use crate::sources::BuiltinTool;
use crate::written::{At, Span, Written};

/// The most directories that one tool is granted. Each takes a handle of the
/// call, and each is compared with each.
const MAX_GRANTS: usize = 64;

/// A directory, and where the tool finds it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Directory")]
pub(crate) struct DirectoryGrantConfig {
    /// The directory: a path, relative to the workspace. It starts with `~/`
    /// where it is in your home directory.
    #[schemars(extend("examples" = ["."]))]
    pub(crate) host: Written<String>,
    /// Where the tool finds it: an absolute path.
    #[schemars(extend("examples" = ["/workspace"]))]
    pub(crate) guest: Written<String>,
    /// What the tool may do in there.
    #[serde(default)]
    #[schemars(schema_with = "access_schema")]
    pub(crate) mode: Option<Written<Access>>,
}

/// A grant that is being checked: what of it could be understood.
struct Grant<'a> {
    at: At<'a, DirectoryGrantConfig>,
    host: Option<PathBuf>,
    /// Of a directory that was looked at.
    identity: Option<FileId>,
    guest: Option<GuestPath>,
    access: Access,
    is_enabled: bool,
}

/// A grant whose path leads through links.
pub(in crate::resolve) struct Linked {
    file: SourceFile,
    span: Span,
    host: PathBuf,
    links: Vec<Link>,
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
            return match builtin {
                None => Sourced::default(self.workspace_grant()),
                Some(builtin) if reads_workspace(builtin) => {
                    Sourced { value: self.workspace_grant(), origin: Origin::Tool }
                }
                Some(_) => Sourced { value: Vec::new(), origin: Origin::Tool },
            };
        };
        // A weaker layer has no say, but must be right all the same.
        for weaker in layers {
            for grant in weaker.value {
                self.guest_path(grant.at(weaker.file));
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
            self.report.at(effective, Problem::TooManyGrants { count, most });
        } else {
            for (index, grant) in grants.iter().enumerate() {
                if let Some(problem) =
                    grants[..index].iter().find_map(|other| grant.conflict(other))
                {
                    self.report.at(grant.at, problem);
                }
            }
        }
        effective.sourced(grants.into_iter().filter_map(Grant::finish).collect())
    }

    /// Refuses grants where a built-in finds what its calls are given.
    fn check_given_by_call(&mut self, grants: &[Grant<'_>], builtin: &BuiltinTool<'_>) {
        for grant in grants {
            let Some(guest) = &grant.guest else { continue };
            let mut own = given_by_call(builtin);
            let Some(own) = own.find(|own| own.overlaps(guest)) else { continue };
            let (guest, own) = (guest.to_string(), own.to_string());
            let builtin = builtin.name.to_owned();
            self.report.at(grant.at, Problem::GivenByCall { guest, own, builtin });
        }
    }

    /// What a tool gets that says nothing of files.
    fn workspace_grant(&mut self) -> Vec<DirectoryGrant> {
        let host = self.canonical_root.to_owned();
        let identity = self.directory(&host).ok().map(|directory| directory.identity);
        let guest = GuestPath::new(WORKSPACE_GUEST_PATH).expect("the contract's own path is one");
        let access = Access::ReadOnly;
        vec![DirectoryGrant { host, guest, access, identity }]
    }

    /// Refuses grants whose links one of these tools could have made.
    pub(in crate::resolve) fn check_links(&mut self, tools: &BTreeMap<ToolName, Tool>) {
        let linked = std::mem::take(&mut self.linked);
        if linked.is_empty() {
            return;
        }
        let writable = writable(tools).collect();
        let guard = Guard::new(GuardedPaths { writable, ..GuardedPaths::default() });
        for Linked { file, span, host, links } in linked {
            let Some(link) = guard.writable_link(&links) else { continue };
            let reason = format!(
                "`{}` is a symbolic link in a directory that a tool may write; grant the directory \
                 that it leads to",
                shown(&link.path.to_string_lossy()),
            );
            self.report.span(&file, span, Problem::NoDirectory { host, reason }, None);
        }
    }

    fn guest_path(&mut self, grant: At<'_, DirectoryGrantConfig>) -> Option<GuestPath> {
        let at = grant.inner(|grant| Some(&grant.guest))?;
        GuestPath::new(at.value).map_err(|error| self.report.at(at, error)).ok()
    }

    fn grant<'a>(&mut self, at: At<'a, DirectoryGrantConfig>, is_enabled: bool) -> Grant<'a> {
        let guest = self.guest_path(at);
        let access = at.value.mode.as_ref().map(|mode| mode.value).unwrap_or_default();
        let mut identity = None;
        let host = at.inner(|grant| Some(&grant.host)).and_then(|host| {
            let path = self.path(host)?;
            if !is_enabled {
                return Some(path);
            }
            let directory = match self.directory(&path) {
                Ok(directory) => directory,
                Err(reason) => {
                    self.report.at(host, Problem::NoDirectory { host: path, reason });
                    return None;
                }
            };
            let canonical = directory.path;
            if access == Access::ReadWrite {
                let never = || match self.guard.guarded_above(&canonical) {
                    Some(guarded) => {
                        Some(Problem::NeverWritable { host: canonical.clone(), guarded })
                    }
                    None => repository_above(&canonical).map(|repository| {
                        Problem::RepositoryNeverWritable { host: canonical.clone(), repository }
                    }),
                };
                if let Some(problem) = never() {
                    self.report.at(host, problem);
                    return None;
                }
            }
            if !directory.links.is_empty() {
                let (file, links) = (host.file.clone(), directory.links);
                self.linked.push(Linked { file, span: host.span, host: path, links });
            }
            identity = Some(directory.identity);
            Some(canonical)
        });
        Grant { at, host, identity, guest, access, is_enabled }
    }
}

/// Whether a built-in asks to read the workspace.
fn reads_workspace(builtin: &BuiltinTool<'_>) -> bool {
    let mut requests = builtin.requested.directories.iter().filter_map(RequestedDirectory::request);
    requests.any(|request| request.is_workspace() && request.access == Access::ReadOnly)
}

/// Where a built-in finds what its calls are given.
fn given_by_call(builtin: &BuiltinTool<'_>) -> impl Iterator<Item = GuestPath> {
    let requests = builtin.requested.directories.iter().filter_map(RequestedDirectory::request);
    requests.filter(|request| !request.is_workspace()).map(|request| request.guest)
}

impl Grant<'_> {
    /// Why the two cannot stand side by side: one would hide the other, or one
    /// would allow what the other forbids.
    fn conflict(&self, other: &Self) -> Option<Problem> {
        if let (Some(guest), Some(other)) = (&self.guest, &other.guest)
            && guest == other
        {
            return Some(Problem::SameGuestPath { guest: guest.to_string() });
        }
        if self.access == other.access {
            return None;
        }
        let overlap = |path: String, other_path: String| Problem::Overlap {
            path,
            mode: self.access.to_string(),
            other: other_path,
            other_mode: other.access.to_string(),
        };
        if let (Some(guest), Some(other)) = (&self.guest, &other.guest)
            && guest.overlaps(other)
        {
            return Some(overlap(guest.to_string(), other.to_string()));
        }
        // Directories that were not looked at are not canonical, so nothing can
        // be said of them.
        if let (Some(host), Some(other), true) = (&self.host, &other.host, self.is_enabled)
            && (host.starts_with(other) || other.starts_with(host))
        {
            let text = |path: &Path| path.to_string_lossy().into_owned();
            return Some(overlap(text(host), text(other)));
        }
        None
    }

    fn finish(self) -> Option<DirectoryGrant> {
        let Self { access, identity, .. } = self;
        Some(DirectoryGrant { host: self.host?, guest: self.guest?, access, identity })
    }
}

// `Access` belongs to `kitbag-policy`, which knows nothing of schemas.
fn access_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "oneOf": [
            { "type": "string", "const": "ro", "description": "Read files and list directories." },
            {
                "type": "string",
                "const": "rw",
                "description": "Read and change. `.git`, `.hg`, `.jj` and `.kitbag` stay read-only at any depth.",
            },
        ],
        "default": "ro",
    })
}
