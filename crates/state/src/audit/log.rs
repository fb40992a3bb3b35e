//! The files of the log, and appending lines.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::{Lock, SharedState, check_file, open};

use crate::audit::chain::{ChainEnd, ChainHash, NotNext};
use crate::audit::error::{AuditError, Damage};
use crate::audit::head::Head;
use crate::audit::part::{AuditSize, Part};
use crate::audit::record::{AuditEvent, RemovedEvent};

/// The time that a process waits for other writers. Each takes far less than a millisecond, unless
/// it is stopped.
const LOCK_TIME: Duration = Duration::from_secs(10);

/// The log of a user. Accesses no files until it is used.
#[derive(Debug)]
pub struct AuditLog {
    state: SharedState,
    size: AuditSize,
}

/// An event to append, and its time.
#[derive(Debug)]
pub(crate) struct Pending {
    time: SystemTime,
    pub(crate) event: AuditEvent,
}

/// Written files that may not be on disk yet.
#[derive(Debug, Default)]
pub(crate) struct Unsynced(Vec<(PathBuf, File)>);

impl Pending {
    pub(crate) fn new(event: AuditEvent) -> Self {
        Self { time: SystemTime::now(), event }
    }

    /// Appends the line to a text. Formatted here and not when the event occurs, so that no call
    /// waits for it.
    fn push(&self, end: &mut ChainEnd, text: &mut String) {
        let record = serde_json::to_string(&self.event).expect("every key is a string");
        end.push(text, self.time, &record);
    }
}

impl Unsynced {
    /// Waits until the files are on disk.
    ///
    /// # Errors
    ///
    /// [`AuditError`] for the first file that cannot be synced.
    pub(crate) fn sync(self) -> Result<(), AuditError> {
        self.0
            .into_iter()
            .try_for_each(|(path, file)| file.sync_data().map_err(AuditError::at(&path)))
    }
}

impl AuditLog {
    /// Creates the log in the state directory, whose path must be absolute.
    pub fn new(state: &Path, size: AuditSize) -> Self {
        Self { state: SharedState::new(state, "audit"), size }
    }

    /// Returns the end of the chain of calls, approvals and trust. `None` if nothing was logged.
    ///
    /// # Errors
    ///
    /// [`AuditError`] if the head cannot be read.
    pub fn head(&self) -> Result<Option<Head>, AuditError> {
        self.head_of(Part::Calls)
    }

    /// Returns the end of the chain of nested calls and refusals. `None` if there are none.
    ///
    /// # Errors
    ///
    /// As for [`head`](Self::head).
    pub fn details_head(&self) -> Result<Option<Head>, AuditError> {
        self.head_of(Part::Details)
    }

    fn head_of(&self, part: Part) -> Result<Option<Head>, AuditError> {
        match self.directory()? {
            Some(directory) => {
                let _lock = Self::lock(directory)?;
                Head::read(directory, part)
            }
            None => Ok(None),
        }
    }

    /// Returns the directory if it exists.
    pub(crate) fn directory(&self) -> Result<Option<&Path>, AuditError> {
        Ok(self.state.find()?)
    }

    /// Locks the log for other processes and for readers of the whole log.
    pub(crate) fn lock(directory: &Path) -> Result<Lock, AuditError> {
        let path = directory.join("lock");
        Lock::take(&path, LOCK_TIME).map_err(|reason| AuditError::unusable(&path, reason))
    }

    /// Appends lines and removes the appended ones from `records`: all records of a chain or no record. Does
    /// not wait for the disk; see [`Unsynced::sync`].
    ///
    /// # Errors
    ///
    /// [`AuditError`] if the lines cannot be written, or if the end of the log was modified.
    pub(crate) fn append(&self, records: &mut Vec<Pending>) -> Result<Unsynced, AuditError> {
        let directory = self.state.make()?;
        // Locked until this is dropped.
        let _lock = Self::lock(directory)?;
        let (mut unsynced, mut failed) = (Unsynced::default(), None);
        for part in Part::ALL {
            let of_part = |record: &&Pending| record.event.part() == part;
            let added: Vec<_> = records.iter().filter(of_part).collect();
            // Without any records, this checks whether lines could be appended.
            if added.is_empty() && !(records.is_empty() && part == Part::Calls) {
                continue;
            }
            match self.append_to(directory, part, &added, &mut unsynced) {
                Ok(()) => records.retain(|record| record.event.part() != part),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(unsynced), Err)
    }

    /// Appends lines to one chain, all or none.
    fn append_to(
        &self,
        directory: &Path,
        part: Part,
        records: &[&Pending],
        unsynced: &mut Unsynced,
    ) -> Result<(), AuditError> {
        let mut head = writable_head(directory, part)?;
        let mut file = open_to_write(directory, part, &head)?;
        adopt(directory, part, &mut file, &mut head)?;
        let mut removed = None;
        if head.bytes >= self.size.file {
            head.file += 1;
            head.bytes = 0;
            file = open_to_write(directory, part, &head)?;
            adopt(directory, part, &mut file, &mut head)?;
            removed = leave_oldest(directory, part, &mut head, part.files(&self.size))?;
        }
        let (mut end, mut text) = (head.end(), String::new());
        if let Some(removed) = removed {
            Pending::new(AuditEvent::Removed(removed)).push(&mut end, &mut text);
        }
        records.iter().for_each(|record| record.push(&mut end, &mut text));
        let path = file_path(directory, part, head.file);
        write(&mut file, head.bytes, text.as_bytes()).map_err(AuditError::at(&path))?;
        head.bytes += text.len() as u64;
        head.set_end(end);
        unsynced.0.push((path, file));
        unsynced.0.push((Head::path(directory, part), head.write(directory, part)?));
        remove_before(directory, part, head.first)
    }
}

/// Returns the head to continue from. A chain without a head is new and must not have files.
fn writable_head(directory: &Path, part: Part) -> Result<Head, AuditError> {
    if let Some(head) = Head::read(directory, part)? {
        return Ok(head);
    }
    if !files(directory, part)?.is_empty() {
        return Err(Damage::NoHead { path: Head::path(directory, part) }.into());
    }
    let head = Head::new();
    head.write(directory, part)?;
    Ok(head)
}

/// Moves the start of the head past the oldest files if there are too many, and describes these
/// files.
///
/// Each of them is read once more, from the end of the previous file. So the head records the link
/// of the next file's first line, independent of that file's content.
fn leave_oldest(
    directory: &Path,
    part: Part,
    head: &mut Head,
    most: u64,
) -> Result<Option<RemovedEvent>, AuditError> {
    let first = (head.file + 1).saturating_sub(most);
    let mut removed = RemovedEvent::default();
    while head.first < first {
        let path = file_path(directory, part, head.first);
        let start = head.known_start();
        let mut reading = Reading::from(start);
        match open_to_read(&path) {
            Ok(file) => reading.read(file).map_err(AuditError::at(&path))?,
            Err(_) => (reading.end, reading.is_whole) = (None, false),
        }
        let Reading { lines, from, to, is_whole, end } = reading;
        removed.files += 1;
        removed.lines += lines;
        removed.from = removed.from.or(from);
        removed.to = to.or(removed.to);
        removed.damaged |= !is_whole;
        head.start = end.map(|tail| tail.end);
        head.first += 1;
    }
    Ok((removed.files > 0).then_some(removed))
}

/// The state of reading a file before it is removed.
struct Reading {
    lines: u64,
    from: Option<String>,
    to: Option<String>,
    is_whole: bool,
    /// The end of the chain. `None` if the file was modified.
    end: Option<Tail>,
}

impl Reading {
    /// Starts at a known end of the chain, or else at the link in the first line.
    fn from(start: Option<ChainEnd>) -> Self {
        Self { lines: 0, from: None, to: None, is_whole: true, end: start.map(Tail::new) }
    }

    fn read(&mut self, file: File) -> io::Result<()> {
        let mut lines = Lines::new(file);
        while let Some(line) = lines.next()? {
            if let Some(time) = time_of(&line.text) {
                self.from.get_or_insert_with(|| time.clone());
                self.to = Some(time);
            }
            if self.lines == 0 && self.end.is_none() {
                self.end = ChainEnd::before(&line.text).map(Tail::new);
            }
            self.lines += 1;
            if self.end.as_mut().is_some_and(|tail| tail.push(line).is_err()) {
                self.end = None;
            }
        }
        self.is_whole = self.end.as_ref().is_some_and(|tail| tail.torn.is_none());
        if !self.is_whole {
            self.end = None;
        }
        Ok(())
    }
}

/// Returns the time of a line, in the format of the log.
fn time_of(line: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Written {
        time: String,
    }
    let Written { time } = serde_json::from_slice(line).ok()?;
    let time = humantime::parse_rfc3339(&time).ok()?;
    Some(humantime::format_rfc3339_seconds(time).to_string())
}

/// Returns the path of a log file.
pub(crate) fn file_path(directory: &Path, part: Part, number: u64) -> PathBuf {
    directory.join(file_name(part, number))
}

fn file_name(part: Part, number: u64) -> String {
    format!("{}{number:06}.jsonl", part.prefix())
}

/// Returns the numbers of the existing files of a chain, in order.
pub(crate) fn files(directory: &Path, part: Part) -> Result<Vec<u64>, AuditError> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory).map_err(AuditError::at(directory))? {
        let name = entry.map_err(AuditError::at(directory))?.file_name();
        let text = name.to_string_lossy();
        let number = text.strip_prefix(part.prefix()).and_then(|it| it.strip_suffix(".jsonl"));
        let number = number.and_then(|number| number.parse::<u64>().ok());
        // Each number has one valid name.
        numbers.extend(number.filter(|number| *name == *file_name(part, *number)));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Opens the current file, or creates it if the chain has no bytes in it yet.
fn open_to_write(directory: &Path, part: Part, head: &Head) -> Result<File, AuditError> {
    let path = file_path(directory, part, head.file);
    let is_new = head.bytes == 0;
    match open(&path, OpenOptions::new().read(true).write(true).create(is_new)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_new => {
            Err(Damage::Removed { path, lines: None }.into())
        }
        file => checked(file, &path),
    }
}

/// Opens a log file for reading, with the same checks as for writing.
pub(crate) fn open_to_read(path: &Path) -> Result<File, AuditError> {
    checked(open(path, OpenOptions::new().read(true)), path)
}

/// Checks that only the user can access a log file.
fn checked(file: io::Result<File>, path: &Path) -> Result<File, AuditError> {
    let file = file.map_err(AuditError::at(path))?;
    let found = file.metadata().map_err(AuditError::at(path))?;
    check_file(&found, path).map_err(|reason| AuditError::unusable(path, reason))?;
    Ok(file)
}

/// Adopts lines after the head, and records this in separate lines: a process was stopped before it
/// wrote the head, or another program appended lines.
fn adopt(directory: &Path, part: Part, file: &mut File, head: &mut Head) -> Result<(), AuditError> {
    let path = file_path(directory, part, head.file);
    let length = file.metadata().map_err(AuditError::at(&path))?.len();
    if length == head.bytes {
        return Ok(());
    }
    if length < head.bytes {
        return Err(Damage::Cut { path, line: None, found: length, expected: head.bytes }.into());
    }
    file.seek(SeekFrom::Start(head.bytes)).map_err(AuditError::at(&path))?;
    let mut tail = Tail::new(head.end());
    let mut lines = Lines::new(&*file);
    while let Some(line) = lines.next().map_err(AuditError::at(&path))? {
        if tail.push(line).is_err() {
            return Err(Damage::Last { path }.into());
        }
    }
    let unrecorded = tail.end.lines - head.lines;
    let Tail { mut end, torn, ends_in_line } = tail;
    let mut text = String::new();
    if !ends_in_line {
        text.push('\n');
    }
    if let Some(torn) = torn {
        // The incomplete line remains, and the next line describes it.
        let record = Pending::new(AuditEvent::Torn { bytes: torn.len() as u64 });
        end.hash = ChainHash::of(&torn);
        record.push(&mut end, &mut text);
    }
    if unrecorded > 0 {
        let record = Pending::new(AuditEvent::Unrecorded { lines: unrecorded });
        record.push(&mut end, &mut text);
    }
    write(file, length, text.as_bytes()).map_err(AuditError::at(&path))?;
    head.bytes = length + text.len() as u64;
    head.set_end(end);
    Ok(())
}

/// The part of a chain after a known end.
#[derive(Debug)]
pub(crate) struct Tail {
    /// The current end of the chain.
    pub(crate) end: ChainEnd,
    /// The bytes after that, which are not a line of the chain.
    pub(crate) torn: Option<Vec<u8>>,
    /// True if the last line has a line ending.
    pub(crate) ends_in_line: bool,
}

impl Tail {
    pub(crate) fn new(end: ChainEnd) -> Self {
        Self { end, torn: None, ends_in_line: true }
    }

    /// Checks and adds the next line.
    ///
    /// # Errors
    ///
    /// If no process of kitbag can have written the line there.
    pub(crate) fn push(&mut self, line: Line) -> Result<(), NotNext> {
        let Line { text, is_whole } = line;
        self.ends_in_line = is_whole;
        match self.end.follow(&text, self.torn.as_deref()) {
            Ok(()) => self.torn = None,
            Err(NotNext::NotALine) if self.end.is_begun_by(&text, self.torn.as_deref()) => {
                match &mut self.torn {
                    None => self.torn = Some(text),
                    Some(torn) if torn.len() + text.len() < LINE_BYTES as usize => {
                        torn.push(b'\n');
                        torn.extend(text);
                    }
                    Some(_) => return Err(NotNext::NotALine),
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Writes at an offset, or truncates the file to that offset.
fn write(file: &mut File, at: u64, text: &[u8]) -> io::Result<()> {
    let written = file.seek(SeekFrom::Start(at)).and_then(|_| file.write_all(text));
    written.inspect_err(|_| {
        // For example on a full disk: the text is not part of the chain.
        let _ = file.set_len(at);
    })
}

fn remove_before(directory: &Path, part: Part, first: u64) -> Result<(), AuditError> {
    if first <= 1 {
        return Ok(());
    }
    for number in files(directory, part)?.into_iter().filter(|number| *number < first) {
        let path = file_path(directory, part, number);
        fs::remove_file(&path).map_err(AuditError::at(&path))?;
    }
    Ok(())
}

/// The longest line that is read, far longer than any line of kitbag.
const LINE_BYTES: u64 = 4 << 20;

/// Reads lines without interpreting them.
pub(crate) struct Lines<R> {
    reader: BufReader<R>,
}

/// A line without its line ending.
pub(crate) struct Line {
    pub(crate) text: Vec<u8>,
    /// True if the line has a line ending.
    pub(crate) is_whole: bool,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(64 << 10, reader) }
    }

    /// Returns the next line. A line that exceeds the limit is cut, so that it is not valid in a
    /// chain.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line>> {
        let mut text = Vec::new();
        let read = self.reader.by_ref().take(LINE_BYTES).read_until(b'\n', &mut text)?;
        if read == 0 {
            return Ok(None);
        }
        let is_whole = text.last() == Some(&b'\n');
        if is_whole {
            text.pop();
        }
        Ok(Some(Line { text, is_whole }))
    }
}
