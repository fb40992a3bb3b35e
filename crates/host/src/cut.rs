//! Texts of a tool are cut to their limit, at a character, with a mark.

use kitbag_contract::Outcome;

/// Cuts an answer to the limit, and tells the size it had.
pub(crate) fn cut_outcome(outcome: Outcome, limit: usize) -> (Outcome, u64) {
    let mut left = limit;
    let mut size = 0;
    let mut cut = |text: &mut String| {
        size += text.len() as u64;
        cut_text(text, left, "answer");
        left = left.saturating_sub(text.len());
    };
    let outcome = match outcome {
        Outcome::Success(mut content) => {
            cut(&mut content);
            Outcome::Success(content)
        }
        Outcome::Error(mut error) => {
            cut(&mut error.message);
            error.trace.iter_mut().for_each(&mut cut);
            // What was cut away altogether is not worth an empty line each.
            error.trace.retain(|line| !line.is_empty());
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

/// Cuts a text at a character boundary and marks it, within the limit as far
/// as the mark fits. The mark says what it was and how long.
pub(crate) fn cut_text(text: &mut String, limit: usize, what: &str) {
    if text.len() <= limit {
        return;
    }
    let mark = format!("\n[cut by kitbag: this {what} had {} bytes]", text.len());
    text.truncate(text.floor_char_boundary(limit.saturating_sub(mark.len())));
    if limit >= mark.len() {
        text.push_str(&mark);
    }
}

/// Cuts a text of one line at a character boundary, with `…` within the limit.
pub(crate) fn cut_short(text: &mut String, limit: usize) {
    const MARK: char = '…';
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit.saturating_sub(MARK.len_utf8())));
        text.push(MARK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_a_character_and_marked() {
        let check = |text: &str, limit: usize, expected: &str| {
            let mut cut = text.to_owned();
            cut_text(&mut cut, limit, "answer");
            assert_eq!(cut, expected);
            assert!(cut.len() <= limit);
        };
        check("short", 5, "short");
        let long = "ä".repeat(100);
        check(&long, 60, &format!("{}\n[cut by kitbag: this answer had 200 bytes]", "ä".repeat(8)));
        check(&long, 3, "");
    }
}
