//! CSV with a header, read row by row, in the dialects of spreadsheets, databases and shells.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead};

use serde_json::{Map, Number, Value};

use super::cells::{Cells, Record};
use crate::format::Format;
use crate::mistake::Mistake;
use crate::notes::Notes;

/// The delimiters that can be guessed. The first is the default.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// The number of lines that are examined for the delimiter.
const GUESSED_LINES: usize = 20;

const SHORT: &str = "a row has fewer cells than the header; the missing ones are null";
const RENAMED: &str = "columns with the same name are numbered";
const NULL: &str = "`\\N` is read as null";
const COMMA: &str = "a number with a decimal comma stays a string";

/// The value of a cell.
#[derive(Clone, Copy)]
pub(crate) enum Cell<'a> {
    Null,
    Bool(bool),
    /// A number in JSON notation.
    Number(&'a str),
    Text(&'a str),
}

/// Reads rows as objects with the keys of the header.
pub(crate) struct Rows<R> {
    cells: Cells<R>,
    delimiter: u8,
    header: Vec<String>,
    record: Record,
    pub(crate) notes: Notes,
}

impl<R: BufRead> Rows<R> {
    /// Reads the header. Rows have at most this many bytes. Without a given delimiter, it is
    /// guessed from the first lines.
    ///
    /// # Errors
    ///
    /// The text cannot be read.
    pub(crate) fn new(
        mut inner: R,
        delimiter: Option<u8>,
        row_bytes: usize,
    ) -> Result<Self, Mistake> {
        let mut notes = Notes::default();
        let preamble = Preamble::read(&mut inner).map_err(|error| failed(&error))?;
        if preamble.is_type {
            notes.place("the line `#TYPE` of PowerShell is skipped", 1);
        }
        if let Some(line) = drawn(inner.fill_buf().unwrap_or_default()) {
            let what = "this line belongs to a drawn table, as of psql, mysql and Markdown; export \
                        CSV, for example with `psql --csv`";
            return Err(Mistake::syntax(Format::Csv, what, (preamble.lines + line, 1)));
        }
        let delimiter = match delimiter.or(preamble.delimiter) {
            Some(delimiter) => delimiter,
            None => guess(inner.fill_buf().unwrap_or_default()),
        };
        let mut cells = Cells::new(inner, delimiter, row_bytes, preamble.lines);
        let mut record = Record::default();
        let header = match cells.next(&mut record)? {
            true => names(&record, &mut notes),
            false => Vec::new(),
        };
        Ok(Self { cells, delimiter, header, record, notes })
    }

    /// Returns the number of columns.
    pub(crate) fn columns(&self) -> usize {
        self.header.len()
    }

    /// Returns the next row and the line at which it starts.
    ///
    /// # Errors
    ///
    /// As for [`next_cells`](Self::next_cells).
    pub(crate) fn next(&mut self) -> Result<Option<(usize, Value)>, Mistake> {
        let mut row = Map::with_capacity(self.columns());
        let line = self.next_cells(&mut |_, name, cell| {
            row.insert(name.to_owned(), cell.value());
        })?;
        Ok(line.map(|line| (line, Value::Object(row))))
    }

    /// Calls `add` with each cell of the next row: the number of its column, its key and its value.
    /// Returns the line at which the row starts.
    ///
    /// # Errors
    ///
    /// A row has more cells than the header, or a quote is not closed.
    pub(crate) fn next_cells(
        &mut self,
        add: &mut dyn FnMut(usize, &str, Cell<'_>),
    ) -> Result<Option<usize>, Mistake> {
        if !self.cells.next(&mut self.record)? {
            return Ok(None);
        }
        let Self { record, header, notes, delimiter, .. } = self;
        let line = record.line;
        for (index, (cell, is_quoted)) in record.cells().enumerate() {
            let value = match cell {
                "\\N" if !is_quoted => {
                    notes.place(NULL, line);
                    Cell::Null
                }
                cell => Cell::of(cell),
            };
            if *delimiter != b',' && is_decimal_comma(cell) {
                notes.named(COMMA, &format!("`{cell}`"), line);
            }
            match header.get(index) {
                // An empty last cell, as after a trailing delimiter.
                Some(name) if name.is_empty() && index > 0 && value.is_null() => {}
                Some(name) if name.is_empty() && index > 0 => {
                    add(index, &format!("column {}", index + 1), value);
                }
                Some(name) => add(index, name, value),
                None if value.is_null() => {}
                None => {
                    let (found, expected) = (record.len(), header.len());
                    let what = format!("the row has {found} cells, the header {expected}");
                    return Err(Mistake::syntax(Format::Csv, &what, (line, 1)));
                }
            }
        }
        if record.len() < header.len() {
            let columns = header.iter().enumerate().skip(record.len());
            let mut is_short = false;
            for (index, name) in columns.filter(|(_, name)| !name.is_empty()) {
                add(index, name, Cell::Null);
                is_short = true;
            }
            if is_short {
                notes.place(SHORT, line);
            }
        }
        Ok(Some(line))
    }
}

impl<'a> Cell<'a> {
    /// Converts a cell: a number or boolean in JSON notation, null if it is empty, and otherwise a
    /// string. So `007`, `+1` and `2E5` are strings.
    fn of(cell: &'a str) -> Self {
        match cell {
            "" => Self::Null,
            "true" => Self::Bool(true),
            "false" => Self::Bool(false),
            _ if is_number(cell) => Self::Number(cell),
            _ => Self::Text(cell),
        }
    }

    fn is_null(self) -> bool {
        matches!(self, Self::Null)
    }

    fn value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Number(number) => number.parse().map_or(Value::Null, Value::Number),
            Self::Text(text) => Value::from(text),
        }
    }
}

/// Lines before the header, which only some programs write.
#[derive(Default)]
struct Preamble {
    lines: usize,
    /// `sep=;`, for Excel.
    delimiter: Option<u8>,
    /// `#TYPE …`, from `Export-Csv` in PowerShell.
    is_type: bool,
}

impl Preamble {
    fn read(inner: &mut impl BufRead) -> io::Result<Self> {
        let mut preamble = Self::default();
        loop {
            let beginning = inner.fill_buf()?;
            let Some(end) = beginning.iter().position(|byte| *byte == b'\n') else { break };
            let line = beginning[..end].strip_suffix(b"\r").unwrap_or(&beginning[..end]);
            match line.strip_prefix(b"\"").and_then(|it| it.strip_suffix(b"\"")).unwrap_or(line) {
                [s, e, p, b'=', delimiter]
                    if [*s, *e, *p].eq_ignore_ascii_case(b"sep") && *delimiter != b'"' =>
                {
                    preamble.delimiter = Some(*delimiter);
                }
                line if line.starts_with(b"#TYPE ") => preamble.is_type = true,
                _ => break,
            }
            preamble.lines += 1;
            inner.consume(end + 1);
        }
        Ok(preamble)
    }
}

/// Returns the column names, made unique except for empty ones.
fn names(record: &Record, notes: &mut Notes) -> Vec<String> {
    let all: HashSet<&str> = record.cells().map(|(name, _)| name).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut names = Vec::with_capacity(record.len());
    for (name, _) in record.cells() {
        let count = counts.entry(name).or_default();
        *count += 1;
        let mut unique = name.to_owned();
        if *count > 1 && !name.is_empty() {
            unique = format!("{name}_{count}");
            while all.contains(unique.as_str()) || names.contains(&unique) {
                *count += 1;
                unique = format!("{name}_{count}");
            }
            notes.named(RENAMED, &format!("`{unique}`"), record.line);
        }
        names.push(unique);
    }
    names
}

/// Returns true for a number in JSON notation.
fn is_number(cell: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let unsigned = cell.strip_prefix('-').unwrap_or(cell);
    if !unsigned.starts_with(|char: char| char.is_ascii_digit()) {
        return false;
    }
    // The parser allocates memory for each number.
    if !unsigned.contains(['e', 'E']) {
        let (whole, fraction) = match unsigned.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (unsigned, None),
        };
        let has_one_form = whole == "0" || !whole.starts_with('0');
        return has_one_form && is_digits(whole) && fraction.is_none_or(is_digits);
    }
    cell.parse::<Number>().is_ok_and(|number| number.as_str() == cell)
}

/// Returns true if a cell is a number such as `1,5` or `-1.234,50`.
fn is_decimal_comma(cell: &str) -> bool {
    let Some((whole, fraction)) = cell.split_once(',') else { return false };
    let whole = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let has_digits = whole.starts_with(|char: char| char.is_ascii_digit()) && !fraction.is_empty();
    has_digits && is_digits(fraction) && whole.split('.').all(is_digits)
}

/// Guesses the delimiter: the one that occurs outside of quotes as often as in the header in most
/// lines.
fn guess(beginning: &[u8]) -> u8 {
    let mut lines = vec![[0_usize; DELIMITERS.len()]];
    let mut is_quoted = false;
    let mut is_empty = true;
    for byte in beginning {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'\n' | b'\r' if !is_quoted => {
                if lines.len() == GUESSED_LINES {
                    break;
                }
                if !is_empty {
                    lines.push([0; DELIMITERS.len()]);
                }
                is_empty = true;
                continue;
            }
            byte if !is_quoted => {
                let delimiter = DELIMITERS.iter().position(|delimiter| delimiter == byte);
                if let (Some(index), Some(counts)) = (delimiter, lines.last_mut()) {
                    counts[index] += 1;
                }
            }
            _ => {}
        }
        is_empty = false;
    }
    // The last line may be truncated or empty.
    if lines.len() > 2 || is_empty && lines.len() > 1 {
        lines.pop();
    }
    let score = |index: &usize| {
        let header = lines[0][*index];
        let alike = lines.iter().filter(|counts| counts[*index] == header).count();
        if header == 0 { (0, 0) } else { (alike, header) }
    };
    // The first of equal ones is used.
    let best = (0..DELIMITERS.len()).rev().max_by_key(score).unwrap_or(0);
    DELIMITERS[best]
}

/// Returns the number of a line among the first three that is the rule of a drawn table.
pub(crate) fn drawn(beginning: &[u8]) -> Option<usize> {
    let lines = beginning.split(|byte| *byte == b'\n').take(3);
    let mut lines = lines.map(|line| String::from_utf8_lossy(line).trim().to_owned());
    let is_rule = |line: String| {
        let is_boxed = |char: char| ('\u{2500}'..='\u{257f}').contains(&char);
        line.chars().all(|char| "-=+|: ".contains(char) || is_boxed(char))
            && (line.contains("--") && line.contains(['+', '|']) || line.contains(is_boxed))
    };
    lines.position(is_rule).map(|index| index + 1)
}

fn failed(error: &io::Error) -> Mistake {
    Mistake::syntax(Format::Csv, &error.to_string(), (1, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn numbers_are_those_of_the_parser(cell in "-?[0-9.eE+-]{0,6}|[0-9]{1,3}[.][0-9]{0,2}|[a-z ]{1,3}") {
            let is_parsed = cell.parse::<Number>().is_ok_and(|number| number.as_str() == cell);
            proptest::prop_assert_eq!(is_number(&cell), is_parsed);
        }
    }
}
