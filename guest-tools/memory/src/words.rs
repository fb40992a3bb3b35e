//! Words of a text in normalized form: without case and accents.
//!
//! A word is a run of letters and digits. The crate `unicode-segmentation` would keep `a_b` and
//! `example.com` together, although people search for their parts, and would split scripts without
//! spaces into single characters. Here each pair of adjacent characters is a word in such scripts.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Maximum number of words of a query: each is compared with every word of every text.
pub(crate) const QUERY_WORDS: usize = 32;

/// The weight of another form of a requested word.
const FORM: f32 = 0.4;

/// The class of a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Word,
    /// A script without spaces between words.
    Dense,
    Between,
}

/// Passes each normalized word of a text to `visit`.
pub(crate) fn each_word(text: &str, mut visit: impl FnMut(&str)) {
    let mut folded = String::new();
    let mut word = |text: &str| {
        folded.clear();
        fold(text, &mut folded);
        if !folded.is_empty() {
            visit(&folded);
        }
    };
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let class = class(first);
        let end = rest.find(|it| self::class(it) != class).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        match class {
            Class::Between => {}
            Class::Word => word(run),
            Class::Dense => {
                let starts = || run.char_indices().map(|(at, _)| at);
                let ends = starts().skip(2).chain([run.len()]);
                // A single character is also a word.
                starts().zip(ends).for_each(|(start, end)| word(&run[start..end]));
            }
        }
        rest = after;
    }
}

/// Returns the distinct words of a query.
///
/// # Errors
///
/// The query has no words, or too many.
pub(crate) fn of_query(query: &str) -> Result<Vec<String>, String> {
    let mut words: Vec<String> = Vec::new();
    let mut count = 0_usize;
    each_word(query, |word| {
        if !words.iter().any(|other| other == word) {
            count += 1;
            if words.len() < QUERY_WORDS {
                words.push(word.to_owned());
            }
        }
    });
    match count {
        0 => Err("`query` has no words".to_owned()),
        count if count > QUERY_WORDS => {
            Err(format!("`query` has more than {QUERY_WORDS} words, the limit"))
        }
        _ => Ok(words),
    }
}

/// Returns the weight of a word for the requested one. Both are folded.
pub(crate) fn weight(word: &str, asked: &str) -> f32 {
    match () {
        () if word == asked => 1.0,
        () if word.as_bytes()[0] == asked.as_bytes()[0] && is_form(word, asked) => FORM,
        // A single character of a script without spaces.
        () if !asked.is_ascii() && asked.chars().nth(1).is_none() && word.contains(asked) => FORM,
        () => 0.0,
    }
}

/// Returns true if a word is probably another form of the requested one, without a dictionary: it
/// extends it (`deploy`, `deployment`), it is almost all of it (`migrations`, `migration`), or both
/// differ in a short ending (`deployed`, `deploying`).
fn is_form(word: &str, asked: &str) -> bool {
    let shared = word.chars().zip(asked.chars()).take_while(|(one, other)| one == other).count();
    if shared < 3 {
        return false;
    }
    let after = |text: &str| text.chars().count() - shared;
    match (after(word), after(asked)) {
        (_, 0) => true,
        (0, rest) => shared >= 4 && rest <= 3,
        (rest, other) => shared >= 5 && rest <= 3 && other <= 3,
    }
}

fn class(c: char) -> Class {
    if c.is_ascii() {
        return if c.is_ascii_alphanumeric() { Class::Word } else { Class::Between };
    }
    match c {
        // They determine the presentation of an emoji.
        '\u{fe00}'..='\u{fe0f}' => Class::Between,
        _ if !c.is_alphanumeric() && !is_combining_mark(c) => Class::Between,
        // Thai, Lao, Burmese, Khmer, kana, Han.
        '\u{e00}'..='\u{eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}' => Class::Dense,
        _ => Class::Word,
    }
}

/// Normalizes a word.
fn fold(word: &str, folded: &mut String) {
    if word.is_ascii() {
        folded.push_str(word);
        folded.make_ascii_lowercase();
        return;
    }
    for c in word.nfkd().flat_map(char::to_lowercase) {
        match c {
            '\u{300}'..='\u{36f}' => {}
            'ß' => folded.push_str("ss"),
            'æ' => folded.push_str("ae"),
            'œ' => folded.push_str("oe"),
            'þ' => folded.push_str("th"),
            'ø' => folded.push('o'),
            'ł' => folded.push('l'),
            'đ' | 'ð' => folded.push('d'),
            'ı' => folded.push('i'),
            'ς' => folded.push('σ'),
            c => folded.push(c),
        }
    }
}
