//! Text as the most lenient server reads it, for deny lists and for paths that are always refused.

use kitbag_base::text::is_ignorable;
use unicode_normalization::UnicodeNormalization;

/// Decodes a path in every way in which a server could read it. Each segment has several readings.
///
/// A server may treat `+` as space, compare paths without case or as its file system does, and drop
/// parameters, empty segments, the part after an encoded `?`, and characters that Windows drops
/// from names. Servers differ, so a segment has several readings.
pub(super) fn paths(path: &str) -> Vec<Vec<Vec<String>>> {
    let text = fold(&String::from_utf8_lossy(&decode_wholly(path.bytes())));
    // A server that decodes again ends the path here.
    let end = text.split(['?', '#']).next().unwrap_or_default();
    let mut texts = vec![&*text, end];
    texts.dedup();
    let paths = texts.into_iter().flat_map(|text| {
        let segments = text.split('/').filter(|segment| !segment.is_empty());
        let all: Vec<_> = segments.map(readings).collect();
        let is_named = |segment: &&Vec<String>| !segment.iter().any(String::is_empty);
        let named = all.iter().filter(is_named).cloned().collect();
        [all, named]
    });
    paths.collect()
}

/// Returns the ways in which a server could read a folded segment.
fn readings(segment: &str) -> Vec<String> {
    let ends: [&[char]; 3] = [&[], &[';'], &[';', ':']];
    let mut readings = Vec::new();
    for text in [segment.to_owned(), segment.replace('+', " ")] {
        for ends in ends {
            let text = text.split(ends).next().unwrap_or_default();
            readings.extend([text, text.trim_end_matches(['.', ' '])].map(str::to_owned));
        }
    }
    readings.sort_unstable();
    readings.dedup();
    readings
}

/// Folds letters that are equal without case or on some file system, and characters that look
/// alike.
pub(super) fn fold(text: &str) -> String {
    // Both directions: `ı` is `I` in upper case only, and `İ` is `i` with a combining dot in lower
    // case.
    let cased = visible(text).to_lowercase().to_uppercase().to_lowercase();
    // Final sigma is a different character.
    visible(&cased.replace("i\u{307}", "i").replace('ς', "σ")).replace('\\', "/")
}

/// Normalizes to NFKC and removes the characters that some file systems ignore.
pub(super) fn visible(text: &str) -> String {
    text.chars().filter(|c| !is_ignorable(*c)).nfkc().collect()
}

/// Decodes `%xx` repeatedly until none is left.
pub(crate) fn decode_wholly(text: impl IntoIterator<Item = u8>) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut decoded = Vec::new();
    for byte in text {
        decoded.push(byte);
        while let [.., b'%', high, low] = *decoded
            && let (Some(high), Some(low)) = (digit(high), digit(low))
        {
            decoded.truncate(decoded.len() - 3);
            decoded.push(high << 4 | low);
        }
    }
    decoded
}
