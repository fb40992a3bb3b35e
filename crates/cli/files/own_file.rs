//! The user config while a command changes it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use kitbag::Places;

use crate::console::output;
use crate::error::CliError;
use crate::files::replace::Original;

/// The user config, which need not exist. Commands that change it run one at a time, and each
/// starts from the previous result.
pub(crate) struct OwnFile {
    path: String,
    original: Original,
    /// Holds the lock until it is closed.
    _directory: File,
}

impl OwnFile {
    /// Waits until no other command changes the file.
    ///
    /// # Errors
    ///
    /// If the path of the file is not known, or the file cannot be read.
    pub(crate) fn lock() -> Result<Self, CliError> {
        let file = path()?;
        let path = file.display().to_string();
        let read = |source| CliError::Read { path: path.clone(), source };
        let directory = lock_directory(&file).map_err(read)?;
        let original = Original::read(&file).map_err(read)?;
        Ok(Self { path, original, _directory: directory })
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn text(&self) -> Result<&str, CliError> {
        let text = str::from_utf8(self.original.content());
        text.map_err(|error| CliError::Usage(format!("`{}`: {error}", self.path)))
    }

    /// Replaces the file atomically.
    pub(crate) fn write(&mut self, text: &str) -> Result<(), CliError> {
        if text.as_bytes() == self.original.content() {
            return Ok(());
        }
        let save = |source| CliError::Save { path: self.path.clone(), source };
        self.original.replace(text.as_bytes()).map_err(save)
    }
}

fn path() -> Result<PathBuf, CliError> {
    let places = Places::from_environment(std::env::vars_os());
    let usual = places.config_dir.map(|directory| directory.join("config.toml"));
    places.user_file.or(usual).ok_or_else(|| {
        let why = "the path of your user config is unknown: set `HOME` or `KITBAG_CONFIG`";
        CliError::Usage(why.into())
    })
}

/// Locks the directory of a file, since the file itself is replaced.
fn lock_directory(file: &Path) -> io::Result<File> {
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let directory = File::open(directory)?;
    match directory.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            output::note("waiting for another command that changes your user config");
            directory.lock()?;
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    Ok(directory)
}
