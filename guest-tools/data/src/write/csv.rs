//! CSV, whose header has the keys of all rows.

use std::collections::HashMap;

use serde_json::Value;

use super::{ANSWER_BYTES, Bounded, Stop};

/// Rows, whose header is not known before the last.
#[derive(Default)]
pub(super) struct Table {
    columns: Vec<String>,
    numbers: HashMap<String, usize>,
    /// The cells of each row, with the number of their column.
    rows: Vec<Vec<(usize, String)>>,
    bytes: usize,
}

impl Table {
    pub(super) fn add(&mut self, row: &Value) -> Result<(), Stop> {
        let Value::Object(row) = row else {
            return Err(Stop::unfit(&format!("a row that is {}", kind(row))));
        };
        if row.is_empty() {
            return Err(Stop::unfit("a row without a key"));
        }
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
                bytes += key.len() + 1;
                self.columns.len() - 1
            });
            bytes += cell.len();
            cells.push((column, cell));
        }
        // Each row has a delimiter or the end of the line for each column.
        bytes += cells.len();
        if bytes + (self.rows.len() + 1) * self.columns.len() > ANSWER_BYTES {
            return Err(Stop::TooLong);
        }
        self.bytes = bytes;
        self.rows.push(cells);
        Ok(())
    }

    pub(super) fn finish(self) -> Result<String, Stop> {
        let mut text = Bounded::default();
        if self.columns.is_empty() {
            return Ok(text.0);
        }
        let mut writer = csv::Writer::from_writer(&mut text);
        let too_long = |_| Stop::TooLong;
        writer.write_record(&self.columns).map_err(too_long)?;
        for cells in &self.rows {
            let mut row = vec![""; self.columns.len()];
            for (column, cell) in cells {
                row[*column] = cell;
            }
            writer.write_record(row).map_err(too_long)?;
        }
        writer.flush().map_err(|_| Stop::TooLong)?;
        drop(writer);
        Ok(text.0)
    }
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
