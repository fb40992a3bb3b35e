//! The head: a file with the end of a chain of the log.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::{check_file, open};
use serde::{Deserialize, Serialize};

use crate::audit::chain::{ChainEnd, ChainHash};
use crate::audit::error::AuditError;
use crate::audit::part::Part;

/// The version of the file format.
const VERSION: u32 = 1;

/// Maximum number of bytes that are read from the file.
const MOST_BYTES: u64 = 4096;

/// The length of the file, padded with blanks so that it never becomes shorter: it fits in one
/// sector of a disk.
const LENGTH: usize = 383;

/// The end of a chain. A copy that is kept elsewhere proves that nothing before it was changed,
/// even if log and head were replaced together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The version of the file format.
    version: u32,
    /// The number of the oldest file.
    pub(crate) first: u64,
    /// The number of the current file.
    pub(crate) file: u64,
    /// The number of its bytes that belong to the chain.
    pub(crate) bytes: u64,
    /// The total number of lines, including those of removed files.
    pub lines: u64,
    /// The hash of the last line.
    pub hash: ChainHash,
    /// The end of the chain before the first line of the oldest file, if files before it were
    /// removed. Logs of 0.1.0 do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<ChainEnd>,
}

impl Head {
    /// Creates the head of an empty log.
    pub(crate) fn new() -> Self {
        let ChainEnd { lines, hash } = ChainEnd::start();
        Self { version: VERSION, first: 1, file: 1, bytes: 0, lines, hash, start: None }
    }

    pub(crate) fn end(&self) -> ChainEnd {
        ChainEnd { lines: self.lines, hash: self.hash }
    }

    pub(crate) fn set_end(&mut self, ChainEnd { lines, hash }: ChainEnd) {
        (self.lines, self.hash) = (lines, hash);
    }

    /// Returns the end of the chain before the oldest file. `None` if it is not recorded.
    pub(crate) fn known_start(&self) -> Option<ChainEnd> {
        if self.first == 1 { Some(ChainEnd::start()) } else { self.start }
    }

    /// Reads the head in a directory. `None` if it does not exist.
    pub(crate) fn read(directory: &Path, part: Part) -> Result<Option<Self>, AuditError> {
        let path = Self::path(directory, part);
        let file = match open(&path, OpenOptions::new().read(true)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(AuditError::at(&path))?,
        };
        let found = file.metadata().map_err(AuditError::at(&path))?;
        check_file(&found, &path).map_err(|reason| AuditError::unusable(&path, reason))?;
        let mut text = Vec::with_capacity(2 * LENGTH);
        file.take(MOST_BYTES).read_to_end(&mut text).map_err(AuditError::at(&path))?;
        if text.is_empty() {
            // A process was stopped before it wrote the first head.
            return Ok(None);
        }
        let head: Self =
            serde_json::from_slice(&text).map_err(|error| AuditError::unusable(&path, error))?;
        match head.version {
            VERSION => Ok(Some(head)),
            version => {
                let reason = format!("it has format {version} of a different kitbag version");
                Err(AuditError::unusable(&path, reason))
            }
        }
    }

    /// Overwrites the file in one system call, so that a stopped process leaves no partial head.
    /// The log must be locked.
    ///
    /// Renaming a file over the old one would sync it to disk immediately, which takes longer than
    /// everything else in a call.
    pub(crate) fn write(&self, directory: &Path, part: Part) -> Result<File, AuditError> {
        let path = Self::path(directory, part);
        let write = || {
            let text = serde_json::to_string(self)?;
            let mut file = open(&path, OpenOptions::new().write(true).create(true))?;
            let written = file.write(format!("{text:<LENGTH$}\n").as_bytes())?;
            if written <= text.len() {
                return Err(io::ErrorKind::WriteZero.into());
            }
            Ok(file)
        };
        write().map_err(AuditError::at(&path))
    }

    /// Returns the path of the head.
    pub(crate) fn path(directory: &Path, part: Part) -> PathBuf {
        directory.join(part.head())
    }
}
