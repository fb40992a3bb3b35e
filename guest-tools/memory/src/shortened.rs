//! What an error repeats of a value of the caller's.

use crate::visible::is_invisible;

/// How much of a wrong value an error repeats, in characters.
const WRONG_CHARS: usize = 60;

/// A value of the caller's for an error: on one line, and not long.
pub(crate) fn shortened(text: &str) -> String {
    let mut characters = text.chars().map(|it| if is_invisible(it) { '�' } else { it });
    let mut shown: String = characters.by_ref().take(WRONG_CHARS).collect();
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}
