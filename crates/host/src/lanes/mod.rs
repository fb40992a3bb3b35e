//! Lanes: the binary interfaces through which the host calls a component.
//!
//! A lane recognises its components by their types, links its own interfaces, describes the tools,
//! and carries out one call. Everything else is shared: store, limits, deadline, output, grants.

pub(crate) mod act;
pub(crate) mod agent;
pub(crate) mod command;
pub(crate) mod core;
mod files;
pub(crate) mod functions;
pub(crate) mod plugin;
pub(crate) mod run;
pub(crate) mod skill;

#[cfg(test)]
mod test_host;
#[cfg(test)]
pub(crate) mod tests;

use kitbag_base::ByteSize;
use kitbag_contract::{Action, Context, Description, ErrorInfo, Limits, Outcome};
use kitbag_engine::{DescribeResult, ExportKind, InvalidComponent, Lane, PREVIEW_1, function_docs};
use wasmtime::component::types::{ComponentInstance, ComponentItem};
use wasmtime::component::{Component, Instance, InstancePre, Linker};
use wasmtime::{Engine, Store};

use self::act::Act;
use self::agent::Agent;
use self::command::Command;
use self::core::Core;
use self::functions::Functions;
use self::plugin::Plugin;
use self::run::Run;
use self::skill::Skill;
use crate::call::state::State;

/// The way in which the host calls a component.
pub(crate) enum Entry {
    Run(Run),
    Functions(Functions),
    Command(Command),
    Core(Core),
    Plugin(Plugin),
    Agent(Agent),
    Act(Act),
    Skill(Skill),
}

/// The parameters of one call.
pub(crate) struct Parameters<'a> {
    pub(crate) context: Context,
    /// The component's own name of the tool.
    pub(crate) name: &'a str,
    /// A JSON object that matches the tool's input schema.
    pub(crate) arguments: &'a str,
    /// A JSON object with the answers received, keyed by question.
    pub(crate) answers: &'a str,
    /// The limit on the result.
    pub(crate) output: ByteSize,
}

impl Entry {
    /// Recognises the lane by the type of the compiled component.
    ///
    /// # Errors
    ///
    /// [`InvalidComponent`] if this kitbag has no lane for the component.
    pub(crate) fn of(component: &Component) -> Result<Self, InvalidComponent> {
        if let Some(run) = Run::of(component) {
            return Ok(Self::Run(run));
        }
        match lane(component) {
            Some(Lane::Functions) => Functions::of(component).map(Self::Functions),
            Some(Lane::Command) => Command::of(component).map(Self::Command),
            Some(Lane::Core) => Core::of(component).map(Self::Core),
            Some(Lane::Plugin) => Plugin::of(component).map(Self::Plugin),
            Some(Lane::Agent) => Agent::of(component).map(Self::Agent),
            Some(Lane::Act) => Act::of(component).map(Self::Act),
            Some(Lane::Skill) => Skill::of(component).map(Self::Skill),
            _ => Err(InvalidComponent::NoRun { other: Vec::new() }),
        }
    }

    pub(crate) fn lane(&self) -> Lane {
        match self {
            Self::Run(_) => Lane::Run,
            Self::Functions(_) => Lane::Functions,
            Self::Command(_) => Lane::Command,
            Self::Core(_) => Lane::Core,
            Self::Plugin(_) => Lane::Plugin,
            Self::Agent(_) => Lane::Agent,
            Self::Act(_) => Lane::Act,
            Self::Skill(_) => Lane::Skill,
        }
    }

    /// Links the interfaces of the lane, in addition to those that every lane offers.
    pub(crate) fn link(&self, linker: &mut Linker<State>) -> wasmtime::Result<()> {
        match self {
            Self::Run(run) => run.link(linker),
            Self::Functions(_) => Ok(()),
            Self::Command(command) => command.link(linker),
            Self::Core(core) => core.link(linker),
            Self::Plugin(plugin) => plugin.link(linker),
            Self::Agent(agent) => agent.link(linker),
            Self::Act(act) => act.link(linker),
            Self::Skill(skill) => skill.link(linker),
        }
    }

    /// Returns the host memory that a call needs for the lane.
    pub(crate) fn host_bytes(&self, limits: &Limits) -> ByteSize {
        match self {
            Self::Run(_) | Self::Functions(_) => ByteSize::bytes(0),
            Self::Command(command) => command.host_bytes(limits),
            Self::Core(core) => core.host_bytes(limits),
            Self::Plugin(plugin) => plugin.host_bytes(limits),
            Self::Agent(_) => Agent::HOST_BYTES,
            Self::Act(act) => act.host_bytes(limits),
            Self::Skill(_) => Skill::HOST_BYTES,
        }
    }

    /// Returns the number of bytes of standard output that the lane needs. `None`: the output is
    /// not part of the result.
    pub(crate) fn output_bytes(&self, limits: &Limits) -> Option<usize> {
        match self {
            Self::Run(_)
            | Self::Functions(_)
            | Self::Act(_)
            | Self::Agent(_)
            | Self::Core(_)
            | Self::Plugin(_)
            | Self::Skill(_) => None,
            Self::Command(command) => Some(command.output_bytes(limits)),
        }
    }

    /// Returns the description, if the lane needs no run for it. `content` are the bytes of the file,
    /// with all custom sections, or empty if they are not at hand.
    pub(crate) fn description(&self, component: &Component, content: &[u8]) -> Option<Description> {
        match self {
            Self::Run(run) => run.description(component),
            Self::Functions(functions) => Some(functions.description(&function_docs(content))),
            Self::Command(command) => command.description(component),
            Self::Core(core) => core.description(component),
            Self::Plugin(plugin) => plugin.description(component),
            Self::Act(act) => act.description(component),
            Self::Agent(_) | Self::Skill(_) => None,
        }
    }

    /// Returns true if the component can be asked for its description.
    pub(crate) fn describes(&self) -> bool {
        match self {
            Self::Run(run) => run.describes(),
            Self::Functions(_) | Self::Command(_) | Self::Core(_) | Self::Skill(_) => false,
            Self::Agent(_) | Self::Act(_) => true,
            Self::Plugin(plugin) => plugin.describes(),
        }
    }

    /// Asks the component for its description, without grants.
    pub(crate) async fn describe(
        &self,
        store: &mut Store<State>,
        pre: &InstancePre<State>,
    ) -> wasmtime::Result<DescribeResult> {
        match self {
            Self::Run(run) => run.describe(store, pre).await,
            Self::Functions(_) | Self::Command(_) | Self::Core(_) | Self::Skill(_) => {
                Ok(DescribeResult::Nothing)
            }
            Self::Agent(agent) => agent.describe(store, pre).await,
            Self::Plugin(plugin) => plugin.describe(store, pre).await,
            Self::Act(act) => act.describe(store, pre).await,
        }
    }

    /// Instantiates the component and carries out one call.
    pub(crate) async fn run(
        &self,
        store: &mut Store<State>,
        pre: &InstancePre<State>,
        parameters: &Parameters<'_>,
    ) -> wasmtime::Result<Outcome> {
        if self.lane().is_foreign() && parameters.context.action == Action::FormatArguments {
            let error = "tools of other hosts do not render their calls";
            return Ok(Outcome::Error(ErrorInfo::new(error)));
        }
        match self {
            Self::Run(run) => run.run(store, pre, parameters).await,
            Self::Functions(functions) => functions.run(store, pre, parameters).await,
            Self::Command(command) => command.run(store, pre, parameters).await,
            Self::Core(core) => core.run(store, pre, parameters).await,
            Self::Plugin(plugin) => plugin.run(store, pre, parameters).await,
            Self::Agent(agent) => agent.run(store, pre, parameters).await,
            Self::Act(act) => act.run(store, pre, parameters).await,
            Self::Skill(skill) => skill.run(store, pre, parameters).await,
        }
    }
}

/// The reason why a host function or a tool did not succeed. It is the error of the call.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failure(String);

/// Returns the error of a host function that ends the call with this message.
fn failure(reason: impl ToString) -> wasmtime::Error {
    Failure(reason.to_string()).into()
}

/// Instantiates a component. From then on a failure is the component's.
pub(crate) async fn instantiate(
    store: &mut Store<State>,
    pre: &InstancePre<State>,
) -> wasmtime::Result<Instance> {
    let instance = pre.instantiate_async(&mut *store).await?;
    store.data_mut().is_instantiated = true;
    Ok(instance)
}

/// Returns the purpose of an import that only tools of a lane have.
pub(crate) fn offered(lane: Lane, import: &str) -> Option<&'static str> {
    match lane {
        Lane::Command if import == PREVIEW_1 => {
            Some("WASI preview 1: files and variables by grant")
        }
        Lane::Plugin => plugin::offered(import),
        Lane::Agent => agent::offered(import),
        Lane::Skill => skill::offered(import),
        _ => None,
    }
}

/// Recognises the lane of a component that does not export `run` of the contract.
fn lane(component: &Component) -> Option<Lane> {
    let (engine, ty) = (component.engine(), component.component_type());
    let exports = ty.exports(engine).map(|(name, export)| (name, kind(engine, &export.ty)));
    let exports: Vec<_> = exports.collect();
    Lane::of_component(false, ty.imports(engine).map(|(name, _)| name), exports)
}

fn kind(engine: &Engine, item: &ComponentItem) -> ExportKind {
    match item {
        ComponentItem::ComponentFunc(_) => ExportKind::Function,
        ComponentItem::ComponentInstance(instance) => {
            ExportKind::Instance { has_functions: has_functions(engine, instance) }
        }
        _ => ExportKind::Other,
    }
}

fn has_functions(engine: &Engine, instance: &ComponentInstance) -> bool {
    let mut exports = instance.exports(engine);
    exports.any(|(_, export)| matches!(export.ty, ComponentItem::ComponentFunc(_)))
}
