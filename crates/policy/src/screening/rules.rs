//! The rules of `data/instructions.toml`.

use serde::Deserialize;

use crate::screening::finding::{Finding, Severity};

const RULES: &str = include_str!("../../data/instructions.toml");

/// A pattern of one kind of instruction.
pub(crate) struct Rule {
    pub(crate) name: String,
    what: String,
    severity: Severity,
    pub(crate) look: Look,
}

/// The pattern of a rule.
pub(crate) enum Look {
    /// One word of each list, in order, with at most `gap` other words between two of them.
    Words { lists: Vec<Vec<String>>, gap: usize },
    /// One of these strings.
    Marks(Vec<String>),
    /// A run of this many invisible characters.
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

/// Returns the built-in rules.
pub(crate) fn rules() -> Vec<Rule> {
    let RuleFile { rule } = toml::from_str(RULES).expect("the built-in rules are tested");
    let read = |Written { name, what, severity, words, gap, marks, hidden }| {
        let look = match (words, marks, hidden) {
            (Some(lists), None, None) => Look::Words { lists, gap },
            (None, Some(marks), None) => Look::Marks(marks),
            (None, None, Some(least)) => Look::Hidden(least),
            _ => unreachable!("a built-in rule has one of three keys, which is tested"),
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
