//! `convert_data`: converts a document to another format.

#[cfg(test)]
mod tests;

use kitbag_sdk::{Call, ErrorInfo};
use serde::Deserialize;
use serde_json::Value;

use crate::Answer;
use crate::document::Document;
use crate::excerpt;
use crate::format::Format;
use crate::mistake::Mistake;
use crate::notes::Notes;
use crate::pointer;
use crate::source::Source;
use crate::write::{Rows, Stop, answer_bytes, write};

/// The arguments of `convert_data`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    to: Format,
    path: Option<String>,
    text: Option<String>,
    from: Option<Format>,
    delimiter: Option<String>,
    #[serde(default)]
    offset: usize,
    limit: Option<usize>,
    #[serde(default = "answer_bytes")]
    max_bytes: usize,
}

/// The rows of a conversion.
struct Conversion {
    to: Format,
    /// The name of the converted document in errors.
    name: String,
    offset: usize,
    limit: usize,
    max_bytes: usize,
    /// `None` before the first row.
    rows: Option<Rows>,
    /// The number of rows, including those before the offset.
    seen: usize,
    /// The first row that no longer fit.
    next: Option<usize>,
}

/// Runs a call.
pub(crate) fn run(call: &Call, arguments: &Arguments) -> Result<Answer, ErrorInfo> {
    let mut notes = Notes::default();
    let text = convert(call, arguments, &mut notes)?;
    Ok(Answer { text, notes: notes.sentences() })
}

fn convert(call: &Call, arguments: &Arguments, notes: &mut Notes) -> Result<String, ErrorInfo> {
    let Arguments { to, path, text, from, delimiter, offset, limit, max_bytes } = arguments;
    let delimiter = delimiter.as_deref().map(separator).transpose()?;
    let source = Source { path: path.as_deref(), text: text.as_deref(), from: *from, delimiter };
    let name = source.name();
    if source.format() == Format::Toml && *to == Format::Toml {
        return Err(ErrorInfo::new(format!("{name} is TOML already")));
    }
    let wants_rows = *offset > 0 || limit.is_some();
    let limit = limit.unwrap_or(usize::MAX);
    let mut conversion = Conversion {
        to: *to,
        name,
        offset: *offset,
        limit,
        max_bytes: *max_bytes,
        rows: None,
        seen: 0,
        next: None,
    };
    if source.format().has_rows() {
        source.rows(call, notes, &mut |row| conversion.add(&row, &row.value, None))?;
        return conversion.finish();
    }
    let loaded = source.load(call, notes)?;
    // Only a second document shows that there are several.
    let mut first: Option<Document<'_>> = None;
    loaded.documents(notes, &mut |document| {
        if conversion.seen == 0 && first.is_none() {
            first = Some(document);
            return Ok(true);
        }
        if let Some(first) = first.take()
            && !conversion.add(&first, &first.value, None)?
        {
            return Ok(false);
        }
        conversion.add(&document, &document.value, None)
    })?;
    let Some(document) = first else { return conversion.finish() };
    let items = |items: &[Value], mut conversion: Conversion| {
        for (index, item) in items.iter().enumerate() {
            if !conversion.add(&document, item, Some(index))? {
                break;
            }
        }
        conversion.finish()
    };
    match &document.value {
        Value::Array(all) if wants_rows || to.has_rows() => items(all, conversion),
        _ if wants_rows => Err(ErrorInfo::new(format!(
            "{} has no rows: `offset` and `limit` are only for CSV, JSON Lines and arrays",
            document.name
        ))),
        value => match (write(*to, value, *max_bytes), value) {
            (Ok(text), _) => Ok(text),
            (Err(Stop::TooLong), Value::Array(all)) => items(all, conversion),
            (Err(Stop::TooLong), _) => Err(ErrorInfo::new(format!(
                "{} as {to} is longer than `max_bytes` {max_bytes}; raise it, or get parts with \
                 `query_data`",
                document.name
            ))),
            (Err(Stop::Unfit { what, keys }), _) => Err(unfit(*to, &document, &what, &keys, None)),
        },
    }
}

impl Conversion {
    /// Adds a row, which is an item of the document or the whole document. Returns whether more
    /// rows are wanted.
    fn add(
        &mut self,
        document: &Document<'_>,
        row: &Value,
        item: Option<usize>,
    ) -> Result<bool, ErrorInfo> {
        let number = self.seen;
        self.seen += 1;
        if number < self.offset {
            return Ok(true);
        }
        if number - self.offset >= self.limit {
            return Ok(false);
        }
        let rows = match &mut self.rows {
            Some(rows) => rows,
            rows @ None => {
                let new = Rows::new(self.to, self.max_bytes);
                rows.insert(new.map_err(|stop| stop.error(&self.name, self.to, self.max_bytes))?)
            }
        };
        match rows.add(row) {
            Ok(()) => Ok(number + 1 - self.offset < self.limit),
            Err(Stop::TooLong) if number > self.offset => {
                self.next = Some(number);
                Ok(false)
            }
            Err(Stop::TooLong) => {
                let Self { name, to, max_bytes, .. } = self;
                Err(ErrorInfo::new(format!(
                    "row {number} of {name} as {to} is longer than `max_bytes` {max_bytes}; raise \
                     it, or get parts of the row with `query_data`"
                )))
            }
            Err(Stop::Unfit { what, mut keys }) => {
                keys.splice(0..0, item.map(|index| index.to_string()));
                let row = item.is_none().then_some(number);
                Err(unfit(self.to, document, &what, &keys, row))
            }
        }
    }

    fn finish(self) -> Result<String, ErrorInfo> {
        let Self { name, to, offset, max_bytes, next, .. } = self;
        let rows = self.rows.map_or_else(|| Rows::new(to, max_bytes), Ok);
        let text = rows.and_then(Rows::finish).map_err(|stop| stop.error(&name, to, max_bytes))?;
        Ok(match next {
            None => text,
            Some(next) => {
                let end = if text.ends_with('\n') { "" } else { "\n" };
                format!(
                    "{text}{end}[rows {offset} to {} fit in max_bytes; offset={next} reads on]",
                    next - 1
                )
            }
        })
    }
}

impl Stop {
    /// Returns the error for rows that cannot be combined in one text.
    fn error(self, name: &str, to: Format, max_bytes: usize) -> ErrorInfo {
        ErrorInfo::new(match self {
            Self::TooLong => {
                format!(
                    "{name} as {to} is longer than `max_bytes` {max_bytes}; lower `limit`, or raise \
                     `max_bytes`"
                )
            }
            Self::Unfit { what, .. } => format!("{name} contains what {to} cannot express: {what}"),
        })
    }
}

/// Creates the error for a value that a format cannot represent. `row` is the number of the
/// document if there are several.
fn unfit(
    to: Format,
    document: &Document<'_>,
    what: &str,
    keys: &[String],
    row: Option<usize>,
) -> ErrorInfo {
    let inner = pointer::written(keys);
    let (line, column) = document.place(&inner);
    let row = row.map_or_else(String::new, |row| format!("/{row}"));
    let mistake = Mistake {
        what: format!("contains what {to} cannot express: {what}"),
        line,
        column,
        pointer: Some(format!("{row}{inner}")),
    };
    mistake.error(&document.name)
}

/// Parses a delimiter as a byte.
fn separator(delimiter: &str) -> Result<u8, ErrorInfo> {
    match delimiter.as_bytes() {
        [byte] if byte.is_ascii() && !b"\"\r\n".contains(byte) => Ok(*byte),
        b"\\t" => Ok(b'\t'),
        _ => Err(ErrorInfo::new(format!(
            "`delimiter` is `{}`, but must be one ASCII character other than a quote or line break",
            excerpt::value(delimiter)
        ))),
    }
}
