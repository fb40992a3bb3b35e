//! The files in a granted directory that a tool may not use.

use std::path::{Path, PathBuf};

use kitbag_base::text::shown_path;
use kitbag_fs_guard::{
    EntryChange, Located, OpenAs, ProtectedNames, Writable, canonical, locate, open,
};
use kitbag_glob::Include;
use kitbag_policy::{Access, DirectoryGrant, FileRefusal, GuestPath, PathRequest, RefusedFile};

use crate::config::{Config, ConfiguredTool};

/// The reason why a path in a granted directory is refused, regardless of the grant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathRefusal {
    /// kitbag keeps secrets in this path.
    #[error("no tool may read `{}`, where kitbag keeps secrets", shown_path(path))]
    Private {
        /// The private file or directory that is or contains the path; absolute.
        path: PathBuf,
    },
    /// The file looks like a secret that no grant includes, or another program would run code from
    /// it and the grant does not allow changing it.
    #[error("{0}")]
    File(RefusedFile),
    /// The path decides what a tool may do, or what other programs run or read.
    #[error("no tool may change `{}`", shown_path(path))]
    Guarded {
        /// The file or directory; absolute.
        path: PathBuf,
    },
}

impl Config {
    /// Returns why a tool is refused a path that a directory grant allows.
    ///
    /// The rules are those of a call, applied to the files that exist now. `None`: the path is
    /// allowed, or no grant covers it.
    pub fn path_refusal(
        &self,
        tool: &ConfiguredTool,
        request: &PathRequest,
    ) -> Option<PathRefusal> {
        let grants = &tool.grants.value.directories;
        let allows = |grant: &&DirectoryGrant| {
            grant.guest.contains(&request.guest) && grant.access.includes(request.access)
        };
        let grant = grants.iter().filter(allows).max_by_key(|grant| grant.guest.as_str().len());
        let Some(grant) = grant else {
            // Advice would grant the directory of this machine.
            let path = canonical(Path::new(request.guest.as_str()));
            let private = self.guard().private_above(&path);
            return private.map(|path| PathRefusal::Private { path });
        };
        if !grant.is_here() {
            return None;
        }
        let host = grant.host.join(below(&grant.guest, &request.guest));
        let located = locate(&host).ok();
        let path = located.as_ref().map_or_else(|| canonical(&host), |it| it.path.clone());
        let guard = self.guard();
        if let Some(path) = guard.private_above(&path) {
            return Some(PathRefusal::Private { path });
        }
        if located.as_ref().is_some_and(|located| guard.private().has(&located.stat)) {
            return Some(PathRefusal::Private { path });
        }
        let is_directory = located.as_ref().is_some_and(Located::is_directory);
        let secrets = guard.secrets();
        let inner = path.strip_prefix(&grant.host).ok().and_then(Path::to_str).unwrap_or_default();
        if secrets.are_on(inner)
            && !grants.iter().any(|grant| {
                Include::new(&grant.include).is_ok_and(|include| {
                    secrets.are_let_in(&grant.host, &include, &path, is_directory)
                })
            })
        {
            let (directory, path) = (grant.guest.clone(), inner.to_owned());
            return Some(PathRefusal::File(RefusedFile {
                directory,
                path,
                why: FileRefusal::Secret,
            }));
        }
        match request.access {
            Access::ReadOnly => None,
            Access::ReadWrite => match unwritable(grant, inner, located.is_some()) {
                Some(why) => {
                    let (directory, path) = (grant.guest.clone(), inner.to_owned());
                    Some(PathRefusal::File(RefusedFile { directory, path, why }))
                }
                None => self.unchanged(grants, &path, located.as_ref()),
            },
        }
    }

    fn unchanged(
        &self,
        grants: &[DirectoryGrant],
        path: &Path,
        located: Option<&Located>,
    ) -> Option<PathRefusal> {
        let guard = self.guard();
        if let Some(path) = guard.guarded_above(path) {
            return Some(PathRefusal::Guarded { path });
        }
        let writable = grants.iter().filter(|grant| grant.access == Access::ReadWrite);
        let writable: Vec<_> = writable
            .filter_map(|grant| {
                let (path, id) = (grant.host.clone(), locate(&grant.host).ok()?.id());
                Some(Writable { path, id, protected: protected(grant) })
            })
            .collect();
        let table = guard.table(&writable);
        let seals = |directory: &&Path| {
            open(directory, OpenAs::Directory)
                .is_ok_and(|(handle, stat)| table.seals(&handle, stat.id()))
        };
        if let Some(sealed) = path.ancestors().find(seals) {
            return Some(PathRefusal::Guarded { path: sealed.to_owned() });
        }
        let parent = path.parent().and_then(|parent| locate(parent).ok())?;
        let name = path.file_name()?.to_string_lossy();
        let change = if located.is_some() { EntryChange::Content } else { EntryChange::Put };
        let is_forbidden = table.forbids(parent.id(), &name, located.map(Located::id), change)
            || located.is_some_and(|located| table.is_kept(&located.stat));
        is_forbidden.then(|| PathRefusal::Guarded { path: path.to_owned() })
    }
}

fn unwritable(grant: &DirectoryGrant, inner: &str, exists: bool) -> Option<FileRefusal> {
    let protected = protected(grant);
    if protected.are_on(&grant.host, inner) {
        return Some(FileRefusal::Protected);
    }
    let mut names = inner.rsplit('/');
    let is_new =
        !exists && names.next().is_some_and(|name| protected.forbid_new(names.next(), name));
    is_new.then_some(FileRefusal::NewDotName)
}

fn protected(grant: &DirectoryGrant) -> ProtectedNames {
    // Invalid names were refused with the configuration.
    ProtectedNames::of_grant(grant.protected.as_deref()).unwrap_or_default()
}

/// Returns the part of a guest path below the path that contains it.
fn below<'a>(outer: &GuestPath, inner: &'a GuestPath) -> &'a str {
    inner.as_str().strip_prefix(outer.as_str()).unwrap_or_default().trim_start_matches('/')
}
