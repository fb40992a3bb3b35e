//! The files of the log, and how lines are added.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use kitbag_state::{Lock, SharedState, check_file, open};

use crate::chain::{ChainHash, End, NotNext};
use crate::error::{AuditError, Damage};
use crate::head::Head;
use crate::record::AuditEvent;

/// How long a process waits for others that add lines. Each takes far less than a millisecond,
/// or is stopped.
const LOCK_TIME: Duration = Duration::from_secs(10);

/// How large the log may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditSize {
    /// The bytes of a file, after which a new one is begun.
    pub file: u64,
    /// How many files are kept; the oldest go.
    pub files: u64,
}

/// The log of a user. Nothing is looked at before it is used.
#[derive(Debug)]
pub struct AuditLog {
    state: SharedState,
    size: AuditSize,
}

/// An event that is to be added, and when it was.
#[derive(Debug)]
pub(crate) struct Pending {
    time: SystemTime,
    event: AuditEvent,
}

impl Pending {
    pub(crate) fn new(event: AuditEvent) -> Self {
        Self { time: SystemTime::now(), event }
    }

    /// Adds its line to a text. It is written here and not where the event was, so that no call
    /// waits for that.
    fn push(&self, end: &mut End, text: &mut String) {
        let record = serde_json::to_string(&self.event).expect("every key is a string");
        end.push(text, self.time, &record);
    }
}

impl Default for AuditSize {
    /// Eight files of 16 MiB.
    fn default() -> Self {
        Self { file: 16 << 20, files: 8 }
    }
}

impl AuditLog {
    /// The log in the state directory, whose path is absolute.
    pub fn new(state: &Path, size: AuditSize) -> Self {
        Self { state: SharedState::new(state, "audit"), size }
    }

    /// Where the chain ends. `None`: nothing was logged yet.
    ///
    /// # Errors
    ///
    /// [`AuditError`] where that cannot be read.
    pub fn head(&self) -> Result<Option<Head>, AuditError> {
        match self.directory()? {
            Some(directory) => {
                let _lock = Self::lock(directory)?;
                Head::read(directory)
            }
            None => Ok(None),
        }
    }

    /// The directory, where it is there.
    pub(crate) fn directory(&self) -> Result<Option<&Path>, AuditError> {
        Ok(self.state.find()?)
    }

    /// Locks the log for other processes and for those that read it whole.
    pub(crate) fn lock(directory: &Path) -> Result<Lock, AuditError> {
        let path = directory.join("lock");
        Lock::take(&path, LOCK_TIME).map_err(|reason| AuditError::unusable(&path, reason))
    }

    /// Adds lines, all of them or none. `is_synced` waits until they are on the disk.
    ///
    /// # Errors
    ///
    /// [`AuditError`] where they cannot be written, or the end of the log is not as it was
    /// written.
    pub(crate) fn append(&self, records: &[Pending], is_synced: bool) -> Result<(), AuditError> {
        let directory = self.state.make()?;
        // It is locked until this is dropped.
        let _lock = Self::lock(directory)?;
        let mut head = self.writable_head(directory)?;
        let mut file = open_to_write(directory, &head)?;
        adopt(directory, &mut file, &mut head)?;
        if head.bytes >= self.size.file {
            head.file += 1;
            head.bytes = 0;
            file = open_to_write(directory, &head)?;
            adopt(directory, &mut file, &mut head)?;
        }
        let (mut end, mut text) = (head.end(), String::new());
        records.iter().for_each(|record| record.push(&mut end, &mut text));
        let path = file_path(directory, head.file);
        write(&mut file, head.bytes, text.as_bytes(), is_synced).map_err(AuditError::at(&path))?;
        head.bytes += text.len() as u64;
        head.set_end(end);
        head.first = head.first.max((head.file + 1).saturating_sub(self.size.files.max(1)));
        head.write(directory, is_synced)?;
        remove_before(directory, head.first)
    }

    /// The head to write behind. A log without one is new, and so has no files.
    fn writable_head(&self, directory: &Path) -> Result<Head, AuditError> {
        if let Some(head) = Head::read(directory)? {
            return Ok(head);
        }
        if !files(directory)?.is_empty() {
            return Err(Damage::NoHead { path: Head::path(directory) }.into());
        }
        let head = Head::new();
        head.write(directory, false)?;
        Ok(head)
    }
}

/// Where a file of the log lies.
pub(crate) fn file_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(file_name(number))
}

fn file_name(number: u64) -> String {
    format!("audit-{number:06}.jsonl")
}

/// The numbers of the files that are there, in their order.
pub(crate) fn files(directory: &Path) -> Result<Vec<u64>, AuditError> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory).map_err(AuditError::at(directory))? {
        let name = entry.map_err(AuditError::at(directory))?.file_name();
        let text = name.to_string_lossy();
        let number = text.strip_prefix("audit-").and_then(|rest| rest.strip_suffix(".jsonl"));
        let number = number.and_then(|number| number.parse::<u64>().ok());
        // Each number has one name.
        numbers.extend(number.filter(|number| *name == *file_name(*number)));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Opens the file that lines are added to, which is made where the chain has none of it yet.
fn open_to_write(directory: &Path, head: &Head) -> Result<File, AuditError> {
    let path = file_path(directory, head.file);
    let is_new = head.bytes == 0;
    match open(&path, OpenOptions::new().read(true).write(true).create(is_new)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_new => {
            Err(Damage::Removed { path, lines: None }.into())
        }
        file => checked(file, &path),
    }
}

/// Opens a file of the log to read it, with the checks of the one that writes it.
pub(crate) fn open_to_read(path: &Path) -> Result<File, AuditError> {
    checked(open(path, OpenOptions::new().read(true)), path)
}

/// Looks whether a file of the log belongs to the user alone.
fn checked(file: io::Result<File>, path: &Path) -> Result<File, AuditError> {
    let file = file.map_err(AuditError::at(path))?;
    let found = file.metadata().map_err(AuditError::at(path))?;
    check_file(&found, path).map_err(|reason| AuditError::unusable(path, reason))?;
    Ok(file)
}

/// Takes in what stands behind the head, and says so in lines of its own: a process was stopped
/// before it wrote the head, or someone else has added lines.
fn adopt(directory: &Path, file: &mut File, head: &mut Head) -> Result<(), AuditError> {
    let path = file_path(directory, head.file);
    let length = file.metadata().map_err(AuditError::at(&path))?.len();
    if length == head.bytes {
        return Ok(());
    }
    if length < head.bytes {
        return Err(Damage::Cut { path, found: length, expected: head.bytes }.into());
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
        // What the process was writing stays, and what it is stands behind it.
        let record = Pending::new(AuditEvent::Torn { bytes: torn.len() as u64 });
        end.hash = ChainHash::of(&torn);
        record.push(&mut end, &mut text);
    }
    if unrecorded > 0 {
        let record = Pending::new(AuditEvent::Unrecorded { lines: unrecorded });
        record.push(&mut end, &mut text);
    }
    write(file, length, text.as_bytes(), false).map_err(AuditError::at(&path))?;
    head.bytes = length + text.len() as u64;
    head.set_end(end);
    Ok(())
}

/// What stands behind the end of a chain that is known.
pub(crate) struct Tail {
    /// Where the chain ends by now.
    pub(crate) end: End,
    /// What stands behind that and is not a line of the chain.
    pub(crate) torn: Option<Vec<u8>>,
    /// Whether the last line has an end.
    pub(crate) ends_in_line: bool,
}

impl Tail {
    pub(crate) fn new(end: End) -> Self {
        Self { end, torn: None, ends_in_line: true }
    }

    /// Goes over the next line.
    ///
    /// # Errors
    ///
    /// Where no process of kitbag's can have written it there.
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

/// Writes at a place, or leaves the file as long as that place.
fn write(file: &mut File, at: u64, text: &[u8], is_synced: bool) -> io::Result<()> {
    let written = file.seek(SeekFrom::Start(at)).and_then(|_| file.write_all(text));
    let written = written.and_then(|()| if is_synced { file.sync_data() } else { Ok(()) });
    written.inspect_err(|_| {
        // Such as on a full disk: none of it belongs to the chain.
        let _ = file.set_len(at);
    })
}

fn remove_before(directory: &Path, first: u64) -> Result<(), AuditError> {
    if first <= 1 {
        return Ok(());
    }
    for number in files(directory)?.into_iter().filter(|number| *number < first) {
        let path = file_path(directory, number);
        fs::remove_file(&path).map_err(AuditError::at(&path))?;
    }
    Ok(())
}

/// The longest line that is read: one of kitbag's has far less.
const LINE_BYTES: u64 = 4 << 20;

/// Reads lines as they are.
pub(crate) struct Lines<R> {
    reader: BufReader<R>,
}

/// A line without its end.
pub(crate) struct Line {
    pub(crate) text: Vec<u8>,
    /// Whether it has an end.
    pub(crate) is_whole: bool,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(64 << 10, reader) }
    }

    /// The next line. A longer one than any of kitbag's is cut, and so is none of a chain.
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
