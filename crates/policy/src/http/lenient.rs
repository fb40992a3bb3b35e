//! Text as the most lenient of servers reads it: for what is denied, and for what is refused
//! whatever is granted.

use kitbag_base::text::is_ignorable;
use unicode_normalization::UnicodeNormalization;

/// A path, decoded, in every way in which some server could take it: its segments, each in
/// its own readings.
///
/// A server may take `+` for a space, compare a path without case or as its file system does,
/// and leave out parameters, empty segments, what follows an encoded `?`, and what Windows
/// leaves out of a name. Not all do, so that a segment has several readings.
pub(super) fn paths(path: &str) -> Vec<Vec<Vec<String>>> {
    let text = fold(&String::from_utf8_lossy(&decode_wholly(path.bytes())));
    // What a server that decodes once more takes for the end of the path.
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

/// What a server could take a folded segment for.
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

/// A text in the one form of letters that are the same without case, or for some file
/// system, and of characters that look alike.
pub(super) fn fold(text: &str) -> String {
    // Both ways: `ı` is `I` in upper case alone, and `İ` is `i` with a dot above in lower case.
    let cased = visible(text).to_lowercase().to_uppercase().to_lowercase();
    // A sigma at the end of a word has a form of its own.
    visible(&cased.replace("i\u{307}", "i").replace('ς', "σ")).replace('\\', "/")
}

/// A text in the form NFKC, without the characters that some file systems ignore.
pub(super) fn visible(text: &str) -> String {
    text.chars().filter(|c| !is_ignorable(*c)).nfkc().collect()
}

/// A text with `%xx` decoded, and what that results in again, until there is none.
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
