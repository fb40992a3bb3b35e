//! The rules of leak detection, which describe keys and tokens of each kind.
//!
//! The rules are in `data/leaks.toml`, which documents the keys of a rule.

use memchr::{memchr2, memmem};
use serde::Deserialize;

use crate::chars::Chars;

const RULES: &str = include_str!("../data/leaks.toml");

/// The minimum number of different characters. A run with fewer is filler.
const LEAST_DIFFERENT: u32 = 6;

/// Maximum length of a prefix.
pub(crate) const LONGEST_PREFIX: usize = 64;

/// The start of every mask. The name of a rule and `]` follow.
///
/// A mask is not longer than the text it replaces and needs no escapes in JSON.
pub const MASK_START: &str = "[kitbag-mask:";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    rule: Vec<Rule>,
}

/// The handling of a request with a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnRequest {
    /// The request is refused.
    #[default]
    Block,
    /// The request is sent, and the finding is logged.
    Warn,
}

/// The handling of an answer with a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnAnswer {
    /// The finding is masked.
    #[default]
    Redact,
    /// The finding is not masked, but the answer is marked.
    Warn,
}

/// The description of keys and tokens of one kind.
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
    /// The minimum length of each part between dots. Empty: no parts.
    #[serde(default)]
    pub(crate) parts: Vec<usize>,
    #[serde(deserialize_with = "finder", default)]
    pub(crate) contains: Option<memmem::Finder<'static>>,
    #[serde(default)]
    pub(crate) mixed: bool,
    #[serde(default)]
    pub(crate) alone: bool,
    /// Characters that belong to the finding before the prefix.
    pub(crate) behind: Option<Behind>,
    /// A further condition on the value.
    pub(crate) check: Option<Check>,
    #[serde(default)]
    pub(crate) on_request: OnRequest,
    #[serde(default)]
    pub(crate) on_answer: OnAnswer,
    /// The name in the mask if the name of the rule is too long.
    short: Option<String>,
}

/// The relation of a rule's prefix and run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Form {
    /// The run follows the prefix. The finding contains both.
    #[default]
    Token,
    /// The prefix is the first line of a block. The finding is the block.
    Block,
    /// The prefix is a name to which the run is assigned. The finding is the run.
    Assignment,
    /// Like `Assignment`, but a person may have chosen the value.
    Password,
    /// The prefix precedes the user and password of a URL.
    Url,
}

/// A further condition on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Check {
    /// The value is a user and password in base64.
    Basic,
    /// The value has letters and digits and is not a placeholder.
    Opaque,
}

/// A fixed number of characters before a prefix.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Behind {
    pub(crate) chars: Chars,
    pub(crate) least: usize,
    pub(crate) most: usize,
}

/// Returns the built-in rules.
pub(crate) fn rules() -> Vec<Rule> {
    let RuleFile { rule } = toml::from_str(RULES).expect("the built-in rules are tested");
    rule
}

impl Rule {
    /// Returns true if findings block requests and are masked.
    pub(crate) fn is_severe(&self) -> bool {
        self.on_request == OnRequest::Block && self.on_answer == OnAnswer::Redact
    }

    /// Returns true if the rule is not specific to a vendor.
    pub(crate) fn is_generic(&self) -> bool {
        self.on_request == OnRequest::Block && self.on_answer == OnAnswer::Warn
    }

    /// Returns the name in the mask.
    pub(crate) fn mask_name(&self) -> &str {
        self.short.as_deref().unwrap_or(&self.name)
    }

    /// Returns true if a run of this length, without a trailing dot of a sentence, is a finding.
    #[inline]
    pub(crate) fn has_length(&self, length: usize) -> bool {
        let with_dot = self.chars == Chars::Dotted;
        length >= self.least && length <= self.most + usize::from(with_dot)
    }

    /// Returns true if a run of the rule's characters is a finding.
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

/// Returns true if there are too few different characters.
pub(crate) fn is_filler(run: &[u8]) -> bool {
    let mut different = 0u128;
    !run.iter().any(|byte| {
        different |= 1 << (byte & 127);
        different.count_ones() >= LEAST_DIFFERENT
    })
}

/// Returns the last example marker, as in AWS's `AKIAIOSFODNN7EXAMPLE`: the word *example*, or five
/// `x` in a row.
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

/// Returns true if there are lower-case letters, upper-case letters and digits.
fn is_mixed(run: &[u8]) -> bool {
    run.iter().any(u8::is_ascii_lowercase)
        && run.iter().any(u8::is_ascii_uppercase)
        && run.iter().any(u8::is_ascii_digit)
}

fn finder<'de, D>(deserializer: D) -> Result<Option<memmem::Finder<'static>>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    Ok(Some(memmem::Finder::new(&text).into_owned()))
}

/// Parses prefixes, in which `[ab]` is one of these characters.
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
