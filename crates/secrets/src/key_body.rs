//! The body of a private key whose lines have prefixes or separators: line numbers, diff marks,
//! quotes of an array, file names.

use std::ops::Range;

use crate::chars::Chars;
use crate::leak_rules::{is_filler, last_example};

/// The shortest line of a body. The last line may be shorter.
const LINE_BYTES: usize = 40;

/// The shortest run that is masked in a body with several strings.
const RUN_BYTES: usize = 8;

/// The minimum size of a body.
const BODY_BYTES: usize = 64;

/// Maximum number of bytes between two lines of a body, and between the body and the first or last
/// line of the block: a prefix with a file name, or a hunk header.
const GAP_BYTES: usize = 256;

/// The minimum number of dashes on either side of the words in a first or last line.
const DASHES: usize = 4;

/// Maximum length of the words in such a line.
const WORDS_BYTES: usize = 64;

/// The first or last line of a block.
enum Mark {
    Begin,
    /// The position after the line.
    End(usize),
}

/// Returns the end of the body after the first line of a block, including the last line if it is
/// near. `start` is the position after the first line. If the bytes were cut at `cut`, the body may
/// be shorter there.
///
/// Does not search beyond the first line of the next block.
pub(crate) fn after(bytes: &[u8], start: usize, cut: Option<usize>) -> Option<usize> {
    let (mut end, mut at, mut found) = (start, start, 0);
    let mut is_cut = false;
    while at < bytes.len() && at - end < GAP_BYTES {
        match bytes[at] {
            b'-' => match mark(bytes, at) {
                Ok(Mark::End(behind)) => {
                    return (found >= BODY_BYTES || is_cut).then_some(behind);
                }
                Ok(Mark::Begin) => break,
                Err(dashes) => at += dashes,
            },
            byte if Chars::Base64.has(byte) => {
                let line = at..at + Chars::Base64.run(&bytes[at..]);
                let is_last = cut.is_some_and(|cut| line.start < cut && cut <= line.end);
                if is_line(bytes, &line) || is_last && line.len() >= DASHES {
                    (end, found) = (line.end, found + line.len());
                    is_cut |= is_last;
                }
                at = line.end;
            }
            _ => at += 1,
        }
    }
    (found >= BODY_BYTES || is_cut).then_some(end)
}

/// Returns the body before the last line of a block, which starts at `end`, if the first line is
/// missing.
///
/// Does not search beyond the last line of another block or the first line of this one.
pub(crate) fn before(bytes: &[u8], end: usize) -> Option<usize> {
    let (mut start, mut at, mut found) = (end, end, 0);
    while at > 0 && start - at < GAP_BYTES {
        if !Chars::Base64.has(bytes[at - 1]) {
            at -= 1;
            continue;
        }
        let is_in = |byte: &&u8| Chars::Base64.has(**byte);
        let line = at - bytes[..at].iter().rev().take_while(is_in).count()..at;
        if is_mark(bytes, line.start) {
            break;
        }
        if is_line(bytes, &line) {
            (start, found) = (line.start, found + line.len());
        }
        at = line.start;
    }
    (found >= BODY_BYTES).then_some(start)
}

/// Returns the runs of data in a block, without the letters of escapes before them.
pub(crate) fn runs(bytes: &[u8], block: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut at = block.start;
    std::iter::from_fn(move || {
        while at < block.end {
            let length = Chars::Base64.run(&bytes[at..block.end]);
            let run = at..at + length;
            at = run.end.max(at + 1);
            if length >= RUN_BYTES {
                let is_escape = bytes[..run.start].ends_with(b"\\");
                return Some(run.start + usize::from(is_escape)..run.end);
            }
        }
        None
    })
}

/// Returns the position after the last line of a block that starts at `at`.
pub(crate) fn last_line_end(bytes: &[u8], at: usize) -> Option<usize> {
    match mark(bytes, at) {
        Ok(Mark::End(behind)) => Some(behind),
        Ok(Mark::Begin) | Err(_) => None,
    }
}

/// Returns true if a run is a line of a key. The words of a path and a hexadecimal digest are not.
fn is_line(bytes: &[u8], line: &Range<usize>) -> bool {
    let run = &bytes[line.clone()];
    run.len() >= LINE_BYTES
        && run.iter().any(u8::is_ascii_lowercase)
        && run.iter().any(u8::is_ascii_uppercase)
        && !is_filler(run)
        && last_example(run).is_none()
}

/// Returns the first or last line of a block that starts with the dash at `at`, or the number of
/// dashes.
fn mark(bytes: &[u8], at: usize) -> Result<Mark, usize> {
    let dashes = |at: usize| bytes[at..].iter().take_while(|byte| **byte == b'-').count();
    let own = dashes(at);
    let words = at + own;
    if own < DASHES {
        return Err(own);
    }
    if starts_with_word(&bytes[words..], b"BEGIN") {
        return Ok(Mark::Begin);
    }
    if !starts_with_word(&bytes[words..], b"END") {
        return Err(own);
    }
    let rest = &bytes[words..bytes.len().min(words + WORDS_BYTES)];
    let behind = rest.windows(DASHES).position(|four| four == b"----");
    Ok(Mark::End(behind.map_or(words + b"END".len(), |length| {
        let more = words + length;
        more + dashes(more)
    })))
}

/// Returns true if the words of a first or last line start here, after the dashes.
fn is_mark(bytes: &[u8], at: usize) -> bool {
    let word = &bytes[at..];
    let before = bytes[..at].strip_suffix(b" ").unwrap_or(&bytes[..at]);
    (word.starts_with(b"BEGIN") || word.starts_with(b"END")) && before.ends_with(b"----")
}

fn starts_with_word(bytes: &[u8], word: &[u8]) -> bool {
    bytes.strip_prefix(b" ").unwrap_or(bytes).starts_with(word)
}
