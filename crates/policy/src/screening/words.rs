//! Rows of words.

use std::collections::HashMap;

use crate::screening::rules::{Look, Rule};

/// The longest word that is looked for, in bytes.
const LONGEST: usize = 32;

/// Looks for the words of all rules, each word of a text once.
pub(crate) struct Words {
    /// For each word the lists that hold it: the rule, and which of its lists.
    lists: HashMap<String, Vec<(usize, usize)>>,
    /// For each rule how many lists it has, and its gap.
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

    /// Notes the rules that a text has rows of words of, and says how many steps that took.
    ///
    /// For each list of a rule it is known where the latest row ends that has a word of each list
    /// up to that one. A later one is always as good, since the gap is counted from its end: so
    /// one number for each list is enough, and a word takes as many steps as there are lists that
    /// hold it.
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
            // The last list first: a word does not follow itself.
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
                // `don't` is `dont`.
                '\'' | '’' => {}
                c if c.is_alphanumeric() || c == '_' || c == '-' && !word.is_empty() => {
                    // What is longer is none of the words, however it goes on.
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

/// A word without dashes at its end.
fn trimmed(word: &mut String) -> &mut String {
    while word.ends_with('-') {
        word.pop();
    }
    word
}
