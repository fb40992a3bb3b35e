//! Truncation of a tool's text at a character boundary, with a marker.

use kitbag_base::text::bound_error;
use kitbag_contract::Outcome;

/// Number of lines kept of an error's trace. Lines are causes, so there are usually few.
const TRACE_LINES: usize = 1000;

/// Start of the marker after truncated text.
const CUT: &str = "\n[cut by kitbag: this ";

/// Returns the offset of the truncation marker that ends the text.
pub fn cut_at(text: &str) -> Option<usize> {
    text.ends_with(" bytes]").then(|| text.rfind(CUT)).flatten()
}

/// Truncates an answer to the limit, and returns its original size.
pub(crate) fn truncate_outcome(outcome: Outcome, limit: usize) -> (Outcome, u64) {
    let mut left = limit;
    let mut size = 0;
    let mut cut = |text: &mut String| {
        size += text.len() as u64;
        truncate_text(text, left, "answer");
        left = left.saturating_sub(text.len());
    };
    let outcome = match outcome {
        Outcome::Success(mut content) => {
            cut(&mut content);
            Outcome::Success(content)
        }
        Outcome::Error(mut error) => {
            cut(&mut error.message);
            bound_error(&mut error.message);
            let lines = error.trace.len();
            let rest = error.trace.get(TRACE_LINES..).unwrap_or_default();
            let rest_bytes: usize = rest.iter().map(String::len).sum();
            error.trace.truncate(TRACE_LINES);
            error.trace.shrink_to_fit();
            error.trace.iter_mut().for_each(&mut cut);
            // A line that was cut completely is dropped instead of left empty.
            error.trace.retain(|line| !line.is_empty());
            if lines > TRACE_LINES {
                size += rest_bytes as u64;
                error.trace.push(format!("[cut by kitbag: this trace had {lines} lines]"));
            }
            Outcome::Error(error)
        }
        Outcome::NeedsInput(mut question) => {
            cut(&mut question.text);
            question.default.iter_mut().for_each(&mut cut);
            Outcome::NeedsInput(question)
        }
    };
    (outcome, size)
}

/// Truncates text at a character boundary and adds a marker, within the limit if the marker fits.
/// The marker states `what` was cut and its original length.
pub(crate) fn truncate_text(text: &mut String, limit: usize, what: &str) {
    if text.len() <= limit {
        return;
    }
    let mark = format!("{CUT}{what} had {} bytes]", text.len());
    text.truncate(text.floor_char_boundary(limit.saturating_sub(mark.len())));
    if limit >= mark.len() {
        text.push_str(&mark);
    }
}

/// Truncates one line at a character boundary, with `…` within the limit.
pub(crate) fn truncate_line(text: &mut String, limit: usize) {
    const MARK: char = '…';
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit.saturating_sub(MARK.len_utf8())));
        text.push(MARK);
    }
}

#[cfg(test)]
mod tests {
    use kitbag_contract::ErrorInfo;

    use super::*;

    #[test]
    fn a_trace_is_cut_and_marked() {
        let cut = |lines: usize| {
            let error = ErrorInfo { trace: vec!["a".into(); lines], ..ErrorInfo::default() };
            match truncate_outcome(Outcome::Error(error), 1 << 20) {
                (Outcome::Error(error), size) => (error.trace, size),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(cut(1_000), (vec!["a".to_owned(); 1_000], 1_000));
        let (trace, size) = cut(1_001);
        assert_eq!((trace.len(), size), (1_001, 1_001));
        assert_eq!(trace[1_000], "[cut by kitbag: this trace had 1001 lines]");
    }

    #[test]
    fn a_text_is_cut_at_a_character_and_marked() {
        let check = |text: &str, limit: usize, expected: &str| {
            let mut cut = text.to_owned();
            truncate_text(&mut cut, limit, "answer");
            assert_eq!(cut, expected);
            assert!(cut.len() <= limit);
        };
        check("short", 5, "short");
        let long = "ä".repeat(100);
        check(&long, 60, &format!("{}\n[cut by kitbag: this answer had 200 bytes]", "ä".repeat(8)));
        check(&long, 3, "");
    }
}
