//! System requests of a script: files, variables, the time.
//!
//! The guest's own file system answers, which holds what the tool is granted and nothing
//! else. A script reads it: where it is run again with an answer to a question, what it has
//! changed would be changed twice, so that only tools change something. Paths are as in Python, relative to the directory that the call works in.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::ops::ControlFlow;
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Datelike, FixedOffset, Timelike, Utc};
use kitbag_sdk::Call;
use kitbag_workspace::{
    Decoded, Encoding, Kind, Location, decode, explain, is_granted, list, stat, stat_link,
};
use monty_types::{
    ExcType, ExtFunctionResult, FileMode, MontyDate, MontyDateTime, MontyException,
    MontyFileHandle, MontyObject, MontyTimeZone, OsFunctionCall, StringRepr, UnicodeErrorData,
    dir_stat, file_stat, unicode_decode_error_msg, utf8_error_reason,
};

/// The hint after an error about changing files.
const THROUGH_TOOLS: &str = "a script changes files by tools alone, such as \
                             `write_file(path=…, content=…)`, which the user turns on with \
                             `[toolsets] write = true`";

/// The system as one call sees it.
pub(crate) struct System {
    /// The directory that relative paths start from.
    root: String,
    /// The files that were not read as UTF-8, each with its encoding.
    assumed: RefCell<BTreeMap<String, Encoding>>,
}

type Answer = Result<MontyObject, MontyException>;

impl System {
    pub(crate) fn new(call: &Call) -> Self {
        Self { root: call.root().to_owned(), assumed: RefCell::default() }
    }

    /// Does what a script asks for.
    pub(crate) fn answer(&self, call: OsFunctionCall) -> ExtFunctionResult {
        match self.perform(call) {
            Ok(value) => ExtFunctionResult::Return(value),
            Err(exception) => ExtFunctionResult::Error(exception),
        }
    }

    fn perform(&self, call: OsFunctionCall) -> Answer {
        let has_nul = |path: Option<&str>| path.is_some_and(|path| path.contains('\0'));
        let (source, target) = (call.fs_primary_path(), call.rename_destination());
        if has_nul(source) || has_nul(target) {
            if call.is_existence_check() {
                return Ok(MontyObject::Bool(false));
            }
            let message = call.embedded_null_message(!has_nul(source));
            return Err(MontyException::new(ExcType::ValueError, Some(message.to_owned())));
        }
        match call {
            OsFunctionCall::Exists(path) => Ok(MontyObject::Bool(self.kind(&path).is_some())),
            OsFunctionCall::IsFile(path) => {
                Ok(MontyObject::Bool(self.kind(&path) == Some(Kind::File)))
            }
            OsFunctionCall::IsDir(path) => {
                Ok(MontyObject::Bool(self.kind(&path) == Some(Kind::Directory)))
            }
            OsFunctionCall::IsSymlink(path) => {
                let found = stat_link(&self.locate(&path).path);
                Ok(MontyObject::Bool(found.is_ok_and(|it| it.kind == Kind::Link)))
            }
            OsFunctionCall::ReadText(path) => {
                let content = self.read(&path)?;
                self.text(&path, content).map(MontyObject::String)
            }
            OsFunctionCall::ReadBytes(path) => self.read(&path).map(MontyObject::Bytes),
            OsFunctionCall::Stat(path) => self.stat(&path),
            OsFunctionCall::Iterdir(path) => self.entries(&path),
            // There is no working directory but the root, and a link stays a link.
            OsFunctionCall::Resolve(path) | OsFunctionCall::Absolute(path) => {
                Ok(MontyObject::Path(self.locate(&path).path))
            }
            OsFunctionCall::Open(it) => self.open(it.path.into_string(), it.mode),
            OsFunctionCall::WriteText(it) => Err(refused(&it.path)),
            OsFunctionCall::AppendText(it) => Err(refused(&it.path)),
            OsFunctionCall::WriteBytes(it) => Err(refused(&it.path)),
            OsFunctionCall::AppendBytes(it) => Err(refused(&it.path)),
            OsFunctionCall::Mkdir(it) => self.make_directory(&it.path, it.exist_ok),
            OsFunctionCall::Unlink(path) | OsFunctionCall::Rmdir(path) => Err(refused(&path)),
            OsFunctionCall::Rename(it) => Err(refused(&it.src)),
            OsFunctionCall::Getenv(it) => {
                let found = variables().find(|(name, _)| *name == it.key);
                Ok(found.map_or(it.default, |(_, value)| MontyObject::String(value)))
            }
            OsFunctionCall::GetEnviron => {
                let text = MontyObject::String;
                let pairs = variables().map(|(name, value)| (text(name), text(value)));
                Ok(MontyObject::dict(pairs.collect::<Vec<_>>()))
            }
            OsFunctionCall::DateToday => {
                let now = now();
                Ok(MontyObject::Date(MontyDate {
                    year: now.year(),
                    month: now.month() as u8,
                    day: now.day() as u8,
                }))
            }
            OsFunctionCall::DateTimeNow(zone) => Ok(MontyObject::DateTime(now_in(zone))),
        }
    }

    /// The path that a script means: absolute, without `.` and `..`.
    fn locate(&self, given: &str) -> Location {
        let path = match given.starts_with('/') {
            true => given.to_owned(),
            false => format!("{}/{given}", self.root),
        };
        let mut names = Vec::new();
        for name in path.split('/') {
            match name {
                "" | "." => {}
                ".." => drop(names.pop()),
                name => names.push(name),
            }
        }
        Location { given: given.to_owned(), path: format!("/{}", names.join("/")) }
    }

    /// Returns the type of a path's target; `None` if it does not exist or is not visible.
    fn kind(&self, path: &str) -> Option<Kind> {
        stat(&self.locate(path).path).ok().map(|it| it.kind)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, MontyException> {
        let location = self.locate(path);
        let mut content = Vec::new();
        File::open(&location.path)
            .and_then(|mut file| file.read_to_end(&mut content))
            .map_err(|error| failed(&location, "read", &error))?;
        Ok(content)
    }

    /// Decodes a file as `read_file` does. Binary content fails as in Python.
    fn text(&self, path: &str, content: Vec<u8>) -> Result<String, MontyException> {
        let content = match decode(content) {
            Ok(Decoded { text, encoding }) => {
                if !matches!(encoding, Encoding::Utf8 { has_invalid: false, .. }) {
                    self.assumed.borrow_mut().insert(path.to_owned(), encoding);
                }
                return Ok(text);
            }
            Err(content) => content,
        };
        String::from_utf8(content).map_err(|error| {
            let (wrong, content) = (error.utf8_error(), error.as_bytes());
            let start = wrong.valid_up_to();
            let end = wrong.error_len().map_or(content.len(), |length| start + length);
            let reason = utf8_error_reason(content[start], wrong.error_len());
            let message = unicode_decode_error_msg("utf-8", content[start], start, end, reason);
            MontyException::new(ExcType::UnicodeDecodeError, Some(message))
                .with_data(UnicodeErrorData::decode("utf-8", content, start, end, reason))
        })
    }

    /// The assumptions about files, a line for each.
    pub(crate) fn notes(&self) -> String {
        let line = |(path, encoding): (&String, &Encoding)| format!("[`{path}` is {encoding}]\n");
        self.assumed.borrow().iter().map(line).collect()
    }

    /// Looks whether a file is there that is to be read. Each later use opens it again.
    fn open(&self, path: String, mode: FileMode) -> Answer {
        if !matches!(mode, FileMode::Read(_)) {
            return Err(refused(&path));
        }
        let location = self.locate(&path);
        let is_directory = |_: File| match stat(&location.path) {
            Ok(found) if found.kind == Kind::Directory => Err(ErrorKind::IsADirectory.into()),
            _ => Ok(()),
        };
        File::open(&location.path)
            .and_then(is_directory)
            .map_err(|error| failed(&location, "opened", &error))?;
        Ok(MontyObject::FileHandle(MontyFileHandle { path, mode, position: 0 }))
    }

    fn stat(&self, path: &str) -> Answer {
        let location = self.locate(path);
        let found = stat(&location.path).map_err(|error| failed(&location, "looked at", &error))?;
        let modified = found.modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let modified = modified.unwrap_or_default().as_secs_f64();
        Ok(match found.kind {
            Kind::Directory => dir_stat(0o755, modified),
            _ => file_stat(0o644, i64::try_from(found.size).unwrap_or(i64::MAX), modified),
        })
    }

    /// The entries of a directory, by name, but for those whose names are not Unicode or look
    /// like secrets.
    fn entries(&self, path: &str) -> Answer {
        let location = self.locate(path);
        let mut names = Vec::new();
        list(&location.path, |name, kind| {
            if kind != Kind::Secret {
                names.push(name.to_owned());
            }
            ControlFlow::Continue(())
        })
        .map_err(|error| failed(&location, "listed", &error))?;
        names.sort();
        let prefix = match path {
            "." => String::new(),
            path => format!("{}/", path.trim_end_matches('/')),
        };
        let entry = |name| MontyObject::Path(format!("{prefix}{name}"));
        Ok(MontyObject::List(names.into_iter().map(entry).collect()))
    }

    fn make_directory(&self, path: &str, exist_ok: bool) -> Answer {
        match self.kind(path) {
            Some(Kind::Directory) if exist_ok => Ok(MontyObject::None),
            _ => Err(refused(path)),
        }
    }
}

/// The exception for what would change files.
fn refused(path: &str) -> MontyException {
    let message = format!("[Errno 13] Permission denied: {}: {THROUGH_TOOLS}", StringRepr(path));
    MontyException::new(ExcType::PermissionError, Some(message))
}

/// Creates the exception that Python raises, with its number and message. If access is denied, the
/// granted paths follow.
fn failed(location: &Location, verb: &str, error: &io::Error) -> MontyException {
    let words = |number: u32, words: &str| {
        format!("[Errno {number}] {words}: {}", StringRepr(&location.given))
    };
    let (kind, message) = match error.kind() {
        ErrorKind::NotFound if is_granted(location) => {
            (ExcType::FileNotFoundError, words(2, "No such file or directory"))
        }
        ErrorKind::AlreadyExists => (ExcType::FileExistsError, words(17, "File exists")),
        ErrorKind::NotADirectory => (ExcType::NotADirectoryError, words(20, "Not a directory")),
        ErrorKind::IsADirectory => (ExcType::IsADirectoryError, words(21, "Is a directory")),
        ErrorKind::DirectoryNotEmpty => (ExcType::OSError, words(39, "Directory not empty")),
        ErrorKind::OutOfMemory => (ExcType::MemoryError, words(12, "Cannot allocate memory")),
        ErrorKind::InvalidFilename => (ExcType::OSError, words(36, "File name too long")),
        kind => {
            let explained = explain(location, verb, error).message;
            let subject = format!("`{}` cannot be {verb}: ", location.given);
            let why = explained.strip_prefix(&subject).unwrap_or(&explained);
            match kind {
                ErrorKind::NotFound | ErrorKind::PermissionDenied => {
                    let denied = words(13, "Permission denied");
                    (ExcType::PermissionError, format!("{denied}: {why}"))
                }
                _ => (ExcType::OSError, explained),
            }
        }
    };
    MontyException::new(kind, Some(message))
}

/// The variables that are granted.
fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// The time. A call knows no zone but UTC.
fn now() -> DateTime<Utc> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let micros = i64::try_from(now.as_micros()).unwrap_or_default();
    DateTime::from_timestamp_micros(micros).unwrap_or_default()
}

/// Returns the time in a zone, or in UTC without one.
fn now_in(zone: Option<MontyTimeZone>) -> MontyDateTime {
    let offset = zone.as_ref().and_then(|zone| FixedOffset::east_opt(zone.offset_seconds));
    let local = match offset {
        Some(offset) => now().with_timezone(&offset).naive_local(),
        None => now().naive_utc(),
    };
    let (offset_seconds, timezone_name) = match zone {
        Some(zone) => (Some(zone.offset_seconds), zone.name),
        None => (None, None),
    };
    MontyDateTime {
        year: local.year(),
        month: local.month() as u8,
        day: local.day() as u8,
        hour: local.hour() as u8,
        minute: local.minute() as u8,
        second: local.second() as u8,
        microsecond: local.nanosecond() / 1_000 % 1_000_000,
        offset_seconds,
        timezone_name,
    }
}
