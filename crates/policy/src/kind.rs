//! Traits of the kinds of grants.

use std::fmt;

use serde_json::Value;

/// The grants of one kind that a tool has.
pub trait Kind {
    /// Returns the key under `grants` in a configuration and in requested grants: `filesystem`.
    fn key(&self) -> &'static str;

    /// Returns the resource that these grants give access to.
    fn reach(&self) -> Reach;

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
}

/// A request for a grant of one kind. It is formatted as the grant that would allow it.
pub trait KindRequest: fmt::Display {
    /// Returns the requested resource.
    fn reach(&self) -> Reach;

    /// Formats the request in a few words, such as `reads /workspace`.
    fn brief(&self) -> String;

    /// Returns true if each call of a built-in receives its own grant, since the grant depends on
    /// the call.
    fn is_given_by_call(&self) -> bool;
}

/// Resources that need a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Files and directories.
    Directory,
    /// Variables of the environment.
    Environment,
    /// Other machines.
    Network,
    /// Values that a person configured for the tool. Not outside the sandbox.
    Configuration,
    /// Credentials in requests of the tool. Useless without a grant of the network.
    Secret,
    /// The tool's own stored data. Not outside the sandbox.
    Storage,
    /// Other tools and the resources that those can access.
    Tool,
}

/// The effects that a tool can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// The tool can create, change or remove something that outlives the call.
    pub changes: bool,
    /// The tool can reach other machines.
    pub open_world: bool,
}

impl Reach {
    /// The resources outside the sandbox.
    pub const ALL: [Self; 3] = [Self::Directory, Self::Environment, Self::Network];

    /// Returns the words for a missing grant in a list of grants: `no network`.
    pub const fn absent(self) -> &'static str {
        match self {
            Self::Directory => "no directory",
            Self::Environment => "no environment",
            Self::Network => "no network",
            Self::Configuration => "no configuration values",
            Self::Secret => "no secrets",
            Self::Storage => "no storage",
            Self::Tool => "no other tools",
        }
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
