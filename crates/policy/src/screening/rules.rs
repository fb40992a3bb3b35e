//! The rules, as `data/instructions.toml` has them.

use serde::Deserialize;

use crate::screening::finding::{Finding, Severity};

/// The rules that come with kitbag.
const RULES: &str = include_str!("../../data/instructions.toml");

/// What instructions of one kind look like.
pub(crate) struct Rule {
    pub(crate) name: String,
    what: String,
    severity: Severity,
    pub(crate) look: Look,
}

/// What is looked for.
pub(crate) enum Look {
    /// One word of each list, in this order, with at most so many others between two of them.
    Words { lists: Vec<Vec<String>>, gap: usize },
    /// One of these texts.
    Marks(Vec<String>),
    /// This number of invisible letters in a row.
    Hidden(usize),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    rule: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    what: String,
    severity: Severity,
    words: Option<Vec<Vec<String>>>,
    #[serde(default = "gap")]
    gap: usize,
    marks: Option<Vec<String>>,
    hidden: Option<usize>,
}

fn gap() -> usize {
    3
}

/// The rules that come with kitbag.
pub(crate) fn rules() -> Vec<Rule> {
    let RuleFile { rule } = toml::from_str(RULES).expect("a constant, which is tested");
    let read = |Written { name, what, severity, words, gap, marks, hidden }| {
        let look = match (words, marks, hidden) {
            (Some(lists), None, None) => Look::Words { lists, gap },
            (None, Some(marks), None) => Look::Marks(marks),
            (None, None, Some(least)) => Look::Hidden(least),
            _ => unreachable!("a rule of the file has one of three keys, which is tested"),
        };
        Rule { name, what, severity, look }
    };
    rule.into_iter().map(read).collect()
}

impl Rule {
    pub(crate) fn finding(&self) -> Finding {
        let Self { name, what, severity, .. } = self;
        Finding { rule: name.clone(), what: what.clone(), severity: *severity }
    }
}
