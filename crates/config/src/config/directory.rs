//! The directory `.kitbag` and its contents.

use std::path::{Path, PathBuf};

pub(crate) const DIRECTORY: &str = ".kitbag";

pub(crate) const FILE: &str = "config.toml";

pub(crate) const LOCK: &str = "kitbag.lock";

/// The directory of components that are tools without configuration.
pub(crate) const TOOLS: &str = "tools";

/// The directory of scripts that are tools.
pub(crate) const SCRIPTS: &str = "scripts";

/// The directory of skills, also beside the user config.
pub(crate) const SKILLS: &str = "skills";

/// Returns kitbag's own directories: those that the caller named, and those in the workspace, which
/// may be links.
pub(crate) fn own_directories<'a>(
    root: &Path,
    protected: impl IntoIterator<Item = &'a PathBuf>,
) -> Vec<PathBuf> {
    let directory = root.join(DIRECTORY);
    let own = [FILE, LOCK, TOOLS, SCRIPTS].map(|name| directory.join(name));
    [directory].into_iter().chain(own).chain(protected.into_iter().cloned()).collect()
}
