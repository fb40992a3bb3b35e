//! The directories of the user: configuration, state and cache.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::path::Path;

use kitbag::Places;
use kitbag_fs_guard::sys::{effective_user, mode_of_metadata, owner_of_metadata};

use super::check::{Check, Status};
use crate::sys;

/// A directory of the user, and what kitbag needs of it.
struct Directory<'a> {
    name: &'static str,
    path: Option<&'a Path>,
    /// The variable that names another directory.
    variable: &'static str,
    /// The permissions that others must not have.
    closed: u32,
    /// The consequence if the directory cannot be written.
    unwritable: Status,
}

pub(super) fn checks(places: &Places) -> Vec<Check> {
    let own_directory = places.user_file.as_deref().and_then(Path::parent);
    let directories = [
        Directory {
            name: "config directory",
            path: own_directory.or(places.config_dir.as_deref()),
            variable: "KITBAG_CONFIG",
            closed: 0o022,
            unwritable: Status::Warning,
        },
        Directory {
            name: "state directory",
            path: places.state.as_ref().map(|state| &*state.value),
            variable: "KITBAG_STATE_DIR",
            closed: 0o077,
            unwritable: Status::Error,
        },
        Directory {
            name: "cache directory",
            path: places.cache.as_deref(),
            variable: "KITBAG_CACHE_DIR",
            closed: 0o077,
            unwritable: Status::Warning,
        },
    ];
    directories.iter().map(Directory::check).collect()
}

impl Directory<'_> {
    fn check(&self) -> Check {
        let Some(path) = self.path else {
            let text = format!("unknown: set `HOME` or `{}`", self.variable);
            return Check::new(self.name, Status::Error, text);
        };
        let (status, text) = match fs::symlink_metadata(path) {
            Ok(found) => self.found(path, &found),
            Err(error) if error.kind() == ErrorKind::NotFound => self.missing(path),
            Err(error) => (Status::Error, format!("it cannot be read: {error}; {}", self.other())),
        };
        Check::new(self.name, status, format!("{}: {text}", path.display()))
    }

    fn other(&self) -> String {
        format!("repair it, or set `{}` to another place", self.variable)
    }

    fn missing(&self, path: &Path) -> (Status, String) {
        let parent = path.ancestors().find(|path| path.symlink_metadata().is_ok());
        match parent.map(tempfile::tempfile_in) {
            Some(Ok(_)) => (Status::Ok, "created when it is needed".to_owned()),
            Some(Err(error)) => {
                (self.unwritable, format!("it cannot be created: {error}; {}", self.other()))
            }
            None => (self.unwritable, format!("it cannot be created; {}", self.other())),
        }
    }

    fn found(&self, path: &Path, found: &Metadata) -> (Status, String) {
        let (owner, mode) = (owner_of_metadata(found), mode_of_metadata(found) & 0o777);
        // The user may link their configuration; the state and the cache are private.
        let is_directory = if self.closed == 0o022 { path.is_dir() } else { found.is_dir() };
        if !is_directory {
            return (Status::Error, format!("it is not a directory; {}", self.other()));
        }
        if owner != effective_user() {
            let text = format!("it belongs to user {owner}, not to you; {}", self.other());
            return (Status::Error, text);
        }
        if mode & self.closed != 0 && !found.is_symlink() {
            let others = if self.closed == 0o022 { "go-w" } else { "go=" };
            let text = format!(
                "others can use it (mode {mode:03o}); run `chmod {others} {}`",
                kitbag::base::shell::quoted(&path.to_string_lossy())
            );
            return (Status::Error, text);
        }
        if let Err(error) = tempfile::tempfile_in(path) {
            let text = format!("it cannot be written: {error}; {}", self.other());
            return (self.unwritable, text);
        }
        let file_system = sys::file_system(path);
        let kind = file_system.as_ref().map_or("unknown", |it| it.name);
        if self.unwritable == Status::Error && file_system.is_ok_and(|it| it.is_remote) {
            let text = format!(
                "it is on a network file system ({kind}), where locks may fail; set `{}` to a \
                 local directory",
                self.variable
            );
            return (Status::Warning, text);
        }
        (Status::Ok, format!("yours, mode {mode:03o}, writable, file system {kind}"))
    }
}
