//! Writes data to standard output and everything else to standard error.
//!
//! Everything is written here, with terminal control characters escaped. The output of a tool is
//! raw data for a program if it is not written to a terminal.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use kitbag::base::text::{is_hidden, printable};
use serde_json::Value;

use crate::error::CliError;
use crate::labels::labelled;
use crate::sys;

/// Writes text for a person, and ends it with a line break.
pub(crate) fn data(text: &str) -> Result<(), CliError> {
    raw(&printable(text).to_string())
}

fn raw(text: &str) -> Result<(), CliError> {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    write(&[text, end])
}

/// Writes text from a tool. On a terminal, control characters are escaped.
pub(crate) fn untrusted(text: &str) -> Result<(), CliError> {
    match io::stdout().is_terminal() {
        true => data(text),
        false => raw(text),
    }
}

/// Writes one JSON value on one line. Terminal control characters are escaped, which does not
/// change the value.
pub(crate) fn json(value: &Value) -> Result<(), CliError> {
    write(&[&escaped(value.to_string()), "\n"])
}

/// Like [`json`], on several lines for a person to read and copy.
#[cfg(feature = "serve")]
pub(crate) fn json_lines(value: &Value) -> Result<(), CliError> {
    write(&[&escaped(format!("{value:#}")), "\n"])
}

/// Escapes invisible characters in JSON, which only strings can hold.
fn escaped(json: String) -> String {
    let must_be = |c: char| is_hidden(c) && c != '\n';
    if !json.contains(must_be) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match must_be(c) {
            true => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    let _ = write!(escaped, "\\u{unit:04x}");
                }
            }
            false => escaped.push(c),
        }
    }
    escaped
}

/// True if [`note`] no longer writes.
static IS_UNREAD: AtomicBool = AtomicBool::new(false);

/// Disables [`note`]: standard error is a full pipe, and writing would block until its reader
/// continues.
#[cfg(feature = "serve")]
pub(crate) fn stop_notes() {
    IS_UNREAD.store(true, Ordering::Relaxed);
}

/// Writes a note to standard error.
pub(crate) fn note(text: &str) {
    if IS_UNREAD.load(Ordering::Relaxed) {
        return;
    }
    // A closed standard error cannot be reported anywhere.
    let _ = writeln!(io::stderr().lock(), "{}", printable(text.trim_end()));
}

/// Writes a warning to standard error.
pub(crate) fn warn(text: &str) {
    note(&labelled("warning", text));
}

/// Rewrites the last line of the terminal on standard error. Empty text clears it.
pub(crate) fn rewrite(line: &str) {
    let mut terminal = io::stderr().lock();
    // Moves to the start of the line and erases it.
    let line = printable(line);
    let _ = write!(terminal, "\r\u{1b}[K{line}").and_then(|()| terminal.flush());
}

/// Formats rows with aligned columns, except for the last column.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let line = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(line.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Writes a question to standard error without a line break. It is flushed at once, so that input
/// typed before the question is not an answer.
pub(crate) fn ask(text: &str) -> io::Result<()> {
    let text = printable(text).to_string();
    let (before, line) = text.split_at(text.rfind('\n').map_or(0, |at| at + 1));
    let mut terminal = io::stderr().lock();
    terminal.write_all(before.as_bytes())?;
    sys::discard_typed();
    terminal.write_all(line.as_bytes()).and_then(|()| terminal.flush())
}

/// Shows long text to a person: in a pager if standard output is a terminal, otherwise as a note.
pub(crate) fn paged(text: &str) -> Result<(), CliError> {
    if !io::stdout().is_terminal() {
        note(text);
        return Ok(());
    }
    let named = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
    let mut words = named.split_whitespace();
    let Some(program) = words.next() else { return data(text) };
    let mut pager = Command::new(program);
    pager.args(words).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // Like git: quit if the text fits on one screen, and leave it on the screen.
        pager.env("LESS", "FRX");
    }
    let Ok(mut child) = pager.spawn() else { return data(text) };
    let written = child
        .stdin
        .take()
        .map_or(Ok(()), |mut stdin| stdin.write_all(printable(text).to_string().as_bytes()));
    let ended = child.wait().map_err(CliError::Output)?;
    match written {
        // The reader closed the pager before the end.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CliError::Output(error)),
        _ if ended.code() == Some(127) => data(text),
        _ => Ok(()),
    }
}

/// Shows a manual page in roff format in the system's viewer. Returns `false` if no viewer reads a
/// page from standard input.
pub(crate) fn manual(page: &[u8]) -> Result<bool, CliError> {
    let mut viewer = Command::new("man");
    viewer.args(["-l", "-"]).stdin(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut child) = viewer.spawn() else { return Ok(false) };
    // A viewer that does not know `-l` ends before it has read the page.
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(page));
    let ended = child.wait().map_err(CliError::Output)?;
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CliError::Output(error)),
        _ => Ok(ended.success()),
    }
}

/// Escapes terminal control characters in a line of the log. `is_json` means that the line is a
/// JSON value.
#[cfg(feature = "serve")]
pub(crate) fn log_line(text: &str, is_json: bool) -> String {
    match is_json {
        true => escaped(text.to_owned()),
        // Further lines in the text of an event must not look like events.
        false => match text.strip_suffix('\n') {
            Some(event) => format!("{}\n", printable(event).to_string().replace('\n', "\n    ")),
            None => printable(text).to_string(),
        },
    }
}

/// Writes a line of the log, including its line break, to standard error.
#[cfg(feature = "serve")]
pub(crate) fn log(line: &str) {
    // A closed standard error cannot be reported anywhere.
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

fn write(parts: &[&str]) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    let written = parts
        .iter()
        .try_for_each(|part| stdout.write_all(part.as_bytes()))
        .and_then(|()| stdout.flush());
    match written {
        // The reader closed the pipe, which is not an error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(CliError::Output),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[cfg(feature = "serve")]
    #[test]
    fn an_event_of_the_log_has_one_line_at_the_margin() {
        let event = "2026-01-01 INFO a\n2026-01-01 ERROR forged\n";
        let expected = "2026-01-01 INFO a\n    2026-01-01 ERROR forged\n";
        assert_eq!(log_line(event, false), expected);
        assert_eq!(log_line("{\"a\":\"b\u{1b}\"}\n", true), "{\"a\":\"b\\u001b\"}\n");
    }

    #[test]
    fn json_has_no_terminal_control_characters() {
        let value = json!({ "a\u{202e}": ["\u{9b}2J\u{7f}", "\u{e0041}", "wörd\n\u{1b}"] });
        let text = escaped(value.to_string());
        assert_eq!(
            text,
            "{\"a\\u202e\":[\"\\u009b2J\\u007f\",\"\\udb40\\udc41\",\"wörd\\n\\u001b\"]}"
        );
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        let lines = escaped(format!("{value:#}"));
        assert_eq!(serde_json::from_str::<Value>(&lines).unwrap(), value);
        assert_eq!(lines.lines().count(), 7);
    }
}
