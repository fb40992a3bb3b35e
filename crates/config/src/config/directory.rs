//! The directory `.kitbag`, and what it holds.

use std::path::{Path, PathBuf};

pub(crate) const DIRECTORY: &str = ".kitbag";

pub(crate) const FILE: &str = "config.toml";

/// The file in it with what was recorded of tools.
pub(crate) const LOCK: &str = "kitbag.lock";

/// The directory in it whose components are tools without configuration.
pub(crate) const TOOLS: &str = "tools";

/// The directory in it whose scripts are tools.
pub(crate) const SCRIPTS: &str = "scripts";

/// What is kitbag's own: what the caller named, and what the workspace holds, which may
/// be links.
pub(crate) fn own_directories<'a>(
    root: &Path,
    protected: impl IntoIterator<Item = &'a PathBuf>,
) -> Vec<PathBuf> {
    let directory = root.join(DIRECTORY);
    let own = [FILE, LOCK, TOOLS, SCRIPTS].map(|name| directory.join(name));
    [directory].into_iter().chain(own).chain(protected.into_iter().cloned()).collect()
}
