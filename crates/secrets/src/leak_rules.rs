//! The rules of leak detection: what keys and tokens of each kind look like.
//!
//! They are a data file, `data/leaks.toml`, which says what each key of a rule means.

use memchr::memmem;
use serde::Deserialize;

/// The rules that come with kitbag.
const RULES: &str = include_str!("../data/leaks.toml");

/// With fewer different characters a run is filler.
const LEAST_DIFFERENT: u32 = 6;

/// Bytes of the longest prefix, at most.
pub(crate) const LONGEST_PREFIX: usize = 64;

/// Bytes of a finding's start that are looked at everywhere. Every prefix has as many.
const FIRST: usize = 3;

/// Bytes of a finding's start that are looked at where the first ones fit. Every finding has
/// more.
const START: usize = 8;

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
    /// It is given, and the finding is logged.
    Warn,
}

/// What keys and tokens of one kind look like.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) prefixes: Vec<String>,
    pub(crate) chars: Chars,
    pub(crate) least: usize,
    pub(crate) most: usize,
    pub(crate) parts: Option<usize>,
    #[serde(deserialize_with = "finder", default)]
    pub(crate) contains: Option<memmem::Finder<'static>>,
    #[serde(default)]
    pub(crate) alone: bool,
    #[serde(default)]
    pub(crate) on_request: OnRequest,
    #[serde(default)]
    pub(crate) on_answer: OnAnswer,
}

/// A set of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Chars {
    Alnum,
    Upper,
    Hex,
    Word,
    Base64url,
    Base64,
    Dotted,
    Pem,
}

/// Finds where findings may start.
///
/// Each byte is looked at with the two behind it: which rules have something that starts like
/// that is in three tables of bits, one for each of the three, and no byte waits for the result
/// of the one before. An automaton, whose every step does, takes three times as long where there
/// is nothing to find, and four times as long in a text of prefixes.
pub(crate) struct Starts {
    /// For each byte the rules, a bit for each, whose findings may have it at this place: as part
    /// of a prefix, or of the run behind it.
    tables: [[u64; 256]; START],
    /// For each byte the rules whose findings may stand behind it.
    behind: [u64; 256],
    /// The rules whose prefixes are of the characters of their runs.
    parts: u64,
    /// The prefixes of each rule, the longest first.
    prefixes: Vec<Vec<Prefix>>,
}

/// A prefix of a rule: its first bytes as a number, of which `mask` has the bits, and the rest.
struct Prefix {
    mask: u64,
    first: u64,
    rest: Box<[u8]>,
    length: usize,
}

/// The rules that come with kitbag.
pub(crate) fn rules() -> Vec<Rule> {
    let RuleFile { rule } = toml::from_str(RULES).expect("a constant, which is tested");
    rule
}

impl Starts {
    /// Of at most 64 rules.
    pub(crate) fn of(rules: &[Rule]) -> Self {
        let (tables, behind) = ([[0; 256]; START], [0; 256]);
        let mut this = Self { tables, behind, parts: 0, prefixes: Vec::new() };
        for (index, rule) in rules.iter().enumerate() {
            let bit = 1 << index;
            for byte in 0..=u8::MAX {
                let index = usize::from(byte);
                let is_in = rule.chars.has(byte);
                this.behind[index] |= if rule.alone && is_in { 0 } else { bit };
                for prefix in &rule.prefixes {
                    for (table, own) in this.tables.iter_mut().zip(0..) {
                        let is_own = prefix.as_bytes().get(own).map_or(is_in, |own| *own == byte);
                        table[index] |= if is_own { bit } else { 0 };
                    }
                }
            }
            let is_part = |prefix: &String| prefix.bytes().all(|byte| rule.chars.has(byte));
            this.parts |= if rule.prefixes.iter().all(is_part) { bit } else { 0 };
            let mut prefixes: Vec<_> =
                rule.prefixes.iter().map(|prefix| Prefix::of(prefix.as_bytes())).collect();
            prefixes.sort_by_key(|prefix| std::cmp::Reverse(prefix.length));
            this.prefixes.push(prefixes);
        }
        this
    }

    /// The first place from `from` on where findings may start, and the bits of their rules.
    #[inline]
    pub(crate) fn next(&self, bytes: &[u8], mut from: usize) -> Option<(usize, u64)> {
        let [first, second, third, rest @ ..] = &self.tables;
        let of_first = |[a, b, c, ..]: &[u8; START]| {
            first[usize::from(*a)] & second[usize::from(*b)] & third[usize::from(*c)]
        };
        loop {
            let mut windows = bytes.get(from..)?.array_windows::<START>();
            from += windows.position(|window| of_first(window) != 0)?;
            let window = bytes[from..].first_chunk::<START>()?;
            let rest = rest.iter().zip(&window[FIRST..]);
            let rest = rest.fold(u64::MAX, |all, (table, byte)| all & table[usize::from(*byte)]);
            let behind = |at: usize| self.behind[usize::from(bytes[at])];
            let rules = of_first(window) & rest & from.checked_sub(1).map_or(u64::MAX, behind);
            if rules != 0 {
                return Some((from, rules));
            }
            from += 1;
        }
    }

    /// Whether the prefixes of a rule are of the characters of its runs, so that one that
    /// starts in a run is a part of it.
    #[inline]
    pub(crate) fn is_part(&self, rule: usize) -> bool {
        self.parts & 1 << rule != 0
    }

    /// The length of the longest prefix of a rule that some bytes, eight at least, start with.
    #[inline]
    pub(crate) fn prefix(&self, rule: usize, bytes: &[u8]) -> Option<usize> {
        let first = word(bytes);
        let is_here = |prefix: &&Prefix| {
            first & prefix.mask == prefix.first
                && (prefix.rest.is_empty() || bytes[START..].starts_with(&prefix.rest))
        };
        self.prefixes[rule].iter().find(is_here).map(|prefix| prefix.length)
    }
}

impl Prefix {
    fn of(prefix: &[u8]) -> Self {
        let (first, rest) = prefix.split_at(prefix.len().min(START));
        let mask = word(&[0xff; START][..first.len()]);
        Self { mask, first: word(first), rest: rest.into(), length: prefix.len() }
    }
}

/// The first bytes as a number; zeros stand for those after the end.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    let first = bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut first = [0; START];
        first[..bytes.len()].copy_from_slice(bytes);
        first
    });
    u64::from_le_bytes(first)
}

impl Rule {
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
            && self.parts.is_none_or(|parts| {
                let mut found = run.split(|byte| *byte == b'.');
                found.clone().count() == parts && found.all(|part| !part.is_empty())
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

/// A text that is looked for.
fn finder<'de, D>(deserializer: D) -> Result<Option<memmem::Finder<'static>>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    Ok(Some(memmem::Finder::new(&text).into_owned()))
}

impl Chars {
    /// How many sets there are.
    pub(crate) const ALL: usize = 8;

    /// Whether a byte is one of these characters.
    #[inline(always)]
    pub(crate) const fn has(self, byte: u8) -> bool {
        let is_alnum = byte.is_ascii_alphanumeric();
        match self {
            Self::Alnum => is_alnum,
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Hex => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            Self::Word => is_alnum || byte == b'_',
            Self::Base64url => is_alnum || matches!(byte, b'_' | b'-'),
            Self::Base64 => is_alnum || matches!(byte, b'+' | b'/' | b'='),
            Self::Dotted => is_alnum || matches!(byte, b'_' | b'-' | b'.'),
            Self::Pem => {
                is_alnum
                    || matches!(
                        byte,
                        b'+' | b'/' | b'=' | b' ' | b'\n' | b'\r' | b'\t' | b'\\' | b':' | b','
                    )
            }
        }
    }

    /// How many of these characters some bytes start with.
    #[inline]
    pub(crate) fn run(self, bytes: &[u8]) -> usize {
        let bit = 1 << self as u8;
        let is_in = |byte: &&u8| SETS[usize::from(**byte)] & bit != 0;
        // The start of a run that ends soon.
        let first = &bytes[..bytes.len().min(AT_ONCE)];
        let length = first.iter().take_while(is_in).count();
        if length < first.len() {
            return length;
        }
        let length = length + self.groups(&bytes[length..]) * AT_ONCE;
        length + bytes[length..].iter().take_while(is_in).count()
    }

    /// How many groups of nothing but these characters some bytes start with. Each set has a
    /// loop of its own, without a branch for each byte, so that vectors are compared.
    fn groups(self, bytes: &[u8]) -> usize {
        fn of(bytes: &[u8], has: impl Fn(u8) -> bool) -> usize {
            let (groups, _) = bytes.as_chunks::<AT_ONCE>();
            let is_whole =
                |group: &&[u8; AT_ONCE]| group.iter().fold(true, |all, byte| all & has(*byte));
            groups.iter().take_while(is_whole).count()
        }
        match self {
            Self::Alnum => of(bytes, |byte| Self::Alnum.has(byte)),
            Self::Upper => of(bytes, |byte| Self::Upper.has(byte)),
            Self::Hex => of(bytes, |byte| Self::Hex.has(byte)),
            Self::Word => of(bytes, |byte| Self::Word.has(byte)),
            Self::Base64url => of(bytes, |byte| Self::Base64url.has(byte)),
            Self::Base64 => of(bytes, |byte| Self::Base64.has(byte)),
            Self::Dotted => of(bytes, |byte| Self::Dotted.has(byte)),
            Self::Pem => of(bytes, |byte| Self::Pem.has(byte)),
        }
    }
}

/// Bytes of a run that are looked at together.
const AT_ONCE: usize = 32;

/// The sets that each byte is in, a bit for each.
static SETS: [u8; 256] = {
    let sets = [
        Chars::Alnum,
        Chars::Upper,
        Chars::Hex,
        Chars::Word,
        Chars::Base64url,
        Chars::Base64,
        Chars::Dotted,
        Chars::Pem,
    ];
    let mut of = [0; 256];
    let mut byte = 0;
    while byte < of.len() {
        let mut set = 0;
        while set < sets.len() {
            if sets[set].has(byte as u8) {
                of[byte] |= 1 << sets[set] as u8;
            }
            set += 1;
        }
        byte += 1;
    }
    of
};
