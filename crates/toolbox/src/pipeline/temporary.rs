//! Private directories of one run. They are created empty and removed after the run.

use std::io;
use std::path::Path;
use std::sync::Arc;

use kitbag_fs_guard::sys::private_directory_permissions;
use kitbag_fs_guard::{canonical, locate};
use kitbag_host::CallError;
use kitbag_policy::{DirectoryGrant, Grants};
use tempfile::TempDir;

/// The directories of one run, which are removed on drop.
pub(crate) struct Temporary {
    directories: Vec<TempDir>,
    grants: Arc<Grants>,
}

impl Temporary {
    /// Creates the directories for the temporary grants in the system's temporary directory, and
    /// sets the paths of the grants. `None` if no grant is temporary.
    ///
    /// # Errors
    ///
    /// [`CallError::Denied`] if a directory cannot be created, or is in a root that this machine does
    /// not have.
    pub(crate) fn make(grants: &mut Arc<Grants>) -> Result<Option<Self>, CallError> {
        if let Some(root) = grants.directories.iter().find_map(DirectoryGrant::missing_root) {
            return Err(CallError::Denied(format!(
                "the tool needs the root `{root}`, which this machine does not have; a worker that \
                 was started with `--root {root}=DIR` runs it"
            )));
        }
        if !grants.directories.iter().any(DirectoryGrant::is_temporary) {
            return Ok(None);
        }
        let (kept, mut directories) = (Arc::clone(grants), Vec::new());
        let of_call = Arc::make_mut(grants).directories.iter_mut();
        for grant in of_call.filter(|grant| grant.is_temporary()) {
            // The directory is private regardless of the default permissions of the process.
            let private = private_directory_permissions();
            let made = tempfile::Builder::new().prefix("kitbag-").permissions(private).tempdir();
            let made =
                made.and_then(|made| Ok((locate(made.path()).map_err(io::Error::other)?, made)));
            let (located, directory) = made.map_err(|error: io::Error| {
                CallError::Denied(format!(
                    "a directory for `{}` cannot be made: {error}",
                    grant.guest
                ))
            })?;
            // The identity keeps another program that may write there from substituting a different
            // directory.
            grant.identity = Some(located.id());
            grant.host = located.path;
            directories.push(directory);
        }
        Ok(Some(Self { directories, grants: kept }))
    }

    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.directories.iter().any(|directory| path.starts_with(canonical(directory.path())))
    }

    /// Removes the directories and restores the grants.
    pub(crate) fn remove(self, grants: &mut Arc<Grants>) {
        *grants = self.grants;
    }
}
