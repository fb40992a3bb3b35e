//! The line of a file that a diagnostic is about.

use std::ops::Range;

use kitbag_base::text::{escape, is_hidden};

/// A range of bytes in a file. Files have at most 1 MiB, so `u32` is enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// The line that a diagnostic is about, or the part of it around the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The line as it is shown: escaped, and cut with `…` if it is long.
    pub text: String,
    /// The marked range of characters in `text`.
    pub mark: Range<usize>,
}

impl Excerpt {
    /// Returns the line around a place.
    ///
    /// Examines a limited number of characters, so that many mistakes in one long line cost no more
    /// than in many lines. Widths are counted in characters: characters that take two cells of a
    /// terminal shift the mark, which is better than Unicode tables in the binary.
    pub(crate) fn new(text: &str, span: Span) -> Self {
        const MOST: usize = 120;
        const LEAST_BEFORE: usize = 40;
        let start = text.floor_char_boundary(span.start as usize);
        let end = span.end as usize;
        let rest = || line_end(&text[start..]).take(MOST + 1);
        let before: Vec<_> =
            text[..start].chars().rev().take_while(|c| *c != '\n').take(MOST + 1).collect();
        let room = MOST.saturating_sub(rest().count()).max(LEAST_BEFORE);
        let shown_before = before.len().min(room);

        let mut excerpt = Self { text: String::new(), mark: 0..0 };
        let mut width = 0;
        if shown_before < before.len() {
            excerpt.push('…', &mut width);
        }
        for c in before[..shown_before].iter().rev() {
            excerpt.push(*c, &mut width);
        }
        excerpt.mark = width..width + 1;
        for (count, (at, c)) in rest().enumerate() {
            if count == MOST - shown_before {
                excerpt.push('…', &mut width);
                break;
            }
            excerpt.push(c, &mut width);
            if start + at < end {
                excerpt.mark.end = width;
            }
        }
        excerpt
    }

    fn push(&mut self, c: char, width: &mut usize) {
        let mut push = |c| {
            self.text.push(c);
            *width += 1;
        };
        match c {
            '\t' => push(' '),
            c if is_hidden(c) => escape(c).chars().for_each(push),
            c => push(c),
        }
    }
}

fn line_end(text: &str) -> impl Iterator<Item = (usize, char)> {
    text.char_indices().take_while(|(at, c)| *c != '\n' && !text[*at..].starts_with("\r\n"))
}
