//! Grants: what a local tool may reach.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use kitbag_contract::{Access, DirectoryGrant, Grants, GuestPath, WORKSPACE_GUEST_PATH};

use super::{Resolver, all, path};
use crate::error::Problem;
use crate::file::SourceFile;
use crate::format::{DirectoryGrantConfig, ToolConfig};
use crate::origin::Sourced;
use crate::written::{At, Part};

/// The most directories that one tool is granted. Each takes a handle of the
/// call, and each is compared with each.
const MAX_GRANTS: usize = 64;

/// Names of directories that stay read-only at any depth. Below a granted
/// directory, the host sees to it; here, none of them is granted for writing.
const GUARDED_NAMES: [&str; 2] = [".git", ".kitbag"];

/// A grant that is being checked: what of it could be understood.
struct Grant<'a> {
    at: At<'a, DirectoryGrantConfig>,
    host: Option<PathBuf>,
    guest: Option<GuestPath>,
    access: Access,
    is_enabled: bool,
}

impl Resolver<'_> {
    /// What a local tool may reach. Whether the directories exist is looked at
    /// only where the tool is enabled.
    pub(super) fn grants(
        &mut self,
        parts: &[Part<'_, ToolConfig>],
        is_enabled: bool,
    ) -> Sourced<Grants> {
        let layers = all(parts, |tool| tool.grants.as_ref())
            .filter_map(|grants| grants.inner(|grants| grants.filesystem.as_ref()));
        let mut layers: Vec<_> = layers.collect();
        let Some(effective) = layers.pop() else {
            return Sourced::default(self.workspace_grant());
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
        let directories = grants.into_iter().filter_map(Grant::finish).collect();
        effective.sourced(Grants { directories })
    }

    /// What a tool gets that says nothing of files.
    fn workspace_grant(&self) -> Grants {
        let host = self.canonical_root.to_owned();
        let guest = GuestPath::new(WORKSPACE_GUEST_PATH).expect("the contract's own path is one");
        Grants { directories: vec![DirectoryGrant { host, guest, access: Access::ReadOnly }] }
    }

    fn guest_path(&mut self, grant: At<'_, DirectoryGrantConfig>) -> Option<GuestPath> {
        let at = grant.inner(|grant| Some(&grant.guest))?;
        GuestPath::new(at.value).map_err(|error| self.report.at(at, error)).ok()
    }

    fn grant<'a>(&mut self, at: At<'a, DirectoryGrantConfig>, is_enabled: bool) -> Grant<'a> {
        let guest = self.guest_path(at);
        let access = at.value.mode.as_ref().map(|mode| mode.value).unwrap_or_default();
        let host = at.inner(|grant| Some(&grant.host)).and_then(|host| {
            let path = self.path(host)?;
            if !is_enabled {
                return Some(path);
            }
            let canonical = match self.directory(&path) {
                Ok(canonical) => canonical,
                Err(reason) => {
                    self.report.at(host, Problem::NoDirectory { host: path, reason });
                    return None;
                }
            };
            if access == Access::ReadWrite
                && let Some(guarded) = self.guarded_by(&canonical)
            {
                self.report.at(host, Problem::NeverWritable { host: canonical, guarded });
                return None;
            }
            Some(canonical)
        });
        Grant { at, host, guest, access, is_enabled }
    }

    /// What writing in a directory could change although no tool may.
    fn guarded_by(&mut self, host: &Path) -> Option<PathBuf> {
        if let Some(guarded) = guarded_name(host) {
            return Some(guarded);
        }
        let (files, protected) = (self.files, self.protected);
        let guarded = self.guarded.get_or_insert_with(|| {
            let files = files.iter().map(SourceFile::path);
            files.chain(protected.iter().map(PathBuf::as_path)).map(path::canonical).collect()
        });
        let is_reached = |guarded: &&PathBuf| match guarded.strip_prefix(host) {
            Ok(inside) => guarded_name(inside).is_none(),
            Err(_) => host.starts_with(guarded),
        };
        guarded.iter().find(is_reached).cloned()
    }
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
        Some(DirectoryGrant { host: self.host?, guest: self.guest?, access: self.access })
    }
}

/// The outermost directory in a path whose name alone makes it read-only.
fn guarded_name(path: &Path) -> Option<PathBuf> {
    // In any case: there are file systems that do not tell them apart.
    let is_guarded =
        |name: &OsStr| GUARDED_NAMES.iter().any(|guarded| name.eq_ignore_ascii_case(guarded));
    let end = path.iter().position(is_guarded)?;
    Some(path.iter().take(end + 1).collect())
}
