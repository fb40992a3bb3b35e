//! Files in a workspace that kitbag writes for a person. Links are refused.

use std::fs;
use std::path::{Path, PathBuf};

use kitbag::base::text::shown;

use crate::error::CliError;

/// Refuses a path in a workspace that contains a symbolic link, which the author of the workspace
/// could have placed. Paths outside of the workspace belong to the user, who may use links.
pub(crate) fn refuse_links(root: &Path, path: &Path) -> Result<(), CliError> {
    let Some((mut at, below)) = in_workspace(root, path) else { return Ok(()) };
    for component in below.components() {
        at.push(component);
        if at.is_symlink() {
            return Err(CliError::Usage(format!(
                "`{}` is a symbolic link, but kitbag writes only into the workspace itself; \
                 replace it with a {}",
                shown(&at.to_string_lossy()),
                if at.is_dir() { "directory" } else { "file" }
            )));
        }
    }
    Ok(())
}

/// Returns the root of a workspace, and the path of a file below it. `None` if the file is
/// elsewhere.
pub(crate) fn in_workspace(root: &Path, path: &Path) -> Option<(PathBuf, PathBuf)> {
    let path = std::path::absolute(path).ok()?;
    let roots = [root.to_owned(), fs::canonicalize(root).unwrap_or_else(|_| root.to_owned())];
    roots.into_iter().find_map(|root| {
        let below = path.strip_prefix(&root).ok()?.to_owned();
        Some((root, below))
    })
}
