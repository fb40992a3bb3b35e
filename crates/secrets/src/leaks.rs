//! Leak detection: what looks like a key or a token and leaves.
//!
//! The rules are a data file, `data/leaks.toml`; how many there are does not make it
//! slower. A tool that means to smuggle a key out encodes it, and is not found by this.

use std::fmt;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::redact::MASK;

/// The rules that come with kitbag.
const RULES: &str = include_str!("../data/leaks.toml");

/// With fewer different characters a run is filler.
const LEAST_DIFFERENT: u32 = 6;

/// Finds what looks like a key or a token, by rules.
///
/// Looking takes time in proportion to the bytes that are looked through.
pub struct Leaks {
    rules: Vec<Rule>,
    automaton: AhoCorasick,
    /// The rule of each prefix.
    rule_of: Vec<usize>,
    allowed: Vec<AllowedLeak>,
}

/// A finding that is none, as the user says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedLeak {
    /// What this rule finds, by its name.
    Rule(String),
    /// This finding, by its fingerprint.
    Fingerprint(String),
}

/// What looks like a key or a token.
#[derive(Clone, PartialEq, Eq)]
pub struct Leak<'a> {
    /// The name of the rule that found it.
    pub rule: &'a str,
    /// What it looks like, such as `a token of GitHub`.
    pub what: &'a str,
    /// Where it is.
    pub span: Range<usize>,
    /// The first 16 digits of its SHA-256, by which it can be allowed.
    pub fingerprint: String,
    /// What becomes of a request that holds it.
    pub on_request: OnRequest,
    /// What becomes of an answer that holds it.
    pub on_answer: OnAnswer,
}

/// What becomes of a request that holds a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnRequest {
    /// It is refused.
    #[default]
    Block,
    /// It is sent, and the finding is logged.
    Warn,
}

/// What becomes of an answer that holds a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnAnswer {
    /// The finding is masked.
    #[default]
    Redact,
    /// It is given, and the finding is logged.
    Warn,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    rule: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    name: String,
    what: String,
    prefixes: Vec<String>,
    chars: Chars,
    least: usize,
    most: usize,
    parts: Option<usize>,
    contains: Option<String>,
    #[serde(default)]
    alone: bool,
    #[serde(default)]
    on_request: OnRequest,
    #[serde(default)]
    on_answer: OnAnswer,
}

/// A set of characters.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Chars {
    Alnum,
    Upper,
    Hex,
    Word,
    Base64url,
    Base64,
    Dotted,
    Pem,
}

impl Leaks {
    /// The rules that come with kitbag, without what is allowed.
    pub fn new(allowed: Vec<AllowedLeak>) -> Self {
        let RuleFile { rule: rules } = toml::from_str(RULES).expect("a constant, which is tested");
        let prefixes = || {
            let of_rule = |(index, rule): (usize, &'_ Rule)| {
                rule.prefixes.iter().map(|prefix| (prefix.clone(), index)).collect::<Vec<_>>()
            };
            rules.iter().enumerate().flat_map(of_rule)
        };
        let automaton = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::DFA))
            .match_kind(MatchKind::LeftmostLongest)
            .build(prefixes().map(|(prefix, _)| prefix))
            .expect("a constant, which is tested");
        let rule_of = prefixes().map(|(_, rule)| rule).collect();
        Self { rules, automaton, rule_of, allowed }
    }

    /// Whether there is a rule of this name.
    pub fn has_rule(&self, name: &str) -> bool {
        self.rules.iter().any(|rule| rule.name == name)
    }

    /// What looks like a key or a token in there, from front to back, without what is
    /// allowed.
    pub fn find<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = Leak<'a>> {
        // Where the last run of each set was, so that none is walked twice.
        let mut runs = [const { 0..0 }; Chars::ALL];
        self.automaton.find_iter(bytes).filter_map(move |prefix| {
            let rule = &self.rules[self.rule_of[prefix.pattern().as_usize()]];
            let known = &mut runs[rule.chars as usize];
            let end = match known.contains(&prefix.end()) {
                true => known.end,
                false => {
                    let rest = &bytes[prefix.end()..];
                    let length = rest.iter().position(|byte| !rule.chars.has(*byte));
                    let end = prefix.end() + length.unwrap_or(rest.len());
                    *known = prefix.end()..end;
                    end
                }
            };
            let before = prefix.start().checked_sub(1).map(|at| bytes[at]);
            if rule.alone && before.is_some_and(|byte| rule.chars.has(byte))
                || !rule.fits(&bytes[prefix.end()..end])
            {
                return None;
            }
            let span = prefix.start()..end;
            let fingerprint = fingerprint(&bytes[span.clone()]);
            let is_allowed = self.allowed.iter().any(|allowed| match allowed {
                AllowedLeak::Rule(name) => *name == rule.name,
                AllowedLeak::Fingerprint(digits) => *digits == fingerprint,
            });
            let Rule { name, what, on_request, on_answer, .. } = rule;
            let (on_request, on_answer) = (*on_request, *on_answer);
            (!is_allowed).then_some(Leak {
                rule: name,
                what,
                span,
                fingerprint,
                on_request,
                on_answer,
            })
        })
    }

    /// Masks what is found in an answer, where its rule says so. Returns the findings.
    pub fn redact(&self, text: &mut String) -> Vec<Leak<'_>> {
        let mut found: Vec<Leak<'_>> = Vec::new();
        for leak in self.find(text.as_bytes()) {
            // It borrows from the rules alone.
            let rule = self.rules.iter().find(|rule| rule.name == leak.rule);
            let Some(Rule { name, what, .. }) = rule else { continue };
            found.push(Leak { rule: name, what, ..leak });
        }
        let masked = found.iter().filter(|leak| leak.on_answer == OnAnswer::Redact);
        for span in masked.map(|leak| leak.span.clone()) {
            // Prefixes and characters of all sets are ASCII.
            text.replace_range(span.clone(), &char::from(MASK).to_string().repeat(span.len()));
        }
        found
    }
}

impl fmt::Debug for Leak<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?} ({})", self.rule, self.span, self.fingerprint)
    }
}

/// By what a finding can be named without being shown.
fn fingerprint(bytes: &[u8]) -> String {
    Sha256::digest(bytes)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Rule {
    /// Whether this run of its characters makes a finding.
    fn fits(&self, run: &[u8]) -> bool {
        // A sentence may end after it.
        let run = match self.chars {
            Chars::Dotted => run.strip_suffix(b".").unwrap_or(run),
            _ => run,
        };
        (self.least..=self.most).contains(&run.len())
            && self.parts.is_none_or(|parts| {
                let mut found = run.split(|byte| *byte == b'.');
                found.clone().count() == parts && found.all(|part| !part.is_empty())
            })
            && self
                .contains
                .as_ref()
                .is_none_or(|text| memchr::memmem::find(run, text.as_bytes()).is_some())
            && run.iter().fold(0u128, |set, byte| set | 1 << (byte & 127)).count_ones()
                >= LEAST_DIFFERENT
    }
}

impl Chars {
    /// How many sets there are.
    const ALL: usize = 8;

    /// Whether a byte is one of these characters.
    fn has(self, byte: u8) -> bool {
        match self {
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Hex => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            Self::Word => byte.is_ascii_alphanumeric() || byte == b'_',
            Self::Base64url => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
            Self::Pem => {
                byte.is_ascii_alphanumeric()
                    || matches!(
                        byte,
                        b'+' | b'/' | b'=' | b' ' | b'\n' | b'\r' | b'\t' | b'\\' | b':' | b','
                    )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Text in which nothing is found, and may be mistaken for something.
    const NEGATIVES: &str = include_str!("../data/negatives.txt");

    /// One line for each finding: its rule, and the text with `{}` between what would
    /// otherwise make a scanner of repositories report it.
    const POSITIVES: &str = include_str!("../data/positives.txt");

    fn positives() -> impl Iterator<Item = (&'static str, String)> {
        let lines = POSITIVES.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        lines.map(|line| {
            let (rule, text) = line.split_once(' ').unwrap();
            (rule, text.replace("{}", "").replace("\\n", "\n"))
        })
    }

    #[test]
    fn every_rule_is_in_order_and_has_a_positive() {
        let leaks = Leaks::new(Vec::new());
        for rule in &leaks.rules {
            assert!(rule.least >= 16 && rule.least <= rule.most, "{}", rule.name);
            let is_apart = |prefix: &String| prefix.bytes().any(|byte| !rule.chars.has(byte));
            let is_linear = rule.most <= 512 || rule.alone || rule.prefixes.iter().all(is_apart);
            assert!(is_linear, "{}", rule.name);
            assert!(positives().any(|(name, _)| name == rule.name), "{}", rule.name);
            assert!(rule.prefixes.iter().all(|prefix| prefix.is_ascii() && prefix.len() >= 3));
        }
        let names: std::collections::HashSet<_> = leaks.rules.iter().map(|r| &r.name).collect();
        assert_eq!(names.len(), leaks.rules.len());
    }

    #[test]
    fn positives_are_found_by_their_rule_alone() {
        let leaks = Leaks::new(Vec::new());
        for (rule, token) in positives() {
            for text in
                [token.clone(), format!("Bearer {token}\n"), format!("{{\"k\":\"{token}\"}}")]
            {
                let found: Vec<_> = leaks.find(text.as_bytes()).collect();
                assert_eq!(found.len(), 1, "{rule}: {found:?}");
                assert_eq!(found[0].rule, rule);
                assert!(text[found[0].span.clone()].starts_with(token.trim_end()), "{rule}");
            }
        }
    }

    #[test]
    fn negatives_are_not_found() {
        let leaks = Leaks::new(Vec::new());
        for line in NEGATIVES.lines() {
            let found: Vec<_> = leaks.find(line.as_bytes()).collect();
            assert!(found.is_empty(), "{line}: {found:?}");
        }
    }

    #[test]
    fn a_finding_is_allowed_by_its_rule_or_its_fingerprint() {
        let (rule, token) = positives().find(|(rule, _)| *rule == "github-token").unwrap();
        let all = Leaks::new(Vec::new());
        let fingerprint = all.find(token.as_bytes()).next().unwrap().fingerprint;
        assert_eq!(fingerprint.len(), 16);
        let other = token.replace('1', "2");
        let check = |allowed: AllowedLeak, expected: (usize, usize)| {
            let leaks = Leaks::new(vec![allowed]);
            let count = |text: &str| leaks.find(text.as_bytes()).count();
            assert_eq!((count(&token), count(&other)), expected);
        };
        check(AllowedLeak::Rule(rule.into()), (0, 0));
        check(AllowedLeak::Rule("npm-token".into()), (1, 1));
        check(AllowedLeak::Fingerprint(fingerprint), (0, 1));
    }

    #[test]
    fn answers_are_masked_where_the_rule_says_so() {
        let leaks = Leaks::new(Vec::new());
        let of = |rule: &str| positives().find(|(name, _)| *name == rule).unwrap().1;
        let (token, web) = (of("npm-token"), of("json-web-token"));
        let mut text = format!("ä {token} ö {web}");
        let found = leaks.redact(&mut text);
        assert_eq!(text, format!("ä {} ö {web}", "*".repeat(token.len())));
        let rules: Vec<_> = found.iter().map(|leak| leak.rule).collect();
        assert_eq!(rules, ["npm-token", "json-web-token"]);
        // A fingerprint names a finding, and nothing shows it.
        assert!(!format!("{found:?}").contains(&token));
    }

    proptest! {
        #[test]
        fn spans_are_in_order_and_within_the_text(pieces in proptest::collection::vec(0usize..200, 0..40), noise in "[ -~é]{0,20}") {
            let leaks = Leaks::new(Vec::new());
            let all: Vec<_> = leaks.rules.iter().flat_map(|rule| rule.prefixes.clone())
                .chain(positives().map(|(_, token)| token)).chain([noise]).collect();
            let text: String = pieces.iter().map(|piece| &*all[piece % all.len()]).collect();
            let mut end = 0;
            for leak in leaks.find(text.as_bytes()) {
                prop_assert!(leak.span.start >= end && leak.span.end <= text.len());
                end = leak.span.start + 1;
            }
            let mut masked = text.clone();
            leaks.redact(&mut masked);
            prop_assert_eq!(masked.len(), text.len());
        }
    }
}
