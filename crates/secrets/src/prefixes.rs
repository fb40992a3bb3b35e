//! Finds possible starts of keys and tokens for any number of rules.

use crate::chars::Chars;
use crate::leak_rules::{Form, LONGEST_PREFIX, Rule};

/// The number of bytes that are compared at every position. Every prefix has at least as many.
const FIRST: usize = 3;

/// The number of bytes that are compared if the first ones match. Every finding has at least as
/// many.
const START: usize = 8;

/// The number of groups of prefixes, one bit each.
const GROUPS: usize = 64;

/// Finds positions at which findings may start.
///
/// Each byte is examined together with the next two: three bit tables, one for each of the three
/// bytes, give the groups that have a prefix with that byte there, and no byte depends on the
/// result of the previous one. An automaton, in which every step does, takes three times as long if
/// there are no findings, and four times as long in a text of prefixes.
pub(crate) struct Starts {
    /// For each byte, the groups (one bit each) whose findings may have it at this position, as
    /// part of the prefix or of the text after it.
    tables: [[u64; 256]; START],
    /// For each byte, the groups whose findings may follow it.
    behind: [u64; 256],
    /// The prefixes of each group, by rule; for one rule, the longest first. Prefixes of one rule
    /// with the same first three bytes are in the same group.
    groups: Vec<Prefixes>,
}

/// The prefixes of one group. Their first bytes are stored separately, since the rest is seldom
/// needed.
pub(crate) struct Prefixes {
    firsts: Box<[First]>,
    prefixes: Box<[Prefix]>,
}

/// The first bytes of a prefix as a number. `mask` has the bits in use.
#[derive(Clone, Copy)]
struct First {
    mask: u64,
    bytes: u64,
}

pub(crate) struct Prefix {
    first: First,
    /// The bytes after the first.
    rest: Box<[u8]>,
    pub(crate) length: usize,
    /// The index of its rule.
    pub(crate) rule: usize,
    /// Properties of the rule that are checked first: its characters, the longest run that may
    /// contain the prefix itself (`None` if a run never does), and whether it must be isolated.
    pub(crate) chars: Chars,
    pub(crate) most: Option<usize>,
    pub(crate) alone: bool,
}

#[derive(Clone, Copy, Default)]
struct Bytes([u64; 4]);

/// Prefixes that share a bit.
struct Group {
    /// The bytes at each position of their findings.
    places: [Bytes; START],
    /// The bytes that may precede them.
    behind: Bytes,
    prefixes: Vec<Prefix>,
}

impl Starts {
    pub(crate) fn of(rules: &[Rule]) -> Self {
        let mut groups = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            let prefixes = rule.prefixes.iter().map(String::as_bytes);
            let mut prefixes: Vec<_> = prefixes.map(|prefix| (prefix, index)).collect();
            prefixes.sort_unstable();
            // The prefixes of a character class share a bit.
            let is_class = prefixes.len() > GROUPS;
            let same = prefixes
                .chunk_by(|(one, _), (other, _)| is_class || one[..FIRST] == other[..FIRST]);
            let sets = Sets::of(rule);
            // Boxed, since many are moved.
            groups.extend(same.map(|same| Box::new(Group::new(same, rule, &sets))));
        }
        // Alphabetic neighbours have most in common.
        groups.sort_by_key(|group| (rules[group.prefixes[0].rule].alone, group.first()));
        let mut costs: Vec<_> = groups.windows(2).map(|two| two[0].cost_with(&two[1])).collect();
        while groups.len() > GROUPS {
            let cheapest = costs.iter().enumerate().min_by(|(_, a), (_, b)| a.total_cmp(b));
            let at = cheapest.map_or(0, |(at, _)| at);
            let other = groups.remove(at + 1);
            costs.remove(at);
            groups[at].merge(*other);
            for (at, cost) in costs.iter_mut().enumerate().take(at + 1).skip(at.saturating_sub(1)) {
                if let Some([one, other]) = groups.get(at..at + 2) {
                    *cost = one.cost_with(other);
                }
            }
        }
        let (mut tables, mut behind) = ([[0; 256]; START], [0; 256]);
        for (index, group) in groups.iter_mut().enumerate() {
            for (table, set) in tables.iter_mut().chain([&mut behind]).zip(group.sets()) {
                set.iter().for_each(|byte| table[byte] |= 1 << index);
            }
            let order = |prefix: &Prefix| (prefix.rule, std::cmp::Reverse(prefix.length));
            group.prefixes.sort_by_key(order);
        }
        let groups = groups.into_iter().map(|group| Prefixes {
            firsts: group.prefixes.iter().map(|prefix| prefix.first).collect(),
            prefixes: group.prefixes.into(),
        });
        let groups = groups.collect();
        Self { tables, behind, groups }
    }

    /// Returns the first position at or after `from` at which findings may start, and the bits of
    /// their groups.
    #[inline]
    pub(crate) fn next(&self, bytes: &[u8], mut from: usize) -> Option<(usize, u64)> {
        let [first, second, third, ..] = &self.tables;
        loop {
            let mut windows = bytes.get(from..)?.array_windows::<START>();
            from += windows.position(|[a, b, c, ..]| {
                first[usize::from(*a)] & second[usize::from(*b)] & third[usize::from(*c)] != 0
            })?;
            match self.at(bytes, from) {
                0 => from += 1,
                groups => return Some((from, groups)),
            }
        }
    }

    /// Returns the bits of the groups whose findings may start at this position.
    #[inline]
    pub(crate) fn at(&self, bytes: &[u8], at: usize) -> u64 {
        let Some(window) = bytes.get(at..).and_then(|rest| rest.first_chunk::<START>()) else {
            return 0;
        };
        let groups = self.tables.iter().zip(window);
        let groups = groups.fold(u64::MAX, |all, (table, byte)| all & table[usize::from(*byte)]);
        let behind = |at: usize| self.behind[usize::from(bytes[at])];
        groups & at.checked_sub(1).map_or(u64::MAX, behind)
    }

    /// Returns the prefixes of a group that match the start of `bytes`, which has at least eight
    /// bytes.
    #[inline]
    pub(crate) fn of_group<'a>(
        &'a self,
        index: usize,
        bytes: &'a [u8],
    ) -> impl Iterator<Item = &'a Prefix> {
        let Prefixes { firsts, prefixes } = &self.groups[index];
        let first = word(bytes);
        let is_first = move |own: &First| first & own.mask == own.bytes;
        let found = firsts.iter().zip(prefixes).filter(move |(own, _)| is_first(own));
        found.map(|(_, prefix)| prefix).filter(move |prefix| {
            prefix.rest.is_empty() || bytes[START..].starts_with(&prefix.rest)
        })
    }
}

/// The characters that may surround the prefixes of a rule.
struct Sets {
    follow: Bytes,
    behind: Bytes,
}

impl Sets {
    fn of(rule: &Rule) -> Self {
        let all = Bytes([u64::MAX; 4]);
        let follow = match rule.form {
            Form::Token => Bytes::of(|byte| rule.chars.has(byte)),
            Form::Block | Form::Assignment | Form::Password | Form::Url => all,
        };
        let behind = match rule.alone {
            true => Bytes::of(|byte| !rule.chars.has(byte) || may_stand_before(byte)),
            false => all,
        };
        Self { follow, behind }
    }
}

impl Group {
    fn new(prefixes: &[(&[u8], usize)], rule: &Rule, &Sets { follow, behind }: &Sets) -> Self {
        let mut places = [Bytes::default(); START];
        for (prefix, _) in prefixes {
            for (place, own) in places.iter_mut().zip(0..) {
                *place = match prefix.get(own) {
                    Some(byte) => place.with(*byte),
                    None => place.or(&follow),
                };
            }
        }
        let prefixes = prefixes.iter().map(|(prefix, index)| Prefix::new(prefix, *index, rule));
        Self { places, behind, prefixes: prefixes.collect() }
    }

    /// Returns the smallest of its first bytes.
    fn first(&self) -> [u8; FIRST] {
        let first = self.prefixes.iter().map(|prefix| prefix.first.bytes.to_le_bytes());
        first.map(|[a, b, c, ..]| [a, b, c]).min().unwrap_or_default()
    }

    /// Returns the added cost of one bit for both groups instead of two bits, in a text of mostly
    /// letters.
    fn cost_with(&self, other: &Self) -> f64 {
        /// The cost of reaching the prefixes of a group, in prefixes.
        const HIT: usize = 4;
        let cost = |share: f64, prefixes: usize| share * (prefixes + HIT) as f64;
        let (one, two) = (self.prefixes.len(), other.prefixes.len());
        let both: f64 =
            self.sets().zip(other.sets()).map(|(own, other)| own.or(other).share()).product();
        cost(both, one + two) - cost(self.share(), one) - cost(other.share(), two)
    }

    /// Returns the share of positions at which a finding may start.
    fn share(&self) -> f64 {
        self.sets().map(Bytes::share).product()
    }

    fn sets(&self) -> impl Iterator<Item = &Bytes> {
        self.places.iter().chain([&self.behind])
    }

    fn merge(&mut self, other: Self) {
        for (place, other) in self.places.iter_mut().zip(&other.places) {
            *place = place.or(other);
        }
        self.behind = self.behind.or(&other.behind);
        self.prefixes.extend(other.prefixes);
    }
}

impl Bytes {
    const LOWER: Self = Self([0, 0x07ff_fffe_0000_0000, 0, 0]);
    const PRINTABLE: Self = Self([0xffff_ffff_0000_0000, 0x7fff_ffff_ffff_ffff, 0, 0]);

    fn of(is_in: impl Fn(u8) -> bool) -> Self {
        (0..=u8::MAX).filter(|byte| is_in(*byte)).fold(Self::default(), |set, byte| set.with(byte))
    }

    fn with(mut self, byte: u8) -> Self {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
        self
    }

    fn or(&self, other: &Self) -> Self {
        let Self([a, b, c, d]) = self;
        let Self([e, f, g, h]) = other;
        Self([a | e, b | f, c | g, d | h])
    }

    fn iter(&self) -> impl Iterator<Item = usize> {
        (0..256).step_by(64).zip(self.0).flat_map(|(start, mut word)| {
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
                word &= word - 1;
                Some(start + bit)
            })
        })
    }

    /// Returns the share of a text's bytes that are in the set.
    fn share(&self) -> f64 {
        let common = |mask: &Self| -> u32 {
            self.0.iter().zip(&mask.0).map(|(own, mask)| (own & mask).count_ones()).sum()
        };
        // Lower-case letters are four times as frequent as other characters.
        f64::from(common(&Self::PRINTABLE) + 3 * common(&Self::LOWER)) / f64::from(95 + 3 * 26)
    }
}

impl Prefix {
    fn new(prefix: &[u8], index: usize, rule: &Rule) -> Self {
        let (first, rest) = prefix.split_at(prefix.len().min(START));
        let first = First { mask: word(&[0xff; START][..first.len()]), bytes: word(first) };
        let &Rule { chars, most, alone, .. } = rule;
        let mut prefixes = rule.prefixes.iter();
        let is_part = prefixes.all(|prefix| prefix.bytes().all(|byte| chars.has(byte)));
        Self {
            first,
            rest: rest.into(),
            length: prefix.len(),
            rule: index,
            chars,
            most: is_part.then_some(most + LONGEST_PREFIX),
            alone,
        }
    }
}

/// Returns the first bytes as a number, padded with zeros.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    let first = bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut first = [0; START];
        first[..bytes.len()].copy_from_slice(bytes);
        first
    });
    u64::from_le_bytes(first)
}

/// Returns true if a byte may precede a value that must be isolated: it assigns, or may end an
/// escape of JSON or of a URL, such as `\n` and `%3D`.
fn may_stand_before(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || matches!(byte, b'=' | b'n' | b'r' | b't')
}

/// Returns true if the bytes end with an escape of JSON or of a URL.
pub(crate) fn ends_with_escape(bytes: &[u8]) -> bool {
    let is_hex = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    match bytes {
        [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f'] => true,
        [.., b'\\', b'u', a, b, c, d] if is_hex(&[*a, *b, *c, *d]) => true,
        [.., b'%', high, low] => is_hex(&[*high, *low]),
        _ => false,
    }
}
