//! Kinds of grants: a declaration of each kind, and traits of its grants and requests.

use std::fmt;
use std::ops::RangeInclusive;

use serde_json::Value;

use crate::consent::{Ability, GrantText, Risk, Surroundings};
use crate::{Decision, Grants, KINDS, Request};

/// The declaration of a kind of grants: its key in files, and its words for people.
#[derive(Clone, Debug)]
pub struct KindInfo {
    /// The key under `grants` in a configuration and in requested grants: `filesystem`.
    pub key: &'static str,
    /// The word for requests of this kind: `files`.
    pub word: &'static str,
    /// The form of the value under the key.
    pub form: GrantForm,
    /// The words for a tool without such a grant: `no network`. `None` for a kind that gives no
    /// access to resources outside the sandbox.
    pub absent: Option<&'static str>,
    /// The beginning of the names of the imports that can use such a grant: `wasi:http/`.
    pub imports: Option<&'static str>,
    /// The default of the key in `[ceiling.grants]`.
    pub ceiling: DefaultCeiling,
    /// How a person types a request of this kind.
    pub typed: Option<TypedRequest>,
    /// The words for refused accesses in the audit log.
    pub refusals: Option<RefusalWords>,
}

/// The form of the value under the key of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantForm {
    /// A list with an entry for each grant.
    List,
    /// A table with a key for each grant.
    Table,
    /// One grant.
    Setting,
}

/// The ceiling of a kind that `[ceiling.grants]` does not have.
#[derive(Clone, Copy, Debug)]
pub enum DefaultCeiling {
    /// The kind has no ceiling.
    Unlimited,
    /// Every grant of a workspace exceeds the ceiling.
    Nothing,
    /// The ceiling is this setting, in TOML.
    Setting(fn() -> String),
}

/// A request as a person types it: a word, and further words.
#[derive(Clone, Debug)]
pub struct TypedRequest {
    /// The first word: `env`.
    pub word: &'static str,
    /// The number of further words.
    pub words: RangeInclusive<usize>,
    read: fn(&[String]) -> Result<Request, String>,
}

/// The words for refused accesses of a kind in the audit log.
#[derive(Clone, Copy, Debug)]
pub struct RefusalWords {
    /// The word that the log has for the kind: `file`.
    pub kind: &'static str,
    /// The refused access, with `{}` for its target: ``use `{}` ``.
    pub access: &'static str,
    /// The words that the log has for the reasons, each with the reason for people.
    pub reasons: &'static [(&'static str, &'static str)],
}

/// The grants of one kind that a tool has.
pub trait Kind {
    /// Returns the declaration of the kind.
    fn info(&self) -> &'static KindInfo;

    /// Returns the key under `grants` in a configuration and in requested grants: `filesystem`.
    fn key(&self) -> &'static str {
        self.info().key
    }

    /// Returns true if the tool has no grants of this kind.
    fn is_empty(&self) -> bool;

    /// Returns the effects that these grants permit.
    fn effects(&self) -> Effects;

    /// Formats each grant in one line for people.
    fn lines(&self) -> Vec<String>;

    /// Formats each grant in a few words, such as `reads /workspace`.
    fn brief(&self) -> Vec<String>;

    /// Returns the grants as they would be typed.
    fn to_json(&self) -> Value;

    /// Returns the first of these grants that `own` does not cover, in one line. Compares paths
    /// only; the host checks links.
    fn uncovered(&self, own: &Grants) -> Option<String>;

    /// Returns each grant as the only grant of a tool.
    fn singles(&self) -> Vec<Grants>;

    /// Formats the setting under `[ceiling.grants]` that allows these grants, in TOML. `None` if the
    /// kind has no ceiling.
    fn as_ceiling(&self) -> Option<String> {
        None
    }

    /// Formats each grant for consent, with its ability and risks.
    fn texts(&self, _around: &Surroundings<'_>) -> Vec<GrantText> {
        let text = |line| GrantText::new(format!("has {line}"), None, Vec::new());
        self.lines().into_iter().map(text).collect()
    }
}

/// A request for a grant of one kind. It is formatted as the grant that would allow it.
pub trait KindRequest: fmt::Display {
    /// Returns the declaration of the kind.
    fn info(&self) -> &'static KindInfo;

    /// Decides whether these grants allow the request.
    fn decide(&self, grants: &Grants) -> Decision;

    /// Formats the request in a few words, such as `reads /workspace`.
    fn brief(&self) -> String;

    /// Returns true if each call of a built-in receives its own grant, since the grant depends on
    /// the call.
    fn is_given_by_call(&self) -> bool {
        false
    }

    /// Returns true if a part of the request is granted. By default any grant of the kind is a
    /// part.
    fn is_granted_in_part(&self, grants: &Grants) -> bool {
        let key = self.info().key;
        grants.kinds().into_iter().any(|kind| kind.key() == key && !kind.is_empty())
    }

    /// Returns the ability and the risks of a grant of the request. `by_proxy` is true if a proxy
    /// resolves the names of hosts.
    fn consent(&self, _by_proxy: bool) -> (Option<Ability>, Vec<Risk>) {
        (None, Vec::new())
    }
}

/// The effects that a tool can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// The tool can create, change or remove something that outlives the call.
    pub changes: bool,
    /// The tool can reach other machines.
    pub open_world: bool,
}

impl KindInfo {
    /// Creates a kind inside the sandbox whose ceiling is nothing.
    pub(crate) const fn new(key: &'static str, word: &'static str, form: GrantForm) -> Self {
        Self {
            key,
            word,
            form,
            absent: None,
            imports: None,
            ceiling: DefaultCeiling::Nothing,
            typed: None,
            refusals: None,
        }
    }

    /// Returns the kind with a key under `grants`.
    pub fn of_key(key: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.key == key)
    }
}

impl TypedRequest {
    pub(crate) const fn new(
        word: &'static str,
        words: RangeInclusive<usize>,
        read: fn(&[String]) -> Result<Request, String>,
    ) -> Self {
        Self { word, words, read }
    }

    /// Returns the form of the typed requests that begin with a word.
    pub fn of_word(word: &str) -> Option<&'static Self> {
        KINDS.iter().filter_map(|kind| kind.typed.as_ref()).find(|typed| typed.word == word)
    }

    /// Reads the words after the first word.
    ///
    /// # Errors
    ///
    /// The reason why the words are not a request.
    pub fn read(&self, words: &[String]) -> Result<Request, String> {
        (self.read)(words)
    }
}

impl RefusalWords {
    /// Returns the word that the audit log has for the kind with a key under `grants`.
    pub fn kind_of(key: &'static str) -> &'static str {
        KindInfo::of_key(key).and_then(|kind| kind.refusals).map_or(key, |words| words.kind)
    }

    /// Returns the words for a kind in the audit log.
    pub fn of_kind(kind: &str) -> Option<&'static Self> {
        KINDS.iter().filter_map(|info| info.refusals.as_ref()).find(|words| words.kind == kind)
    }

    /// Returns the reason for people.
    pub fn reason(&self, word: &str) -> Option<&'static str> {
        self.reasons.iter().find(|(own, _)| *own == word).map(|(_, reason)| *reason)
    }
}

impl Effects {
    /// Combines the effects of both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            changes: self.changes || other.changes,
            open_world: self.open_world || other.open_world,
        }
    }
}
