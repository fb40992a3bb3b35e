//! Directories that a run has for itself: made empty, and gone after it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use kitbag_fs_guard::sys::private_directory_permissions;
use kitbag_fs_guard::{canonical, locate};
use kitbag_host::CallError;
use kitbag_policy::{DirectoryGrant, Grants};
use tempfile::TempDir;

/// The directories of one run, which are removed with this.
pub(crate) struct Temporary {
    directories: Vec<TempDir>,
    grants: Arc<Grants>,
}

impl Temporary {
    /// Makes the directories that these grants stand for, where the system has room for such,
    /// and puts their paths there. `None`: no grant does.
    ///
    /// # Errors
    ///
    /// [`CallError::Denied`] where one cannot be made.
    pub(crate) fn make(grants: &mut Arc<Grants>) -> Result<Option<Self>, CallError> {
        if !grants.directories.iter().any(DirectoryGrant::is_temporary) {
            return Ok(None);
        }
        let (kept, mut directories) = (Arc::clone(grants), Vec::new());
        let of_call = Arc::make_mut(grants).directories.iter_mut();
        for grant in of_call.filter(|grant| grant.is_temporary()) {
            // Whatever the process lets others read of what it makes.
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
            // Another program that may write there gives the run no other one.
            grant.identity = Some(located.id());
            grant.host = located.path;
            directories.push(directory);
        }
        Ok(Some(Self { directories, grants: kept }))
    }

    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.directories.iter().any(|directory| path.starts_with(canonical(directory.path())))
    }

    /// Removes the directories, and puts the grants back.
    pub(crate) fn remove(self, grants: &mut Arc<Grants>) {
        *grants = self.grants;
    }
}
