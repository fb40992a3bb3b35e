//! Leak detection: finds text that looks like a key or token before it is sent.
//!
//! The rules are in `data/leaks.toml`; their number does not affect the speed. A tool that
//! deliberately smuggles a key out encodes it and is not detected.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use crate::chars::Chars;
use crate::fingerprint::Fingerprint;
use crate::key_body;
use crate::leak_forms::{self, Run};
use crate::leak_rules::{
    Check, Form, LONGEST_PREFIX, MASK_START, OnAnswer, OnRequest, Rule, is_filler, rules,
};
use crate::markdown_escapes::{Unescaped, unescaped};
use crate::prefixes::{Starts, ends_with_escape};
use crate::redact::MASK;

/// Maximum number of findings in one text that are named.
const MOST_NAMED: usize = 20;

/// Maximum number of findings in one text that are compared with allowed fingerprints, since each
/// comparison hashes the finding. Further findings are not allowed.
const MOST_HASHED: usize = 10_000;

/// The minimum length of a truncated key or token.
const LEAST_LEFT: usize = 4;

/// Finds text that looks like a key or token.
///
/// The search takes linear time for every input.
pub struct Leaks {
    rules: Vec<Rule>,
    /// The mask of each rule.
    masks: Vec<String>,
    starts: Starts,
    /// True for each rule whose findings are allowed.
    allowed_rules: Vec<bool>,
    allowed: Vec<Fingerprint>,
}

/// A finding that the user allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedLeak {
    /// All findings of a rule, by name.
    Rule(String),
    /// One finding, by fingerprint.
    Fingerprint(Fingerprint),
}

/// A finding that looks like a key or token.
#[derive(Clone, PartialEq, Eq)]
pub struct Leak<'a> {
    /// The name of the rule.
    pub rule: &'a str,
    /// A description, such as `a token of GitHub`.
    pub what: &'a str,
    /// The position.
    pub span: Range<usize>,
    /// The fingerprint that allows the finding.
    pub fingerprint: Fingerprint,
    /// The handling of a request with the finding.
    pub on_request: OnRequest,
    /// The handling of an answer with the finding.
    pub on_answer: OnAnswer,
}

/// A finding and the index of its rule.
struct Finding {
    rule: usize,
    span: Range<usize>,
    /// True if backslashes escape its punctuation.
    is_escaped: bool,
}

/// The state of a search.
struct Look<'b> {
    bytes: &'b [u8],
    /// The position at which the bytes were cut, so that a key or token may be incomplete.
    cut: Option<usize>,
    /// The last run of each character set.
    runs: [Run; Chars::ALL],
    /// No further findings start before this position.
    settled: usize,
    /// The number of findings that were compared with fingerprints.
    hashed: usize,
}

impl Leaks {
    /// Creates the built-in rules without the allowed findings.
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
        let masks = rules.iter().map(|rule| format!("{MASK_START}{}]", rule.mask_name()));
        let masks = masks.collect();
        Self { rules, masks, starts, allowed_rules, allowed: fingerprints }
    }

    /// Iterates over the names of the rules.
    pub fn rules() -> impl Iterator<Item = String> {
        rules().into_iter().map(|rule| rule.name)
    }

    /// Returns the keys and tokens in a text from start to end, except for allowed ones: at most 20
    /// of those that do not block a request, and all others. Keys with escaped punctuation come
    /// last.
    pub fn find<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = Leak<'a>> {
        let mut left = MOST_NAMED;
        let is_named = move |finding: &Finding| match self.rules[finding.rule].on_request {
            OnRequest::Block => true,
            OnRequest::Warn => {
                let is_named = left > 0;
                left = left.saturating_sub(1);
                is_named
            }
        };
        self.findings(bytes, None).filter(is_named).map(move |finding| self.leak(bytes, finding))
    }

    /// Masks the findings in an answer if their rules require it. Returns the findings, at most the
    /// first 20. The text never becomes longer.
    pub fn redact(&self, text: &mut String) -> Vec<Leak<'_>> {
        self.redact_cut(text, None)
    }

    /// Like [`redact`](Self::redact), for a text that was cut at a position: an incomplete key or
    /// token is also masked.
    pub fn redact_cut(&self, text: &mut String, cut: Option<usize>) -> Vec<Leak<'_>> {
        let mut named = Vec::new();
        let mut masked = Vec::new();
        for finding in self.findings(text.as_bytes(), cut) {
            let rule = &self.rules[finding.rule];
            if rule.on_answer == OnAnswer::Redact {
                let bytes = text.as_bytes();
                match rule.form == Form::Block && bytes[finding.span.clone()].contains(&b'"') {
                    // A single mask would replace quotes and brackets of JSON.
                    true => masked.extend(
                        key_body::runs(bytes, finding.span.clone()).map(|run| (finding.rule, run)),
                    ),
                    false => masked.push((finding.rule, finding.span.clone())),
                }
            }
            if named.len() < MOST_NAMED {
                named.push(self.leak(text.as_bytes(), finding));
            }
        }
        if !masked.is_empty() {
            masked.sort_by_key(|(_, span)| (span.start, Reverse(span.end)));
            let bytes = self.masked(std::mem::take(text).into_bytes(), &masked);
            // Prefixes and characters of all sets are ASCII.
            *text = String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        }
        named
    }

    /// Replaces findings, which must be in order, in place.
    fn masked(&self, mut bytes: Vec<u8>, findings: &[(usize, Range<usize>)]) -> Vec<u8> {
        let (mut to, mut from) = (0, 0);
        for (rule, span) in findings {
            // A finding that begins inside the previous one starts after its mask.
            let start = span.start.max(from);
            if span.end <= start {
                continue;
            }
            bytes.copy_within(from..start, to);
            to += start - from;
            let mask = self.masks[*rule].as_bytes();
            // A finding that is truncated by a cut or by another finding may be shorter than a
            // mask.
            let room = span.end - to;
            match bytes[to..].get_mut(..mask.len()).filter(|own| own.len() <= room) {
                Some(own) => {
                    own.copy_from_slice(mask);
                    to += mask.len();
                }
                None => {
                    let length = span.end - start;
                    bytes[to..to + length].fill(MASK);
                    to += length;
                }
            }
            from = span.end;
        }
        let length = bytes.len();
        bytes.copy_within(from..length, to);
        bytes.truncate(to + length - from);
        bytes
    }

    fn leak<'a>(&'a self, bytes: &[u8], finding: Finding) -> Leak<'a> {
        let Finding { rule, span, is_escaped } = finding;
        let Rule { name, what, on_request, on_answer, .. } = &self.rules[rule];
        let own = &bytes[span.clone()];
        let plain = if is_escaped { unescaped(own) } else { None };
        Leak {
            rule: name,
            what,
            fingerprint: Fingerprint::of(plain.as_deref().unwrap_or(own)),
            span,
            on_request: *on_request,
            on_answer: *on_answer,
        }
    }

    /// Returns the findings, and then those with escaped punctuation, in a text that may be cut.
    fn findings<'a, 'b>(
        &'a self,
        bytes: &'b [u8],
        cut: Option<usize>,
    ) -> impl Iterator<Item = Finding> + use<'a, 'b> {
        // A backslash at the cut is the start of an escape.
        let before = |cut: usize| bytes[..cut].iter().rev().take_while(|byte| **byte == b'\\');
        let cut = cut.map(|cut| cut - before(cut).count());
        let plain = self.plain(bytes, cut);
        let (all, plain) = match Unescaped::of(bytes) {
            Some(unescaped) => (self.with_escaped(plain.collect(), &unescaped, cut), None),
            None => (Vec::new(), Some(plain)),
        };
        all.into_iter().chain(plain.into_iter().flatten())
    }

    /// Appends the findings that appear only without escapes.
    fn with_escaped(
        &self,
        mut found: Vec<Finding>,
        unescaped: &Unescaped,
        cut: Option<usize>,
    ) -> Vec<Finding> {
        let place = |finding: &Finding| (finding.rule, finding.span.start, finding.span.end);
        let known: HashSet<_> = found.iter().map(place).collect();
        let escaped = self.plain(&unescaped.bytes, cut.map(|cut| unescaped.place(cut)));
        let original = |finding: Finding| {
            let span = unescaped.original(&finding.span);
            let is_escaped = span.len() > finding.span.len();
            Finding { span, is_escaped, ..finding }
        };
        found.extend(escaped.map(original).filter(|finding| !known.contains(&place(finding))));
        found
    }

    /// Returns the findings from start to end. A nested finding is skipped, unless the
    /// outer one is not masked.
    ///
    /// Each byte is examined a bounded number of times. A run of each set is scanned once (`runs`).
    /// If a run is a finding or filler, so is each part of it that ends with it, and none is
    /// examined again (`settled`). Other conditions of a rule are checked once per run, which a
    /// test of the rules ensures.
    fn plain<'a, 'b>(
        &'a self,
        bytes: &'b [u8],
        cut: Option<usize>,
    ) -> impl Iterator<Item = Finding> + use<'a, 'b> {
        let mut look = Look { cut, ..Look::new(bytes) };
        let mut from = 0;
        // The findings at one position, last first.
        let mut found = Vec::new();
        std::iter::from_fn(move || {
            loop {
                if let Some(finding) = found.pop() {
                    return Some(finding);
                }
                let (at, groups) = self.starts.next(bytes, from)?;
                // Not after the prefix, since its length is not known yet.
                from = at + 1;
                self.findings_at(&mut look, at, groups, &mut found);
            }
        })
    }

    /// Adds the findings that start at this position, given the groups that may have a matching
    /// prefix.
    #[inline]
    fn findings_at(
        &self,
        look: &mut Look<'_>,
        at: usize,
        mut groups: u64,
        found: &mut Vec<Finding>,
    ) {
        let rest = &look.bytes[at..];
        while groups != 0 {
            let mut matched = usize::MAX;
            for prefix in self.starts.of_group(groups.trailing_zeros() as usize, rest) {
                // Within a known run, the end of the run decides most cases.
                let run = &look.runs[prefix.chars as usize].range;
                let is_decided = prefix.most.is_some_and(|most| {
                    run.contains(&at) && (run.end <= look.settled || run.end - at > most)
                });
                // Only the longest prefix of each rule is used.
                if is_decided || prefix.rule == matched {
                    continue;
                }
                matched = prefix.rule;
                if prefix.alone && !is_alone(look.bytes, at, prefix.chars) {
                    continue;
                }
                if let Some(span) = self.finding(look, at, prefix.rule, prefix.length) {
                    found.push(Finding { rule: prefix.rule, span, is_escaped: false });
                }
            }
            groups &= groups - 1;
        }
        found.reverse();
    }

    /// Returns the finding of a rule with a prefix at this position.
    #[inline]
    fn finding(
        &self,
        look: &mut Look<'_>,
        at: usize,
        index: usize,
        prefix: usize,
    ) -> Option<Range<usize>> {
        let (rule, bytes) = (&self.rules[index], look.bytes);
        if self.allowed_rules[index] {
            return None;
        }
        let after = at + prefix;
        if rule.form == Form::Url {
            let span = leak_forms::url_password(bytes, at, after)?;
            return self.counts(look, index, span.clone(), span);
        }
        if rule.form == Form::Block {
            let (span, before) = block(look, rule, at..after)?;
            return self.counts(look, index, span, before);
        }
        let (start, is_quoted) = match rule.form {
            Form::Assignment => leak_forms::assigned(bytes, after, true)?,
            Form::Password => leak_forms::assigned(bytes, after, false)?,
            Form::Token | Form::Block | Form::Url => (after, false),
        };
        let end = look.run(rule.chars, start).range.end;
        let is_cut = look.cut.is_some_and(|cut| end >= cut) && end - start >= LEAST_LEFT;
        if !(rule.has_length(end - start) || is_cut && end - start <= rule.most) {
            return None;
        }
        if end <= look.settled {
            return None;
        }
        if rule.behind.is_none() && !is_cut && is_filler(&bytes[start..end]) {
            look.settled = end;
            return None;
        }
        let run = &mut look.runs[rule.chars as usize];
        if run.is_example(bytes, start) || !is_cut && !rule.fits(&bytes[start..end]) {
            return None;
        }
        let mut span = match rule.form {
            Form::Token | Form::Block | Form::Url => at..end,
            Form::Assignment => start..end,
            Form::Password => {
                // A run contains one value.
                if std::mem::replace(&mut run.is_judged, true) {
                    return None;
                }
                start..leak_forms::password(bytes, start..end, is_quoted)?
            }
        };
        let is_checked = match rule.check {
            None => true,
            Some(Check::Basic) => leak_forms::is_basic(&bytes[start..end]),
            Some(Check::Opaque) => leak_forms::is_opaque(&bytes[start..end]),
        };
        if !is_checked || rule.is_generic() && self.is_of_vendor(bytes, start) {
            return None;
        }
        if let Some(behind) = &rule.behind {
            let mut length = behind.chars.run_back(&bytes[..at], behind.most);
            if length > behind.most && ends_with_escape(&bytes[..at - behind.most]) {
                length = behind.most;
            }
            span.start -= length;
            let is_whole = (behind.least..=behind.most).contains(&length);
            if !is_whole || is_filler(&bytes[span.clone()]) {
                return None;
            }
        }
        self.counts(look, index, span, at..end)
    }

    /// Returns true if a finding is not allowed by its fingerprint. Before 0.2 the fingerprint was
    /// that of `before`.
    fn counts(
        &self,
        look: &mut Look<'_>,
        index: usize,
        span: Range<usize>,
        before: Range<usize>,
    ) -> Option<Range<usize>> {
        let is_looked_up = !self.allowed.is_empty() && look.hashed < MOST_HASHED;
        look.hashed += usize::from(is_looked_up);
        let is_allowed = is_looked_up && {
            let is =
                |span: Range<usize>| self.allowed.contains(&Fingerprint::of(&look.bytes[span]));
            // The name was complete, including a quote before it.
            let name = Chars::Word.run_back(&look.bytes[..before.start], LONGEST_PREFIX);
            let name = if self.rules[index].form == Form::Assignment { name } else { 0 };
            let start = before.start - name;
            is(span.clone())
                || span != before
                    && (is(start..before.end) || start > 0 && is(start - 1..before.end))
        };
        if is_allowed || self.rules[index].is_severe() {
            look.settled = span.end;
        }
        (!is_allowed).then_some(span)
    }

    /// Returns true if a value starts with the prefix of a vendor's rule, which is more specific.
    fn is_of_vendor(&self, bytes: &[u8], start: usize) -> bool {
        let (mut look, rest) = (Look::new(bytes), &bytes[start..]);
        let mut groups = self.starts.at(bytes, start);
        while groups != 0 {
            let mut prefixes = self.starts.of_group(groups.trailing_zeros() as usize, rest);
            let is_found = prefixes.any(|prefix| {
                self.rules[prefix.rule].is_severe()
                    && (!prefix.alone || is_alone(bytes, start, prefix.chars))
                    && self.finding(&mut look, start, prefix.rule, prefix.length).is_some()
            });
            if is_found {
                return true;
            }
            groups &= groups - 1;
        }
        false
    }
}

impl<'b> Look<'b> {
    fn new(bytes: &'b [u8]) -> Self {
        let runs = [const { Run::EMPTY }; Chars::ALL];
        Self { bytes, cut: None, runs, settled: 0, hashed: 0 }
    }

    /// Returns the run of these characters that contains `start`, known from there on.
    #[inline]
    fn run(&mut self, chars: Chars, start: usize) -> &mut Run {
        let run = &mut self.runs[chars as usize];
        if !run.range.contains(&start) {
            *run = Run::new(start..start + chars.run(&self.bytes[start..]));
        }
        run
    }
}

/// Returns the block with this first line, or with this last line if the first is missing, and the
/// part that was the finding before 0.2.
fn block(
    look: &mut Look<'_>,
    rule: &Rule,
    line: Range<usize>,
) -> Option<(Range<usize>, Range<usize>)> {
    let bytes = look.bytes;
    if line.end <= look.settled {
        return None;
    }
    if let Some(end) = key_body::last_line_end(bytes, line.start) {
        let start = key_body::before(bytes, line.start)?.max(look.settled);
        return Some((start..end, start..end));
    }
    let plain = plain_block(look, rule, line.end);
    let with_prefixes = key_body::after(bytes, line.end, look.cut);
    let end = plain.map(|(_, end)| end).max(with_prefixes)?;
    let before = plain.map_or(end, |(data, _)| data);
    Some((line.start..end, line.start..before))
}

/// Returns the ends of the data and of the block whose first line ends here, if its lines have no
/// prefixes other than spaces and numbers.
fn plain_block(look: &mut Look<'_>, rule: &Rule, after: usize) -> Option<(usize, usize)> {
    let bytes = look.bytes;
    let mut start = after;
    if look.run(rule.chars, start).range.end - start < rule.least {
        start = leak_forms::after_headers(bytes, start);
    }
    let end = look.run(rule.chars, start).range.end;
    let is_cut = look.cut.is_some_and(|cut| end >= cut) && end - start >= LEAST_LEFT;
    let is_block = rule.has_length(end - start) || is_cut && end - start <= rule.most;
    if !is_block || !is_cut && is_filler(&bytes[start..end]) {
        return None;
    }
    let is_example = look.runs[rule.chars as usize].is_example(bytes, start);
    (!is_example).then(|| (end, leak_forms::block_end(bytes, start, end)))
}

/// Returns true if no character of a set precedes a position. The end of an escape and `=`, which
/// only ends base64, are ignored.
fn is_alone(bytes: &[u8], at: usize, chars: Chars) -> bool {
    at.checked_sub(1)
        .map(|before| bytes[before])
        .is_none_or(|before| !chars.has(before) || before == b'=' || ends_with_escape(&bytes[..at]))
}

impl fmt::Debug for Leak<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?} ({})", self.rule, self.span, self.fingerprint)
    }
}

#[cfg(test)]
mod tests;
