//! A fast search for the lines that a pattern without regard to case may match.
//!
//! The regex engine has vector instructions for this on x86-64 and ARM only. In WebAssembly it
//! would look at each byte. Here, a compiler can turn the loop over a block into vector
//! instructions.

use grep_matcher::{LineMatchKind, LineTerminator, Match, Matcher};
use grep_regex::{RegexCaptures, RegexMatcher};
use memchr::arch::all::packedpair::Pair;
use regex_syntax::hir::{Class, Hir, HirKind};

/// The number of positions that are compared together.
const BLOCK: usize = 64;

/// A byte, or a letter of ASCII in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Folded {
    /// A letter is in lower case.
    byte: u8,
    /// The bit that differs between the cases of a letter.
    mask: u8,
}

impl Folded {
    fn exact(byte: u8) -> Self {
        Self { byte, mask: 0 }
    }

    fn letter(lower: u8) -> Self {
        Self { byte: lower, mask: lower ^ lower.to_ascii_uppercase() }
    }

    fn matches(self, byte: u8) -> bool {
        byte | self.mask == self.byte
    }
}

/// A text that occurs in each match of a pattern.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FoldedLiteral {
    text: Vec<Folded>,
    /// Offsets in the text that are compared first, in order: of two rare bytes, and of the end
    /// that is further from them. In some files, a pair of bytes is in each line, such as the `dl`
    /// of `needle` in `handled`.
    offsets: [usize; 3],
}

impl FoldedLiteral {
    /// Finds the longest text that each match of a pattern contains. `None` if it is too short to
    /// be useful.
    pub(crate) fn of(pattern: &Hir) -> Option<Self> {
        let mut parts = Vec::new();
        add_parts(pattern, &mut parts);
        let texts = parts.split(Option::is_none);
        let text = texts.max_by_key(|text| text.len())?;
        let text: Vec<_> = text.iter().copied().flatten().collect();
        let bytes: Vec<_> = text.iter().map(|folded| folded.byte).collect();
        let pair = Pair::new(&bytes)?;
        let (one, other) = (usize::from(pair.index1()), usize::from(pair.index2()));
        let last = text.len() - 1;
        let far = if one.min(other) >= last - one.max(other) { 0 } else { last };
        let mut offsets = [one, other, far];
        offsets.sort_unstable();
        Some(Self { text, offsets })
    }

    /// Returns the position of the first compared byte of the first occurrence.
    fn find(&self, haystack: &[u8]) -> Option<usize> {
        let [first, second, third] = self.offsets;
        let [one, two, three] = self.offsets.map(|offset| self.text[offset]);
        let is_at = |position: &usize| {
            let found = position.checked_sub(first).and_then(|start| haystack.get(start..));
            found.is_some_and(|found| {
                let mut pairs = self.text.iter().zip(found);
                found.len() >= self.text.len() && pairs.all(|(folded, byte)| folded.matches(*byte))
            })
        };
        let positions = haystack.len().checked_sub(third - first)?;
        let (blocks, rest) = haystack[..positions].as_chunks::<BLOCK>();
        let (seconds, _) = haystack[second - first..].as_chunks::<BLOCK>();
        let (thirds, _) = haystack[third - first..].as_chunks::<BLOCK>();
        for (number, ((block, second), third)) in blocks.iter().zip(seconds).zip(thirds).enumerate()
        {
            // Without a branch, the loop becomes vector instructions.
            let mut found = 0;
            for ((byte, second), third) in block.iter().zip(second).zip(third) {
                found |= u8::from(one.matches(*byte))
                    & u8::from(two.matches(*second))
                    & u8::from(three.matches(*third));
            }
            let start = number * BLOCK;
            if found != 0
                && let Some(position) = (start..start + BLOCK).find(is_at)
            {
                return Some(position);
            }
        }
        let start = blocks.len() * BLOCK;
        (start..start + rest.len()).find(is_at)
    }
}

/// Adds the bytes that follow each other in each match. `None` separates strings that do not.
fn add_parts(hir: &Hir, parts: &mut Vec<Option<Folded>>) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => {
            parts.extend(literal.0.iter().map(|byte| Some(Folded::exact(*byte))));
        }
        HirKind::Class(class) => parts.push(letter(class)),
        HirKind::Capture(capture) => add_parts(&capture.sub, parts),
        HirKind::Concat(all) => all.iter().for_each(|part| add_parts(part, parts)),
        HirKind::Repetition(_) | HirKind::Alternation(_) => parts.push(None),
    }
}

/// Returns the letter whose two cases are a class. `k` and `s` have more cases in Unicode.
fn letter(class: &Class) -> Option<Folded> {
    let ranges: Vec<(u32, u32)> = match class {
        Class::Unicode(class) => {
            class.iter().map(|range| (range.start().into(), range.end().into())).collect()
        }
        Class::Bytes(class) => {
            class.iter().map(|range| (range.start().into(), range.end().into())).collect()
        }
    };
    let [(upper, upper_end), (lower, lower_end)] = *ranges else { return None };
    let lower_byte = u8::try_from(lower).ok().filter(u8::is_ascii_lowercase)?;
    let is_pair = u32::from(lower_byte.to_ascii_uppercase()) == upper;
    (is_pair && upper == upper_end && lower == lower_end).then(|| Folded::letter(lower_byte))
}

/// A pattern that is searched in lines.
pub(crate) struct LineMatcher<'a> {
    pub(crate) regex: &'a RegexMatcher,
    /// The text that selects the lines in which the pattern is searched.
    pub(crate) literal: Option<&'a FoldedLiteral>,
}

impl Matcher for LineMatcher<'_> {
    type Captures = RegexCaptures;
    type Error = <RegexMatcher as Matcher>::Error;

    fn find_at(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, Self::Error> {
        self.regex.find_at(haystack, at)
    }

    fn new_captures(&self) -> Result<RegexCaptures, Self::Error> {
        self.regex.new_captures()
    }

    fn shortest_match_at(&self, haystack: &[u8], at: usize) -> Result<Option<usize>, Self::Error> {
        self.regex.shortest_match_at(haystack, at)
    }

    fn non_matching_bytes(&self) -> Option<&grep_matcher::ByteSet> {
        self.regex.non_matching_bytes()
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        self.regex.line_terminator()
    }

    fn find_candidate_line(&self, haystack: &[u8]) -> Result<Option<LineMatchKind>, Self::Error> {
        match self.literal {
            Some(literal) => Ok(literal.find(haystack).map(LineMatchKind::Candidate)),
            None => self.regex.find_candidate_line(haystack),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(pattern: &str) -> Option<FoldedLiteral> {
        let mut parser = regex_syntax::ParserBuilder::new();
        let hir = parser.case_insensitive(true).utf8(false).build().parse(pattern);
        FoldedLiteral::of(&hir.unwrap())
    }

    #[test]
    fn the_longest_text_of_every_match_is_found() {
        for (pattern, expected) in [
            ("needle", "needle"),
            (r"\bneedle\b", "needle"),
            ("(need)le", "needle"),
            // Each of `k` and `s` has a third case.
            ("blanket", "blan"),
            ("or[a-z]+s\\.push", ".pu"),
            ("ab+cde|f", ""),
            ("ab+cde", "cde"),
            ("a?bc", "bc"),
            ("(ab|cd)", ""),
            ("x", ""),
            ("1.5", ""),
            ("\u{e4}12", "12"),
        ] {
            let text = literal(pattern).map(|it| it.text).unwrap_or_default();
            let text: Vec<_> = text.iter().map(|folded| folded.byte).collect();
            assert_eq!(String::from_utf8(text).unwrap(), expected, "{pattern}");
        }
    }

    #[test]
    fn each_position_in_a_block_is_searched() {
        let literal = literal("needle").unwrap();
        let at = literal.offsets[0];
        for length in [6, 63, 64, 65, 130, 200] {
            for position in 0..=length - 6 {
                let mut text = vec![b'n'; length];
                text[position..position + 6].copy_from_slice(b"NeEdLe");
                assert_eq!(literal.find(&text), Some(position + at), "{position} of {length}");
                text[position] = b'x';
                assert_eq!(literal.find(&text), None, "{position} of {length}");
            }
        }
        for text in ["", "n", "need", "eedle", "needl"] {
            assert_eq!(literal.find(text.as_bytes()), None, "{text}");
        }
        // Bytes that differ in other bits are not letters.
        assert_eq!(literal.find(b"NEEDL\x05"), None);
        assert_eq!(literal.find(b"\x8eeedle"), None);
    }

    proptest::proptest! {
        #[test]
        fn the_same_lines_are_found_as_by_the_regex(
            text in "[a-dA-D.\n]{0,200}",
            pattern in "[a-d.]{1,4}",
        ) {
            let regex = grep_regex::RegexMatcherBuilder::new()
                .case_insensitive(true)
                .line_terminator(Some(b'\n'))
                .build(&pattern)
                .unwrap();
            let literal = literal(&pattern);
            let matcher = LineMatcher { regex: &regex, literal: literal.as_ref() };
            let lines = |matcher: &dyn Fn(&[u8]) -> bool| -> Vec<bool> {
                text.split('\n').map(|line| matcher(line.as_bytes())).collect()
            };
            let expected = lines(&|line| regex.is_match(line).unwrap());
            let found = lines(&|line| {
                let is_candidate = matcher.find_candidate_line(line).unwrap().is_some();
                is_candidate && regex.is_match(line).unwrap()
            });
            proptest::prop_assert_eq!(found, expected);
        }
    }
}
