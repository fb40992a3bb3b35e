//! Safe display of untrusted text, and suggestions for misspelled words.

use std::fmt;
use std::path::Path;

/// The longest text that a message repeats, in characters. Longer text is cut with `…`, so that one
/// value cannot flood a terminal.
const SHOWN_CHARS: usize = 200;

/// Displays text with invisible characters escaped.
pub struct Shown<'a>(&'a str);

/// Escapes control characters and characters that change the text direction, and cuts long text.
pub fn shown(text: &str) -> Shown<'_> {
    Shown(text)
}

/// Returns a path of unknown origin, escaped like [`shown`].
pub fn shown_path(path: &Path) -> String {
    shown(&path.to_string_lossy()).to_string()
}

/// The longest error message, in bytes. A message describes a call and does not carry its data.
pub const ERROR_BYTES: usize = 4 << 10;

/// Cuts the middle out of a message that is longer than [`ERROR_BYTES`]: the beginning states the
/// problem and the end states the fix.
pub fn bound_error(message: &mut String) {
    const BEGINNING: usize = 2 << 10;
    const END: usize = 1 << 10;
    if message.len() > ERROR_BYTES {
        let beginning = message.floor_char_boundary(BEGINNING);
        let end = message.ceil_char_boundary(message.len() - END);
        let left_out = format!("… [{} bytes omitted] …", end - beginning);
        message.replace_range(beginning..end, &left_out);
    }
}

/// Returns the name of an error variant as words, for library errors without a message:
/// `UnknownIssuer(…)` becomes `unknown issuer`.
pub fn variant_words(error: &impl fmt::Debug) -> String {
    let name = format!("{error:?}");
    let is_name = |c: &char| c.is_ascii_alphanumeric();
    let name: String = name.chars().take_while(is_name).collect();
    let mut words = String::new();
    for c in name.strip_suffix("Context").unwrap_or(&name).chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

/// Displays long text with invisible characters escaped.
pub struct Printable<'a>(&'a str);

/// Escapes untrusted text as [`shown`] does, but does not cut it and keeps newlines and tabs.
pub fn printable(text: &str) -> Printable<'_> {
    Printable(text)
}

/// Returns true if a character must be escaped because a terminal would act on it or because it is
/// invisible.
pub fn is_hidden(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    match c {
        // Variation selectors belong to the visible character before them.
        '\u{fe00}'..='\u{fe0f}' => false,
        // Line separators, interlinear annotation marks, and the blank Braille pattern.
        '\u{2028}'..='\u{2029}' | '\u{fff9}'..='\u{fffb}' | '\u{2800}' => true,
        _ => c.is_control() || is_ignorable(c),
    }
}

/// Returns true if case-insensitive name comparison ignores a character, as some file systems do.
///
/// Source: `Default_Ignorable_Code_Point` of Unicode 16.
pub fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns the escape of a hidden character, such as `\n` and `\u{202e}`.
pub fn escape(c: char) -> String {
    // The standard library's shorter form does not escape all hidden characters.
    match c.is_ascii() {
        true => c.escape_debug().to_string(),
        false => c.escape_unicode().to_string(),
    }
}

/// Joins at most ten words as `` `a`, `b` or `c` ``.
pub fn alternatives<S: AsRef<str>>(words: &[S]) -> String {
    const MOST: usize = 10;
    let quoted = |word: &S| format!("`{}`", shown(word.as_ref()));
    match words {
        [] => String::new(),
        [only] => quoted(only),
        [first @ .., last] if words.len() <= MOST => {
            format!(
                "{} or {}",
                first.iter().map(quoted).collect::<Vec<_>>().join(", "),
                quoted(last)
            )
        }
        _ => format!("{}, …", words[..MOST].iter().map(quoted).collect::<Vec<_>>().join(", ")),
    }
}

/// A name in lower case, with its words separated by `_`: `file_path` for `filePath`.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len());
    let mut was_lower = false;
    for char in name.chars() {
        if char.is_uppercase() && was_lower {
            snake.push('_');
        }
        was_lower = char.is_lowercase() || char.is_ascii_digit();
        match char {
            '-' => snake.push('_'),
            char => snake.extend(char.to_lowercase()),
        }
    }
    snake
}

/// Returns the candidate closest to a word, if one is close enough.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // No known word is longer, and comparing longer words would cost time in proportion to their
    // length.
    const LONGEST: usize = 64;
    const SHORTEST_PREFIX: usize = 3;
    if word.len() > LONGEST {
        return None;
    }
    let word = snake_case(word);
    let length = word.chars().count();
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= 2 * LONGEST)
        .filter_map(|candidate| {
            let folded = snake_case(candidate);
            let is_prefix = |a: &str, b: &str| a.len() >= SHORTEST_PREFIX && b.starts_with(a);
            let distance = strsim::damerau_levenshtein(&word, &folded);
            let is_near = distance <= length.max(3) / 3;
            // As `path` in `file_path`.
            let is_last_word = folded.len() >= SHORTEST_PREFIX
                && word.strip_suffix(&*folded).is_some_and(|before| before.ends_with('_'));
            (is_near || is_prefix(&word, &folded) || is_prefix(&folded, &word) || is_last_word)
                .then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        for (index, c) in self.0.chars().enumerate() {
            if index == SHOWN_CHARS {
                return f.write_char('…');
            }
            if is_hidden(c) {
                f.write_str(&escape(c))?;
            } else {
                f.write_char(c)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_spelled_out = |c: char| !matches!(c, '\n' | '\t') && is_hidden(c);
        let mut rest = self.0;
        while let Some(at) = rest.find(is_spelled_out) {
            let (shown, hidden) = rest.split_at(at);
            f.write_str(shown)?;
            let mut chars = hidden.chars();
            if let Some(c) = chars.next() {
                f.write_str(&escape(c))?;
            }
            rest = chars.as_str();
        }
        f.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variant_names_become_words() {
        #[derive(Debug)]
        #[expect(dead_code, reason = "they are shown")]
        enum Of {
            UnknownIssuer,
            TrailingData(u8),
            NotValidForNameContext { name: u8 },
        }
        assert_eq!(variant_words(&Of::UnknownIssuer), "unknown issuer");
        assert_eq!(variant_words(&Of::TrailingData(1)), "trailing data");
        assert_eq!(variant_words(&Of::NotValidForNameContext { name: 1 }), "not valid for name");
    }

    #[test]
    fn invisible_characters_are_escaped() {
        let check = |text: &str, expected: &str| assert_eq!(shown(text).to_string(), expected);
        check("wörd \"x\" it's", "wörd \"x\" it's");
        check("a\nb\u{1b}[31m", "a\\nb\\u{1b}[31m");
        check("a\u{202e}b\u{200b}", "a\\u{202e}b\\u{200b}");
        check("a\u{2028}\u{ad}\u{e0041}", "a\\u{2028}\\u{ad}\\u{e0041}");
        check("\u{2800}\u{3164}\u{115f}\u{e0100}", "\\u{2800}\\u{3164}\\u{115f}\\u{e0100}");
        check("✔\u{fe0f}", "✔\u{fe0f}");
        check(&"x".repeat(201), &format!("{}…", "x".repeat(200)));
    }

    #[test]
    fn printable_keeps_line_breaks() {
        let text = "a\n\tb\r\n\u{1b}]0;title\u{7}\u{202e}c";
        assert_eq!(printable(text).to_string(), "a\n\tb\\r\n\\u{1b}]0;title\\u{7}\\u{202e}c");
    }

    #[test]
    fn only_near_words_are_suggested() {
        let known = ["description", "enable", "wasm", "memory", "time"];
        let check = |word: &str, expected: Option<&str>| {
            assert_eq!(nearest(word, known), expected, "{word}")
        };
        check("desciption", Some("description"));
        check("Enable", Some("enable"));
        check("wsam", Some("wasm"));
        check("mem", Some("memory"));
        check("timeout", Some("time"));
        check("tool_memory", Some("memory"));
        check("userTime", Some("time"));
        check("downtime", None);
        check("http", None);
        check("me", None);
        check(&"wasm".repeat(100), None);
    }

    #[test]
    fn alternatives_read_as_a_sentence() {
        let check = |words: &[&str], expected: &str| assert_eq!(alternatives(words), expected);
        check(&["a"], "`a`");
        check(&["a", "b"], "`a` or `b`");
        check(&["a", "b", "c"], "`a`, `b` or `c`");
        check(&["a"; 11], &format!("{}, …", ["`a`"; 10].join(", ")));
    }
}
