//! The rules of leak detection: what keys and tokens of each kind look like.
//!
//! They are a data file, `data/leaks.toml`, which says what each key of a rule means.

use memchr::{memchr2, memmem};
use serde::Deserialize;

use crate::chars::Chars;

/// The rules that come with kitbag.
const RULES: &str = include_str!("../data/leaks.toml");

/// With fewer different characters a run is filler.
const LEAST_DIFFERENT: u32 = 6;

/// Bytes of the longest prefix, at most.
pub(crate) const LONGEST_PREFIX: usize = 64;

/// The start of each mask. The name of a rule and `]` follow.
///
/// A mask is never longer than what it replaces, and needs no escape in JSON.
pub const MASK_START: &str = "[kitbag-mask:";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    rule: Vec<Rule>,
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
    /// It stays, and the answer is marked.
    Warn,
}

/// What keys and tokens of one kind look like.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    pub(crate) name: String,
    pub(crate) what: String,
    #[serde(deserialize_with = "prefixes")]
    pub(crate) prefixes: Vec<String>,
    #[serde(default)]
    pub(crate) form: Form,
    pub(crate) chars: Chars,
    pub(crate) least: usize,
    pub(crate) most: usize,
    /// The least length of each part between dots. Empty: it has no parts.
    #[serde(default)]
    pub(crate) parts: Vec<usize>,
    #[serde(deserialize_with = "finder", default)]
    pub(crate) contains: Option<memmem::Finder<'static>>,
    #[serde(default)]
    pub(crate) mixed: bool,
    #[serde(default)]
    pub(crate) alone: bool,
    /// What belongs to it before the prefix.
    pub(crate) behind: Option<Behind>,
    /// What more is asked of the value.
    pub(crate) check: Option<Check>,
    #[serde(default)]
    pub(crate) on_request: OnRequest,
    #[serde(default)]
    pub(crate) on_answer: OnAnswer,
    /// The name in the mask, where the name of the rule is too long.
    short: Option<String>,
}

/// How the prefix and the run of a rule belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Form {
    /// The run follows the prefix, and both are the finding.
    #[default]
    Token,
    /// The prefix is the first line of a block, which is the finding.
    Block,
    /// The prefix is a name to which the run is assigned, which alone is the finding.
    Assignment,
    /// The same, with a value that a person may have chosen.
    Password,
    /// The prefix stands before the user and the password of a URL.
    Url,
}

/// More that is asked of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Check {
    /// It is a user and a password in base64.
    Basic,
    /// It is no placeholder, and has letters and digits.
    Opaque,
}

/// Characters before a prefix, of which there are so many and no more.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Behind {
    pub(crate) chars: Chars,
    pub(crate) least: usize,
    pub(crate) most: usize,
}

/// The rules that come with kitbag.
pub(crate) fn rules() -> Vec<Rule> {
    let RuleFile { rule } = toml::from_str(RULES).expect("a constant, which is tested");
    rule
}

impl Rule {
    /// Whether its findings neither leave nor are shown.
    pub(crate) fn is_severe(&self) -> bool {
        self.on_request == OnRequest::Block && self.on_answer == OnAnswer::Redact
    }

    /// Whether its findings are those of no vendor.
    pub(crate) fn is_generic(&self) -> bool {
        self.on_request == OnRequest::Block && self.on_answer == OnAnswer::Warn
    }

    /// The name in the mask.
    pub(crate) fn mask_name(&self) -> &str {
        self.short.as_deref().unwrap_or(&self.name)
    }

    /// Whether a run has a length that makes it a finding: without the dot that may end the
    /// sentence.
    #[inline]
    pub(crate) fn has_length(&self, length: usize) -> bool {
        let with_dot = self.chars == Chars::Dotted;
        length >= self.least && length <= self.most + usize::from(with_dot)
    }

    /// Whether a run of its characters makes a finding.
    pub(crate) fn fits(&self, run: &[u8]) -> bool {
        let run = match self.chars {
            Chars::Dotted => run.strip_suffix(b".").unwrap_or(run),
            _ => run,
        };
        (self.least..=self.most).contains(&run.len())
            && self.contains.as_ref().is_none_or(|text| text.find(run).is_some())
            && (!self.mixed || is_mixed(run))
            && (self.parts.is_empty() || {
                let mut parts = run.split(|byte| *byte == b'.');
                self.parts.iter().all(|least| parts.next().is_some_and(|part| part.len() >= *least))
                    && parts.next().is_none()
            })
    }
}

/// Whether there are too few different characters.
pub(crate) fn is_filler(run: &[u8]) -> bool {
    let mut different = 0u128;
    !run.iter().any(|byte| {
        different |= 1 << (byte & 127);
        different.count_ones() >= LEAST_DIFFERENT
    })
}

/// The last place of what only documentation has, as in AWS's `AKIAIOSFODNN7EXAMPLE`: the word
/// *example*, or five `x` in a row.
pub(crate) fn last_example(run: &[u8]) -> Option<usize> {
    let (mut last, mut from) = (None, 0);
    while let Some(at) = memchr2(b'x', b'X', &run[from..]).map(|at| from + at) {
        let rest = &run[at..];
        let is_word = at > 0
            && run[at - 1].eq_ignore_ascii_case(&b'e')
            && rest.get(1..6).is_some_and(|rest| rest.eq_ignore_ascii_case(b"ample"));
        let is_row = rest.get(..5).is_some_and(|row| row.eq_ignore_ascii_case(b"xxxxx"));
        if is_word || is_row {
            last = Some(if is_word { at - 1 } else { at });
        }
        from = at + 1;
    }
    last
}

/// Whether there are lower and upper letters and digits.
fn is_mixed(run: &[u8]) -> bool {
    run.iter().any(u8::is_ascii_lowercase)
        && run.iter().any(u8::is_ascii_uppercase)
        && run.iter().any(u8::is_ascii_digit)
}

/// A text that is looked for.
fn finder<'de, D>(deserializer: D) -> Result<Option<memmem::Finder<'static>>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    Ok(Some(memmem::Finder::new(&text).into_owned()))
}

/// Prefixes, in which `[ab]` stands for one of these characters.
fn prefixes<'de, D>(deserializer: D) -> Result<Vec<String>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let written = Vec::<String>::deserialize(deserializer)?;
    Ok(written.iter().flat_map(|prefix| spelled_out(prefix)).collect())
}

fn spelled_out(prefix: &str) -> Vec<String> {
    let Some((before, rest)) = prefix.split_once('[') else { return vec![prefix.to_owned()] };
    let Some((choices, after)) = rest.split_once(']') else { return vec![prefix.to_owned()] };
    let ends = spelled_out(after);
    let choices = choices.chars();
    choices.flat_map(|own| ends.iter().map(move |end| format!("{before}{own}{end}"))).collect()
}
