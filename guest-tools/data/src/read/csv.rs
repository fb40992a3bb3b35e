//! CSV with a header, row by row.

use std::cell::Cell;
use std::collections::HashSet;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use csv::{ErrorKind, ReaderBuilder, StringRecord};
use serde_json::{Map, Number, Value};

use crate::format::Format;
use crate::mistake::Mistake;

/// The delimiters that are guessed, and the one that counts where no other stands in the
/// header.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Reads rows as objects, whose keys are those of the header.
pub(crate) struct Rows<R> {
    reader: csv::Reader<Bounded<R>>,
    header: StringRecord,
    left: Rc<Cell<u64>>,
    row_bytes: u64,
    record: StringRecord,
}

/// Ends with an error where a row is too long.
struct Bounded<R> {
    inner: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.get() == 0 {
            return Err(io::Error::other("a row has more than 4 MiB; is a quote not closed?"));
        }
        let read = self.inner.read(buffer)?;
        self.left.set(self.left.get().saturating_sub(read as u64));
        Ok(read)
    }
}

impl<R: BufRead> Rows<R> {
    /// Reads the header. A row may have so many bytes, about; the delimiter is guessed from
    /// the first line where none is given.
    ///
    /// # Errors
    ///
    /// For a text that cannot be read and for a name that stands twice.
    pub(crate) fn new(
        mut inner: R,
        delimiter: Option<u8>,
        row_bytes: u64,
    ) -> Result<Self, Mistake> {
        let delimiter = match delimiter {
            Some(delimiter) => delimiter,
            None => guess(inner.fill_buf().unwrap_or_default()),
        };
        let left = Rc::new(Cell::new(row_bytes));
        let bounded = Bounded { inner, left: Rc::clone(&left) };
        let mut reader = ReaderBuilder::new().delimiter(delimiter).from_reader(bounded);
        let header = reader.headers().map_err(|error| mistake(&error, 1))?.clone();
        let mut names = HashSet::new();
        for name in &header {
            if !names.insert(name) {
                let what = format!("the column `{name}` stands twice in the header");
                return Err(Mistake::syntax(Format::Csv, &what, (1, 1)));
            }
        }
        Ok(Self { reader, header, left, row_bytes, record: StringRecord::new() })
    }

    /// The next row and the line at which it begins.
    ///
    /// # Errors
    ///
    /// For a row that has more or fewer cells than the header, and one that is not UTF-8.
    pub(crate) fn next(&mut self) -> Result<Option<(usize, Value)>, Mistake> {
        self.left.set(self.row_bytes);
        let start = self.reader.position().line() as usize;
        let read = self.reader.read_record(&mut self.record);
        if !read.map_err(|error| mistake(&error, start))? {
            return Ok(None);
        }
        let line = self.record.position().map_or(0, csv::Position::line);
        let mut row = Map::with_capacity(self.header.len());
        for (name, cell) in self.header.iter().zip(&self.record) {
            row.insert(name.to_owned(), value(cell));
        }
        Ok(Some((line as usize, Value::Object(row))))
    }
}

/// What a cell is: a number or a boolean where it is written as JSON would write it, null
/// where it is empty, else a text. So `007`, `+1` and `2E5` are texts.
fn value(cell: &str) -> Value {
    match cell {
        "" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => match cell.parse::<Number>() {
            Ok(number) if number.as_str() == cell => Value::Number(number),
            _ => Value::from(cell),
        },
    }
}

/// The delimiter that stands most often in the first line, outside of quotes.
fn guess(beginning: &[u8]) -> u8 {
    let mut counts = [0; DELIMITERS.len()];
    let mut is_quoted = false;
    for byte in beginning {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'\n' | b'\r' if !is_quoted => break,
            byte if !is_quoted => {
                if let Some(index) = DELIMITERS.iter().position(|delimiter| delimiter == byte) {
                    counts[index] += 1;
                }
            }
            _ => {}
        }
    }
    // Of those that are equal the first counts.
    let best = (0..DELIMITERS.len()).rev().max_by_key(|index| counts[*index]).unwrap_or(0);
    DELIMITERS[best]
}

/// What is wrong with the row that begins at a line, where the error does not say which.
fn mistake(error: &csv::Error, start: usize) -> Mistake {
    let line = error.position().map_or(start, |position| position.line() as usize);
    let what = match error.kind() {
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("cells in the row: {len}, in the header: {expected_len}")
        }
        ErrorKind::Utf8 { .. } => "a row is not UTF-8".to_owned(),
        ErrorKind::Io(error) => error.to_string(),
        _ => error.to_string(),
    };
    Mistake::syntax(Format::Csv, &what, (line, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_does_not_end_is_named_by_its_line() {
        let text = "a,b\n1,2\n3,\"".to_owned() + &"x\n".repeat(100_000);
        let mut rows = Rows::new(io::BufReader::new(text.as_bytes()), None, 50_000).ok().unwrap();
        assert_eq!(rows.next().ok().unwrap().unwrap().0, 2);
        let mistake = rows.next().err().unwrap();
        assert_eq!((mistake.line, mistake.column), (3, 1));
        assert!(mistake.what.contains("a row has more than 4 MiB"), "{}", mistake.what);
    }
}
