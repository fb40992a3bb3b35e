//! Verifies that a log was not modified.

use std::fs::File;
use std::io::{Read, Take};
use std::path::{Path, PathBuf};

use crate::audit::chain::{ChainEnd, ChainHash, NotNext};
use crate::audit::error::{AuditError, Damage};
use crate::audit::head::Head;
use crate::audit::log::{AuditLog, Line, Lines, Tail, file_path, files, open_to_read};
use crate::audit::part::Part;
use crate::audit::read::AuditEntry;
use crate::audit::record::{AuditEvent, RemovedEvent};

/// A log that was not modified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// The number of checked lines.
    pub lines: u64,
    /// The number of the first checked line: the files of earlier lines were removed.
    pub first: u64,
    /// The number of files.
    pub files: u64,
    /// The number of lines after the head: a process was stopped before it wrote the head.
    pub open: u64,
    /// The number of bytes at the end that are not a line: a process was stopped while it wrote
    /// them.
    pub torn: u64,
    /// The last removal of files to limit the size of the log: its time, to the second, and the
    /// removed lines.
    pub removed: Option<(String, RemovedEvent)>,
    /// The hash of the last line.
    pub hash: ChainHash,
    /// The other chain, of nested calls and refusals. `None` if there are none.
    pub details: Option<Box<Self>>,
}

impl Verification {
    fn empty() -> Self {
        let ChainEnd { lines, hash } = ChainEnd::start();
        let (first, files, open, torn) = (0, 0, 0, 0);
        Self { lines, first, files, open, torn, removed: None, hash, details: None }
    }
}

impl AuditLog {
    /// Verifies the log up to its current end. `None` if nothing was logged.
    ///
    /// # Errors
    ///
    /// [`AuditError::Damaged`] with the first damage, or [`AuditError::Unusable`] if the log cannot
    /// be read.
    pub fn verify(&self) -> Result<Option<Verification>, AuditError> {
        let Some(directory) = self.directory()? else { return Ok(None) };
        // Under the lock, heads and lengths are consistent. Later lines are ignored, and files that
        // are removed meanwhile remain open.
        let lock = Self::lock(directory)?;
        let [details, calls] = Part::ALL.map(|part| Opened::new(directory, part));
        let (details, calls) = (details?, calls?);
        drop(lock);
        let calls = calls.map(Opened::verify).transpose()?;
        let details = details.map(Opened::verify).transpose()?;
        Ok(match (calls, details) {
            (None, None) => None,
            (calls, details) => {
                // Nested calls may be logged before the first call ends.
                let calls = calls.unwrap_or_else(Verification::empty);
                Some(Verification { details: details.map(Box::new), ..calls })
            }
        })
    }
}

/// The files of a chain at one moment.
struct Opened {
    head: Head,
    files: Vec<(u64, PathBuf, Option<OpenedFile>)>,
}

/// A file limited to its length at that moment, and the length.
type OpenedFile = (Take<File>, u64);

impl Opened {
    /// Opens the files. `None` if nothing was logged.
    fn new(directory: &Path, part: Part) -> Result<Option<Self>, AuditError> {
        let numbers = files(directory, part)?;
        let Some(head) = Head::read(directory, part)? else {
            return match numbers.is_empty() {
                true => Ok(None),
                false => Err(Damage::NoHead { path: Head::path(directory, part) }.into()),
            };
        };
        if let Some(added) = numbers.iter().find(|number| **number > head.file + 1) {
            return Err(Damage::Added { path: file_path(directory, part, *added) }.into());
        }
        let mut opened = Vec::new();
        // A process may have been stopped after it started one more file.
        for number in head.first..=head.file + 1 {
            let path = file_path(directory, part, number);
            if numbers.binary_search(&number).is_ok() {
                let file = open_to_read(&path)?;
                let length = file.metadata().map_err(AuditError::at(&path))?.len();
                opened.push((number, path, Some((file.take(length), length))));
            } else if number <= head.file && head.bytes > 0 {
                opened.push((number, path, None));
            }
        }
        Ok(Some(Self { head, files: opened }))
    }

    fn verify(self) -> Result<Verification, AuditError> {
        let Self { head, files: opened } = self;
        let start = head.known_start();
        let mut tail = Tail::new(start.unwrap_or(ChainEnd::start()));
        let mut removed: Option<PathBuf> = None;
        let mut last_removed = None;
        let (mut looked_at, mut first, mut files) = (0, tail.end.lines, 0);
        for (number, path, file) in opened {
            let Some((file, length)) = file else {
                removed.get_or_insert(path);
                continue;
            };
            files += 1;
            let (mut lines, mut position, mut at) = (Lines::new(file), 0, 0);
            let mut is_checked = number != head.file;
            loop {
                if !is_checked && position >= head.bytes {
                    if position > head.bytes || tail.torn.is_some() || tail.end != head.end() {
                        return Err(Damage::Last { path }.into());
                    }
                    is_checked = true;
                }
                let Some(line) = lines.next().map_err(AuditError::at(&path))? else { break };
                at += 1;
                position += line.text.len() as u64 + u64::from(line.is_whole);
                let before = ChainEnd::before(&line.text);
                if let Some(path) = removed {
                    let before = before.map(|before| before.lines);
                    let is_known = start.is_some() || looked_at > 0;
                    let lines =
                        before.filter(|_| is_known).map(|n| n.saturating_sub(tail.end.lines));
                    return Err(Damage::Removed { path, lines }.into());
                }
                if looked_at == 0 && start.is_none() {
                    // Version 0.1.0 did not record the previous line.
                    tail.end = before.unwrap_or(tail.end);
                    first = tail.end.lines;
                }
                looked_at += 1;
                last_removed = removed_files(&line).or(last_removed);
                tail.push(line).map_err(|error| match error {
                    NotNext::Missing { lines } => {
                        Damage::Missing { path: path.clone(), line: at, lines }
                    }
                    NotNext::NotALine => Damage::Foreign { path: path.clone(), line: at },
                    // This line contains the hash of the previous one.
                    NotNext::Other if at > 1 => {
                        Damage::Changed { path: path.clone(), line: at - 1 }
                    }
                    NotNext::Other => Damage::Changed { path: path.clone(), line: at },
                })?;
            }
            // A line that is missing in the middle was reported above.
            if number == head.file && length < head.bytes {
                let (found, expected) = (length, head.bytes);
                return Err(Damage::Cut { path, line: Some(at), found, expected }.into());
            }
            if tail.torn.is_some() && number < head.file {
                return Err(Damage::Changed { path, line: at }.into());
            }
        }
        if let Some(path) = removed {
            let is_known = start.is_some() || looked_at > 0;
            let lines = is_known.then(|| head.lines.saturating_sub(tail.end.lines));
            return Err(Damage::Removed { path, lines }.into());
        }
        let Tail { end, torn, .. } = tail;
        Ok(Verification {
            lines: end.lines - first,
            first,
            files,
            open: end.lines - head.lines,
            torn: torn.map_or(0, |torn| torn.len() as u64),
            removed: last_removed,
            hash: end.hash,
            details: None,
        })
    }
}

/// Parses the removed files and the time from a line.
fn removed_files(line: &Line) -> Option<(String, RemovedEvent)> {
    const EVENT: &[u8] = b"\"event\":\"removed\"";
    if !line.text.windows(EVENT.len()).any(|part| part == EVENT) {
        return None;
    }
    let entry = AuditEntry::read(line.text.clone())?;
    let time = entry.time_text();
    match entry.event {
        AuditEvent::Removed(removed) => Some((time, removed)),
        _ => None,
    }
}
