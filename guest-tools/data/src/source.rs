//! The document that a call is about: a text of the arguments, or a file.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use kitbag_sdk::{Call, ErrorInfo};
use kitbag_workspace::{Location, explain};
use serde_json::Value;

use crate::pointer;

/// The largest document that is read whole, and the longest line of JSON Lines.
const DOCUMENT_BYTES: u64 = 16 << 20;

/// Where a document comes from.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) path: Option<&'a str>,
    pub(crate) text: Option<&'a str>,
}

/// A text and what it is called in errors.
pub(crate) struct Text {
    pub(crate) name: String,
    pub(crate) text: String,
    /// The line of its file with which it begins, from 1.
    pub(crate) first_line: usize,
}

impl Text {
    /// The value that it is.
    ///
    /// # Errors
    ///
    /// What is wrong, with the line, the column and the pointer.
    pub(crate) fn json(&self) -> Result<Value, ErrorInfo> {
        serde_json::from_str(&self.text).map_err(|error| {
            let offset = pointer::offset(&self.text, error.line(), error.column());
            let (line, column) = pointer::line_and_column(&self.text, offset);
            let at = pointer::at(&self.text, offset);
            let what = error.to_string();
            let end = format!(" at line {} column {}", error.line(), error.column());
            let what = what.strip_suffix(&end).unwrap_or(&what);
            let (name, line) = (&self.name, self.first_line + line - 1);
            ErrorInfo::new(format!(
                "{name} is not JSON: {what} (line {line}, column {column}, in `{at}`)"
            ))
        })
    }
}

impl Source<'_> {
    /// Reads the whole document.
    pub(crate) fn read(self, call: &Call, what: &str) -> Result<Text, ErrorInfo> {
        match (self.path, self.text) {
            (None, Some(text)) => {
                Ok(Text { name: format!("`{what}`"), text: text.to_owned(), first_line: 1 })
            }
            (Some(path), None) => {
                let bytes = read_all(open(call, path)?, path)?;
                Ok(Text { name: format!("`{path}`"), text: utf8(bytes, path)?, first_line: 1 })
            }
            _ => Err(ErrorInfo::new(format!("give either `path` or `{what}`"))),
        }
    }

    /// Reads line by line where the file is one of JSON Lines, else the whole. `visit` says
    /// whether it wants more.
    pub(crate) fn each(
        self,
        call: &Call,
        visit: &mut dyn FnMut(&Text) -> Result<bool, ErrorInfo>,
    ) -> Result<(), ErrorInfo> {
        let lines = self.path.filter(|path| is_json_lines(path));
        let Some(path) = lines else {
            return visit(&self.read(call, "text")?).map(drop);
        };
        let mut reader = BufReader::with_capacity(64 << 10, open(call, path)?);
        let mut number = 0;
        loop {
            number += 1;
            let mut line = Vec::new();
            let mut limited = (&mut reader).take(DOCUMENT_BYTES);
            let read = limited.read_until(b'\n', &mut line);
            let read = read.map_err(|error| failed(call, path, &error))?;
            if read as u64 == DOCUMENT_BYTES {
                return Err(too_large(&format!("line {number} of `{path}`")));
            }
            if read == 0 {
                return Ok(());
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            let name = format!("line {number} of `{path}`");
            if !visit(&Text { name, text: utf8(line, path)?, first_line: number })? {
                return Ok(());
            }
        }
    }
}

/// Whether each line of a file is a document, by its name.
fn is_json_lines(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    matches!(extension.as_deref(), Some("jsonl" | "ndjson" | "jsonlines"))
}

/// Opens a file of the arguments.
pub(crate) fn open(call: &Call, path: &str) -> Result<File, ErrorInfo> {
    let location = Location::new(call, path)?;
    File::open(&location.path).map_err(|error| explain(&location, "read", &error))
}

/// Reads a file that is not too large.
pub(crate) fn read_all(file: File, path: &str) -> Result<Vec<u8>, ErrorInfo> {
    let failed = |error| ErrorInfo::new(format!("`{path}` cannot be read: {error}"));
    let size = file.metadata().map_err(failed)?.len();
    if size > DOCUMENT_BYTES {
        return Err(too_large(&format!("`{path}`")));
    }
    // Growing would take up to three times as much.
    let mut bytes = Vec::with_capacity(size as usize + 1);
    file.take(DOCUMENT_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    match bytes.len() as u64 > DOCUMENT_BYTES {
        true => Err(too_large(&format!("`{path}`"))),
        false => Ok(bytes),
    }
}

fn failed(call: &Call, path: &str, error: &std::io::Error) -> ErrorInfo {
    match Location::new(call, path) {
        Ok(location) => explain(&location, "read", error),
        Err(error) => error,
    }
}

fn too_large(name: &str) -> ErrorInfo {
    ErrorInfo::new(format!(
        "{name} has more than 16 MiB; only JSON Lines (`.jsonl`) are read line by line"
    ))
}

fn utf8(bytes: Vec<u8>, path: &str) -> Result<String, ErrorInfo> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        ErrorInfo::new(format!("`{path}` is not UTF-8 from byte {at} on"))
    })?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}
