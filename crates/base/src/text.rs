//! How text from a file is shown to a person, and which known word is meant.

use std::fmt;

/// The longest text that a message repeats, in characters. A longer one is cut
/// with `…`, so that one value cannot flood a terminal.
const SHOWN_CHARS: usize = 200;

/// Text that is shown with everything invisible spelled out.
pub struct Shown<'a>(&'a str);

/// Shows a text of unknown origin: control characters and those that change
/// the direction of a line are escaped, and a long text is cut.
pub fn shown(text: &str) -> Shown<'_> {
    Shown(text)
}

/// The longest message of an error, in bytes. It is words about a call and not its data.
pub const ERROR_BYTES: usize = 4 << 10;

/// Cuts the middle out of a message that is longer than [`ERROR_BYTES`]: its beginning says what
/// is wrong, and its end says the way out.
pub fn bound_error(message: &mut String) {
    const BEGINNING: usize = 2 << 10;
    const END: usize = 1 << 10;
    if message.len() > ERROR_BYTES {
        let beginning = message.floor_char_boundary(BEGINNING);
        let end = message.ceil_char_boundary(message.len() - END);
        let left_out = format!("… [{} bytes left out] …", end - beginning);
        message.replace_range(beginning..end, &left_out);
    }
}

/// The name of an error in words, for errors of libraries that have no other text:
/// `UnknownIssuer(…)` reads as `unknown issuer`.
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

/// A longer text that is shown with everything invisible spelled out.
pub struct Printable<'a>(&'a str);

/// Shows a text of unknown origin as [`shown`] does, but whole, and with line
/// breaks and tabs as they are.
pub fn printable(text: &str) -> Printable<'_> {
    Printable(text)
}

/// Whether a character must be spelled out, because a terminal would act on it
/// or because it is invisible.
pub fn is_hidden(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    match c {
        // Variation selectors, which belong to the visible character before them.
        '\u{fe00}'..='\u{fe0f}' => false,
        // Line separators, marks of annotations, and the Braille pattern without dots.
        '\u{2028}'..='\u{2029}' | '\u{fff9}'..='\u{fffb}' | '\u{2800}' => true,
        _ => c.is_control() || is_ignorable(c),
    }
}

/// Whether a character is left out where names are compared without case: a code point that
/// some file systems ignore.
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

/// The escape of a hidden character, such as `\n` and `\u{202e}`.
pub fn escape(c: char) -> String {
    // The standard library does not escape all hidden characters in its shorter form.
    match c.is_ascii() {
        true => c.escape_debug().to_string(),
        false => c.escape_unicode().to_string(),
    }
}

/// Joins words as `` `a`, `b` or `c` ``, at most ten of them.
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

/// The candidate that was most likely meant by a word, if any is near.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // No known word is longer; a longer one is not worth a comparison whose
    // cost grows with its length.
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
    fn the_name_of_a_variant_is_words() {
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
    fn invisible_characters_are_spelled_out() {
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
    fn a_longer_text_keeps_its_lines() {
        let text = "a\n\tb\r\n\u{1b}]0;title\u{7}\u{202e}c";
        assert_eq!(printable(text).to_string(), "a\n\tb\\r\n\\u{1b}]0;title\\u{7}\\u{202e}c");
    }

    #[test]
    fn the_nearest_word_is_found_and_a_far_one_is_not() {
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
