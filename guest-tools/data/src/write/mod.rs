//! Writers of the formats. What a format cannot hold is an error with its JSON pointer, and
//! what is too long ends before it takes memory.

mod csv;
mod toml;
mod yaml;

use std::fmt;
use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

use crate::format::Format;

/// How long an answer may be, in bytes.
pub(crate) const ANSWER_BYTES: usize = 256 << 10;

/// Why nothing is written.
#[derive(Debug)]
pub(crate) enum Stop {
    TooLong,
    /// What the format cannot hold, and the keys of where it is.
    Unfit {
        what: String,
        keys: Vec<String>,
    },
}

/// A text that does not grow longer than an answer may be.
#[derive(Default)]
pub(crate) struct Bounded(String);

/// Rows that are written one by one.
pub(crate) struct Rows(Written);

enum Written {
    Text { format: Format, text: Bounded, is_empty: bool },
    Csv(csv::Table),
}

/// Writes one value.
pub(crate) fn write(format: Format, value: &Value) -> Result<String, Stop> {
    let mut text = Bounded::default();
    match (format, value) {
        (Format::Json, _) => json(&mut text, value)?,
        (Format::Yaml, _) => yaml::write(&mut text, value)?,
        (Format::Toml, _) => toml::write(&mut text, value)?,
        (Format::Jsonl | Format::Csv, Value::Array(items)) => {
            let mut rows = Rows::new(format)?;
            for (index, item) in items.iter().enumerate() {
                rows.add(item).map_err(|stop| stop.inside(index))?;
            }
            return rows.finish();
        }
        (Format::Jsonl, _) => {
            let mut rows = Rows::new(format)?;
            rows.add(value)?;
            return rows.finish();
        }
        (Format::Csv, _) => return Err(Stop::unfit("a document that is no array of rows")),
    }
    Ok(text.0)
}

fn json(text: &mut Bounded, value: &Value) -> Result<(), Stop> {
    let mut serializer = Serializer::with_formatter(text, PrettyFormatter::new());
    value.serialize(&mut serializer).map_err(|_| Stop::TooLong)
}

impl Rows {
    /// No rows yet.
    ///
    /// # Errors
    ///
    /// For TOML, whose root is a table.
    pub(crate) fn new(format: Format) -> Result<Self, Stop> {
        match format {
            Format::Toml => Err(Stop::unfit(toml::ROOT)),
            Format::Csv => Ok(Self(Written::Csv(csv::Table::default()))),
            _ => Ok(Self(Written::Text { format, text: Bounded::default(), is_empty: true })),
        }
    }

    /// Adds a row. Where that is too long or does not fit, those before it are there still.
    pub(crate) fn add(&mut self, row: &Value) -> Result<(), Stop> {
        match &mut self.0 {
            Written::Csv(table) => table.add(row),
            Written::Text { format: Format::Json, text, is_empty } => {
                let mut one = Bounded::default();
                json(&mut one, row)?;
                text.push(if *is_empty { "[" } else { "," })?;
                for line in one.0.lines() {
                    text.push("\n  ")?;
                    text.push(line)?;
                }
                *is_empty = false;
                Ok(())
            }
            Written::Text { format: Format::Yaml, text, is_empty } => {
                *is_empty = false;
                yaml::item(text, row)
            }
            Written::Text { text, .. } => {
                serde_json::to_writer(&mut *text, row).map_err(|_| Stop::TooLong)?;
                text.push("\n")
            }
        }
    }

    /// All rows as one text.
    pub(crate) fn finish(self) -> Result<String, Stop> {
        match self.0 {
            Written::Csv(table) => table.finish(),
            Written::Text { format: Format::Json, text, is_empty: false } => Ok(text.0 + "\n]"),
            Written::Text { format: Format::Json | Format::Yaml, is_empty: true, .. } => {
                Ok("[]".to_owned())
            }
            Written::Text { text, .. } => Ok(text.0),
        }
    }
}

impl Stop {
    fn unfit(what: &str) -> Self {
        Self::Unfit { what: what.to_owned(), keys: Vec::new() }
    }

    /// The same of what this is an item of.
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
    fn push(&mut self, more: &str) -> Result<(), Stop> {
        if self.0.len() + more.len() > ANSWER_BYTES {
            return Err(Stop::TooLong);
        }
        self.0.push_str(more);
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
