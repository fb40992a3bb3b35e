//! Files with lines that are too long to search as lines. They are searched piece by piece, without
//! context.

use std::io::{self, Read};

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;

use crate::hits::Collector;

/// Number of bytes of a file that are in memory.
const WINDOW_BYTES: usize = 4 << 20;

/// Maximum length of a match that is always found: this part of a window is searched again with the
/// next one.
const OVERLAP_BYTES: usize = 64 << 10;

/// Number of bytes that are kept before the overlap, for look-behind.
const BEFORE_BYTES: usize = 16;

/// A piece of a file.
struct Window {
    bytes: Vec<u8>,
    /// The position at which the search continues.
    at: usize,
    /// The number of the line at position `counted`.
    line: u64,
    counted: usize,
    at_end: bool,
}

/// Searches a file for matches within lines.
pub(crate) fn search(
    mut file: impl Read,
    matcher: &RegexMatcher,
    collector: &mut Collector<'_>,
) -> io::Result<()> {
    let mut window = Window { bytes: Vec::new(), at: 0, line: 1, counted: 0, at_end: false };
    // True in the rest of a line that matched.
    let mut skips = false;
    loop {
        window.fill(&mut file)?;
        if window.bytes.contains(&0) {
            collector.hits.is_binary = true;
            return Ok(());
        }
        if skips {
            match window.next_line(window.at) {
                Some(next) => window.at = next,
                None => window.at = window.bytes.len(),
            }
            skips = window.at == window.bytes.len() && !window.at_end;
        }
        let sure = match window.at_end {
            true => window.bytes.len(),
            false => window.bytes.len().saturating_sub(OVERLAP_BYTES),
        };
        while !skips
            && let Ok(Some(found)) = matcher.find_at(&window.bytes, window.at)
            && (window.at_end || found.end() < sure)
        {
            let number = window.number(found.start());
            let start = window.bytes[..found.start()].iter().rposition(|byte| *byte == b'\n');
            let start = start.map_or(0, |end| end + 1);
            let next = window.next_line(found.end().max(found.start() + 1));
            let end = next.unwrap_or(window.bytes.len());
            let line = &window.bytes[start..end];
            if !collector.take_part(number, line, found.start() - start)? {
                return Ok(());
            }
            window.at = end;
            skips = next.is_none();
        }
        if window.at_end {
            return Ok(());
        }
        window.at = window.at.max(sure);
        window.slide();
    }
}

impl Window {
    fn fill(&mut self, file: &mut impl Read) -> io::Result<()> {
        let room = (WINDOW_BYTES.saturating_sub(self.bytes.len())) as u64;
        let read = file.take(room).read_to_end(&mut self.bytes)?;
        self.at_end = (read as u64) < room;
        Ok(())
    }

    /// Returns the start of the line after a position.
    fn next_line(&self, from: usize) -> Option<usize> {
        let rest = self.bytes.get(from..)?;
        rest.iter().position(|byte| *byte == b'\n').map(|end| from + end + 1)
    }

    /// Returns the number of the line at a position.
    fn number(&mut self, place: usize) -> u64 {
        let newlines = self.bytes[self.counted..place].iter().filter(|byte| **byte == b'\n');
        self.line += newlines.count() as u64;
        self.counted = place;
        self.line
    }

    /// Drops the searched part.
    fn slide(&mut self) {
        let start = self.at.saturating_sub(BEFORE_BYTES);
        if start > self.counted {
            self.number(start);
        }
        self.counted -= start;
        self.at -= start;
        self.bytes.drain(..start);
    }
}

#[cfg(test)]
mod tests {
    use grep_regex::RegexMatcherBuilder;

    use super::*;
    use crate::arguments::Show;
    use crate::hits::Hits;

    #[track_caller]
    fn check(content: &str, pattern: &str, expected: &[u64]) {
        let matcher =
            RegexMatcherBuilder::new().multi_line(true).crlf(true).build(pattern).unwrap();
        let hits = Hits::default();
        let (room, countable) = (1000, 1000);
        let mut collector =
            Collector { matcher: &matcher, show: Show::Lines, room, countable, spans: false, hits };
        search(content.as_bytes(), &matcher, &mut collector).unwrap();
        let numbers = collector
            .hits
            .lines
            .iter()
            .map(|(_, line)| line.split(':').next().unwrap().parse::<u64>().unwrap());
        assert_eq!(numbers.collect::<Vec<_>>(), expected, "{pattern}");
    }

    #[test]
    fn matches_are_found_across_window_boundaries() {
        let long = "x".repeat(WINDOW_BYTES);
        for before in [1, WINDOW_BYTES - OVERLAP_BYTES - 2, WINDOW_BYTES - 3, WINDOW_BYTES] {
            let text = format!("{}needle{long}needle\nneedle\nno\n", "y".repeat(before));
            check(&text, "needle", &[1, 2]);
            check(&text, "^needle", &[2]);
            check(&text, "needle$", &[1, 2]);
            check(&text, "no", &[3]);
            check(&text, "x$", &[]);
        }
    }

    #[test]
    fn lines_are_counted_over_windows() {
        let text =
            format!("a\nb\n{}\nc needle\n{}\nneedle", "x\n".repeat(3 << 20), "z".repeat(5 << 20));
        let line = 3 + (3 << 20) + 1;
        check(&text, "needle", &[line, line + 2]);
        check(&text, "^$", &[line - 1]);
    }
}
