//! A tool, and what its name stands for.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use kitbag_base::{FileId, shell};
use kitbag_contract::{Pin, ToolName};
use kitbag_policy::{Access, ApprovalRule, DirectoryGrant, Rates};
use serde_json::{Map, Value};

use super::grants::ConfiguredGrants;
use super::parameters::Parameters;
use super::recorded::Recorded;
use crate::layers::limits::EffectiveLimits;
use crate::layers::origin::{Origin, Sourced};
use crate::layers::toolsets::Disabled;
use crate::read::file::Layer;

/// A tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfiguredTool {
    /// The name that a model calls it by.
    pub name: ToolName,
    /// What the name stands for.
    pub source: Sourced<ToolSource>,
    /// What `enable` says. Default `true`. [`disabled`](Self::disabled) has more reasons.
    pub enable: Sourced<bool>,
    /// The group of a built-in tool, which `[toolsets]` switches.
    pub toolset: Option<String>,
    /// Why it is not offered. `None`: it is.
    pub disabled: Option<Disabled>,
    /// A display name.
    pub title: Option<Sourced<String>>,
    /// What it does, for the model. `None`: what the tool says of itself.
    pub description: Option<Sourced<String>>,
    /// What it may reach. Host directories are canonical and exist, unless the tool is
    /// not enabled. Default: for a component the workspace, read-only, at `/workspace`; for
    /// a built-in the workspace as it asks for it, else nothing.
    pub grants: ConfiguredGrants,
    /// What one call may use up.
    pub limits: EffectiveLimits,
    /// How often each caller may call it: its own rate first, then those of the user's own
    /// file for other names of the same tool. All have to allow a call. Default: as often as
    /// they like.
    pub rates: Vec<ToolRate>,
    /// Before which calls a person is asked. Default: none.
    pub approve: ToolApproval,
    /// Preset answers, by the id of the question.
    pub answers: BTreeMap<String, Sourced<Value>>,
    /// Whether what looks like a key or a token is masked in what it gives. Default `true`; only
    /// the user's own file says otherwise.
    pub mask: Sourced<bool>,
}

/// Before which calls of a tool a person is asked, as configuration says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolApproval {
    /// The rules, one of which is enough to ask.
    pub rules: Vec<Sourced<ApprovalRule>>,
    /// The place in the user's own file that says `never`, so that what the tool says of itself
    /// does not count.
    pub never: Option<Origin>,
}

/// How often a tool may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRate {
    /// The rates, which hold together.
    pub rates: Sourced<Rates>,
    /// The tool whose calls they count: the tool itself, or another name for it that the
    /// user's own file limits.
    pub counted_as: ToolName,
}

/// What the name of a tool stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolSource {
    /// A tool that is part of kitbag. It has its own parameters.
    Builtin {
        /// Its own name, one of those the caller handed over.
        name: Sourced<String>,
    },
    /// A component in a file.
    Local(LocalTool),
    /// A script of Python in a file, which the built-in [`PYTHON`](crate::PYTHON) runs.
    Script(ScriptTool),
    /// A component that the embedding program brings as bytes.
    Bytes(BytesTool),
    /// Code of the embedding program, which no file names.
    Native,
}

/// A tool whose component is in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalTool {
    /// The component; absolute. It was not looked at and need not exist.
    pub wasm: Sourced<PathBuf>,
    /// The digests that it must have, all of them. Default: any will do.
    pub pins: Arc<[Pin]>,
    /// What `kitbag.lock` has of it. `None`: nothing, and what it says of itself counts as it is.
    pub recorded: Option<Arc<Recorded>>,
    /// In which lock file it is recorded: that of the workspace, or the user's own.
    pub layer: Layer,
    /// Whether it is one that the user builds: then any component will do that asks for no
    /// more than was recorded. Default `false`.
    pub dev: Sourced<bool>,
    /// The built-in that it replaces, which is there no longer.
    pub replaces: Option<Sourced<String>>,
    /// The arguments that it takes. `None`: what the tool says of itself.
    pub parameters: Option<Parameters>,
}

/// A tool that is a script of Python.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptTool {
    /// The file; absolute. It was read with the configuration.
    pub path: Sourced<PathBuf>,
    /// The built-in that it replaces, which is there no longer.
    pub replaces: Option<Sourced<String>>,
    /// The text of the file, which is what runs.
    pub code: Arc<str>,
    /// The arguments that it takes, each a variable of the script.
    pub parameters: Parameters,
    /// The JSON Schema of its answer, where that is JSON.
    pub output: Option<Sourced<Value>>,
    /// What it would like to be granted, in the form in which a component says it.
    pub asks: Map<String, Value>,
}

/// A tool whose component the embedding program brings.
#[derive(Clone, Debug, PartialEq)]
pub struct BytesTool {
    /// The name under which the program brings it.
    pub component: ToolName,
    /// The arguments that it takes. `None`: what the tool says of itself.
    pub parameters: Option<Parameters>,
}

impl ConfiguredTool {
    /// A tool of the embedding program, without grants, of which no configuration says
    /// anything.
    pub fn of_caller(name: ToolName, source: Sourced<ToolSource>, limits: EffectiveLimits) -> Self {
        Self {
            name,
            source,
            enable: Sourced::default(true),
            toolset: None,
            disabled: None,
            title: None,
            description: None,
            grants: ConfiguredGrants::default(),
            limits,
            rates: Vec::new(),
            approve: ToolApproval::default(),
            answers: BTreeMap::new(),
            mask: Sourced::default(true),
        }
    }

    /// Turns it off, so that nothing is left of it but its name and what that stands for.
    pub(crate) fn turn_off(&mut self, reason: Disabled) {
        match &mut self.source.value {
            ToolSource::Local(local) => (local.replaces, local.parameters) = (None, None),
            ToolSource::Script(script) => script.replaces = None,
            ToolSource::Builtin { .. } | ToolSource::Bytes(_) | ToolSource::Native => {}
        }
        self.disabled = Some(reason);
        (self.title, self.description) = (None, None);
        self.grants = ConfiguredGrants::default();
        self.answers = BTreeMap::new();
    }

    /// Whether it is offered.
    pub fn is_enabled(&self) -> bool {
        self.disabled.is_none()
    }
}

impl ToolApproval {
    /// Adds what counts where the user's own file says nothing of the tool.
    pub(crate) fn add_default(&mut self, default: Option<&Sourced<ApprovalRule>>) {
        match default {
            None => {}
            Some(Sourced { value: ApprovalRule::Never, origin }) => {
                self.never = Some(origin.clone());
            }
            Some(rule) => self.rules.push(rule.clone()),
        }
    }
}

impl ToolSource {
    /// Whether it is a component that is not part of kitbag.
    pub fn is_component(&self) -> bool {
        match self {
            Self::Local(_) | Self::Bytes(_) => true,
            Self::Builtin { .. } | Self::Script(_) | Self::Native => false,
        }
    }

    /// The built-in that it replaces.
    pub fn replaces(&self) -> Option<&Sourced<String>> {
        match self {
            Self::Local(local) => local.replaces.as_ref(),
            Self::Script(script) => script.replaces.as_ref(),
            Self::Builtin { .. } | Self::Bytes(_) | Self::Native => None,
        }
    }

    /// The arguments of a component or a script as configuration says them. `None`: what the tool
    /// says of itself.
    pub fn parameters(&self) -> Option<&Parameters> {
        match self {
            Self::Local(local) => local.parameters.as_ref(),
            Self::Bytes(bytes) => bytes.parameters.as_ref(),
            Self::Script(script) => Some(&script.parameters),
            Self::Builtin { .. } | Self::Native => None,
        }
    }
}

impl LocalTool {
    /// A tool of which nothing was recorded.
    pub(crate) fn new(
        wasm: Sourced<PathBuf>,
        replaces: Option<Sourced<String>>,
        parameters: Option<Parameters>,
    ) -> Self {
        let (pins, dev) = (Arc::default(), Sourced::default(false));
        Self { wasm, pins, recorded: None, layer: Layer::User, dev, replaces, parameters }
    }

    /// Has its component checked against one more digest, wherever it is loaded. One that the
    /// user builds has none.
    pub fn add_pin(&mut self, pin: Pin) {
        if !self.dev.value {
            self.pins = self.pins.iter().cloned().chain([pin]).collect();
        }
    }

    /// What was recorded of it, from now on: its digest among it.
    pub(crate) fn record(&mut self, name: &ToolName, recorded: Recorded) {
        self.add_pin(Pin {
            digest: recorded.tool.component,
            recorded_in: recorded.place.to_string().into(),
            renewed_by: shell::command(["kitbag", "update", name.as_str()]).into(),
        });
        self.recorded = Some(Arc::new(recorded));
    }
}

/// The directories that some of these tools may write.
pub(crate) fn writable(tools: &BTreeMap<ToolName, ConfiguredTool>) -> impl Iterator<Item = FileId> {
    let enabled = tools.values().filter(|tool| tool.is_enabled());
    let grants = enabled.flat_map(|tool| &tool.grants.value.directories);
    let writes = |grant: &&DirectoryGrant| grant.access == Access::ReadWrite;
    grants.filter(writes).filter_map(|grant| grant.identity)
}
