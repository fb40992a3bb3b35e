//! Values of the caller in errors.

use crate::visible::is_invisible;

/// The most characters of an invalid value that an error repeats.
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
