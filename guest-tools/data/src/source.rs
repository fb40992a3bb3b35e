//! The documents that a call is about: a text of the arguments, or a file.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};

use kitbag_sdk::{Call, ErrorInfo};
use kitbag_workspace::{Location, explain};
use serde_json::Value;

use crate::document::{Document, Place};
use crate::format::Format;
use crate::read::csv::Rows;
use crate::read::{json, toml, yaml};

/// The largest document that is read whole, and the longest line.
const DOCUMENT_BYTES: u64 = 16 << 20;

/// The longest row of CSV, which its reader holds several times.
const ROW_BYTES: u64 = 4 << 20;

/// Where documents come from.
#[derive(Clone, Copy, Default)]
pub(crate) struct Source<'a> {
    pub(crate) path: Option<&'a str>,
    pub(crate) text: Option<&'a str>,
    /// The format, where the extension of the file does not say it.
    pub(crate) from: Option<Format>,
    /// What separates the cells of CSV, where it is not guessed.
    pub(crate) delimiter: Option<u8>,
}

/// A text that was read whole.
pub(crate) struct Loaded {
    name: String,
    text: String,
    format: Format,
}

impl<'a> Source<'a> {
    /// A file whose extension says its format.
    pub(crate) fn file(path: &'a str) -> Self {
        Self { path: Some(path), ..Self::default() }
    }

    /// The format of the documents.
    pub(crate) fn format(self) -> Format {
        self.from.unwrap_or_else(|| self.path.map_or(Format::Json, Format::of))
    }

    /// What it is called in errors.
    pub(crate) fn name(self) -> String {
        self.path.map_or_else(|| "`text`".to_owned(), |path| format!("`{path}`"))
    }

    /// Reads a text whole, which has no rows.
    pub(crate) fn load(self, call: &Call) -> Result<Loaded, ErrorInfo> {
        let text = match (self.path, self.text) {
            (None, Some(text)) => text.to_owned(),
            (Some(path), None) => utf8(read_all(open(call, path)?, path)?, path)?,
            _ => return Err(neither()),
        };
        Ok(Loaded { name: self.name(), text, format: self.format() })
    }

    /// Reads one value: of several documents or rows an array.
    pub(crate) fn read(self, call: &Call) -> Result<Value, ErrorInfo> {
        let mut values = Vec::new();
        if self.format().has_rows() {
            self.rows(call, &mut |row| {
                values.push(row.value);
                Ok(true)
            })?;
            return Ok(Value::Array(values));
        }
        self.load(call)?.documents(&mut |document| {
            values.push(document.value);
            Ok(true)
        })?;
        Ok(if values.len() == 1 { values.remove(0) } else { Value::Array(values) })
    }

    /// Reads each document or row. `visit` says whether it wants more.
    pub(crate) fn each(
        self,
        call: &Call,
        visit: &mut dyn FnMut(Document<'_>) -> Result<bool, ErrorInfo>,
    ) -> Result<(), ErrorInfo> {
        match self.format().has_rows() {
            true => self.rows(call, visit),
            false => self.load(call)?.documents(visit),
        }
    }

    /// Reads a format that has rows, one by one: the text may be of any length. `visit` says
    /// whether it wants more.
    pub(crate) fn rows(
        self,
        call: &Call,
        visit: &mut dyn FnMut(Document<'_>) -> Result<bool, ErrorInfo>,
    ) -> Result<(), ErrorInfo> {
        match (self.path, self.text) {
            (None, Some(text)) => self.rows_of(call, Cursor::new(text), visit),
            (Some(path), None) => {
                let file = BufReader::with_capacity(64 << 10, open(call, path)?);
                self.rows_of(call, file, visit)
            }
            _ => Err(neither()),
        }
    }

    fn rows_of(
        self,
        call: &Call,
        reader: impl BufRead,
        visit: &mut dyn FnMut(Document<'_>) -> Result<bool, ErrorInfo>,
    ) -> Result<(), ErrorInfo> {
        match self.format() {
            Format::Csv => self.csv(reader, visit),
            _ => self.lines(call, reader, visit),
        }
    }

    fn csv(
        self,
        reader: impl BufRead,
        visit: &mut dyn FnMut(Document<'_>) -> Result<bool, ErrorInfo>,
    ) -> Result<(), ErrorInfo> {
        let name = self.name();
        let is_tsv = self.path.is_some_and(|path| path.to_ascii_lowercase().ends_with(".tsv"));
        let delimiter = self.delimiter.or(is_tsv.then_some(b'\t'));
        let mut rows = Rows::new(reader, delimiter, ROW_BYTES).map_err(|it| it.error(&name))?;
        while let Some((line, value)) = rows.next().map_err(|it| it.error(&name))? {
            let name = format!("line {line} of {name}");
            if !visit(Document { name, value, place: Place::Row { line } })? {
                break;
            }
        }
        Ok(())
    }

    fn lines(
        self,
        call: &Call,
        mut reader: impl BufRead,
        visit: &mut dyn FnMut(Document<'_>) -> Result<bool, ErrorInfo>,
    ) -> Result<(), ErrorInfo> {
        let path = self.path.unwrap_or("text");
        let mut number = 0;
        loop {
            number += 1;
            let mut line = Vec::new();
            let mut limited = (&mut reader).take(DOCUMENT_BYTES);
            let read = limited.read_until(b'\n', &mut line);
            let read = read.map_err(|error| failed(call, path, &error))?;
            let name = format!("line {number} of {}", self.name());
            if read as u64 == DOCUMENT_BYTES {
                return Err(too_large(&name));
            }
            if read == 0 {
                return Ok(());
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            let text = utf8(line, path)?;
            let value = json::read(&text, number).map_err(|mistake| mistake.error(&name))?;
            let place = Place::Json { text: &text, first_line: number };
            if !visit(Document { name, value, place })? {
                return Ok(());
            }
        }
    }
}

impl Loaded {
    /// Reads each document: more than one there are in YAML only. `visit` says whether it
    /// wants more.
    pub(crate) fn documents<'a>(
        &'a self,
        visit: &mut dyn FnMut(Document<'a>) -> Result<bool, ErrorInfo>,
    ) -> Result<(), ErrorInfo> {
        let Self { name, text, format } = self;
        let mut visit = |value, place| visit(Document { name: name.clone(), value, place });
        match format {
            Format::Yaml => {
                let mut documents = yaml::Documents::new(text);
                let mut number = 0;
                while let Some(value) = documents.next().map_err(|it| it.error(name))? {
                    if !visit(value, Place::Yaml { text, number })? {
                        return Ok(());
                    }
                    number += 1;
                }
                match number {
                    // A file without content.
                    0 => visit(Value::Null, Place::Yaml { text, number }).map(drop),
                    _ => Ok(()),
                }
            }
            Format::Toml => {
                let value = toml::read(text).map_err(|it| it.error(name))?;
                visit(value, Place::Toml { text }).map(drop)
            }
            _ => {
                let value = json::read(text, 1).map_err(|it| it.error(name))?;
                visit(value, Place::Json { text, first_line: 1 }).map(drop)
            }
        }
    }
}

/// Opens a file of the arguments.
fn open(call: &Call, path: &str) -> Result<File, ErrorInfo> {
    let location = Location::new(call, path)?;
    File::open(&location.path).map_err(|error| explain(&location, "read", &error))
}

/// Reads a file that is not too large.
fn read_all(file: File, path: &str) -> Result<Vec<u8>, ErrorInfo> {
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

fn neither() -> ErrorInfo {
    ErrorInfo::new("give either `path` or `text`")
}

fn failed(call: &Call, path: &str, error: &std::io::Error) -> ErrorInfo {
    match Location::new(call, path) {
        Ok(location) => explain(&location, "read", error),
        Err(error) => error,
    }
}

fn too_large(name: &str) -> ErrorInfo {
    ErrorInfo::new(format!(
        "{name} has more than 16 MiB; only JSON Lines (`.jsonl`) and CSV are read row by row"
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
