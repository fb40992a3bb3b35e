//! Commands for people who write tools.

pub(crate) mod build;
pub(crate) mod cases;
pub(crate) mod dev;
pub(crate) mod language;
pub(crate) mod new;
pub(crate) mod pin;
pub(crate) mod run_case;
pub(crate) mod template_files;
pub(crate) mod templates;
pub(crate) mod test;
pub(crate) mod toolchain;

use std::path::{Path, PathBuf};

use kitbag::base::text::shown_path;

use crate::commands::Global;
use crate::error::CliError;

/// A project directory, and the workspace into which its tools are installed.
pub(crate) struct Project {
    pub(crate) directory: PathBuf,
    /// The nearest parent directory with `.kitbag`, or the directory itself.
    pub(crate) workspace: PathBuf,
}

impl Project {
    /// Returns the project in a directory, by default in the current one.
    pub(crate) fn find(directory: Option<&Path>, global: &Global) -> Result<Self, CliError> {
        let named = directory.unwrap_or(Path::new("."));
        let directory = named
            .canonicalize()
            .map_err(|source| CliError::Read { path: shown_path(named).to_string(), source })?;
        if !directory.is_dir() {
            let text = format!("`{}` is not a directory", shown_path(named));
            return Err(CliError::Usage(text));
        }
        let workspace = match &global.workspace {
            Some(root) => root
                .canonicalize()
                .map_err(|source| CliError::Read { path: shown_path(root).to_string(), source })?,
            None => {
                let mut above = directory.ancestors();
                let found = above.find(|above| above.join(".kitbag").is_dir());
                found.unwrap_or(&directory).to_owned()
            }
        };
        Ok(Self { directory, workspace })
    }

    /// Returns the options of a command in this workspace.
    pub(crate) fn global(&self, global: &Global) -> Global {
        Global {
            workspace: Some(self.workspace.clone()),
            trust_workspace: global.trust_workspace,
            json: global.json,
        }
    }

    /// Returns the directory of the workspace's tools.
    pub(crate) fn tools(&self) -> PathBuf {
        self.workspace.join(".kitbag/tools")
    }
}

fn unwritable(path: &Path, source: std::io::Error) -> CliError {
    CliError::Save { path: shown_path(path).to_string(), source }
}
