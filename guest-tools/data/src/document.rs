//! A parsed document and the positions of its values.

use std::borrow::Cow;

use serde_json::Value;

use crate::pointer;
use crate::read::{dialects, toml, yaml};

/// A document and its name in errors.
pub(crate) struct Document<'a> {
    pub(crate) name: String,
    pub(crate) value: Value,
    pub(crate) place: SourceText<'a>,
}

/// The source text of a document, for finding the position of a value.
#[derive(Clone, Copy)]
pub(crate) enum SourceText<'a> {
    /// Text that starts at a line of its file, from 1.
    Json {
        text: &'a str,
        first_line: usize,
    },
    /// One document of text that is not strict JSON, by its number from 0.
    Relaxed {
        text: &'a str,
        first_line: usize,
        number: usize,
    },
    /// One document of a stream, by its number from 0.
    Yaml {
        text: &'a str,
        number: usize,
    },
    Toml {
        text: &'a str,
    },
    /// A row of CSV that starts at this line.
    Row {
        line: usize,
    },
}

impl<'a> Document<'a> {
    /// Returns the line and column at which a value starts. For a value from a YAML alias or merge
    /// key, returns the position of the alias.
    pub(crate) fn place(&self, pointer: &str) -> (usize, usize) {
        match self.place {
            SourceText::Json { text, first_line } => {
                let start = pointer::find(text, pointer).unwrap_or(0);
                let (line, column) = pointer::line_and_column(text, start);
                (first_line + line - 1, column)
            }
            SourceText::Relaxed { text, first_line, number } => {
                dialects::place(text, first_line, number, pointer)
            }
            SourceText::Yaml { text, number } => yaml::place(text, number, pointer),
            SourceText::Toml { text } => toml::place(text, pointer),
            SourceText::Row { line } => (line, 1),
        }
    }

    /// Returns the line at which the document ends, if known.
    pub(crate) fn last_line(&self) -> usize {
        match self.place {
            SourceText::Json { text, first_line }
            | SourceText::Relaxed { text, first_line, .. } => first_line - 1 + text.lines().count(),
            SourceText::Yaml { text, .. } | SourceText::Toml { text } => text.lines().count(),
            SourceText::Row { line } => line,
        }
    }

    /// Returns the document as JSON: unchanged if it is JSON.
    pub(crate) fn into_json(self) -> Cow<'a, str> {
        match self.place {
            SourceText::Json { text, .. } => Cow::Borrowed(text),
            _ => Cow::Owned(self.value.to_string()),
        }
    }
}
