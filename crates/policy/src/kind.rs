//! What every kind of grant says of itself.

use std::fmt;

use serde_json::Value;

/// The grants of one kind that a tool holds.
pub trait Kind {
    /// The key under `grants` in a configuration, and in what a tool says it would
    /// like: `filesystem`.
    fn key(&self) -> &'static str;

    /// What such grants reach.
    fn reach(&self) -> Reach;

    /// Whether the tool holds none of them.
    fn is_empty(&self) -> bool;

    /// What a tool can do with them.
    fn effects(&self) -> Effects;

    /// Each of them in a line, as a person reads it.
    fn lines(&self) -> Vec<String>;

    /// Each of them in two words, such as `reads /workspace`.
    fn brief(&self) -> Vec<String>;

    /// As they would be typed.
    fn to_json(&self) -> Value;
}

/// One request for something of this kind. It reads as the grant that would allow it.
pub trait KindRequest: fmt::Display {
    /// What it is about.
    fn reach(&self) -> Reach;

    /// It in two words, such as `reads /workspace`.
    fn brief(&self) -> String;

    /// Whether each call of a built-in that asks for it gets a grant of its own, since
    /// what is granted depends on the call.
    fn is_given_by_call(&self) -> bool;
}

/// What lies outside the sandbox, and only a grant reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Files and directories.
    Directory,
    /// Variables of the environment.
    Environment,
    /// Other machines.
    Network,
    /// Values that a person wrote for the tool: nothing outside of the sandbox.
    Configuration,
    /// Credentials that requests of the tool show: nothing without a grant of the network.
    Secret,
    /// What the tool itself has kept: nothing outside of the sandbox.
    Storage,
    /// Other tools: whatever those reach.
    Tool,
}

/// What a tool can do to the world around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// It can change something that outlives the call, or remove it.
    pub changes: bool,
    /// It can reach other machines.
    pub open_world: bool,
}

impl Reach {
    /// Everything outside of the sandbox that only a grant reaches.
    pub const ALL: [Self; 3] = [Self::Directory, Self::Environment, Self::Network];

    /// How a list of grants says that this is out of reach: `no network`.
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
    /// What can be done with either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            changes: self.changes || other.changes,
            open_world: self.open_world || other.open_world,
        }
    }
}
