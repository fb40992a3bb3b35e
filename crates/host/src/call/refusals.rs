//! Refusals of a call, for its record and for advice.

use kitbag_policy::{
    DirectoryGrant, GrantRefusal, HttpGrant, HttpRefusal, MissingGrant, RefusedFile,
};

/// Number of refusals kept per call; the others are only counted. A call that probes a million
/// paths neither exhausts memory nor fills a log.
const KEPT: usize = 50;

/// Maximum length of a target, in bytes.
const TARGET_BYTES: usize = 256;

/// The reason of a lookup of another tool without a call. It is a refusal only if the tool exists.
pub const LOOKUP: &str = "lookup";

/// A refused access, with the grant that would allow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusedAccess {
    /// A file in a directory that the tool is granted.
    File(RefusedFile),
    /// An HTTP request.
    Request(HttpRefusal),
    /// A use of another kind of grant that was refused or failed.
    Grant(GrantRefusal),
}

impl RefusedAccess {
    /// Returns the key of the kind of grant that allows such an access.
    pub fn key(&self) -> &'static str {
        match self {
            Self::File(_) => DirectoryGrant::KEY,
            Self::Request(_) => HttpGrant::KEY,
            Self::Grant(refused) => refused.key,
        }
    }

    /// Returns the grant that would allow the access. `None` if no grant does, or if a directory
    /// setting forbids it.
    pub fn missing(&self) -> Option<&MissingGrant> {
        match self {
            Self::File(_) => None,
            Self::Request(refused) => refused.missing.as_ref(),
            Self::Grant(refused) => refused.missing.as_ref(),
        }
    }

    /// Returns the HTTP request, if the access is one.
    pub fn as_request(&self) -> Option<&HttpRefusal> {
        match self {
            Self::Request(refused) => Some(refused),
            Self::File(_) | Self::Grant(_) => None,
        }
    }
}

/// One refused access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The key of the kind of grants.
    pub key: &'static str,
    /// Method and origin of a request, path of a file, or alias of a called tool. Untrusted, and
    /// truncated if long.
    pub target: String,
    /// The reason, as one word.
    pub reason: &'static str,
    /// The leak rule, `deny` pattern or secret that caused the refusal.
    pub by: Option<String>,
    /// Number of occurrences.
    pub times: u64,
}

/// The refused accesses of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Distinct refusals in the order of their first occurrence, at most fifty.
    pub kept: Vec<Refusal>,
    /// Number of further refusals.
    pub more: u64,
}

impl Refusals {
    /// Records a refusal.
    pub fn note(&mut self, key: &'static str, target: &str, reason: &'static str) {
        self.add(Refusal { key, target: target.to_owned(), reason, by: None, times: 1 });
    }

    /// Adds a refusal, or increments the count of an equal one.
    pub fn add(&mut self, mut refusal: Refusal) {
        let target = &mut refusal.target;
        if target.len() > TARGET_BYTES {
            target.truncate(target.floor_char_boundary(TARGET_BYTES));
            target.push('…');
        }
        let Refusal { key, target, reason, by, times } = &refusal;
        let is_same = |it: &Refusal| {
            it.key == *key && it.reason == *reason && it.target == *target && it.by == *by
        };
        match self.kept.iter().position(is_same) {
            Some(same) => self.kept[same].times += times,
            None if self.kept.len() < KEPT => self.kept.push(refusal),
            None => self.more += times,
        }
    }

    /// Appends all refusals of another list.
    pub fn append(&mut self, other: Self) {
        self.more += other.more;
        other.kept.into_iter().for_each(|refusal| self.add(refusal));
    }
}

#[cfg(test)]
mod tests {
    use kitbag_policy::ToolGrants;

    use super::*;

    #[test]
    fn excess_refusals_are_only_counted() {
        let mut refusals = Refusals::default();
        for number in 0..100_000 {
            refusals.note(DirectoryGrant::KEY, &format!("/w/{number}"), "secret");
            refusals.note(DirectoryGrant::KEY, "/w/0", "secret");
        }
        assert_eq!((refusals.kept.len(), refusals.more), (KEPT, 100_000 - KEPT as u64));
        assert_eq!(refusals.kept[0].times, 100_001);
    }

    #[test]
    fn equal_long_targets_are_cut_and_merged() {
        let mut refusals = Refusals::default();
        for _ in 0..2 {
            refusals.note(ToolGrants::KEY, &"ä".repeat(1_000), "grant");
        }
        let [refusal] = &refusals.kept[..] else { panic!("{refusals:?}") };
        assert_eq!((refusal.target.chars().count(), refusal.times), (TARGET_BYTES / 2 + 1, 2));
        let mut all = Refusals::default();
        all.note(ToolGrants::KEY, &refusal.target, "depth");
        all.append(refusals);
        assert_eq!(all.kept.len(), 2);
    }
}
