//! Refusals of a call, for its record and for advice.

use kitbag_policy::{
    DirectoryGrant, HttpGrant, HttpRefusal, MissingGrant, RefusedFile, StorageGrant, StorageRefusal,
};

/// How many refusals of one call are kept; the rest is counted. A call that probes a million
/// paths neither takes memory for them nor fills a log.
const KEPT: usize = 50;

/// The longest target that is kept, in bytes.
const TARGET_BYTES: usize = 256;

/// What a call was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedKind {
    /// A request over HTTP.
    Http,
    /// A file or directory.
    File,
    /// A call of another tool.
    Tool,
    /// A look for another tool, without a call. It is a refusal if there is such a tool.
    Lookup,
    /// Storage.
    Storage,
}

/// An access that a call was refused, with what would allow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusedAccess {
    /// A file in a directory that the tool is granted.
    File(RefusedFile),
    /// A request over HTTP.
    Request(HttpRefusal),
    /// A use of storage, which was refused or failed.
    Storage(StorageRefusal),
}

impl RefusedAccess {
    /// The key of the kind of grant that allows such an access.
    pub fn key(&self) -> &'static str {
        match self {
            Self::File(_) => DirectoryGrant::KEY,
            Self::Request(_) => HttpGrant::KEY,
            Self::Storage(_) => StorageGrant::KEY,
        }
    }

    /// The grant that would allow it. `None`: no grant does, or it is a setting of a directory.
    pub fn missing(&self) -> Option<&MissingGrant> {
        match self {
            Self::File(_) => None,
            Self::Request(refused) => refused.missing.as_ref(),
            Self::Storage(refused) => refused.missing.as_ref(),
        }
    }

    /// The request over HTTP, if it is one.
    pub fn as_request(&self) -> Option<&HttpRefusal> {
        match self {
            Self::Request(refused) => Some(refused),
            Self::File(_) | Self::Storage(_) => None,
        }
    }
}

/// Something that a call tried and was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What it is.
    pub kind: RefusedKind,
    /// Method and origin of a request, the path of a file, or the name by which a tool was called.
    /// Untrusted, and cut where it is long.
    pub target: String,
    /// Why, in a word.
    pub reason: &'static str,
    /// The rule of a leak, the pattern of a `deny`, or the secret that it was refused for.
    pub by: Option<String>,
    /// How often.
    pub times: u64,
}

/// What a call tried and was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Each once, in the order of their first times, fifty at most.
    pub kept: Vec<Refusal>,
    /// How many more there were.
    pub more: u64,
}

impl Refusals {
    /// Notes a refusal.
    pub fn note(&mut self, kind: RefusedKind, target: &str, reason: &'static str) {
        self.add(Refusal { kind, target: target.to_owned(), reason, by: None, times: 1 });
    }

    /// Adds a refusal to those of the same kind.
    pub fn add(&mut self, mut refusal: Refusal) {
        let target = &mut refusal.target;
        if target.len() > TARGET_BYTES {
            target.truncate(target.floor_char_boundary(TARGET_BYTES));
            target.push('…');
        }
        let Refusal { kind, target, reason, by, times } = &refusal;
        let is_same = |it: &Refusal| {
            it.kind == *kind && it.reason == *reason && it.target == *target && it.by == *by
        };
        match self.kept.iter().position(is_same) {
            Some(same) => self.kept[same].times += times,
            None if self.kept.len() < KEPT => self.kept.push(refusal),
            None => self.more += times,
        }
    }

    pub(crate) fn has(&self, kind: RefusedKind) -> bool {
        self.kept.iter().any(|refusal| refusal.kind == kind)
    }

    /// Adds all of another list.
    pub fn append(&mut self, other: Self) {
        self.more += other.more;
        other.kept.into_iter().for_each(|refusal| self.add(refusal));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_without_end_are_counted() {
        let mut refusals = Refusals::default();
        for number in 0..100_000 {
            refusals.note(RefusedKind::File, &format!("/w/{number}"), "secret");
            refusals.note(RefusedKind::File, "/w/0", "secret");
        }
        assert_eq!((refusals.kept.len(), refusals.more), (KEPT, 100_000 - KEPT as u64));
        assert_eq!(refusals.kept[0].times, 100_001);
    }

    #[test]
    fn a_long_target_is_cut_and_still_the_same() {
        let mut refusals = Refusals::default();
        for _ in 0..2 {
            refusals.note(RefusedKind::Tool, &"ä".repeat(1_000), "grant");
        }
        let [refusal] = &refusals.kept[..] else { panic!("{refusals:?}") };
        assert_eq!((refusal.target.chars().count(), refusal.times), (TARGET_BYTES / 2 + 1, 2));
        let mut all = Refusals::default();
        all.note(RefusedKind::Tool, &refusal.target, "depth");
        all.append(refusals);
        assert_eq!(all.kept.len(), 2);
    }
}
