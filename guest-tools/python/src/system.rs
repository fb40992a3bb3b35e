//! Files as a script sees them: errors in Python's words, directories without secrets, encodings.

use std::fs;
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;

use kitbag_workspace::{Decoded, Encoding, Kind, Location, decode, explain, list, stat};

use crate::state;

/// The largest file whose encoding is detected. A larger one is read as UTF-8.
const DETECTED_BYTES: u64 = 16 << 20;

/// An error of the system in Python's words: the name of the exception, its number, its message.
pub(crate) struct OsProblem {
    pub(crate) exception: &'static str,
    pub(crate) number: i32,
    pub(crate) message: String,
}

/// Explains why an operation on a path failed. `verb` is a participle, `code` the number of the
/// system's error.
pub(crate) fn problem(path: &str, verb: &str, code: i32) -> OsProblem {
    let location = locate(path);
    let error = io::Error::from_raw_os_error(code);
    let of = |exception, number, message: &str| OsProblem {
        exception,
        number,
        message: message.to_owned(),
    };
    match error.kind() {
        ErrorKind::NotFound if kitbag_workspace::is_granted(&location) => {
            of("FileNotFoundError", 2, "No such file or directory")
        }
        ErrorKind::AlreadyExists => of("FileExistsError", 17, "File exists"),
        ErrorKind::NotADirectory => of("NotADirectoryError", 20, "Not a directory"),
        ErrorKind::IsADirectory => of("IsADirectoryError", 21, "Is a directory"),
        ErrorKind::InvalidFilename => of("OSError", 36, "File name too long"),
        kind => {
            let explained = explain(&location, verb, &error).message;
            let subject = format!("`{path}` cannot be {verb}: ");
            let reason = explained.strip_prefix(&subject).unwrap_or(&explained);
            match kind {
                ErrorKind::NotFound | ErrorKind::PermissionDenied => {
                    of("PermissionError", 13, reason)
                }
                _ => of("OSError", 5, reason),
            }
        }
    }
}

/// Returns true if a path is in a granted directory.
pub(crate) fn is_granted(path: &str) -> bool {
    kitbag_workspace::is_granted(&locate(path))
}

/// Returns the entries of a directory by name, each with its type. Names that are not Unicode or
/// look like secrets are omitted.
///
/// # Errors
///
/// The number of the system's error.
pub(crate) fn entries(path: &str) -> Result<Vec<(String, &'static str)>, i32> {
    let mut entries = Vec::new();
    let visit = |name: &str, kind: Kind| {
        let kind = match kind {
            Kind::File => "file",
            Kind::Directory => "directory",
            Kind::Link => "link",
            Kind::Secret => return ControlFlow::Continue(()),
            Kind::Other => "other",
        };
        entries.push((name.to_owned(), kind));
        ControlFlow::Continue(())
    };
    list(&locate(path).path, visit).map_err(|error| error.raw_os_error().unwrap_or_default())?;
    entries.sort();
    Ok(entries)
}

/// Returns Python's names of the encoding of a text file and of the handler of errors in it. An
/// encoding that is not UTF-8 is noted for the answer.
pub(crate) fn encoding(path: &str) -> (&'static str, &'static str) {
    const UTF_8: (&str, &str) = ("utf-8", "strict");
    let location = locate(path);
    if !stat(&location.path).is_ok_and(|it| it.kind == Kind::File && it.size <= DETECTED_BYTES) {
        return UTF_8;
    }
    let Ok(content) = fs::read(&location.path) else { return UTF_8 };
    // Python itself reports content that is not text.
    let Ok(Decoded { encoding, .. }) = decode(content) else { return UTF_8 };
    let names = match encoding {
        Encoding::Utf8 { has_invalid: false, mark: false } => return UTF_8,
        Encoding::Utf8 { has_invalid: false, mark: true } => return ("utf-8-sig", "strict"),
        Encoding::Utf8 { has_invalid: true, .. } => ("utf-8", "replace"),
        Encoding::Utf16 { mark: true, .. } => ("utf-16", "replace"),
        Encoding::Utf16 { big_endian: true, .. } => ("utf-16-be", "replace"),
        Encoding::Utf16 { big_endian: false, .. } => ("utf-16-le", "replace"),
        Encoding::Latin1 => ("cp1252", "replace"),
    };
    state::with(|state| state.assumed.insert(path.to_owned(), encoding));
    names
}

/// Returns the absolute path that a script means, without `.` and `..`.
fn locate(given: &str) -> Location {
    let path = match given.starts_with('/') {
        true => given.to_owned(),
        false => format!("{}/{given}", state::with(|state| state.root.clone())),
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
