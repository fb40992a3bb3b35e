//! Reads the log.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Deserialize;

use crate::audit::error::AuditError;
use crate::audit::head::Head;
use crate::audit::log::{AuditLog, Lines, file_path, files, open_to_read};
use crate::audit::part::Part;
use crate::audit::record::AuditEvent;

/// A line of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    /// The number of the line, from 0.
    pub number: u64,
    /// The time at which it was recorded.
    pub time: SystemTime,
    /// The event.
    pub event: AuditEvent,
    /// The line as stored in the file.
    pub line: String,
}

/// Iterates over the lines of a log, oldest first; both chains are merged by time. Lines that
/// kitbag did not write are skipped: [`AuditLog::verify`] finds them.
pub struct AuditEntries {
    parts: [(PartEntries, Option<AuditEntry>); 2],
}

/// The lines of one chain.
struct PartEntries {
    directory: PathBuf,
    part: Part,
    numbers: VecDeque<u64>,
    open: Option<(u64, Lines<File>)>,
    /// The incomplete line that was read.
    partial: Vec<u8>,
}

#[derive(Deserialize)]
struct Written {
    n: u64,
    time: String,
    #[serde(flatten)]
    event: AuditEvent,
}

impl AuditLog {
    /// Returns the lines of the log, oldest first. `None` if nothing was logged.
    ///
    /// # Errors
    ///
    /// [`AuditError`] if the log cannot be read.
    pub fn entries(&self) -> Result<Option<AuditEntries>, AuditError> {
        let Some(directory) = self.directory()? else { return Ok(None) };
        let [details, calls] = Part::ALL.map(|part| PartEntries::new(directory, part));
        Ok(Some(AuditEntries { parts: [(details?, None), (calls?, None)] }))
    }
}

impl AuditEntries {
    /// Returns the next line. `None` if there are no more now; more may follow later.
    ///
    /// # Errors
    ///
    /// [`AuditError`] if a file cannot be read.
    pub fn next_entry(&mut self) -> Result<Option<AuditEntry>, AuditError> {
        for (entries, next) in &mut self.parts {
            if next.is_none() {
                *next = entries.next_entry()?;
            }
        }
        let [(_, details), (_, calls)] = &mut self.parts;
        Ok(match (&details, &calls) {
            (Some(detail), Some(call)) if call.time < detail.time => calls.take(),
            (Some(_), _) => details.take(),
            (None, _) => calls.take(),
        })
    }
}

impl PartEntries {
    fn new(directory: &Path, part: Part) -> Result<Self, AuditError> {
        let numbers = known_files(directory, part)?.into();
        let directory = directory.to_owned();
        Ok(Self { directory, part, numbers, open: None, partial: Vec::new() })
    }

    fn next_entry(&mut self) -> Result<Option<AuditEntry>, AuditError> {
        loop {
            let (number, lines) = match &mut self.open {
                Some((number, lines)) => (*number, lines),
                None => {
                    let Some(number) = self.numbers.pop_front() else { return Ok(None) };
                    let path = file_path(&self.directory, self.part, number);
                    let file = open_to_read(&path)?;
                    let (number, lines) = self.open.insert((number, Lines::new(file)));
                    (*number, lines)
                }
            };
            let path = file_path(&self.directory, self.part, number);
            match lines.next().map_err(AuditError::at(&path))? {
                Some(line) if line.is_whole => {
                    let mut text = std::mem::take(&mut self.partial);
                    text.extend(line.text);
                    if let Some(entry) = AuditEntry::read(text) {
                        return Ok(Some(entry));
                    }
                }
                Some(line) => self.partial.extend(line.text),
                None => {
                    if self.numbers.is_empty() {
                        let later = known_files(&self.directory, self.part)?;
                        self.numbers.extend(later.into_iter().filter(|it| *it > number));
                    }
                    if self.numbers.is_empty() {
                        return Ok(None);
                    }
                    self.open = None;
                    self.partial.clear();
                }
            }
        }
    }
}

impl AuditEntry {
    /// Formats the time to the second.
    pub fn time_text(&self) -> String {
        humantime::format_rfc3339_seconds(self.time).to_string()
    }

    pub(crate) fn read(line: Vec<u8>) -> Option<Self> {
        let line = String::from_utf8(line).ok()?;
        let Written { n, time, event } = serde_json::from_str(&line).ok()?;
        let time = humantime::parse_rfc3339(&time).ok()?;
        Some(Self { number: n, time, event, line })
    }
}

/// Returns the numbers of the files that the head knows, in order. Other files were added by
/// another program, which [`AuditLog::verify`] reports. Without a head, returns all files.
fn known_files(directory: &Path, part: Part) -> Result<Vec<u64>, AuditError> {
    let mut numbers = files(directory, part)?;
    if let Ok(Some(head)) = Head::read(directory, part) {
        numbers.retain(|number| (head.first..=head.file + 1).contains(number));
    }
    Ok(numbers)
}
