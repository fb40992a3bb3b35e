//! Problems in the text of a document.

use kitbag_sdk::ErrorInfo;

use crate::excerpt;
use crate::format::Format;

/// Maximum nesting of values in a document: the limit of `serde_json` for JSON.
pub(crate) const DEPTH: usize = 127;

/// The message about [`DEPTH`], with a fix.
const TOO_DEEP: &str = ": values are nested more than 127 deep; pass a part of it";

/// A problem in a text and its position. Line and column start at 1; a column is a character.
pub(crate) struct Mistake {
    /// The problem, which follows the name of the document.
    pub(crate) what: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
    /// The pointer of the value that contains it, if known.
    pub(crate) pointer: Option<String>,
}

impl Mistake {
    /// Creates the problem of invalid syntax.
    pub(crate) fn syntax(format: Format, what: &str, (line, column): (usize, usize)) -> Self {
        let limit = if what.starts_with("recursion limit exceeded") { TOO_DEEP } else { "" };
        Self { what: format!("is not {format}: {what}{limit}"), line, column, pointer: None }
    }

    /// Creates the problem of a value that JSON does not have.
    pub(crate) fn unfit(what: &str, (line, column): (usize, usize), pointer: String) -> Self {
        let what = format!("contains what JSON cannot express: {what}");
        Self { what, line, column, pointer: Some(pointer) }
    }

    /// Creates the error for the document of this name.
    pub(crate) fn error(self, name: &str) -> ErrorInfo {
        let Self { what, line, column, pointer } = self;
        let what = excerpt::message(&what);
        let pointer = pointer.filter(|pointer| !pointer.is_empty());
        let at = pointer
            .map_or_else(String::new, |pointer| format!(", in `{}`", excerpt::value(&pointer)));
        ErrorInfo::new(format!("{name} {what} (line {line}, column {column}{at})"))
    }
}
