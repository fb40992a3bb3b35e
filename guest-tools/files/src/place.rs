//! Finds the positions of a patch's hunks in a file.

use std::cell::OnceCell;
use std::ops::Range;

use crate::lookalikes::{changed, differences, look};
use crate::mismatch::mismatch;
use crate::patch::{Hunk, Line};
use crate::text::Part;

/// A replacement of a part of a text.
pub(crate) struct Replacement {
    range: Range<usize>,
    new: String,
    says_endings: bool,
}

impl Replacement {
    pub(crate) fn part(&self) -> Part<'_> {
        Part { range: self.range.clone(), new: &self.new, says_endings: self.says_endings }
    }
}

/// The positions of a file's hunks.
#[derive(Default)]
pub(crate) struct Placed {
    /// The line after the last hunk, from 0.
    end: usize,
    /// Number of lines by which the last hunk was below its line in the patch.
    offset: isize,
    /// The differences from the patch.
    pub(crate) notes: Vec<String>,
}

/// Maximum number of context lines that may differ at the start and at the end of a hunk.
const FUZZ: usize = 3;

/// The comparison of context lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Exact,
    /// Ignores leading and trailing whitespace of a line.
    Trimmed,
    /// Compares the look of all lines in the hunk, including removed ones.
    Alike,
    /// Ignores this many lines at the start and at the end of the hunk.
    Without(usize),
}

impl Placed {
    /// Finds all hunks in order. Returns the replacements of the text.
    pub(crate) fn place(&mut self, text: &str, hunks: &[Hunk]) -> Result<Vec<Replacement>, String> {
        let file = FileLines::new(text);
        let mut parts = Vec::new();
        for (number, hunk) in hunks.iter().enumerate() {
            let (line, [first, last], context) = self.find(&file, hunk, number + 1)?;
            let mut at = line;
            let lines = &hunk.lines[first..hunk.lines.len() - last];
            let mut run: Option<Run> = None;
            for line in lines {
                let begin = || Run { start: at, old: String::new(), new: String::new() };
                match line {
                    Line::Same(_) => {
                        if let Some(run) = run.take() {
                            parts.push(file.replaced(run, at, context, hunk, false));
                        }
                        at += 1;
                    }
                    Line::Old(old) => {
                        let run = run.get_or_insert_with(begin);
                        run.old.push_str(old);
                        run.old.push('\n');
                        at += 1;
                    }
                    Line::New(new) => {
                        let run = run.get_or_insert_with(begin);
                        run.new.push_str(new);
                        run.new.push('\n');
                    }
                }
            }
            if let Some(run) = run {
                parts.push(file.replaced(run, at, context, hunk, true));
            }
            self.end = at;
        }
        Ok(parts)
    }

    /// Returns the line of a hunk, the number of ignored first and last lines, and the comparison
    /// that was used.
    fn find(
        &mut self,
        file: &FileLines<'_>,
        hunk: &Hunk,
        number: usize,
    ) -> Result<(usize, [usize; 2], Context), String> {
        let mut start = self.end;
        for heading in &hunk.headings {
            let found =
                (start..file.lines.len()).find(|at| file.lines[*at].trim() == heading.trim());
            let found = found.or_else(|| {
                (start..file.lines.len()).find(|at| file.lines[*at].contains(heading.as_str()))
            });
            match found {
                Some(at) => start = at + 1,
                None => return Err(format!("hunk {number}: no line matches `{heading}`")),
            }
        }
        let wanted: Vec<&Line> =
            hunk.lines.iter().filter(|line| !matches!(line, Line::New(_))).collect();
        // The line in the patch, from 0.
        let said = hunk.line.map(|line| match wanted.is_empty() {
            // Without old lines, the position is after that line.
            true => line,
            false => line.saturating_sub(1),
        });
        if wanted.is_empty() {
            let line = match said {
                Some(line) => {
                    let line = line.saturating_add_signed(self.offset);
                    line.clamp(start.min(file.lines.len()), file.lines.len())
                }
                None if hunk.is_at_end || hunk.headings.is_empty() => file.lines.len(),
                None => start,
            };
            return Ok((line, [0, 0], Context::Exact));
        }
        let same = |line: &&Line| matches!(line, Line::Same(_));
        let leading = hunk.lines.iter().take_while(same).count();
        let trailing = hunk.lines.iter().rev().take_while(same).count();
        let contexts = [Context::Exact, Context::Trimmed, Context::Alike].into_iter();
        // A hunk without any matching line could be anywhere.
        let has_old = wanted.iter().any(|line| matches!(line, Line::Old(_)));
        let most = if has_old { leading.max(trailing).min(FUZZ) } else { 0 };
        let contexts = contexts.chain((1..=most).map(Context::Without));
        for context in contexts {
            let [first, last] = match context {
                Context::Without(lines) => [lines.min(leading), lines.min(trailing)],
                _ => [0, 0],
            };
            let part = &wanted[first..wanted.len() - last];
            let mut places = file.places(part, start, context);
            if hunk.is_at_end {
                places.retain(|at| at + part.len() + last >= file.lines.len());
            }
            // A matching line number does not excuse different characters.
            let said_here = said.filter(|_| context != Context::Alike).map(|said| said + first);
            let Some(place) = self.choose(&places, said_here) else {
                if places.len() > 1 {
                    let lines: Vec<_> =
                        places.iter().take(5).map(|at| (at + 1).to_string()).collect();
                    return Err(format!(
                        "hunk {number} matches {} times, in lines {}; give more lines of context, \
                         or the line in `@@ -LINE,… @@`",
                        places.len(),
                        lines.join(", ")
                    ));
                }
                continue;
            };
            match context {
                Context::Exact => {}
                Context::Alike => self.notes.push(format!(
                    "hunk {number}: matched similar-looking characters, which were kept: {}",
                    file.differences(part, place)
                )),
                Context::Trimmed | Context::Without(_) => self.notes.push(format!(
                    "hunk {number} at line {}: its context differs from the file, which was kept",
                    place + 1
                )),
            }
            if let Some(said) = said {
                self.offset = place as isize - (said + first) as isize;
            }
            return Ok((place, [first, last], context));
        }
        let lines = |keep: fn(&Line) -> Option<&str>| {
            hunk.lines.iter().filter_map(keep).collect::<Vec<_>>().join("\n")
        };
        let old = lines(|line| match line {
            Line::Same(line) | Line::Old(line) => Some(line),
            Line::New(_) => None,
        });
        let new = lines(|line| match line {
            Line::Same(line) | Line::New(line) => Some(line),
            Line::Old(_) => None,
        });
        Err(mismatch(&format!("hunk {number}"), file.text, &old, &new))
    }

    /// Returns the position nearest to the line in the patch, or the only position.
    fn choose(&self, places: &[usize], said: Option<usize>) -> Option<usize> {
        let Some(said) = said else {
            return match places {
                [place] => Some(*place),
                _ => None,
            };
        };
        let said = said.saturating_add_signed(self.offset);
        let nearest = places.iter().min_by_key(|place| place.abs_diff(said))?;
        let distance = nearest.abs_diff(said);
        let is_tied = places.iter().filter(|place| place.abs_diff(said) == distance).count() > 1;
        (!is_tied).then_some(*nearest)
    }
}

/// Replaced lines of a hunk.
struct Run {
    /// The first line in the file, from 0.
    start: usize,
    old: String,
    new: String,
}

/// A text with the starts of its lines.
struct FileLines<'a> {
    text: &'a str,
    /// The lines without their endings.
    lines: Vec<&'a str>,
    /// The look of the lines, computed only if a hunk is not found otherwise.
    looks: OnceCell<Vec<String>>,
    starts: Vec<usize>,
}

impl<'a> FileLines<'a> {
    fn new(text: &'a str) -> Self {
        let mut lines = Vec::new();
        let mut starts = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            starts.push(at);
            at += line.len();
            lines.push(line.strip_suffix('\n').unwrap_or(line));
        }
        starts.push(at);
        Self { text, lines, looks: OnceCell::new(), starts }
    }

    /// Returns the positions of a hunk's lines, starting at a line.
    fn places(&self, wanted: &[&Line], from: usize, context: Context) -> Vec<usize> {
        let Some(last) = self.lines.len().checked_sub(wanted.len()) else { return Vec::new() };
        if context == Context::Alike {
            let looks =
                self.looks.get_or_init(|| self.lines.iter().map(|line| look(line)).collect());
            let wanted: Vec<_> = wanted.iter().map(|line| look(line.text())).collect();
            return (from..=last).filter(|at| looks[*at..].starts_with(&wanted)).collect();
        }
        let fits = |at: usize| {
            wanted.iter().zip(&self.lines[at..]).all(|(wanted, found)| match wanted {
                Line::Old(wanted) => wanted == found,
                Line::Same(wanted) if context == Context::Exact => wanted == found,
                Line::Same(wanted) => wanted.trim() == found.trim(),
                Line::New(_) => true,
            })
        };
        (from..=last).filter(|at| fits(*at)).collect()
    }

    /// Names the characters that differ between lines of the file and of a hunk.
    fn differences(&self, wanted: &[&Line], at: usize) -> String {
        let wanted: Vec<_> = wanted.iter().map(|line| line.text()).collect();
        let found = self.lines[at..at + wanted.len()].join("\n");
        differences(&found, &wanted.join("\n"), at + 1, 1)
    }

    /// Returns the new text of a hunk for lines that end before `end`.
    fn replaced(
        &self,
        run: Run,
        end: usize,
        context: Context,
        hunk: &Hunk,
        is_last: bool,
    ) -> Replacement {
        let Run { start, old, mut new } = run;
        if context == Context::Alike && start < end {
            let lines = self.lines[start..end].iter().flat_map(|line| [line, "\n"]);
            new = changed(&lines.collect::<String>(), &old, &new);
        }
        self.part(start..end, new, hunk, is_last)
    }

    /// Returns the part of the text with these lines and its replacement. The end of the file keeps
    /// its newline, or its lack of one, unless the patch specifies otherwise.
    fn part(
        &self,
        lines: Range<usize>,
        mut new: String,
        hunk: &Hunk,
        is_last: bool,
    ) -> Replacement {
        let range = self.starts[lines.start]..self.starts[lines.end];
        let is_at_end = range.end == self.text.len();
        let lacks_newline = !self.text.is_empty() && !self.text.ends_with('\n');
        let [old_lacks, new_lacks] = hunk.no_newline;
        if is_at_end && is_last && !new.is_empty() {
            if range.start == self.text.len() && lacks_newline {
                new.insert(0, '\n');
            }
            // Adds a newline if the patch declares that the old text had none.
            if new_lacks || lacks_newline && !old_lacks {
                new.pop();
            }
        }
        Replacement { range, new, says_endings: hunk.says_endings }
    }
}
