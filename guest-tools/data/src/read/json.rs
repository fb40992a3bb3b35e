//! JSON.

use serde_json::Value;

use crate::format::Format;
use crate::mistake::Mistake;
use crate::pointer;

/// Reads a text that begins at a line of its file, from 1.
pub(crate) fn read(text: &str, first_line: usize) -> Result<Value, Mistake> {
    serde_json::from_str(text).map_err(|error| {
        let offset = pointer::offset(text, error.line(), error.column());
        let (line, column) = pointer::line_and_column(text, offset);
        let what = error.to_string();
        let end = format!(" at line {} column {}", error.line(), error.column());
        let what = what.strip_suffix(&end).unwrap_or(&what);
        let mistake = Mistake::syntax(Format::Json, what, (first_line + line - 1, column));
        Mistake { pointer: Some(pointer::at(text, offset)), ..mistake }
    })
}
