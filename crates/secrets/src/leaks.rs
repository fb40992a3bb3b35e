//! Leak detection: what looks like a key or a token and leaves.
//!
//! The rules are a data file, `data/leaks.toml`; how many there are does not make it
//! slower. A tool that means to smuggle a key out encodes it, and is not found by this.

use std::fmt;
use std::ops::Range;

use crate::fingerprint::Fingerprint;
use crate::leak_rules::{
    Chars, LONGEST_PREFIX, OnAnswer, OnRequest, Rule, Starts, is_filler, rules,
};
use crate::redact::MASK;

/// Findings of one text that are named, where there are more.
const MOST_NAMED: usize = 20;

/// Findings of one text that are held against the fingerprints that are allowed, for which each
/// is hashed. The next ones count.
const MOST_HASHED: usize = 10_000;

/// Finds what looks like a key or a token, by rules.
///
/// Looking takes time in proportion to the bytes that are looked through, whatever they are.
pub struct Leaks {
    rules: Vec<Rule>,
    starts: Starts,
    /// Whether what a rule finds is allowed, for each rule.
    allowed_rules: Vec<bool>,
    allowed: Vec<Fingerprint>,
}

/// A finding that is none, as the user says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedLeak {
    /// What this rule finds, by its name.
    Rule(String),
    /// This very text, by its fingerprint.
    Fingerprint(Fingerprint),
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
    /// By what it can be allowed.
    pub fingerprint: Fingerprint,
    /// What becomes of a request that holds it.
    pub on_request: OnRequest,
    /// What becomes of an answer that holds it.
    pub on_answer: OnAnswer,
}

impl Leaks {
    /// The rules that come with kitbag, without what is allowed.
    pub fn new(allowed: Vec<AllowedLeak>) -> Self {
        let rules = rules();
        let starts = Starts::of(&rules);
        let mut allowed_rules = vec![false; rules.len()];
        let mut fingerprints = Vec::new();
        for allowed in allowed {
            match allowed {
                AllowedLeak::Rule(name) => {
                    let own = rules.iter().zip(&mut allowed_rules);
                    own.for_each(|(rule, is_allowed)| *is_allowed |= rule.name == name);
                }
                AllowedLeak::Fingerprint(fingerprint) => fingerprints.push(fingerprint),
            }
        }
        Self { rules, starts, allowed_rules, allowed: fingerprints }
    }

    /// The names of the rules.
    pub fn rules() -> impl Iterator<Item = String> {
        rules().into_iter().map(|rule| rule.name)
    }

    /// What looks like a key or a token in there, from front to back, without what is
    /// allowed. Of what a request may hold at most 20 are given, and all that it may not.
    pub fn find<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = Leak<'a>> {
        let mut left = MOST_NAMED;
        let is_named = move |(rule, _): &(&Rule, Range<usize>)| match rule.on_request {
            OnRequest::Block => true,
            OnRequest::Warn => {
                let is_named = left > 0;
                left = left.saturating_sub(1);
                is_named
            }
        };
        self.findings(bytes).filter(is_named).map(|(rule, span)| rule.leak(bytes, span))
    }

    /// Masks what is found in an answer, where its rule says so. Returns the findings, at most
    /// the first 20.
    pub fn redact(&self, text: &mut String) -> Vec<Leak<'_>> {
        let mut named = Vec::new();
        let mut masked = Vec::new();
        for (rule, span) in self.findings(text.as_bytes()) {
            if named.len() < MOST_NAMED {
                named.push(rule.leak(text.as_bytes(), span.clone()));
            }
            if rule.on_answer == OnAnswer::Redact {
                masked.push(span);
            }
        }
        if !masked.is_empty() {
            let mut bytes = std::mem::take(text).into_bytes();
            masked.into_iter().for_each(|span| bytes[span].fill(MASK));
            // Prefixes and characters of all sets are ASCII.
            *text = String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        }
        named
    }

    /// The findings, from front to back, and their rules. One that lies in another one is left
    /// out, unless that one is only a warning.
    ///
    /// Each byte is looked at a bounded number of times. A run of each set is walked once
    /// (`runs`). Where one is a finding, or filler, so is each part of it that ends with it, and
    /// none is looked at again (`settled`). What a rule asks for beyond that it asks once of each
    /// run, which a test of the rules holds.
    fn findings<'a, 'b>(
        &'a self,
        bytes: &'b [u8],
    ) -> impl Iterator<Item = (&'a Rule, Range<usize>)> + use<'a, 'b> {
        let mut runs = [const { 0..0 }; Chars::ALL];
        let (mut at, mut left, mut next) = (0, 0u64, 0);
        let (mut settled, mut hashed) = (0, 0);
        std::iter::from_fn(move || {
            loop {
                if left == 0 {
                    (at, left) = self.starts.next(bytes, next)?;
                    // Not behind the prefix, whose length would have to be known first.
                    next = at + 1;
                }
                let index = left.trailing_zeros() as usize;
                left &= left - 1;
                let rule = &self.rules[index];
                let run = &mut runs[rule.chars as usize];
                // Within a run that is known, most are decided by how it ends.
                if self.starts.is_part(index)
                    && run.contains(&at)
                    && (run.end <= settled || run.end - at > rule.most + LONGEST_PREFIX)
                {
                    continue;
                }
                let Some(prefix) = self.starts.prefix(index, &bytes[at..]) else { continue };
                let start = at + prefix;
                if !run.contains(&start) {
                    *run = start..start + rule.chars.run(&bytes[start..]);
                }
                let end = run.end;
                if !rule.has_length(end - start) || end <= settled || self.allowed_rules[index] {
                    continue;
                }
                if is_filler(&bytes[start..end]) {
                    settled = end;
                    continue;
                }
                if !rule.fits(&bytes[start..end]) {
                    continue;
                }
                let span = at..end;
                let is_looked_up = !self.allowed.is_empty() && hashed < MOST_HASHED;
                hashed += usize::from(is_looked_up);
                let is_allowed =
                    is_looked_up && self.allowed.contains(&Fingerprint::of(&bytes[span.clone()]));
                if is_allowed || rule.is_severe() {
                    settled = end;
                }
                if !is_allowed {
                    return Some((rule, span));
                }
            }
        })
    }
}

impl Rule {
    /// Whether its findings neither leave nor are shown.
    fn is_severe(&self) -> bool {
        self.on_request == OnRequest::Block && self.on_answer == OnAnswer::Redact
    }

    fn leak<'a>(&'a self, bytes: &[u8], span: Range<usize>) -> Leak<'a> {
        Leak {
            rule: &self.name,
            what: &self.what,
            fingerprint: Fingerprint::of(&bytes[span.clone()]),
            span,
            on_request: self.on_request,
            on_answer: self.on_answer,
        }
    }
}

impl fmt::Debug for Leak<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?} ({})", self.rule, self.span, self.fingerprint)
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
    fn the_rules_are_in_order_and_have_a_positive() {
        let rules = rules();
        for rule in &rules {
            assert!(rule.least >= 16 && rule.least <= rule.most, "{}", rule.name);
            // A run is held against the rule once, unless nothing but its length and its
            // characters are looked at, which are known for each part of it.
            let is_apart = |prefix: &String| prefix.bytes().any(|byte| !rule.chars.has(byte));
            let is_once = rule.alone || rule.prefixes.iter().all(is_apart);
            let is_plain = rule.parts.is_none() && rule.contains.is_none() && rule.is_severe();
            assert!(is_once || is_plain, "{}", rule.name);
            assert!(positives().any(|(name, _)| name == rule.name), "{}", rule.name);
            assert!(rule.prefixes.iter().all(|prefix| prefix.is_ascii() && prefix.len() >= 3));
        }
        let names: std::collections::HashSet<_> = rules.iter().map(|rule| &rule.name).collect();
        assert_eq!(names.len(), rules.len());
        assert!(rules.len() <= 64, "a rule is a bit");
        // What is settled by one prefix is settled for those in it.
        for (own, inner) in rules.iter().flat_map(|own| rules.iter().map(move |inner| (own, inner)))
        {
            for (prefix, within) in own.prefixes.iter().flat_map(|prefix| {
                inner.prefixes.iter().map(move |within| (prefix.as_bytes(), within.as_bytes()))
            }) {
                let ends = (0..prefix.len()).filter(|at| prefix[*at..].starts_with(within));
                for rest in ends.map(|at| &prefix[at + within.len()..]).filter(|r| !r.is_empty()) {
                    assert!(rest.iter().any(|byte| !inner.chars.has(*byte)), "{}", inner.name);
                }
            }
        }
        let mut prefixes = rules.iter().flat_map(|rule| &rule.prefixes);
        assert!(prefixes.all(|prefix| prefix.len() <= LONGEST_PREFIX));
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
    fn a_finding_is_known_where_another_one_ends_in_its_prefix() {
        let of = |rule: &str, text: &str| {
            positives().find(|(name, token)| *name == rule && token.starts_with(text)).unwrap().1
        };
        let one = of("slack-token", "xoxb-");
        let other = of("slack-token", "xoxe.");
        let mut text = format!("{one}{other}");
        Leaks::new(Vec::new()).redact(&mut text);
        assert_eq!(text, "*".repeat(one.len() + other.len()));
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
    fn of_one_text_so_many_findings_are_held_against_what_is_allowed() {
        let (_, token) = positives().find(|(rule, _)| *rule == "github-token").unwrap();
        let fingerprint = Fingerprint::of(token.as_bytes());
        let leaks = Leaks::new(vec![AllowedLeak::Fingerprint(fingerprint)]);
        let text = format!("{token} ").repeat(MOST_HASHED);
        assert_eq!(leaks.find(text.as_bytes()).count(), 0);
        assert_eq!(leaks.find(format!("{text}{token}").as_bytes()).count(), 1);
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

    /// The same text masked, by the words of `leaks.toml` and without care for time.
    fn masked_plainly(rules: &[Rule], text: &str) -> String {
        let mut masked = text.as_bytes().to_vec();
        let bytes = text.as_bytes();
        for (at, rule) in (0..bytes.len()).flat_map(|at| rules.iter().map(move |rule| (at, rule))) {
            let here = rule.prefixes.iter().filter(|own| bytes[at..].starts_with(own.as_bytes()));
            let Some(prefix) = here.map(String::len).max() else { continue };
            let run = bytes[at + prefix..].iter().take_while(|byte| rule.chars.has(**byte));
            let end = at + prefix + run.count();
            let is_alone = at == 0 || !rule.chars.has(bytes[at - 1]);
            let run = &bytes[at + prefix..end];
            let different: std::collections::HashSet<_> = run.iter().collect();
            let is_found = (is_alone || !rule.alone) && different.len() >= 6 && rule.fits(run);
            if is_found && rule.on_answer == OnAnswer::Redact {
                masked[at..end].fill(MASK);
            }
        }
        String::from_utf8(masked).unwrap()
    }

    proptest! {
        #[test]
        fn all_that_the_rules_say_is_masked(
            pieces in proptest::collection::vec((0usize..400, 0usize..80), 0..12),
            fill in "[a-cA-C0-2_.=/ -]{0,40}",
        ) {
            let leaks = Leaks::new(Vec::new());
            let all: Vec<_> = leaks.rules.iter().flat_map(|rule| rule.prefixes.clone())
                .chain(positives().map(|(_, token)| token)).collect();
            let text: String = pieces.iter().map(|(piece, length)| {
                let start: String = all[piece % all.len()].chars().take(*length).collect();
                start + &fill[..fill.len().min(*length)]
            }).collect();
            let mut masked = text.clone();
            leaks.redact(&mut masked);
            prop_assert_eq!(masked, masked_plainly(&leaks.rules, &text));
        }

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
