//! Text after one of kitbag's labels.

use kitbag::base::text::printable;

/// Formats untrusted text after one of kitbag's labels, such as `error`. Further lines are
/// indented, so that they do not look like kitbag's own.
pub(crate) fn labelled(label: &str, text: &str) -> String {
    let mut labelled = format!("{label}: ");
    for (index, line) in printable(text).to_string().split('\n').enumerate() {
        if index > 0 {
            labelled.push_str(if line.starts_with(' ') { "\n" } else { "\n  " });
        }
        labelled.push_str(line);
    }
    labelled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_lines_of_a_text_are_indented() {
        assert_eq!(labelled("error", "one"), "error: one");
        let text = "one\nhint: two\r\n three\n\nfour\n";
        assert_eq!(labelled("error", text), "error: one\n  hint: two\\r\n three\n  \n  four\n  ");
    }
}
