//! Writers of the formats. A value that a format cannot represent is an error with its JSON
//! pointer, and writing stops at the size limit.

mod csv;
mod toml;
mod yaml;

use std::fmt;
use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

use crate::format::Format;

/// Default maximum length of an answer in bytes. Clients drop or truncate longer answers.
pub(crate) const ANSWER_BYTES: usize = 48 << 10;

/// Returns the default of the argument `max_bytes`.
pub(crate) fn answer_bytes() -> usize {
    ANSWER_BYTES
}

/// The reason why no text is written.
#[derive(Debug)]
pub(crate) enum Stop {
    TooLong,
    /// A value that the format cannot represent, and its keys.
    Unfit {
        what: String,
        keys: Vec<String>,
    },
}

/// Text that cannot exceed its limit.
pub(crate) struct Bounded {
    text: String,
    limit: usize,
}

/// Rows that are written one at a time.
pub(crate) struct Rows(Written);

enum Written {
    Text { format: Format, text: Bounded, is_empty: bool },
    Csv(csv::Table),
}

/// Formats one value in at most `limit` bytes.
pub(crate) fn write(format: Format, value: &Value, limit: usize) -> Result<String, Stop> {
    let mut text = Bounded::new(limit);
    match (format, value) {
        (Format::Json, _) => json(&mut text, value)?,
        (Format::Yaml, _) => yaml::write(&mut text, value)?,
        (Format::Toml, _) => toml::write(&mut text, value)?,
        (Format::Jsonl | Format::Csv, Value::Array(items)) => {
            let mut rows = Rows::new(format, limit)?;
            for (index, item) in items.iter().enumerate() {
                rows.add(item).map_err(|stop| stop.inside(index))?;
            }
            return rows.finish();
        }
        (Format::Jsonl, _) => {
            let mut rows = Rows::new(format, limit)?;
            rows.add(value)?;
            return rows.finish();
        }
        (Format::Csv, _) => return Err(Stop::unfit("a document that is not an array of rows")),
    }
    Ok(text.text)
}

fn json(text: &mut Bounded, value: &Value) -> Result<(), Stop> {
    let mut serializer = Serializer::with_formatter(text, PrettyFormatter::new());
    value.serialize(&mut serializer).map_err(|_| Stop::TooLong)
}

impl Rows {
    /// Creates an empty list of rows with at most `limit` bytes.
    ///
    /// # Errors
    ///
    /// For TOML, whose root is a table.
    pub(crate) fn new(format: Format, limit: usize) -> Result<Self, Stop> {
        match format {
            Format::Toml => Err(Stop::unfit(toml::ROOT)),
            Format::Csv => Ok(Self(Written::Csv(csv::Table::new(limit)))),
            _ => Ok(Self(Written::Text { format, text: Bounded::new(limit), is_empty: true })),
        }
    }

    /// Adds a row. After an error the previous rows are complete.
    pub(crate) fn add(&mut self, row: &Value) -> Result<(), Stop> {
        let before = match &self.0 {
            Written::Text { text, .. } => text.text.len(),
            Written::Csv(_) => 0,
        };
        let added = self.push(row);
        if let (Err(_), Written::Text { text, .. }) = (&added, &mut self.0) {
            text.text.truncate(before);
        }
        added
    }

    fn push(&mut self, row: &Value) -> Result<(), Stop> {
        match &mut self.0 {
            Written::Csv(table) => table.add(row),
            Written::Text { format: Format::Json, text, is_empty } => {
                let mut one = Bounded::new(text.limit);
                json(&mut one, row)?;
                text.push(if *is_empty { "[" } else { "," })?;
                for line in one.text.lines() {
                    text.push("\n  ")?;
                    text.push(line)?;
                }
                *is_empty = false;
                Ok(())
            }
            Written::Text { format: Format::Yaml, text, is_empty } => {
                yaml::item(text, row)?;
                *is_empty = false;
                Ok(())
            }
            Written::Text { text, .. } => {
                serde_json::to_writer(&mut *text, row).map_err(|_| Stop::TooLong)?;
                text.push("\n")
            }
        }
    }

    /// Returns all rows as one text.
    pub(crate) fn finish(self) -> Result<String, Stop> {
        match self.0 {
            Written::Csv(table) => table.finish(),
            Written::Text { format: Format::Json, text, is_empty: false } => Ok(text.text + "\n]"),
            Written::Text { format: Format::Json | Format::Yaml, is_empty: true, .. } => {
                Ok("[]".to_owned())
            }
            Written::Text { text, .. } => Ok(text.text),
        }
    }
}

impl Stop {
    fn unfit(what: &str) -> Self {
        Self::Unfit { what: what.to_owned(), keys: Vec::new() }
    }

    /// Returns the error for an item inside this position.
    pub(crate) fn inside(self, index: usize) -> Self {
        match self {
            Self::TooLong => Self::TooLong,
            Self::Unfit { what, mut keys } => {
                keys.insert(0, index.to_string());
                Self::Unfit { what, keys }
            }
        }
    }
}

impl From<fmt::Error> for Stop {
    fn from(_: fmt::Error) -> Self {
        Self::TooLong
    }
}

impl Bounded {
    fn new(limit: usize) -> Self {
        Self { text: String::new(), limit }
    }

    fn push(&mut self, more: &str) -> Result<(), Stop> {
        if self.text.len().saturating_add(more.len()) > self.limit {
            return Err(Stop::TooLong);
        }
        self.text.push_str(more);
        Ok(())
    }

    fn indent(&mut self, depth: usize) -> Result<(), Stop> {
        (0..depth).try_for_each(|_| self.push("  "))
    }
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        self.push(more).map_err(|_| fmt::Error)
    }
}

impl io::Write for Bounded {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        let text = str::from_utf8(more).map_err(io::Error::other)?;
        self.push(text).map_err(|_| io::Error::other("too long"))?;
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
