//! The record of an import, from which it can be undone.
//!
//! Records and backups are in the state directory and private to the user: a backup may contain
//! secrets, and beside a file of the workspace it could be committed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use kitbag::Places;
use kitbag_fs_guard::sys::{create_private_directories, private_permissions};
use serde::{Deserialize, Serialize};

use crate::error::CliError;
use crate::files::new_file;

/// Maximum number of backups of files with one name.
const BACKUPS: u32 = 1_000;

/// The version of the format.
const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ImportRecord {
    version: u32,
    /// The client, or the path of the file.
    pub(super) source: String,
    pub(super) files: Vec<RecordedFile>,
    /// Names of the secrets whose values were stored.
    pub(super) stored: Vec<String>,
    /// The root of the workspace, for its files.
    pub(super) workspace: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RecordedFile {
    pub(super) path: PathBuf,
    pub(super) before: Before,
    pub(super) after: String,
    /// The content that the import moved out of, or into the file.
    pub(super) content: FileContent,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Before {
    Absent,
    Text(String),
    Backup(PathBuf),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FileContent {
    /// The tables of a client's file, with the servers that were moved.
    Client { is_toml: bool, tables: Vec<(Vec<String>, Vec<String>)> },
    /// The tables of kitbag's configuration that were added.
    Config { servers: Vec<String>, secrets: Vec<String>, tools: Vec<String> },
}

/// A record in the state directory.
pub(super) struct StoredRecord {
    pub(super) path: PathBuf,
    pub(super) record: ImportRecord,
}

impl ImportRecord {
    pub(super) fn new(
        source: String,
        workspace: PathBuf,
        files: Vec<RecordedFile>,
        stored: Vec<String>,
    ) -> Self {
        Self { version: VERSION, source, files, stored, workspace }
    }

    /// Writes the record under the next number.
    pub(super) fn write(&self) -> Result<PathBuf, CliError> {
        let directory = directory()?;
        let failed = |source| CliError::Save { path: directory.display().to_string(), source };
        create_private_directories(&directory).map_err(failed)?;
        let text = serde_json::to_string_pretty(self).expect("it has only strings");
        let like = private_permissions();
        let file = new_file::write(&directory, text.as_bytes(), Some(&like)).map_err(failed)?;
        let first = numbers(&directory).map_err(failed)?.last().map_or(1, |(last, _)| last + 1);
        let paths = (first..first + 100).map(|number| directory.join(format!("{number}.json")));
        let full = || failed(io::Error::other("its numbers are taken"));
        new_file::persist(file, paths).map_err(failed)?.ok_or_else(full)
    }
}

/// Writes the backup of a file and returns its path.
pub(super) fn back_up(file: &Path, content: &[u8]) -> Result<PathBuf, CliError> {
    let directory = directory()?;
    let failed = |source| CliError::Save { path: directory.display().to_string(), source };
    create_private_directories(&directory).map_err(failed)?;
    let copy = new_file::write(&directory, content, Some(&private_permissions()));
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = name.trim_start_matches('.');
    let paths = (1..=BACKUPS).map(|number| directory.join(format!("{name}.backup-{number}")));
    let full = || failed(io::Error::other("it has too many backups"));
    new_file::persist(copy.map_err(failed)?, paths).map_err(failed)?.ok_or_else(full)
}

impl StoredRecord {
    /// Returns the latest import of a source, and the names of all sources.
    pub(super) fn latest(source: &str) -> Result<(Option<Self>, Vec<String>), CliError> {
        let directory = directory()?;
        let (mut latest, mut sources) = (None, Vec::new());
        let failed = |source| CliError::Read { path: directory.display().to_string(), source };
        for (_, path) in numbers(&directory).map_err(failed)? {
            let unreadable = |source| CliError::Read { path: path.display().to_string(), source };
            let text = fs::read(&path).map_err(unreadable)?;
            let record: ImportRecord = serde_json::from_slice(&text)
                .map_err(|error| unreadable(io::Error::new(io::ErrorKind::InvalidData, error)))?;
            if record.version != VERSION {
                continue;
            }
            if !sources.contains(&record.source) {
                sources.push(record.source.clone());
            }
            if record.source == source {
                latest = Some(Self { path, record });
            }
        }
        Ok((latest, sources))
    }
}

fn directory() -> Result<PathBuf, CliError> {
    let places = Places::from_environment(std::env::vars_os());
    let state = places.state.map(|state| state.value.join("imports"));
    state.ok_or_else(|| {
        let why = "the state directory is unknown: set `HOME` or `KITBAG_STATE_DIR`";
        CliError::Usage(why.into())
    })
}

/// Returns the records by their numbers.
fn numbers(directory: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut records = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".json"));
        if let Some(number) = name.and_then(|name| name.parse().ok()) {
            records.push((number, path));
        }
    }
    records.sort();
    Ok(records)
}
