//! What a call holds of its grants while it runs: the one list of kinds in this
//! crate. Each kind is opened by a file of its own.

use std::sync::Arc;

use kitbag_files::Guard;
use kitbag_policy::Grants;

use crate::error::CallError;
use crate::filesystem::Granted;

/// The grants of one call, opened.
#[derive(Default)]
pub(crate) struct HeldGrants {
    pub(crate) directories: Granted,
}

impl HeldGrants {
    /// Opens everything that a call is granted.
    ///
    /// # Errors
    ///
    /// [`CallError::Denied`] for a grant that cannot be given.
    pub(crate) fn open(grants: &Grants, guard: &Arc<Guard>) -> Result<Self, CallError> {
        let Grants { directories } = grants;
        Ok(Self { directories: Granted::open(directories, guard)? })
    }
}
