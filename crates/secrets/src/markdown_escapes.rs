//! Removes the backslashes with which Markdown escapes punctuation, to find keys that contain some.

use std::ops::Range;

use memchr::memchr;

/// A text without these backslashes, and their positions.
pub(crate) struct Unescaped {
    pub(crate) bytes: Vec<u8>,
    /// For each backslash, the number of remaining bytes before it. In order.
    removed: Vec<usize>,
}

impl Unescaped {
    /// Returns `None` if nothing is escaped.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let mut from = next_escape(bytes, 0)?;
        let (mut left, mut removed, mut at) = (Vec::with_capacity(bytes.len()), Vec::new(), 0);
        loop {
            left.extend_from_slice(&bytes[at..from.start]);
            removed.extend(from.clone().map(|_| left.len()));
            at = from.end;
            match next_escape(bytes, at) {
                Some(next) => from = next,
                None => break,
            }
        }
        left.extend_from_slice(&bytes[at..]);
        Some(Self { bytes: left, removed })
    }

    /// Returns the span in the original text, including backslashes in it and before it.
    pub(crate) fn original(&self, span: &Range<usize>) -> Range<usize> {
        let start = span.start + self.removed.partition_point(|left| *left < span.start);
        let last = span.end - 1;
        start..span.end + self.removed.partition_point(|left| *left <= last)
    }

    /// Returns the position in this text for a position in the original.
    pub(crate) fn place(&self, original: usize) -> usize {
        // Positions of removed bytes grow by at least one.
        let (mut low, mut high) = (0, self.removed.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.removed[middle] + middle < original {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        original - low
    }
}

/// Returns the bytes without these backslashes.
pub(crate) fn unescaped(bytes: &[u8]) -> Option<Vec<u8>> {
    Unescaped::of(bytes).map(|unescaped| unescaped.bytes)
}

/// Returns the next backslashes before a punctuation mark that a key may contain. There are several
/// if a text was escaped repeatedly.
fn next_escape(bytes: &[u8], mut from: usize) -> Option<Range<usize>> {
    loop {
        let start = from + memchr(b'\\', &bytes[from..])?;
        let more = bytes[start..].iter().take_while(|byte| **byte == b'\\').count();
        from = start + more;
        if bytes.get(from).is_some_and(|byte| is_escaped(*byte)) {
            return Some(start..from);
        }
    }
}

/// Excludes quotes and commas, which delimit values.
fn is_escaped(byte: u8) -> bool {
    byte.is_ascii_punctuation() && !matches!(byte, b'\\' | b'"' | b'\'' | b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_refer_to_the_original_text() {
        let text = br#"a\_b \\\-c \n \" end"#;
        let unescaped = Unescaped::of(text).unwrap();
        assert_eq!(unescaped.bytes, br#"a_b -c \n \" end"#);
        let original = |span: Range<usize>| &text[unescaped.original(&span)];
        assert_eq!(original(0..3), br"a\_b");
        assert_eq!(original(0..1), b"a");
        assert_eq!(original(1..2), br"\_");
        assert_eq!(original(4..6), br"\\\-c");
        assert_eq!(original(7..9), br"\n");
        for (left, byte) in unescaped.bytes.iter().enumerate() {
            let original = unescaped.original(&(left..left + 1));
            assert_eq!(text[original.end - 1], *byte);
            assert_eq!(unescaped.place(original.end - 1), left);
        }
        assert!(Unescaped::of(br#"C:\dir "\n" \\"#).is_none());
    }
}
