//! The directories of a call: opened once, without links, and checked.

use std::path::{Component, PathBuf};
use std::sync::Arc;

use kitbag_contract::FileId;
use kitbag_files::{Guard, GuardTable, OpenAs, OpenError, canonical, id_of, open};
use kitbag_policy::{Access, DirectoryGrant};
use wasmtime_wasi::FsPerms;
use wasmtime_wasi::filesystem::{Dir, OpenMode};

use crate::error::CallError;

/// What a call may reach of the file system.
#[derive(Default)]
pub(crate) struct Granted {
    pub(super) preopens: Vec<(Dir, String)>,
    /// Those among them that it may write.
    writable: Vec<(PathBuf, FileId)>,
    guard: Arc<Guard>,
    /// What it must not change of them, from its first change on.
    table: Option<GuardTable>,
}

impl Granted {
    /// Opens the directories of a call.
    ///
    /// # Errors
    ///
    /// [`CallError::Denied`] for one that is not there, not the one that was
    /// granted, or none to be granted.
    pub(crate) fn open(grants: &[DirectoryGrant], guard: &Arc<Guard>) -> Result<Self, CallError> {
        let mut granted = Self { guard: Arc::clone(guard), ..Self::default() };
        for grant in grants {
            let (perms, open_mode) = match grant.access {
                Access::ReadOnly => (FsPerms::ReadOnly, OpenMode::READ),
                Access::ReadWrite => {
                    deny_guarded(grant, guard)?;
                    (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE)
                }
            };
            let (directory, stat) = open(&grant.host, OpenAs::Directory).map_err(|error| {
                let advice = match error {
                    OpenError::Link { .. } => "; grant the directory that it leads to",
                    OpenError::Kernel { .. } | OpenError::Io(_) => "",
                };
                denied(grant, &format!("cannot be opened: {error}{advice}"))
            })?;
            let id = id_of(&stat);
            if grant.identity.is_some_and(|granted| granted != id) {
                return Err(denied(
                    grant,
                    "is another directory than the one that was there when the configuration was \
                     read; if that is right, restart kitbag",
                ));
            }
            if grant.access == Access::ReadWrite {
                granted.writable.push((grant.host.clone(), id));
            }
            let directory = Dir::new(directory, perms, open_mode, true);
            granted.preopens.push((directory, grant.guest.to_string()));
        }
        Ok(granted)
    }

    /// What this call must not change, looked up at the first change, and again where
    /// a directory was made since then that the table has to know.
    pub(super) fn table(&mut self) -> &GuardTable {
        self.table.take_if(|table| table.is_outdated());
        self.table.get_or_insert_with(|| self.guard.table(&self.writable))
    }
}

fn denied(grant: &DirectoryGrant, why: &str) -> CallError {
    let (host, guest) = (grant.host.display(), &grant.guest);
    CallError::Denied(format!("the directory `{host}`, granted as `{guest}`, {why}"))
}

/// Refuses to give a directory for writing in which no tool changes anything.
fn deny_guarded(grant: &DirectoryGrant, guard: &Guard) -> Result<(), CallError> {
    let goes_up = grant.host.components().any(|part| part == Component::ParentDir);
    let host = if goes_up { canonical(&grant.host) } else { grant.host.clone() };
    match guard.guarded_above(&host) {
        None => Ok(()),
        Some(guarded) => Err(denied(
            grant,
            &format!(
                "cannot be granted for writing: no tool may change `{}`; grant another directory, \
                 or use mode `ro`",
                guarded.display(),
            ),
        )),
    }
}
