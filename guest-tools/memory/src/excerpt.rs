//! A caller's values in errors.

use crate::visible::is_invisible;

/// Maximum number of characters of an invalid value in an error.
const WRONG_CHARS: usize = 60;

/// Shortens a caller's value to one line for an error.
pub(crate) fn shortened(text: &str) -> String {
    let mut characters = text.chars().map(|it| if is_invisible(it) { '�' } else { it });
    let mut shown: String = characters.by_ref().take(WRONG_CHARS).collect();
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}
