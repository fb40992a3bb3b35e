//! The tools in the binary, and the host's half of some of them.

pub(crate) mod adapter;
mod eject;
pub(crate) mod knowledge;
mod knowledge_block;
pub(crate) mod learn;
pub(crate) mod python;
pub(crate) mod time;

pub use eject::Ejected;

use kitbag_config::{BuiltinTool, PYTHON};
use kitbag_host::EmbeddedArtifact;
use kitbag_policy::Access;

use crate::error::ToolboxError;
use crate::registry::Inner;

/// A tool that is part of the binary.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// Its own name.
    pub name: &'static str,
    /// The group that `[toolsets]` switches it with: the name of its component.
    pub toolset: &'static str,
    /// Its component, which may have other tools, too.
    pub artifact: EmbeddedArtifact,
    /// What it says of itself, as the JSON of [`kitbag_contract::ToolDescription`].
    pub description: &'static str,
    /// What it asks of the workspace, which it gets where configuration says nothing and it
    /// is on.
    pub workspace: Option<Access>,
    /// Whether it keeps something between its calls, as much as storage has by default.
    pub keeps: bool,
    /// Guest paths of the directories that are given to each of its calls.
    pub given_by_call: &'static [&'static str],
    /// The kinds of grants that it cannot do without, each as a line of `grants` in TOML.
    pub required: &'static [&'static str],
    /// Whether it asks for the tools that its caller may call, which it gets where
    /// configuration says nothing.
    pub calls: bool,
}

impl Builtin {
    /// The tool as configuration has to know it.
    pub fn declaration(&self) -> BuiltinTool<'static> {
        let Self { name, toolset, workspace, keeps, given_by_call, required, calls, .. } = *self;
        BuiltinTool { name, toolset, workspace, keeps, given_by_call, required, calls }
    }
}

impl Inner {
    pub(crate) fn builtin(&self, name: &str) -> Result<&'static Builtin, ToolboxError> {
        self.builtins
            .iter()
            .find(|builtin| builtin.name == name)
            .ok_or_else(|| ToolboxError::unknown_tool(name, self.builtins.iter().map(|b| b.name)))
    }

    /// The built-in that runs scripts.
    pub(crate) fn interpreter(&self) -> Result<&'static Builtin, ToolboxError> {
        self.builtin(PYTHON)
    }

    /// Whether the component of a built-in has other tools, too.
    pub(crate) fn shares_component(&self, name: &str) -> bool {
        let own = self.builtins.iter().find(|builtin| builtin.name == name);
        own.is_some_and(|own| {
            let same = |other: &&Builtin| other.artifact == own.artifact;
            self.builtins.iter().filter(same).count() > 1
        })
    }
}
