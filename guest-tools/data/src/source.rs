//! The documents of a call: text in the arguments, or a file.

use std::fs::File;
use std::io::{BufRead, Cursor, Read};
use std::{fmt, mem};

use kitbag_sdk::{Call, ErrorInfo};
use kitbag_workspace::{Encoding, Location, Transcoder, decode, explain};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::document::{Document, SourceText};
use crate::excerpt;
use crate::format::Format;
use crate::jq;
use crate::mistake::Mistake;
use crate::notes::Notes;
use crate::read::csv::Rows;
use crate::read::{dialects, toml, yaml};

/// Maximum size of a document that is read as a whole, and of a line.
const DOCUMENT_BYTES: u64 = 16 << 20;

/// Maximum size of a CSV row.
const ROW_BYTES: usize = 4 << 20;

/// The source of documents.
#[derive(Clone, Copy, Default)]
pub(crate) struct Source<'a> {
    pub(crate) path: Option<&'a str>,
    pub(crate) text: Option<&'a str>,
    /// The format, unless the extension of the file determines it.
    pub(crate) from: Option<Format>,
    /// The delimiter of CSV cells, if it is not guessed.
    pub(crate) delimiter: Option<u8>,
}

/// The name of a document or row in errors.
pub(crate) struct Name<'a> {
    /// The line of a row.
    line: Option<usize>,
    source: &'a str,
}

/// A function that is called with each document or row. It returns whether it wants more.
enum Visit<'a> {
    Documents(&'a mut dyn FnMut(Document<'_>) -> Result<bool, ErrorInfo>),
    /// With the path of the file.
    Inputs(Option<&'a str>, &'a mut dyn FnMut(&Name<'_>, jq::Input<'_>) -> Result<bool, ErrorInfo>),
}

/// Text that was read as a whole.
pub(crate) struct Loaded {
    name: String,
    text: String,
    format: Format,
}

impl<'a> Source<'a> {
    /// Creates a source for a file whose extension determines the format.
    pub(crate) fn file(path: &'a str) -> Self {
        Self { path: Some(path), ..Self::default() }
    }

    /// Returns the format of the documents.
    pub(crate) fn format(self) -> Format {
        self.from.unwrap_or_else(|| self.path.map_or(Format::Json, Format::of))
    }

    /// Returns the name for errors.
    pub(crate) fn name(self) -> String {
        self.path.map_or_else(|| "`text`".to_owned(), |path| format!("`{}`", excerpt::value(path)))
    }

    /// Reads a text without rows as a whole.
    pub(crate) fn load(self, call: &Call, notes: &mut Notes) -> Result<Loaded, ErrorInfo> {
        let name = self.name();
        let text = match (self.path, self.text) {
            (None, Some(text)) => text.strip_prefix('\u{feff}').unwrap_or(text).to_owned(),
            (Some(path), None) => {
                let (text, encoding) = read_all(open(call, path)?, path)?;
                note_encoding(notes, &name, encoding);
                text
            }
            _ => return Err(neither()),
        };
        Ok(Loaded { name, text, format: self.format() })
    }

    /// Reads one value. Several documents or rows become an array.
    pub(crate) fn read(self, call: &Call, notes: &mut Notes) -> Result<Value, ErrorInfo> {
        let mut values = Vec::new();
        self.each(call, notes, &mut |document| {
            values.push(document.value);
            Ok(true)
        })?;
        let is_one = values.len() == 1 && !self.format().has_rows();
        Ok(if is_one { values.remove(0) } else { Value::Array(values) })
    }

    /// Reads each document or row. `visit` returns whether it wants more.
    pub(crate) fn each(
        self,
        call: &Call,
        notes: &mut Notes,
        visit: &mut dyn FnMut(Document<'_>) -> Result<bool, ErrorInfo>,
    ) -> Result<(), ErrorInfo> {
        match self.format().has_rows() {
            true => self.rows(call, notes, visit),
            false => self.load(call, notes)?.documents(notes, visit),
        }
    }

    /// Reads each document or row as an input of jq. Rows are not converted to documents, which
    /// takes most of the time for long files. `visit` returns whether it wants more.
    pub(crate) fn inputs(
        self,
        call: &Call,
        notes: &mut Notes,
        visit: &mut dyn FnMut(&Name<'_>, jq::Input<'_>) -> Result<bool, ErrorInfo>,
    ) -> Result<(), ErrorInfo> {
        match self.format().has_rows() {
            true => self.visit_rows(call, notes, &mut Visit::Inputs(self.path, visit)),
            false => {
                let mut visit = Visit::Inputs(self.path, visit);
                self.load(call, notes)?.documents(notes, &mut |document| visit.document(document))
            }
        }
    }

    /// Reads a format with rows one row at a time: the text may have any length. `visit` returns
    /// whether it wants more.
    pub(crate) fn rows(
        self,
        call: &Call,
        notes: &mut Notes,
        visit: &mut dyn FnMut(Document<'_>) -> Result<bool, ErrorInfo>,
    ) -> Result<(), ErrorInfo> {
        self.visit_rows(call, notes, &mut Visit::Documents(visit))
    }

    fn visit_rows(
        self,
        call: &Call,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Result<(), ErrorInfo> {
        let path = match (self.path, self.text) {
            (None, Some(text)) => {
                let text = text.strip_prefix('\u{feff}').unwrap_or(text);
                return self.rows_of(call, Cursor::new(text), notes, visit);
            }
            (Some(path), None) => path,
            _ => return Err(neither()),
        };
        let file = open(call, path)?;
        // If the file is read as a whole, its encoding is known for sure.
        if file.metadata().is_ok_and(|it| it.len() <= DOCUMENT_BYTES) {
            let (text, encoding) = read_all(file, path)?;
            note_encoding(notes, &self.name(), encoding);
            return self.rows_of(call, Cursor::new(text), notes, visit);
        }
        let mut reader = Transcoder::new(file);
        self.rows_of(call, &mut reader, notes, visit)?;
        note_encoding(notes, &self.name(), reader.encoding());
        Ok(())
    }

    fn rows_of(
        self,
        call: &Call,
        reader: impl BufRead,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Result<(), ErrorInfo> {
        match self.format() {
            Format::Csv => self.csv(reader, notes, visit),
            _ => self.lines(call, reader, notes, visit),
        }
    }

    fn csv(
        self,
        reader: impl BufRead,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Result<(), ErrorInfo> {
        let name = self.name();
        let is_tsv = self.path.is_some_and(|path| path.to_ascii_lowercase().ends_with(".tsv"));
        let delimiter = self.delimiter.or(is_tsv.then_some(b'\t'));
        let mut rows = Rows::new(reader, delimiter, ROW_BYTES).map_err(|it| it.error(&name))?;
        match visit {
            Visit::Documents(visit) => {
                while let Some((line, value)) = rows.next().map_err(|it| it.error(&name))? {
                    let name = Name { line: Some(line), source: &name }.to_string();
                    if !visit(Document { name, value, place: SourceText::Row { line } })? {
                        break;
                    }
                }
            }
            Visit::Inputs(file, visit) => {
                let mut keys = jq::Keys::default();
                loop {
                    let mut row = jq::Row::with_capacity(rows.columns());
                    let line = rows.next_cells(&mut |column, name, cell| {
                        row.insert(&mut keys, column, name, cell);
                    });
                    let Some(line) = line.map_err(|it| it.error(&name))? else { break };
                    let input = jq::Input { value: jq::Value::Row(row), file: *file, line };
                    if !visit(&Name { line: Some(line), source: &name }, input)? {
                        break;
                    }
                }
            }
        }
        notes.append(&name, rows.notes);
        Ok(())
    }

    fn lines(
        self,
        call: &Call,
        mut reader: impl BufRead,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Result<(), ErrorInfo> {
        let path = self.path.unwrap_or("text");
        let source = self.name();
        let mut number = 0;
        let mut line_notes = Notes::default();
        let mut line = Vec::new();
        loop {
            number += 1;
            line.clear();
            let mut limited = (&mut reader).take(DOCUMENT_BYTES);
            let read = limited.read_until(b'\n', &mut line);
            let read = read.map_err(|error| failed(call, path, &error))?;
            let name = Name { line: Some(number), source: &source };
            if read as u64 == DOCUMENT_BYTES {
                let why = "has more than 16 MiB, the limit of a line; split it";
                return Err(ErrorInfo::new(format!("{name} {why}")));
            }
            let text = str::from_utf8(&line).unwrap_or_default().trim_end();
            if read > 0 && text.is_empty() {
                continue;
            }
            // The first line of a document that spans several lines.
            let is_begun = text.ends_with(['{', '[', ',']);
            let hint = |error: ErrorInfo| match is_begun {
                true => ErrorInfo::new(format!(
                    "{}; with `from` `json` a document may have several lines",
                    error.message
                )),
                false => error,
            };
            let mut visit_line = || match &mut *visit {
                Visit::Inputs(file, visit) if is_plain_json(text) => {
                    let value = jq::Value::Json(text.into());
                    visit(&name, jq::Input { value, file: *file, line: number })
                }
                visit => json(text, number, &name.to_string(), &mut line_notes, &mut |document| {
                    visit.document(document)
                }),
            };
            if read == 0 || !visit_line().map_err(hint)? {
                notes.append(&source, line_notes);
                return Ok(());
            }
        }
    }
}

impl Visit<'_> {
    fn document(&mut self, mut document: Document<'_>) -> Result<bool, ErrorInfo> {
        match self {
            Self::Documents(visit) => visit(document),
            Self::Inputs(file, visit) => {
                let source = mem::take(&mut document.name);
                let line = document.last_line();
                // Converts the document before the filter runs, which needs its memory.
                let value = jq::Value::Json(document.into_json());
                let name = Name { line: None, source: &source };
                visit(&name, jq::Input { value, file: *file, line })
            }
        }
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line} of ")?;
        }
        f.write_str(self.source)
    }
}

impl Loaded {
    /// Reads each document: YAML and JSON may have several. `visit` returns whether it wants more.
    pub(crate) fn documents<'a>(
        &'a self,
        notes: &mut Notes,
        visit: &mut dyn FnMut(Document<'a>) -> Result<bool, ErrorInfo>,
    ) -> Result<(), ErrorInfo> {
        let Self { name, text, format } = self;
        let document = |value, place| Document { name: name.clone(), value, place };
        let mut own = Notes::default();
        match format {
            Format::Yaml => {
                let mut documents = yaml::Documents::new(text);
                let mut number = 0;
                while let Some(value) = documents.next().map_err(|it| it.error(name))? {
                    let wants_more = visit(document(value, SourceText::Yaml { text, number }))?;
                    number += 1;
                    if !wants_more {
                        break;
                    }
                }
                if number == 0 {
                    // A file without content.
                    visit(document(Value::Null, SourceText::Yaml { text, number }))?;
                }
                own = documents.notes;
            }
            Format::Toml => {
                let value = toml::read(text, &mut own).map_err(|it| it.error(name))?;
                visit(document(value, SourceText::Toml { text }))?;
            }
            _ => {
                let mut seen = 0;
                json(text, 1, name, &mut own, &mut |document| {
                    seen += 1;
                    visit(document)
                })?;
                match seen {
                    0 => {
                        let mistake = Mistake::syntax(Format::Json, "it is empty", (1, 1));
                        return Err(mistake.error(name));
                    }
                    1 => {}
                    _ => own.add("several documents follow each other; each is read separately"),
                }
            }
        }
        notes.append(name, own);
        Ok(())
    }
}

/// Returns true for one JSON value that jq reads like [`json`], without building the value. Only
/// building it finds invalid surrogates and too many levels, so lines that may have them are
/// excluded.
fn is_plain_json(text: &str) -> bool {
    /// The number of levels that `serde_json` reads.
    const LEVELS: usize = 127;
    let brackets = text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
    brackets <= LEVELS && !text.contains("\\u") && serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Reads each document of a text that starts at a line of its file. Returns whether more are
/// wanted.
fn json<'a>(
    text: &'a str,
    first_line: usize,
    name: &str,
    notes: &mut Notes,
    visit: &mut dyn FnMut(Document<'a>) -> Result<bool, ErrorInfo>,
) -> Result<bool, ErrorInfo> {
    let document = |value, place| Document { name: name.to_owned(), value, place };
    if let Ok(value) = serde_json::from_str(text) {
        return visit(document(value, SourceText::Json { text, first_line }));
    }
    let mut documents = dialects::Documents::new(text, first_line);
    let mut number = 0;
    while let Some(value) = documents.next().map_err(|it| it.error(name))? {
        if !visit(document(value, SourceText::Relaxed { text, first_line, number }))? {
            notes.join(documents.notes);
            return Ok(false);
        }
        number += 1;
    }
    notes.join(documents.notes);
    Ok(true)
}

/// Notes an encoding that was assumed.
fn note_encoding(notes: &mut Notes, name: &str, encoding: Encoding) {
    if !matches!(encoding, Encoding::Utf8 { has_invalid: false, .. }) {
        let mut own = Notes::default();
        own.add(format!("read as {encoding}"));
        notes.append(name, own);
    }
}

/// Opens a file that the arguments name.
fn open(call: &Call, path: &str) -> Result<File, ErrorInfo> {
    let location = Location::new(call, path)?;
    File::open(&location.path).map_err(|error| explain(&location, "read", &error))
}

/// Reads a text file up to the size limit.
fn read_all(file: File, path: &str) -> Result<(String, Encoding), ErrorInfo> {
    let name = format!("`{}`", excerpt::value(path));
    let failed = |error| ErrorInfo::new(format!("{name} cannot be read: {error}"));
    let size = file.metadata().map_err(failed)?.len();
    if size > DOCUMENT_BYTES {
        return Err(too_large(&name));
    }
    // A growing buffer would take up to three times as much memory.
    let mut bytes = Vec::with_capacity(size as usize + 1);
    file.take(DOCUMENT_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > DOCUMENT_BYTES {
        return Err(too_large(&name));
    }
    match decode(bytes) {
        Ok(decoded) => Ok((decoded.text, decoded.encoding)),
        Err(_) => Err(ErrorInfo::new(format!("{name} is binary, not text"))),
    }
}

fn neither() -> ErrorInfo {
    ErrorInfo::new("pass either `path` or `text`")
}

fn failed(call: &Call, path: &str, error: &std::io::Error) -> ErrorInfo {
    match Location::new(call, path) {
        Ok(location) => explain(&location, "read", error),
        Err(error) => error,
    }
}

fn too_large(name: &str) -> ErrorInfo {
    ErrorInfo::new(format!(
        "{name} has more than 16 MiB, the limit of a document; split it, or pass it as JSON Lines \
         (`.jsonl`) or CSV, which are read row by row"
    ))
}
