//! Errors of the parser.

use crate::load_error::InvalidComponent;

/// Converts a parser error. Only its text shows that a feature is disabled.
pub(super) fn malformed(error: wasmparser::BinaryReaderError) -> InvalidComponent {
    let text = error.to_string();
    let is_off = |words: &&str| error.message().contains(words);
    match ["not enabled", "must be enabled", " feature"].iter().any(is_off) {
        true => InvalidComponent::Feature(text),
        false => InvalidComponent::Malformed(text),
    }
}
