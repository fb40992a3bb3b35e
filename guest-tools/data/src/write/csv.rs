//! CSV. The header has the keys of all rows.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::Stop;
use crate::read::csv::drawn;

/// Rows, whose header is known only after the last row.
pub(super) struct Table {
    limit: usize,
    columns: Vec<String>,
    numbers: HashMap<String, usize>,
    /// The cells of each row, with their column numbers.
    rows: Vec<Vec<(usize, String)>>,
    bytes: usize,
}

impl Table {
    /// Creates an empty table for rows of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, columns: Vec::new(), numbers: HashMap::new(), rows: Vec::new(), bytes: 0 }
    }

    pub(super) fn add(&mut self, row: &Value) -> Result<(), Stop> {
        let Value::Object(row) = row else {
            return Err(Stop::unfit(&format!("a row that is {}", kind(row))));
        };
        if row.is_empty() {
            return Err(Stop::unfit("a row without a key"));
        }
        let known = self.columns.len();
        let added = self.push(row);
        if added.is_err() {
            for column in self.columns.drain(known..) {
                self.numbers.remove(&column);
            }
        }
        added
    }

    fn push(&mut self, row: &Map<String, Value>) -> Result<(), Stop> {
        let mut cells = Vec::with_capacity(row.len());
        let mut bytes = self.bytes;
        for (key, value) in row {
            let cell = match value {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                Value::Bool(_) | Value::Number(_) => value.to_string(),
                Value::Array(_) | Value::Object(_) => {
                    let what = format!("a cell that is {}", kind(value));
                    return Err(Stop::Unfit { what, keys: vec![key.clone()] });
                }
            };
            let column = self.numbers.get(key).copied().unwrap_or_else(|| {
                self.numbers.insert(key.clone(), self.columns.len());
                self.columns.push(key.clone());
                bytes += length(key) + 1;
                self.columns.len() - 1
            });
            bytes += length(&cell);
            cells.push((column, cell));
        }
        // Each row has a delimiter or line ending for each column.
        bytes += cells.len();
        if bytes + (self.rows.len() + 1) * self.columns.len() > self.limit {
            return Err(Stop::TooLong);
        }
        self.bytes = bytes;
        self.rows.push(cells);
        Ok(())
    }

    pub(super) fn finish(self) -> Result<String, Stop> {
        if self.columns.is_empty() {
            return Ok(String::new());
        }
        let text = self.written(csv::QuoteStyle::Necessary)?;
        // Columns such as `--|` would be read as the rule of a drawn table.
        match drawn(text.as_bytes()) {
            Some(_) => self.written(csv::QuoteStyle::Always),
            None => Ok(text),
        }
    }

    fn written(&self, style: csv::QuoteStyle) -> Result<String, Stop> {
        let mut writer = csv::WriterBuilder::new().quote_style(style).from_writer(Vec::new());
        let failed = |error: csv::Error| Stop::unfit(&error.to_string());
        writer.write_record(&self.columns).map_err(failed)?;
        for cells in &self.rows {
            let mut row = vec![""; self.columns.len()];
            for (column, cell) in cells {
                row[*column] = cell;
            }
            writer.write_record(row).map_err(failed)?;
        }
        let text = writer.into_inner().map_err(|error| Stop::unfit(&error.to_string()))?;
        String::from_utf8(text).map_err(|error| Stop::unfit(&error.to_string()))
    }
}

/// Returns the length of a cell including quotes.
fn length(cell: &str) -> usize {
    let quotes = cell.bytes().filter(|byte| *byte == b'"').count();
    let is_quoted = cell.is_empty() || cell.contains(['"', ',', '\n', '\r']);
    cell.len() + quotes + if is_quoted { 2 } else { 0 }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
