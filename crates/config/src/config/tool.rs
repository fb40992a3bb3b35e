//! A tool, and the source that its name refers to.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use kitbag_base::{FileId, shell};
use kitbag_contract::{Pin, ToolName};
use kitbag_policy::{Access, ApprovalRule, DirectoryGrant, Rates};
use serde_json::{Map, Value};

use super::command::ComponentCall;
use super::grants::ConfiguredGrants;
use super::parameters::Parameters;
use super::record::Recorded;
use super::server::ServerTool;
use crate::layers::limits::EffectiveLimits;
use crate::layers::origin::{Origin, Sourced};
use crate::layers::toolsets::Disabled;
use crate::read::file::Layer;

/// A tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfiguredTool {
    /// The name that a model uses in calls.
    pub name: ToolName,
    /// The source of the tool.
    pub source: Sourced<ToolSource>,
    /// The value of `enable`. Default `true`. [`disabled`](Self::disabled) has further reasons.
    pub enable: Sourced<bool>,
    /// The group of a built-in tool, which `[toolsets]` switches.
    pub toolset: Option<String>,
    /// The reason why the tool is not offered. `None`: it is offered.
    pub disabled: Option<Disabled>,
    /// A display name.
    pub title: Option<Sourced<String>>,
    /// The description for the model. `None`: the tool's own description.
    pub description: Option<Sourced<String>>,
    /// The grants. Host directories are canonical and exist, unless the tool is disabled.
    ///
    /// Default for a component: the workspace, read-only, at `/workspace`, unless it was made for
    /// another host; for a built-in: the access to the workspace that it declares, if any.
    pub grants: ConfiguredGrants,
    /// The limits of one call.
    pub limits: EffectiveLimits,
    /// The rates for each caller: the tool's own rate first, then the rates in the user config for
    /// other names of the same tool. A call must be within all of them. Default: unlimited.
    pub rates: Vec<ToolRate>,
    /// The calls that need approval. Default: none.
    pub approve: ToolApproval,
    /// Preset answers, by the id of the question.
    pub answers: BTreeMap<String, Sourced<Value>>,
    /// `true` masks strings that look like a key or a token in the output. Default `true`; only the
    /// user config can change it.
    pub mask: Sourced<bool>,
}

/// The configured approval rules of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolApproval {
    /// The rules. A call needs approval if any of them matches.
    pub rules: Vec<Sourced<ApprovalRule>>,
    /// The place of `never` in the user config, which overrides the tool's own rules.
    pub never: Option<Origin>,
}

/// A rate of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRate {
    /// The rates. All apply.
    pub rates: Sourced<Rates>,
    /// The tool whose calls are counted: the tool itself, or another name for it that the user
    /// config limits.
    pub counted_as: ToolName,
}

/// The source of a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolSource {
    /// A built-in tool. It has its own parameters.
    Builtin {
        /// The tool's own name, one of those that the caller passed.
        name: Sourced<String>,
    },
    /// A component in a file.
    Local(LocalTool),
    /// A Python script in a file, which the built-in [`PYTHON`](crate::PYTHON) runs.
    Script(ScriptTool),
    /// A component that the embedding program provides as bytes.
    Bytes(BytesTool),
    /// Code of the embedding program, without a file.
    Native,
    /// A tool of an MCP server.
    Server(ServerTool),
}

/// A tool whose component is in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalTool {
    /// The path of the component; absolute. The file was not opened and need not exist.
    pub wasm: Sourced<PathBuf>,
    /// The required digests of the component; all must match. Default: any component.
    pub pins: Arc<[Pin]>,
    /// The record in `kitbag.lock`. `None`: no record, so that the tool's own description is used
    /// unchecked.
    pub recorded: Option<Arc<Recorded>>,
    /// The layer of the lock file with the record: the workspace or the user.
    pub layer: Layer,
    /// `true` if the user builds the tool. Any component that requests no more than was recorded is
    /// then accepted. Default `false`.
    pub dev: Sourced<bool>,
    /// The built-in that the tool replaces.
    pub replaces: Option<Sourced<String>>,
    /// The part of the component that the tool calls.
    pub call: ComponentCall,
    /// The arguments. `None`: the tool's own declaration.
    pub parameters: Option<Parameters>,
}

/// A tool that is a Python script.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptTool {
    /// The file; absolute. It was read with the configuration.
    pub path: Sourced<PathBuf>,
    /// The built-in that the tool replaces.
    pub replaces: Option<Sourced<String>>,
    /// The text of the file, which is the code that runs.
    pub code: Arc<str>,
    /// The arguments, each a variable of the script.
    pub parameters: Parameters,
    /// The JSON Schema of the answer, if it is JSON.
    pub output: Option<Sourced<Value>>,
    /// The requested grants, in the form in which a component declares them.
    pub asks: Map<String, Value>,
}

/// A tool whose component the embedding program provides.
#[derive(Clone, Debug, PartialEq)]
pub struct BytesTool {
    /// The name under which the program provides the component.
    pub component: ToolName,
    /// The part of the component that the tool calls.
    pub call: ComponentCall,
    /// The arguments. `None`: the tool's own declaration.
    pub parameters: Option<Parameters>,
}

impl ConfiguredTool {
    /// Returns a tool of the embedding program, without grants and configuration.
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

    /// Returns the component's own name of the tool: the configured one, otherwise the tool's name.
    pub fn own_name(&self) -> &str {
        let call = self.source.value.component_call();
        let function = call.and_then(|call| call.function.as_ref());
        function.map_or(self.name.as_str(), |function| &function.value)
    }

    /// Turns the tool off and keeps only its name and its source.
    pub(crate) fn turn_off(&mut self, reason: Disabled) {
        match &mut self.source.value {
            ToolSource::Local(local) => {
                (local.replaces, local.parameters) = (None, None);
                local.call = ComponentCall::default();
            }
            ToolSource::Script(script) => script.replaces = None,
            ToolSource::Builtin { .. }
            | ToolSource::Bytes(_)
            | ToolSource::Native
            | ToolSource::Server(_) => {}
        }
        self.disabled = Some(reason);
        (self.title, self.description) = (None, None);
        self.grants = ConfiguredGrants::default();
        self.answers = BTreeMap::new();
    }

    /// Returns whether the tool is offered.
    pub fn is_enabled(&self) -> bool {
        self.disabled.is_none()
    }
}

impl ToolApproval {
    /// Adds the default rule if the user config has no rule for the tool.
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
    /// Returns whether the tool is a component that is not built in.
    pub fn is_component(&self) -> bool {
        match self {
            Self::Local(_) | Self::Bytes(_) => true,
            Self::Builtin { .. } | Self::Script(_) | Self::Native | Self::Server(_) => false,
        }
    }

    /// Returns the built-in that the tool replaces.
    pub fn replaces(&self) -> Option<&Sourced<String>> {
        match self {
            Self::Local(local) => local.replaces.as_ref(),
            Self::Script(script) => script.replaces.as_ref(),
            Self::Builtin { .. } | Self::Bytes(_) | Self::Native | Self::Server(_) => None,
        }
    }

    /// Returns the part of a component that is not built in which the tool calls.
    pub fn component_call(&self) -> Option<&ComponentCall> {
        match self {
            Self::Local(local) => Some(&local.call),
            Self::Bytes(bytes) => Some(&bytes.call),
            Self::Builtin { .. } | Self::Script(_) | Self::Native | Self::Server(_) => None,
        }
    }

    /// Returns the configured arguments of a component or a script. `None`: the tool's own
    /// declaration.
    pub fn parameters(&self) -> Option<&Parameters> {
        match self {
            Self::Local(local) => local.parameters.as_ref(),
            Self::Bytes(bytes) => bytes.parameters.as_ref(),
            Self::Script(script) => Some(&script.parameters),
            Self::Builtin { .. } | Self::Native | Self::Server(_) => None,
        }
    }
}

impl LocalTool {
    /// Returns a tool without a record.
    pub(crate) fn new(
        wasm: Sourced<PathBuf>,
        replaces: Option<Sourced<String>>,
        parameters: Option<Parameters>,
    ) -> Self {
        let call = ComponentCall::default();
        let (pins, dev) = (Arc::default(), Sourced::default(false));
        Self { wasm, pins, recorded: None, layer: Layer::User, dev, replaces, call, parameters }
    }

    /// Requires one more digest of the component. A tool that the user builds has no digests.
    pub fn add_pin(&mut self, pin: Pin) {
        if !self.dev.value {
            self.pins = self.pins.iter().cloned().chain([pin]).collect();
        }
    }

    pub(crate) fn record(&mut self, name: &ToolName, recorded: Recorded) {
        self.add_pin(Pin {
            digest: recorded.tool.component,
            recorded_in: recorded.place.to_string().into(),
            renewed_by: shell::command(["kitbag", "update", name.as_str()]).into(),
        });
        self.recorded = Some(Arc::new(recorded));
    }
}

/// Returns the directories that some of these tools may write.
pub(crate) fn writable(tools: &BTreeMap<ToolName, ConfiguredTool>) -> impl Iterator<Item = FileId> {
    let enabled = tools.values().filter(|tool| tool.is_enabled());
    let grants = enabled.flat_map(|tool| &tool.grants.value.directories);
    let writes = |grant: &&DirectoryGrant| grant.access == Access::ReadWrite;
    grants.filter(writes).filter_map(|grant| grant.identity)
}
