//! The matching lines of one file that `grep-searcher` finds.

use std::fmt::Write as _;
use std::io;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};

use crate::answer::count;
use crate::arguments::Show;

/// Maximum number of displayed bytes of a line.
const LINE_BYTES: usize = 300;

/// Maximum number of displayed bytes before the match.
const BYTES_BEFORE: usize = 80;

/// Maximum number of displayed lines of one match.
const MATCH_LINES: usize = 40;

/// The matches of one file.
#[derive(Default)]
pub(crate) struct Hits {
    /// The lines to show with their numbers, and whether each one matches.
    pub(crate) lines: Vec<(bool, String)>,
    /// The number of matching lines that are shown.
    pub(crate) shown: u64,
    /// The number of matching lines that are not shown.
    pub(crate) left_out: u64,
    /// The file contains a NUL byte. The search stops there unless the file was named.
    pub(crate) is_binary: bool,
    /// The limit on counted lines was reached, in this file or before.
    pub(crate) is_stopped: bool,
}

/// Collects the [`Hits`] of a file.
pub(crate) struct Collector<'a> {
    pub(crate) matcher: &'a RegexMatcher,
    pub(crate) show: Show,
    /// The number of lines that may be shown.
    pub(crate) room: u64,
    /// The number of lines that may be counted without being shown.
    pub(crate) countable: u64,
    /// Only matches over several lines are wanted.
    pub(crate) spans: bool,
    pub(crate) hits: Hits,
}

impl Hits {
    /// Returns the number of matching lines that were counted.
    pub(crate) fn matches(&self) -> u64 {
        self.shown + self.left_out
    }

    /// Drops the matches after the first ones.
    pub(crate) fn cut(&mut self, room: u64) {
        if self.shown <= room {
            return;
        }
        let mut seen = 0;
        let end = self.lines.iter().position(|(is_match, _)| {
            seen += u64::from(*is_match);
            seen > room
        });
        self.lines.truncate(end.unwrap_or(self.lines.len()));
        self.left_out += self.shown - room;
        self.shown = room;
    }
}

impl Collector<'_> {
    /// Returns the number of matches: one per line if each is within a line.
    fn count(&self, searcher: &Searcher, found: &SinkMatch<'_>) -> u64 {
        if !searcher.multi_line_with_matcher(self.matcher) {
            return 1;
        }
        let mut count = 0;
        let _ = self.matcher.find_iter(found.bytes(), |_| {
            count += 1;
            true
        });
        count
    }

    /// Returns true if a match contains a line ending between text.
    fn spans_lines(&self, found: &SinkMatch<'_>) -> bool {
        let mut spans = false;
        let _ = self.matcher.find_iter(found.bytes(), |at| {
            spans = found.bytes()[at.start()..at.end()].trim_ascii().contains(&b'\n');
            !spans
        });
        spans
    }

    /// Takes a part of a line that is too long to be read completely. The match starts at `start`
    /// in the part. Returns `false` if enough was found.
    pub(crate) fn take_part(&mut self, number: u64, line: &[u8], start: usize) -> io::Result<bool> {
        if self.show != Show::Lines {
            self.hits.shown += 1;
            return Ok(self.show == Show::Counts);
        }
        if self.hits.shown == self.room {
            return Ok(self.leave_out());
        }
        self.hits.shown += 1;
        let mut text = format!("{number}:");
        add_line(&mut text, line, || start);
        self.hits.lines.push((true, text));
        Ok(true)
    }

    /// Counts a line that is not shown. Returns `false` if enough was counted.
    fn leave_out(&mut self) -> bool {
        self.hits.left_out += 1;
        self.hits.is_stopped = self.hits.left_out >= self.countable;
        !self.hits.is_stopped
    }

    fn add(&mut self, number: Option<u64>, is_match: bool, line: &[u8]) {
        let mark = if is_match { ':' } else { '-' };
        let mut text = String::new();
        let _ = write!(text, "{}{mark}", number.unwrap_or_default());
        add_line(&mut text, line, || {
            let found = if is_match { self.matcher.find(line).ok().flatten() } else { None };
            found.map_or(0, |found| found.start())
        });
        self.hits.lines.push((is_match, text));
    }
}

impl Sink for Collector<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let is_named = searcher.binary_detection().convert_byte().is_some();
        if self.spans && !self.spans_lines(found) {
            return Ok(true);
        }
        if self.show != Show::Lines {
            self.hits.shown += self.count(searcher, found);
            return Ok(self.show == Show::Counts && !(is_named && self.hits.is_binary));
        }
        if is_named && self.hits.is_binary {
            self.hits.shown += 1;
            return Ok(false);
        }
        if self.hits.shown == self.room {
            return Ok(self.leave_out());
        }
        self.hits.shown += 1;
        let first = found.line_number();
        for (index, line) in found.lines().take(MATCH_LINES).enumerate() {
            // A match may have several lines, but is a single match.
            let number = first.map(|first| first + index as u64);
            self.add(number, index == 0, line);
        }
        let more = found.lines().skip(MATCH_LINES).count();
        if more > 0 {
            let lines = count(more as u64, "more line", "more lines");
            self.hits.lines.push((false, format!("[the match has {lines}]")));
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let is_of_match_left_out = match context.kind() {
            SinkContextKind::Before => self.hits.shown == self.room,
            _ => self.hits.left_out > 0,
        };
        if self.show == Show::Lines && !is_of_match_left_out {
            self.add(context.line_number(), false, context.bytes());
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.show == Show::Lines && self.hits.shown < self.room {
            self.hits.lines.push((false, "--".into()));
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.hits.is_binary = true;
        Ok(true)
    }
}

/// Adds a line without its ending. For a long line, adds only the part around the match.
fn add_line(text: &mut String, line: &[u8], find: impl Fn() -> usize) {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= LINE_BYTES {
        text.push_str(&String::from_utf8_lossy(line));
        return;
    }
    let is_boundary = |index: &usize| line.get(*index).is_none_or(|byte| byte & 0xc0 != 0x80);
    let start = find().saturating_sub(BYTES_BEFORE).min(line.len() - LINE_BYTES);
    let start = (start..line.len()).find(is_boundary).unwrap_or(line.len());
    let end = (start..=(start + LINE_BYTES).min(line.len())).rev().find(is_boundary);
    let end = end.unwrap_or(start);
    if start > 0 {
        text.push('…');
    }
    text.push_str(&String::from_utf8_lossy(&line[start..end]));
    if end < line.len() {
        let _ = write!(text, "… [{} bytes]", line.len());
    }
}
