//! `read_file`.

use std::fmt::Write as _;

use kitbag_sdk::{Call, ErrorInfo, Stop, json};
use kitbag_workspace::{Decoded, Encoding, looks_binary, quoted};
use memchr::memchr_iter;
use serde::Deserialize;

use crate::file::{Opened, binary, digest, text};
use crate::numbers::{count, size};

/// The size of a read from a file that is too large to be read as a whole.
const CHUNK_BYTES: u64 = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: Option<String>,
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default = "one")]
    start_line: i64,
    end_line: Option<u64>,
    #[serde(default = "first")]
    start_column: usize,
    #[serde(default)]
    numbered: bool,
    #[serde(default = "max_bytes")]
    max_bytes: usize,
}

fn one() -> i64 {
    1
}

fn first() -> usize {
    1
}

pub(crate) fn max_bytes() -> usize {
    48 << 10
}

pub(crate) fn run(call: &Call) -> Result<String, Stop> {
    let arguments: Arguments = call.arguments()?;
    check(&arguments)?;
    match (&arguments.path, arguments.paths.as_slice()) {
        (Some(path), []) => Ok(read(call, &arguments, path, arguments.max_bytes, false)?),
        (None, [path]) => Ok(read(call, &arguments, path, arguments.max_bytes, false)?),
        (None, []) => Err(ErrorInfo::new("`path` or `paths` must name a file").into()),
        (Some(_), _) => Err(ErrorInfo::new("pass either `path` or `paths`").into()),
        (None, paths) => several(call, &arguments, paths),
    }
}

fn check(arguments: &Arguments) -> Result<(), ErrorInfo> {
    let Arguments { start_line, end_line, .. } = arguments;
    match end_line {
        _ if *start_line == 0 => Err(ErrorInfo::new("`start_line` is 0, but lines start at 1")),
        Some(end) if *start_line > 0 && *end < start_line.unsigned_abs() => {
            Err(ErrorInfo::new(format!("`end_line` is {end}, before `start_line` {start_line}")))
        }
        _ => Ok(()),
    }
}

/// Reads several files into one answer. An unreadable file does not affect the others.
fn several(call: &Call, arguments: &Arguments, paths: &[String]) -> Result<String, Stop> {
    let mut answer = String::new();
    let mut left = Vec::new();
    let mut failures = Vec::new();
    for path in paths {
        let room = arguments.max_bytes.saturating_sub(answer.len());
        if room == 0 {
            left.push(path);
            continue;
        }
        let block = read(call, arguments, path, room, true).unwrap_or_else(|error| {
            let shown = format!("[{}]\n", error.message);
            failures.push(error.message);
            shown
        });
        if !answer.is_empty() {
            answer.push_str(if answer.ends_with('\n') { "\n" } else { "\n\n" });
        }
        answer.push_str(&block);
    }
    if failures.len() == paths.len() {
        return Err(ErrorInfo::new(failures.join("; ")).into());
    }
    if !left.is_empty() {
        let paths = json!(left);
        let _ = write!(answer, "\n[max_bytes reached; paths={paths} reads on]");
    }
    Ok(answer)
}

/// Reads one file: a line that describes it, and its lines.
fn read(
    call: &Call,
    arguments: &Arguments,
    path: &str,
    room: usize,
    is_named: bool,
) -> Result<String, ErrorInfo> {
    let mut opened = Opened::open(call, path)?;
    let name = if is_named { format!("{}: ", quoted(path)) } else { String::new() };
    let Some(content) = opened.read_whole()? else {
        let (facts, lines) = large(&mut opened, arguments, room)?;
        return Ok(format!("[{name}{facts}]\n{lines}"));
    };
    let digest = digest(&content);
    let decoded = text(&opened.location, content)?;
    let (range, more, lines) = select(&decoded.text, arguments, room)?;
    let mut facts = vec![range];
    facts.extend(oddities(&decoded));
    facts.push(format!("digest {digest}"));
    let more = more.map(|more| format!("; {more} reads on")).unwrap_or_default();
    Ok(format!("[{name}{}{more}]\n{lines}", facts.join(", ")))
}

/// Returns unusual properties of a text: an encoding other than UTF-8, lines that do not end with
/// LF, no final newline.
pub(crate) fn oddities(decoded: &Decoded) -> Vec<String> {
    let mut found = Vec::new();
    if decoded.encoding != Encoding::UTF_8 {
        found.push(decoded.encoding.to_string());
    }
    let text = decoded.text.as_bytes();
    let (mut all, mut crlf) = (0, 0);
    for at in memchr_iter(b'\n', text) {
        all += 1;
        crlf += u64::from(at > 0 && text[at - 1] == b'\r');
    }
    match crlf {
        0 => {}
        _ if crlf == all => found.push("CRLF".into()),
        _ => found.push("mixed line endings".into()),
    }
    if !decoded.text.is_empty() && !decoded.text.ends_with('\n') {
        found.push("no final newline".into());
    }
    found
}

/// Returns the requested lines: their range, the arguments that continue, and their text.
fn select(
    text: &str,
    arguments: &Arguments,
    room: usize,
) -> Result<(String, Option<String>, String), ErrorInfo> {
    let unfinished = u64::from(!text.is_empty() && !text.ends_with('\n'));
    let total = memchr_iter(b'\n', text.as_bytes()).count() as u64 + unfinished;
    let start = match arguments.start_line {
        start if start > 0 => start.unsigned_abs(),
        start => (total + 1).saturating_sub(start.unsigned_abs()).max(1),
    };
    if total == 0 {
        return Ok(("empty".into(), None, String::new()));
    }
    if start > total {
        let lines = count(total, "line", "lines");
        return Err(ErrorInfo::new(format!("`start_line` is {start}, but the file has {lines}")));
    }
    let end = arguments.end_line.unwrap_or(total).min(total);
    let wanted = text.split_inclusive('\n').skip(start as usize - 1);
    let wanted = wanted.take((end + 1).saturating_sub(start) as usize);
    let page = page(wanted, start, arguments, room, false);
    let range = match (start, page.last) {
        (1, last) if last == total && page.column.is_none() => count(total, "line", "lines"),
        (start, last) if start == last => format!("line {start} of {total}"),
        (start, last) => format!("lines {start}-{last} of {total}"),
    };
    Ok((range, page.more(end), page.lines))
}

/// The lines that fit into an answer.
struct Page {
    lines: String,
    /// The last line in the answer.
    last: u64,
    /// The column at which the line continues, in characters, if it was cut.
    column: Option<usize>,
}

impl Page {
    /// Returns the arguments that continue, up to a line.
    fn more(&self, end: u64) -> Option<String> {
        match self.column {
            Some(column) => Some(format!("start_line={} start_column={column}", self.last)),
            None if self.last < end => Some(format!("start_line={}", self.last + 1)),
            None => None,
        }
    }
}

/// Takes lines while there is room. With `begins_at_column` the first line starts at
/// `start_column`.
fn page<'a>(
    wanted: impl Iterator<Item = &'a str>,
    start: u64,
    arguments: &Arguments,
    room: usize,
    begins_at_column: bool,
) -> Page {
    let mut page = Page { lines: String::new(), last: start, column: None };
    for (number, line) in (start..).zip(wanted) {
        let mut skipped = 0;
        let mut line = line;
        if number == start && arguments.start_column > 1 {
            skipped = arguments.start_column - 1;
            let left = if begins_at_column { 0 } else { skipped };
            let from = line.char_indices().nth(left).map_or(line.len(), |(at, _)| at);
            line = &line[from..];
        }
        let before = page.lines.len();
        if arguments.numbered {
            let _ = write!(page.lines, "{number}\t");
        }
        let left = room.saturating_sub(page.lines.len());
        if line.len() > left {
            page.lines.truncate(if number > start { before } else { page.lines.len() });
            if number == start {
                // At least one character: otherwise the next call would start at the same column.
                let one = line.chars().next().map_or(0, char::len_utf8);
                let part = &line[..line.floor_char_boundary(left).max(one)];
                page.lines.push_str(part);
                page.column = Some(skipped + part.chars().count() + 1);
            }
            return page;
        }
        page.last = number;
        match line.strip_suffix("\r\n") {
            Some(line) => {
                page.lines.push_str(line);
                page.lines.push('\n');
            }
            None => page.lines.push_str(line),
        }
    }
    page
}

/// Like [`read`], for a large file: lines are counted up to the requested ones.
fn large(
    opened: &mut Opened,
    arguments: &Arguments,
    room: usize,
) -> Result<(String, String), ErrorInfo> {
    let sample = opened.read(0, 8 << 10)?;
    if looks_binary(&sample) {
        return Err(binary(&opened.location, &sample));
    }
    if sample.starts_with(b"\xff\xfe") || sample.starts_with(b"\xfe\xff") {
        return Err(opened.too_large("reading UTF-16"));
    }
    let all = size(opened.size);
    if arguments.start_line < 0 {
        if arguments.numbered || arguments.end_line.is_some() {
            return Err(
                opened.too_large("counting lines from the end with `numbered` or `end_line`")
            );
        }
        let from = opened.size.saturating_sub(room as u64);
        let content = opened.read(from, room as u64)?;
        let tail = lossless(&content);
        let lines: Vec<_> = tail.split_inclusive('\n').collect();
        let wanted = arguments.start_line.unsigned_abs() as usize;
        // The first line may be incomplete.
        let whole = lines.len() - usize::from(from > 0 && lines.len() > 1);
        let given = &lines[lines.len() - wanted.min(whole)..];
        let facts = format!("last {} of {all}", count(given.len() as u64, "line", "lines"));
        return Ok((facts, given.concat().replace("\r\n", "\n")));
    }
    let start = arguments.start_line.unsigned_abs();
    let Some(from) = line_start(opened, start)? else {
        return Err(ErrorInfo::new(format!(
            "`start_line` is {start}, but `{}` has fewer lines",
            opened.location.given
        )));
    };
    let from = match arguments.start_column {
        1 => from,
        column => column_start(opened, from, start, column)?,
    };
    let content = opened.read(from, room as u64 + 4)?;
    let is_end = from + content.len() as u64 >= opened.size;
    let part = lossless(&content);
    let wanted = arguments.end_line.map_or(usize::MAX, |end| (end + 1 - start) as usize);
    let page = page(part.split_inclusive('\n').take(wanted), start, arguments, room, true);
    let lines = part.split_inclusive('\n').count() as u64;
    let last = if is_end { start + lines.saturating_sub(1) } else { u64::MAX };
    let end = arguments.end_line.unwrap_or(u64::MAX).min(last);
    let more = page.more(end).map(|more| format!("; {more} reads on")).unwrap_or_default();
    Ok((format!("lines {start}-{} of {all}{more}", page.last), page.lines))
}

/// Returns the start of a line.
fn line_start(opened: &mut Opened, line: u64) -> Result<Option<u64>, ErrorInfo> {
    let (mut at, mut left) = (0, line - 1);
    while left > 0 {
        let chunk = opened.read(at, CHUNK_BYTES)?;
        if chunk.is_empty() {
            return Ok(None);
        }
        let ends = chunk.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let mut seen = 0;
        let mut last = None;
        for (end, _) in ends {
            seen += 1;
            if seen == left {
                last = Some(end);
                break;
            }
        }
        if let Some(end) = last {
            return Ok(Some(at + end as u64 + 1));
        }
        left -= seen;
        at += chunk.len() as u64;
    }
    Ok(Some(at))
}

/// Returns the offset of a column in the line that starts at an offset.
fn column_start(
    opened: &mut Opened,
    line_start: u64,
    line: u64,
    column: usize,
) -> Result<u64, ErrorInfo> {
    let (mut at, mut before) = (line_start, 0);
    loop {
        let chunk = opened.read(at, CHUNK_BYTES)?;
        for (index, byte) in chunk.iter().enumerate() {
            // All bytes of a character except its first start with the bits 10.
            let is_first = byte & 0xc0 != 0x80;
            if is_first && before + 1 == column {
                return Ok(at + index as u64);
            }
            if *byte == b'\n' {
                break;
            }
            before += usize::from(is_first);
        }
        at += chunk.len() as u64;
        if chunk.is_empty() || chunk.contains(&b'\n') {
            return Err(ErrorInfo::new(format!(
                "`start_column` is {column}, but line {line} of `{}` has {}",
                opened.location.given,
                count(before as u64, "character", "characters")
            )));
        }
    }
}

/// Decodes a piece of text whose last character may be truncated.
fn lossless(piece: &[u8]) -> String {
    let whole = match str::from_utf8(piece) {
        Ok(text) => return text.to_owned(),
        Err(error) if error.error_len().is_none() => &piece[..error.valid_up_to()],
        Err(_) => piece,
    };
    String::from_utf8_lossy(whole).into_owned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_piece_ends_at_a_character() {
        assert_eq!(super::lossless("aé".as_bytes()), "aé");
        assert_eq!(super::lossless(&"aé".as_bytes()[..2]), "a");
    }
}
