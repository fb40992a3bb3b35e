//! A document that was read, and where its values stand.

use std::borrow::Cow;

use kitbag_sdk::ErrorInfo;
use serde_json::Value;

use crate::format::Format;
use crate::pointer;
use crate::read::{toml, yaml};

/// How deep the values of a document may lie inside each other, which `serde_json` has for
/// JSON.
pub(crate) const DEPTH: usize = 127;

/// A document and what it is called in errors.
pub(crate) struct Document<'a> {
    pub(crate) name: String,
    pub(crate) value: Value,
    pub(crate) place: Place<'a>,
}

/// What the text of a document is, for finding a value in it.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    /// A text that begins at a line of its file, from 1.
    Json {
        text: &'a str,
        first_line: usize,
    },
    /// One document of a stream, by its number from 0.
    Yaml {
        text: &'a str,
        number: usize,
    },
    Toml {
        text: &'a str,
    },
    /// A row of CSV that begins at this line.
    Row {
        line: usize,
    },
}

/// What is wrong with a text, and where. Line and column begin with 1; a column is a
/// character.
pub(crate) struct Mistake {
    /// Follows the name of the document.
    pub(crate) what: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
    /// The pointer of the value that it is in, where that is known.
    pub(crate) pointer: Option<String>,
}

impl<'a> Document<'a> {
    /// The line and the column at which a value begins; of one that an alias or a merge of
    /// YAML has put there, those of the alias.
    pub(crate) fn place(&self, pointer: &str) -> (usize, usize) {
        match self.place {
            Place::Json { text, first_line } => {
                let start = pointer::find(text, pointer).unwrap_or(0);
                let (line, column) = pointer::line_and_column(text, start);
                (first_line + line - 1, column)
            }
            Place::Yaml { text, number } => yaml::place(text, number, pointer),
            Place::Toml { text } => toml::place(text, pointer),
            Place::Row { line } => (line, 1),
        }
    }

    /// The document as JSON: as it is written, where it is JSON.
    pub(crate) fn into_json(self) -> Cow<'a, str> {
        match self.place {
            Place::Json { text, .. } => Cow::Borrowed(text),
            _ => Cow::Owned(self.value.to_string()),
        }
    }
}

impl Mistake {
    /// A text that is not of its format.
    pub(crate) fn syntax(format: Format, what: &str, (line, column): (usize, usize)) -> Self {
        Self { what: format!("is not {format}: {what}"), line, column, pointer: None }
    }

    /// A value that JSON has not.
    pub(crate) fn unfit(what: &str, (line, column): (usize, usize), pointer: String) -> Self {
        let what = format!("has what JSON cannot hold: {what}");
        Self { what, line, column, pointer: Some(pointer) }
    }

    /// The error of the document that is called so.
    pub(crate) fn error(self, name: &str) -> ErrorInfo {
        let Self { what, line, column, pointer } = self;
        let at = pointer.map_or_else(String::new, |pointer| format!(", in `{pointer}`"));
        ErrorInfo::new(format!("{name} {what} (line {line}, column {column}{at})"))
    }
}
