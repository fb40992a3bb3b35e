//! The workspaces that take effect: those that the user trusts by name, and those that are ignored.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_base::text::shown_path;
use kitbag_fs_guard::{Distrust, Owners, Stat};
use kitbag_glob::Glob;

use super::directory::DIRECTORY;
use crate::layers::origin::{Origin, Sourced};
use crate::report::text;
use crate::trust::workspace::WorkspacePattern;

/// The workspaces and directories that the user trusts by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// Roots of workspaces, and directories with components, that take effect although other users
    /// can change them; absolute. Default: none.
    pub directories: Sourced<Vec<PathBuf>>,
    /// Globs of workspaces that are trusted with any content. Default: none.
    pub workspaces: Vec<WorkspacePattern>,
}

/// A workspace whose configuration is not read, because another user can change it.
///
/// Reads as ``the configuration in `/w/.kitbag` is ignored: `/w/.kitbag/config.toml` belongs to
/// user 1001; …``, with advice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the configuration in `{}` is ignored: `{}` {reason}; {}, or add \"{}\" to `[trust] \
     directories` in {}",
    shown_path(&root.join(DIRECTORY)),
    shown_path(path),
    reason.remedy(),
    shown_path(root),
    text::own_file(own_file.as_deref())
)]
pub struct IgnoredWorkspace {
    /// The root of the workspace; absolute.
    pub root: PathBuf,
    /// The file or directory that another user can change; absolute.
    pub path: PathBuf,
    /// The reason why the path is not trusted.
    pub reason: Distrust,
    /// The path of the user config, if it is known.
    pub own_file: Option<Arc<Path>>,
}

impl Default for Trust {
    fn default() -> Self {
        Self { directories: Sourced::default(Vec::new()), workspaces: Vec::new() }
    }
}

impl Trust {
    /// Returns the pattern that matches a workspace, by its canonical path.
    pub(crate) fn pattern(&self, root: &Path) -> Option<&Origin> {
        let root = root.to_str()?;
        let matches = |pattern: &&WorkspacePattern| {
            Glob::new(&pattern.glob).is_ok_and(|glob| glob.matches(root))
        };
        self.workspaces.iter().find(matches).map(|pattern| &pattern.origin)
    }

    /// Returns whether the user has named this directory itself.
    pub(crate) fn names(&self, directory: &File) -> bool {
        let Ok(this) = Stat::of(directory) else { return false };
        let is_this =
            |path: &PathBuf| Stat::following_links(path).is_ok_and(|stat| stat.id() == this.id());
        self.directories.value.iter().any(is_this)
    }

    /// Returns the directories that no other user may write, on the way to the files that are
    /// opened in them. `root` is a workspace that takes effect.
    pub(crate) fn owners(&self, root: Option<&Path>, home: Option<&Path>) -> Owners {
        // A path that leads elsewhere when a file is opened is not trusted at that time.
        let id = |path: &Path| Stat::following_links(path).ok().map(|stat| stat.id());
        Owners {
            root: root.and_then(id),
            home: home.and_then(id),
            trusted: self.directories.value.iter().filter_map(|path| id(path)).collect(),
        }
    }
}
