//! The cells of CSV.

use std::io::BufRead;
use std::ops::Range;

use crate::format::Format;
use crate::mistake::Mistake;

/// Splits a text into records of cells. A quoted cell may have delimiters, line breaks and doubled
/// quotes. Empty lines are skipped.
pub(super) struct Cells<R> {
    inner: R,
    delimiter: u8,
    most_bytes: usize,
    /// The next line, from 1.
    line: usize,
}

/// The cells of a row in one buffer.
#[derive(Debug, Default)]
pub(super) struct Record {
    text: Vec<u8>,
    cells: Vec<(Range<usize>, bool)>,
    /// The line at which the row starts, from 1.
    pub(super) line: usize,
}

/// The state of the parser at the next byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before a cell, or in whitespace before a quote.
    Start,
    Bare,
    Quoted,
    /// After a quote in a quoted cell. The quote ends the cell or is the first of two.
    Quote,
    /// In whitespace after a quoted cell.
    Closed,
}

impl Record {
    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Iterates over the cells, and whether each one is quoted.
    pub(super) fn cells(&self) -> impl Iterator<Item = (&str, bool)> {
        let text = |range: &Range<usize>| str::from_utf8(&self.text[range.clone()]);
        self.cells.iter().map(move |(range, is_quoted)| (text(range).unwrap_or(""), *is_quoted))
    }

    fn end(&mut self, start: &mut usize, is_quoted: bool) {
        self.cells.push((*start..self.text.len(), is_quoted));
        *start = self.text.len();
    }
}

impl<R: BufRead> Cells<R> {
    /// Creates a reader of rows with at most this many bytes. `lines` were read before.
    pub(super) fn new(inner: R, delimiter: u8, most_bytes: usize, lines: usize) -> Self {
        Self { inner, delimiter, most_bytes, line: lines + 1 }
    }

    fn mistake(what: &str, line: usize) -> Mistake {
        Mistake::syntax(Format::Csv, what, (line, 1))
    }

    /// Reads the next record. Returns `false` at the end.
    ///
    /// # Errors
    ///
    /// A quote is not closed, a cell continues after its quotes, or a row is too long.
    pub(super) fn next(&mut self, record: &mut Record) -> Result<bool, Mistake> {
        record.text.clear();
        record.cells.clear();
        record.line = self.line;
        let (mut state, mut start, mut bytes) = (State::Start, 0, 0);
        // The line at which the quoted cell starts.
        let mut opened = self.line;
        let mut is_empty = true;
        loop {
            let piece = match self.inner.fill_buf() {
                Ok(piece) => piece,
                Err(error) => return Err(Self::mistake(&error.to_string(), self.line)),
            };
            if piece.is_empty() {
                if state == State::Quoted {
                    let what = "a cell starts with a quote that is not closed";
                    return Err(Self::mistake(what, opened));
                }
                if !is_empty {
                    record.end(&mut start, matches!(state, State::Quote | State::Closed));
                }
                return Ok(!is_empty);
            }
            let mut used = 0;
            let mut is_complete = false;
            for byte in piece {
                let byte = *byte;
                used += 1;
                bytes += 1;
                if byte == b'\n' {
                    self.line += 1;
                }
                match (state, byte) {
                    (State::Quoted, b'"') => state = State::Quote,
                    (State::Quoted, byte) => record.text.push(byte),
                    (State::Quote, b'"') => {
                        record.text.push(b'"');
                        state = State::Quoted;
                    }
                    // The line feed of CRLF is an empty line.
                    (_, b'\n' | b'\r') if is_empty => {
                        record.line = self.line;
                        bytes = 0;
                        continue;
                    }
                    (state, b'\n' | b'\r') => {
                        record.end(&mut start, matches!(state, State::Quote | State::Closed));
                        is_complete = true;
                        break;
                    }
                    (from, byte) if byte == self.delimiter => {
                        record.end(&mut start, matches!(from, State::Quote | State::Closed));
                        state = State::Start;
                    }
                    (State::Quote | State::Closed, b' ' | b'\t') => state = State::Closed,
                    (State::Quote | State::Closed, _) => {
                        let what = format!(
                            "text follows the closing quote of the cell that starts in line \
                             {opened}; write a quote within a cell twice, not as `\\\"`"
                        );
                        return Err(Self::mistake(&what, self.line));
                    }
                    (State::Start, b'"') => {
                        record.text.truncate(start);
                        (state, opened) = (State::Quoted, self.line);
                    }
                    (State::Start, b' ') => record.text.push(b' '),
                    (_, byte) => {
                        record.text.push(byte);
                        state = State::Bare;
                    }
                }
                is_empty = false;
                if bytes > self.most_bytes {
                    break;
                }
            }
            self.inner.consume(used);
            if is_complete {
                return Ok(true);
            }
            if bytes > self.most_bytes {
                let what = "a row has more than 4 MiB; is a quote not closed?";
                return Err(Self::mistake(what, record.line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    /// The line and the cells of each record.
    type Records = Vec<(usize, Vec<String>)>;

    /// Returns the records of a text that is read in pieces of this size.
    fn records(text: &str, piece: usize) -> Result<Records, (String, usize)> {
        let reader = BufReader::with_capacity(piece, text.as_bytes());
        let mut cells = Cells::new(reader, b',', 100, 0);
        let (mut record, mut found) = (Record::default(), Vec::new());
        while cells.next(&mut record).map_err(|mistake| (mistake.what, mistake.line))? {
            found.push((record.line, record.cells().map(|(cell, _)| cell.to_owned()).collect()));
        }
        Ok(found)
    }

    #[track_caller]
    fn check(text: &str, expected: &[(usize, &[&str])]) {
        let owned = |(line, cells): &(usize, &[&str])| {
            (*line, cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>())
        };
        let expected: Vec<_> = expected.iter().map(owned).collect();
        for piece in [1, 2, 64] {
            assert_eq!(records(text, piece).unwrap(), expected, "{text:?}");
        }
    }

    #[track_caller]
    fn check_error(text: &str, expected: &str, line: usize) {
        let (what, found) = records(text, 3).unwrap_err();
        assert!(what.contains(expected), "{what}");
        assert_eq!(found, line, "{text:?}");
    }

    #[test]
    fn records_are_split_into_cells() {
        check("", &[]);
        check("a", &[(1, &["a"])]);
        check("a,b\n1,2", &[(1, &["a", "b"]), (2, &["1", "2"])]);
        check("a,\r\n,b\r\n", &[(1, &["a", ""]), (2, &["", "b"])]);
        check("a\rb\r", &[(1, &["a"]), (1, &["b"])]);
        check("\n\na\n\r\n\nb\n", &[(3, &["a"]), (6, &["b"])]);
        check("\"a\r\nb\",\"\"\"c\"\"\"\nd,\"\"", &[(1, &["a\r\nb", "\"c\""]), (3, &["d", ""])]);
        check("a, \"b,c\" ,d e\n", &[(1, &["a", "b,c", "d e"])]);
        check("5\" disk, x\n", &[(1, &["5\" disk", " x"])]);
        check("\"\"\n", &[(1, &[""])]);
    }

    #[test]
    fn unclosed_quotes_are_reported_with_their_line() {
        check_error("a,b\n1,\"2\n3,4\n5,6\n", "not closed", 2);
        check_error("a\n\"b\"\"", "not closed", 2);
        check_error("a,\"b\n\nc,\"d\"\n", "starts in line 1; write a quote within", 3);
        check_error("a\n\"say \\\"so\\\"\"\n", "starts in line 2", 2);
        check_error(&format!("a\n\"{}", "x\n".repeat(100)), "a row has more than 4 MiB", 2);
    }
}
