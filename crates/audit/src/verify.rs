//! Whether a log is as it was written.

use std::io::Read;
use std::path::PathBuf;

use crate::chain::{ChainHash, End, NotNext};
use crate::error::{AuditError, Damage};
use crate::head::Head;
use crate::log::{AuditLog, Lines, Tail, file_path, files, open_to_read};

/// A log that is as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// How many lines were looked at.
    pub lines: u64,
    /// The number of the first of them: the files of those before it are gone.
    pub first: u64,
    /// How many files there are.
    pub files: u64,
    /// How many lines stand behind the head: a process was stopped before it wrote that.
    pub open: u64,
    /// How many bytes at the end are not a line: a process was stopped while it wrote them.
    pub torn: u64,
    /// The hash of the last line.
    pub hash: ChainHash,
}

impl AuditLog {
    /// Looks whether the log is as it was written, with what others add meanwhile left out.
    /// `None`: nothing was logged yet.
    ///
    /// # Errors
    ///
    /// [`AuditError::Damaged`] with the first thing that is wrong, [`AuditError::Unusable`] where
    /// it cannot be read.
    pub fn verify(&self) -> Result<Option<Verified>, AuditError> {
        let Some(directory) = self.directory()? else { return Ok(None) };
        // While it is locked, head and lengths belong together; what is written later is not
        // looked at, and files that go meanwhile stay open.
        let lock = Self::lock(directory)?;
        let numbers = files(directory)?;
        let Some(head) = Head::read(directory)? else {
            return match numbers.is_empty() {
                true => Ok(None),
                false => Err(Damage::NoHead { path: Head::path(directory) }.into()),
            };
        };
        if let Some(added) = numbers.iter().find(|number| **number > head.file + 1) {
            return Err(Damage::Added { path: file_path(directory, *added) }.into());
        }
        let mut opened = Vec::new();
        // A process may have been stopped behind the beginning of one more.
        for number in head.first..=head.file + 1 {
            let path = file_path(directory, number);
            if numbers.binary_search(&number).is_ok() {
                let file = open_to_read(&path)?;
                let length = file.metadata().map_err(AuditError::at(&path))?.len();
                opened.push((number, path, Some((file.take(length), length))));
            } else if number <= head.file && head.bytes > 0 {
                opened.push((number, path, None));
            }
        }
        drop(lock);
        let mut tail = Tail::new(End::start());
        let mut removed: Option<PathBuf> = None;
        let (mut looked_at, mut first, mut files) = (0, 0, 0);
        for (number, path, file) in opened {
            let Some((file, length)) = file else {
                removed.get_or_insert(path);
                continue;
            };
            files += 1;
            if number == head.file && length < head.bytes {
                return Err(Damage::Cut { path, found: length, expected: head.bytes }.into());
            }
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
                let before = End::before(&line.text);
                if let Some(path) = removed {
                    let before = before.map(|before| before.lines);
                    // The number of the first line of the oldest file is not recorded elsewhere.
                    let is_known = head.first == 1 || looked_at > 0;
                    let lines =
                        before.filter(|_| is_known).map(|n| n.saturating_sub(tail.end.lines));
                    return Err(Damage::Removed { path, lines }.into());
                }
                if looked_at == 0 && number == head.first && number > 1 {
                    // What was before it is gone, and it says what that was.
                    tail.end = before.unwrap_or(tail.end);
                    first = tail.end.lines;
                }
                looked_at += 1;
                tail.push(line).map_err(|error| match error {
                    NotNext::Missing { lines } => {
                        Damage::Missing { path: path.clone(), line: at, lines }
                    }
                    NotNext::NotALine => Damage::Foreign { path: path.clone(), line: at },
                    // This line holds the hash of the one before.
                    NotNext::Other if at > 1 => {
                        Damage::Changed { path: path.clone(), line: at - 1 }
                    }
                    NotNext::Other => Damage::Changed { path: path.clone(), line: at },
                })?;
            }
            if tail.torn.is_some() && number < head.file {
                return Err(Damage::Changed { path, line: at }.into());
            }
        }
        if let Some(path) = removed {
            let is_known = head.first == 1 || looked_at > 0;
            let lines = is_known.then(|| head.lines.saturating_sub(tail.end.lines));
            return Err(Damage::Removed { path, lines }.into());
        }
        let Tail { end, torn, .. } = tail;
        Ok(Some(Verified {
            lines: end.lines - first,
            first,
            files,
            open: end.lines - head.lines,
            torn: torn.map_or(0, |torn| torn.len() as u64),
            hash: end.hash,
        }))
    }
}
