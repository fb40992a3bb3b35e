//! Sequences of words.

use std::collections::HashMap;

use crate::screening::rules::{Look, Rule};

/// The longest word of a rule, in bytes.
const LONGEST: usize = 32;

/// Scans for the words of all rules in one pass.
pub(crate) struct Words {
    /// For each word, the lists that contain it: the rule and the index of the list.
    lists: HashMap<String, Vec<(usize, usize)>>,
    /// For each rule, the number of lists and the gap.
    rules: Vec<(usize, usize)>,
}

impl Words {
    pub(crate) fn new(rules: &[Rule]) -> Self {
        let mut all = Self { lists: HashMap::new(), rules: Vec::new() };
        for (index, rule) in rules.iter().enumerate() {
            let Look::Words { lists, gap } = &rule.look else {
                all.rules.push((0, 0));
                continue;
            };
            all.rules.push((lists.len(), *gap));
            for (list, words) in lists.iter().enumerate() {
                for word in words {
                    all.lists.entry(word.clone()).or_default().push((index, list));
                }
            }
        }
        all
    }

    /// Marks the rules whose word sequences are in a text. Returns the number of steps.
    ///
    /// For each list of a rule, the state has the end of the latest sequence with a word of each
    /// list up to that one. A later end is always at least as good, since the gap is measured from
    /// it. Therefore one number per list is enough, and a word takes as many steps as lists contain
    /// it.
    pub(crate) fn look(&self, text: &str, found: &mut [bool]) -> usize {
        let mut ends: Vec<Vec<Option<usize>>> =
            self.rules.iter().map(|(lists, _)| vec![None; *lists]).collect();
        let mut steps = 0;
        let mut word = String::with_capacity(LONGEST);
        let mut at = 0;
        let mut end = |word: &mut String, at: &mut usize| {
            if word.is_empty() {
                return;
            }
            steps += 1;
            *at += 1;
            // The last list first, so that a word does not match twice in a row.
            for (rule, list) in self.lists.get(word.as_str()).into_iter().flatten().rev() {
                steps += 1;
                let (lists, gap) = self.rules[*rule];
                let follows = *list == 0
                    || ends[*rule][list - 1].is_some_and(|end| *at - end <= gap + 1 && *at > end);
                if follows {
                    ends[*rule][*list] = Some(*at);
                    found[*rule] |= list + 1 == lists;
                }
            }
            word.clear();
        };
        for c in text.chars() {
            match c {
                // `don't` is equal to `dont`.
                '\'' | '’' => {}
                c if c.is_alphanumeric() || c == '_' || c == '-' && !word.is_empty() => {
                    // A longer word is in no list.
                    if word.len() < LONGEST {
                        word.extend(c.to_lowercase());
                    }
                }
                _ => end(trimmed(&mut word), &mut at),
            }
        }
        end(trimmed(&mut word), &mut at);
        steps
    }
}

/// Removes dashes at the end of a word.
fn trimmed(word: &mut String) -> &mut String {
    while word.ends_with('-') {
        word.pop();
    }
    word
}
