//! Underscores inside words. `htmd` escapes them, but CommonMark has no emphasis inside a word:
//! `a_b` is literal text, and an unescaped identifier can be copied.

use html5ever::tendril::StrTendril;
use markup5ever_rcdom::{Handle, NodeData};

/// The character for such an underscore while `htmd` writes the page. It is a Unicode noncharacter
/// for internal use.
const UNDERSCORE: char = '\u{fdd0}';

/// Replaces each underscore inside a word by a character that is not escaped.
pub(crate) fn keep_underscores(root: &Handle) {
    let mut open = vec![root.clone()];
    while let Some(node) = open.pop() {
        open.extend(node.children.borrow().iter().cloned());
        let NodeData::Text { contents } = &node.data else { continue };
        let kept = kept(&contents.borrow());
        if let Some(text) = kept {
            contents.replace(StrTendril::from(text));
        }
    }
}

/// Restores the underscores of a text.
pub(crate) fn with_underscores(markdown: String) -> String {
    match markdown.contains(UNDERSCORE) {
        true => markdown.replace(UNDERSCORE, "_"),
        false => markdown,
    }
}

/// `None` if the text is unchanged.
fn kept(text: &str) -> Option<String> {
    if !text.contains(['_', UNDERSCORE]) {
        return None;
    }
    let text = text.replace(UNDERSCORE, "\u{fffd}");
    let mut kept = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = rest.find('_') {
        let (before, from) = rest.split_at(at);
        let after = from.trim_start_matches('_');
        let row = &from[..from.len() - after.len()];
        kept.push_str(before);
        let is_inside =
            before.ends_with(char::is_alphanumeric) && after.starts_with(char::is_alphanumeric);
        match is_inside {
            true => kept.extend(row.chars().map(|_| UNDERSCORE)),
            false => kept.push_str(row),
        }
        rest = after;
    }
    kept.push_str(rest);
    Some(kept)
}
