//! Words of identifiers and of English text.

use std::collections::HashMap;
use std::sync::OnceLock;

/// Maximum length of a word in bytes. Longer words are data.
const WORD_BYTES: usize = 40;

/// Words that say nothing about a tool.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from",
    "had", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "me", "my", "of",
    "on", "one", "or", "our", "s", "so", "some", "that", "the", "their", "them", "then", "there",
    "this", "to", "up", "us", "want", "was", "we", "who", "will", "with", "would", "you", "your",
    "please", "need", "tool", "use",
];

/// Returns the stems of the words of a text, in order: identifiers are split at `_`, `-`, `.` and
/// where upper case starts. A word with upper case inside is followed by its parts.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let parts = text.split(|c: char| !c.is_alphanumeric()).flat_map(|word| {
        let parts = split(word);
        let whole = (parts.len() > 1).then_some(word);
        whole.into_iter().chain(parts)
    });
    let words = parts.map(str::to_lowercase);
    words.filter(|word| is_word(word)).map(|word| stem(&word))
}

fn is_word(word: &str) -> bool {
    !word.is_empty() && word.len() <= WORD_BYTES && !STOP_WORDS.contains(&word)
}

/// Splits an identifier at the start of upper case: `createURLFor` has the parts `create`, `URL`
/// and `For`.
fn split(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let chars: Vec<_> = word.char_indices().collect();
    for (at, pair) in chars.windows(2).enumerate() {
        let (before, (position, now)) = (pair[0].1, pair[1]);
        let next = chars.get(at + 2).map(|(_, next)| *next);
        let is_start = now.is_uppercase()
            && (before.is_lowercase() || next.is_some_and(|next| next.is_lowercase()));
        // A plural of an abbreviation, as in `URLs`.
        let is_plural = next == Some('s') && chars.len() == at + 3 && before.is_uppercase();
        if is_start && !is_plural {
            parts.push(&word[start..position]);
            start = position;
        }
    }
    parts.push(&word[start..]);
    parts
}

/// Removes the endings of English words that change their form and not their meaning. The result
/// need not be a word.
pub(super) fn stem(word: &str) -> String {
    if !word.is_ascii() {
        return word.to_owned();
    }
    let mut stem = word;
    if let Some(rest) = stem.strip_suffix("ies").filter(|rest| rest.len() > 1) {
        return format!("{rest}y");
    }
    let is_plural = |rest: &&str| rest.len() > 2 && !rest.ends_with(['s', 'u', 'i']);
    match stem.strip_suffix("es").filter(|rest| rest.ends_with(['s', 'x', 'z', 'h'])) {
        Some(rest) => stem = rest,
        None => stem = stem.strip_suffix('s').filter(is_plural).unwrap_or(stem),
    }
    let long = |least: usize| move |rest: &&str| rest.len() >= least && has_vowel(rest);
    if let Some(rest) = ["ing", "ed"].iter().find_map(|end| stem.strip_suffix(end).filter(long(3)))
    {
        // A doubled consonant, as in `planned`.
        let bytes = rest.as_bytes();
        let is_double = bytes.len() > 3 && bytes[bytes.len() - 1] == bytes[bytes.len() - 2];
        let is_double = is_double && !rest.ends_with(['l', 's', 'z']);
        stem = if is_double { &rest[..rest.len() - 1] } else { rest };
    } else if let Some(rest) = stem.strip_suffix("ion").filter(long(4)) {
        stem = rest;
    }
    stem.strip_suffix('e').filter(|rest| rest.len() > 2).unwrap_or(stem).to_owned()
}

fn has_vowel(word: &str) -> bool {
    word.contains(['a', 'e', 'i', 'o', 'u', 'y'])
}

/// Words with the same or a wider meaning.
#[derive(Default)]
pub(super) struct Synonyms {
    words: HashMap<String, Vec<String>>,
    /// The meanings of verbs of two words, by their words.
    verbs: HashMap<(String, String), Vec<String>>,
}

impl Synonyms {
    pub(super) fn get() -> &'static Self {
        static SYNONYMS: OnceLock<Synonyms> = OnceLock::new();
        SYNONYMS.get_or_init(|| Self::read(include_str!("../../data/synonyms.txt")))
    }

    fn read(text: &str) -> Self {
        let mut synonyms = Self::default();
        let stems = |text: &str| text.split_whitespace().map(stem).collect::<Vec<_>>();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some((verb, meanings)) = line.split_once('=') {
                let verb: Vec<_> = verb.split_whitespace().map(str::to_owned).collect();
                let [verb, particle] = <[String; 2]>::try_from(verb).expect("a verb has two words");
                synonyms.verbs.insert((stem(&verb), particle), stems(meanings));
                continue;
            }
            let (group, wider) = match line.split_once('>') {
                Some((group, wider)) => (stems(group), stems(wider)),
                None => (stems(line), stems(line)),
            };
            for word in &group {
                let known = synonyms.words.entry(word.clone()).or_default();
                known.extend(wider.iter().filter(|other| *other != word).cloned());
            }
        }
        synonyms
    }

    /// Returns the synonyms of a stem, which may repeat.
    pub(super) fn of(&self, word: &str) -> &[String] {
        self.words.get(word).map_or(&[], |group| group)
    }

    /// Returns the words of a query, and the meaning of each verb of two words in place of these.
    pub(super) fn query(&self, text: &str) -> Vec<Vec<String>> {
        let raw: Vec<_> =
            text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(word) = raw.get(at) {
            let lower = word.to_lowercase();
            let particle = raw.get(at + 1).map(|next| next.to_lowercase());
            let verb = particle.and_then(|particle| self.verbs.get(&(stem(&lower), particle)));
            at += 1;
            match verb {
                Some(meanings) => {
                    found.push(meanings.clone());
                    at += 1;
                }
                None => found.extend(words(word).map(|word| vec![word])),
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(words(text).collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn identifiers_are_split() {
        check(
            "createURLFor_issue-link.now2",
            &["createurlfor", "creat", "url", "issu", "link", "now2"],
        );
        check("listURLs", &["listurl", "list", "url"]);
        check("GitHub", &["github", "git", "hub"]);
        check("k8s", &["k8s"]);
        check("", &[]);
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for (one, other) in [
            ("files", "file"),
            ("boxes", "box"),
            ("entries", "entry"),
            ("planned", "plan"),
            ("creating", "create"),
            ("creation", "created"),
            ("translations", "translate"),
            ("searches", "searching"),
            ("calls", "calling"),
        ] {
            assert_eq!(stem(one), stem(other), "{one} {other}");
        }
        for word in ["status", "class", "this", "is", "über"] {
            assert_eq!(stem(word), word);
        }
    }
}
