//! Resolution of a tool: values from the configuration, and the rest from the tool itself.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use kitbag_base::text::{alternatives, shown};
use kitbag_config::{Audience, Origin, Parameter, Sourced, ToolSource};
use kitbag_contract::{Annotations, ToolDescription};
use kitbag_host::{
    Component, ComponentSource, DescribeResult, Lane, LoadError, Metering, RunContext,
};
use kitbag_policy::{
    Access, DirectoryGrant, Effects, Grants, GuestPath, PathRequest, Request, RequestedGrants,
    ToolGrants,
};
use kitbag_schema::Schema;
use serde_json::{Value, json};

use crate::approval;
use crate::builtins::Builtin;
use crate::builtins::adapter::Adapter;
use crate::builtins::learn::{Learn, is_learn};
use crate::builtins::python::{Python, is_python};
use crate::builtins::time::{Time, is_time};
use crate::error::ToolboxError;
use crate::registry::lock;
use crate::registry::tool::{Summary, Tool, unavailable};
use crate::registry::{ResolvedTool, ToolboxState};
use crate::sources::native::Native;
use crate::sources::{script, server};

/// Summarizes a tool without loading it.
pub(crate) fn summary(
    state: &ToolboxState,
    tool: &kitbag_config::ConfiguredTool,
    known: &mut KnownDescriptions,
) -> Summary {
    let (mut refused, mut lane) = (None, None);
    let (source, says) = match &tool.source.value {
        ToolSource::Builtin { name } => {
            let says = state.builtin(&name.value).ok().map(describe_builtin).map(Some);
            ("built-in".to_owned(), says)
        }
        ToolSource::Native => {
            let native = state.program.natives.get(&tool.name);
            ("native".to_owned(), Some(native.map(Native::description)))
        }
        ToolSource::Server(own) => {
            (format!("server {}", own.source()), Some(Some(server::description(own))))
        }
        source @ (ToolSource::Local(_) | ToolSource::Bytes(_)) => {
            let shown = match source {
                ToolSource::Local(local) => {
                    let path = &local.wasm.value;
                    let path = path.strip_prefix(&state.config.root.value).unwrap_or(path);
                    match &local.replaces {
                        None => path.display().to_string(),
                        Some(builtin) => {
                            format!("{}, replaces `{}`", path.display(), builtin.value)
                        }
                    }
                }
                _ => "bytes".to_owned(),
            };
            let (leaves_open, metering) = (leaves_open(tool), Metering::of(&tool.limits.limits()));
            let source = state.component_source(&tool.source.value).ok();
            lane = source.clone().and_then(|source| known.lane(state, source, metering));
            let source = source.filter(|_| leaves_open || is_pinned(tool) && tool.is_enabled());
            let says = source.and_then(|source| match known.description(state, source, metering) {
                Ok(says) => says,
                Err(error) => {
                    refused = Some(error.to_string());
                    None
                }
            });
            let says = says.filter(|says| {
                let lock = || lock::refused(tool, says);
                refused = refused.take().or_else(lock).or_else(|| own_tool(tool, lane, says).err());
                leaves_open && refused.is_none()
            });
            let says = says.map(|says| own_tool(tool, lane, says).ok()?.cloned());
            refused = refused.or_else(|| check_call(tool, lane).err());
            (shown, says)
        }
        ToolSource::Script(script) => {
            let path = &script.path.value;
            let path = path.strip_prefix(&state.config.root.value).unwrap_or(path);
            let shown = match &script.replaces {
                None => path.display().to_string(),
                Some(builtin) => format!("{}, replaces `{}`", path.display(), builtin.value),
            };
            (shown, Some(Some(script::description(script))))
        }
    };
    let builtin = match &tool.source.value {
        ToolSource::Builtin { name } => state.builtin(&name.value).ok(),
        ToolSource::Local(_)
        | ToolSource::Script(_)
        | ToolSource::Bytes(_)
        | ToolSource::Native
        | ToolSource::Server(_) => None,
    };
    let per_call = builtin.into_iter().flat_map(|builtin| builtin.declaration.given_by_call);
    let per_call = per_call.flat_map(|guest| GuestPath::new(*guest));
    let per_call = per_call.map(|guest| PathRequest { guest, access: Access::ReadOnly });
    let per_call: Vec<_> = per_call.map(Request::Path).collect();
    let settled = settled(tool, lane);
    let tool = &*settled;
    let configured = tool.description.as_ref().map(|description| description.value.clone());
    let says = says.flatten();
    let requested = says.as_ref().and_then(|says| says.grants.as_ref());
    let requested = requested.and_then(|requested| RequestedGrants::read(requested).ok());
    let unavailable = requested.and_then(|requested| {
        let (config, source) = (&state.config, &tool.source.value);
        unavailable(config, &tool.name, source, &tool.grants, &requested, Audience::Person)
    });
    let unavailable = refused.or(unavailable).filter(|_| tool.is_enabled());
    let description = configured.or_else(|| says.and_then(|says| says.description));
    Summary {
        name: tool.name.clone(),
        source,
        lane,
        toolset: tool.toolset.clone(),
        reach: match &tool.source.value {
            ToolSource::Native => None,
            ToolSource::Server(own) => Some(server::reach(own)),
            _ => Some(tool.grants.value.brief(&per_call)),
        },
        disabled: tool.disabled.clone(),
        unavailable,
        description,
    }
}

/// Returns the host's part of a tool, if it has one.
pub(crate) fn adapter(source: &ToolSource) -> Option<&'static dyn Adapter> {
    match source {
        source if is_learn(source) => Some(&Learn),
        source if is_python(source) => Some(&Python),
        source if is_time(source) => Some(&Time),
        _ => None,
    }
}

/// Resolves a tool. A local tool is loaded if its configuration leaves a value to the tool itself.
/// The component is then the second value.
pub(crate) fn resolve(
    state: &ToolboxState,
    tool: &kitbag_config::ConfiguredTool,
    context: &RunContext,
) -> Result<(Arc<Tool>, Option<Component>), ToolboxError> {
    let asked = match leaves_open(tool) {
        true => {
            let source = state.component_source(&tool.source.value)?;
            Some(state.host.component(&source, &tool.limits.limits(), context)?)
        }
        false => None,
    };
    if let Some(reason) =
        asked.as_ref().and_then(|component| lock::refused(tool, component.described()))
    {
        let (tool, update) = (tool.name.to_string(), tool.name.to_string());
        return Err(ToolboxError::NotAsRecorded { tool, reason, update });
    }
    let identity = asked.as_ref().map(Component::identity);
    let known = || state.resolved.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known().get(&tool.name)
        && known.asked == identity
    {
        return Ok((Arc::clone(&known.tool), asked));
    }
    let says = match &asked {
        Some(component) => {
            let checked = check_call(tool, Some(component.lane()));
            let says = checked
                .and_then(|()| own_tool(tool, Some(component.lane()), component.described()));
            says.map_err(|reason| not_callable(tool, reason))?
        }
        None => None,
    };
    let lane = asked.as_ref().map(Component::lane).or_else(|| default_lane(state, tool));
    let mut resolved = with(state, tool, says.cloned(), lane)?;
    resolved.cache_problems =
        asked.as_ref().map(|component| component.cache_problems().to_vec()).unwrap_or_default();
    let problem = asked.as_ref().and_then(|component| component.described().problem());
    resolved.description_problem = problem.map(str::to_owned);
    let resolved = Arc::new(resolved);
    known()
        .insert(tool.name.clone(), ResolvedTool { asked: identity, tool: Arc::clone(&resolved) });
    Ok((resolved, asked))
}

/// The descriptions of components that are known without loading them. Each is looked up once: one
/// component may be many tools, and must be read to find it in the cache.
#[derive(Default)]
pub(crate) struct KnownDescriptions {
    described: HashMap<(ComponentSource, Metering), Result<Option<DescribeResult>, LoadError>>,
    lanes: HashMap<ComponentSource, Option<Lane>>,
}

impl KnownDescriptions {
    /// Returns a description as [`kitbag_host::Host::known_description`] does.
    pub(crate) fn description(
        &mut self,
        state: &ToolboxState,
        source: ComponentSource,
        metering: Metering,
    ) -> Result<Option<&DescribeResult>, &LoadError> {
        let known =
            self.described.entry((source, metering)).or_insert_with_key(|(source, metering)| {
                state.host.known_description(source, *metering)
            });
        known.as_ref().map(Option::as_ref)
    }

    /// Returns the lane of a component.
    fn lane(
        &mut self,
        state: &ToolboxState,
        source: ComponentSource,
        metering: Metering,
    ) -> Option<Lane> {
        let lane = |source: &ComponentSource| state.host.lane(source, metering);
        *self.lanes.entry(source).or_insert_with_key(lane)
    }
}

/// Resolves a tool with the known data. Nothing is compiled or run. The second value is true if
/// loading the tool could reveal more.
pub(crate) fn resolve_known(
    state: &ToolboxState,
    tool: &kitbag_config::ConfiguredTool,
    known: &mut KnownDescriptions,
) -> Result<(Tool, bool), ToolboxError> {
    let (leaves_open, metering) = (leaves_open(tool), Metering::of(&tool.limits.limits()));
    let lane = match tool.source.value.is_component() {
        true => {
            let source = state.component_source(&tool.source.value);
            source.ok().and_then(|source| known.lane(state, source, metering))
        }
        false => None,
    };
    if let Err(reason) = check_call(tool, lane) {
        return Ok((Tool { refused: Some(reason), ..with(state, tool, None, lane)? }, false));
    }
    let says = match leaves_open || is_pinned(tool) {
        true => {
            let source = state.component_source(&tool.source.value)?;
            match known.description(state, source, metering) {
                Ok(Some(says)) if leaves_open => {
                    let lock = lock::refused(tool, says);
                    match lock.or_else(|| own_tool(tool, lane, says).err()) {
                        None => says,
                        refused => {
                            return Ok((Tool { refused, ..with(state, tool, None, lane)? }, false));
                        }
                    }
                }
                Ok(None) if leaves_open => return Ok((with(state, tool, None, lane)?, true)),
                Ok(_) => &DescribeResult::Nothing,
                Err(error) => {
                    let refused = Some(error.to_string());
                    return Ok((Tool { refused, ..with(state, tool, None, lane)? }, false));
                }
            }
        }
        false => &DescribeResult::Nothing,
    };
    let own = own_tool(tool, lane, says).ok().flatten().cloned();
    let description_problem = says.problem().map(str::to_owned);
    Ok((Tool { description_problem, ..with(state, tool, own, lane)? }, false))
}

/// Returns the part of a component's description that is about the tool: the configured function,
/// the tool of its name, or the only tool.
///
/// # Errors
///
/// The reason why the component cannot be called: it has no such tool, or several others.
pub(crate) fn own_tool<'a>(
    tool: &kitbag_config::ConfiguredTool,
    lane: Option<Lane>,
    says: &'a DescribeResult,
) -> Result<Option<&'a ToolDescription>, String> {
    let Some(description) = says.description() else { return Ok(None) };
    let names: Vec<_> = description.tools.iter().map(|own| &*own.name).collect();
    let function = tool.source.value.component_call().and_then(|call| call.function.as_ref());
    let named = |name: &str| description.tools.iter().find(|own| own.name == name);
    match (function, &description.tools[..]) {
        (Some(_), [only]) if is_interface(only) => Ok(Some(only)),
        (Some(function), _) => match named(&function.value) {
            Some(own) => Ok(Some(own)),
            None => Err(format!(
                "its component has no tool `{}` ({}); its tools are {}",
                shown(&function.value),
                function.origin,
                alternatives(&names)
            )),
        },
        (None, []) => Ok(None),
        (None, [only]) => Ok(Some(only)),
        (None, _) => match named(tool.name.as_str()) {
            Some(own) => Ok(Some(own)),
            // A component of the contract is given any name, and may serve only prompts for it.
            None if !lane.is_some_and(Lane::is_foreign) => Ok(None),
            None => Err(format!(
                "its component has several tools, and none is named `{name}`; add `function` to \
                 `[tools.{name}]`: {}",
                alternatives(&names),
                name = tool.name
            )),
        },
    }
}

/// Returns true if a component describes an interface, not a tool. It receives any configured name of
/// a tool.
pub(crate) fn is_interface(own: &ToolDescription) -> bool {
    own.name.contains('/')
}

/// Checks that a component is called in the form that the configuration sets.
///
/// # Errors
///
/// The reason why it cannot be called.
pub(crate) fn check_call(
    tool: &kitbag_config::ConfiguredTool,
    lane: Option<Lane>,
) -> Result<(), String> {
    let call = tool.source.value.component_call();
    match call.and_then(|call| call.command.as_ref()) {
        Some(command) if lane.is_some_and(|lane| lane != Lane::Command) => Err(format!(
            "`command` and `stdin` are only for commands, but its component is not a command \
             ({}); remove them",
            command.origin
        )),
        _ => Ok(()),
    }
}

pub(crate) fn not_callable(tool: &kitbag_config::ConfiguredTool, reason: String) -> ToolboxError {
    ToolboxError::NotCallable { tool: tool.name.to_string(), reason }
}

/// Returns the lane of a component with default grants, which depend on it, without loading it.
fn default_lane(state: &ToolboxState, tool: &kitbag_config::ConfiguredTool) -> Option<Lane> {
    let has_default = tool.source.value.is_component() && tool.grants.has_default_workspace();
    let source = has_default.then(|| state.component_source(&tool.source.value).ok()).flatten()?;
    state.host.lane(&source, Metering::of(&tool.limits.limits()))
}

/// Returns a tool with the grants of its calls.
pub(crate) fn settled_now<'a>(
    state: &ToolboxState,
    tool: &'a kitbag_config::ConfiguredTool,
) -> Cow<'a, kitbag_config::ConfiguredTool> {
    settled(tool, default_lane(state, tool))
}

/// Returns a tool with the grants of its lane: a component that was made for another host has none
/// by default.
fn settled(
    tool: &kitbag_config::ConfiguredTool,
    lane: Option<Lane>,
) -> Cow<'_, kitbag_config::ConfiguredTool> {
    match lane.is_some_and(Lane::is_foreign) && tool.grants.has_default_workspace() {
        false => Cow::Borrowed(tool),
        true => {
            let mut settled = tool.clone();
            settled.grants = tool.grants.without_default_workspace();
            Cow::Owned(settled)
        }
    }
}

/// Combines the values of the configuration with those of a local tool.
fn with(
    state: &ToolboxState,
    tool: &kitbag_config::ConfiguredTool,
    says: Option<ToolDescription>,
    lane: Option<Lane>,
) -> Result<Tool, ToolboxError> {
    let tool = &*settled(tool, lane);
    let (says, parameters) = match &tool.source.value {
        ToolSource::Builtin { name } => {
            let says = describe_builtin(state.builtin(&name.value)?);
            (says, None)
        }
        ToolSource::Native => {
            let native = state.program.natives.get(&tool.name);
            (native.map(Native::description).unwrap_or_default(), None)
        }
        ToolSource::Server(own) => (server::description(own), None),
        source @ (ToolSource::Local(_) | ToolSource::Script(_) | ToolSource::Bytes(_)) => {
            let says = match source {
                ToolSource::Script(script) => Some(script::description(script)),
                _ => says,
            };
            let parameters = source.parameters().map(|parameters| Sourced {
                value: parameters.input_schema().into(),
                origin: match (parameters.entries.first(), source) {
                    (Some((_, Parameter { kind: Some(kind), .. })), _) => kind.origin.clone(),
                    (_, ToolSource::Local(local)) => local.wasm.origin.clone(),
                    _ => tool.source.origin.clone(),
                },
            });
            (says.unwrap_or_default(), parameters)
        }
    };
    let by_tool = |schema: Value| Sourced { value: schema.into(), origin: Origin::Tool };
    let said = |configured: &Option<Sourced<String>>, own: Option<String>| {
        configured.clone().or_else(|| own.map(by_tool_text))
    };
    let requested = says.grants.as_ref().map(RequestedGrants::read);
    // A request that cannot be read was refused when the description was read.
    let requested = requested.and_then(Result::ok).unwrap_or_default();
    let approve = approval::rules(&tool.approve, Some(&says));
    let any_object = || Sourced::default(json!({ "type": "object" }).into());
    let (output_schema, output_problem) = match &tool.source.value {
        ToolSource::Script(script) => (script.output.clone().map(|it| it.map(Schema::from)), None),
        // `build.rs` has checked the schema.
        ToolSource::Builtin { .. } => (says.output_schema.map(by_tool), None),
        ToolSource::Local(_)
        | ToolSource::Bytes(_)
        | ToolSource::Native
        | ToolSource::Server(_) => usable(says.output_schema.map(by_tool)),
    };
    Ok(Tool {
        name: tool.name.clone(),
        source: tool.source.value.clone(),
        lane,
        title: said(&tool.title, says.title),
        description: said(&tool.description, says.description),
        input_schema: parameters
            .or_else(|| says.input_schema.map(by_tool))
            .unwrap_or_else(any_object),
        output_schema,
        annotations: match &tool.source.value {
            // Grants reveal nothing about native code.
            ToolSource::Native => says.annotations.unwrap_or_default(),
            ToolSource::Server(own) => {
                annotations(server::effects(own), says.annotations.unwrap_or_default())
            }
            ToolSource::Builtin { .. } => {
                builtin_annotations(effects(state, tool), says.annotations.unwrap_or_default())
            }
            ToolSource::Local(_) | ToolSource::Script(_) | ToolSource::Bytes(_) => {
                annotations(effects(state, tool), says.annotations.unwrap_or_default())
            }
        },
        grants: tool.grants.clone(),
        requested_grants: requested,
        limits: tool.limits.clone(),
        rates: tool.rates.clone(),
        approve,
        answers: tool.answers.clone(),
        mask: tool.mask.clone(),
        cache_problems: Vec::new(),
        description_problem: None,
        output_problem,
        refused: None,
    })
}

/// Returns an output schema that clients can receive, or the reason why it is omitted: many clients
/// reject all tools of a server over one schema that they cannot read.
fn usable(schema: Option<Sourced<Schema>>) -> (Option<Sourced<Schema>>, Option<String>) {
    match schema.as_ref().map(|schema| schema.value.check_references()) {
        Some(Err(error)) => (None, Some(error.to_string())),
        Some(Ok(())) | None => (schema, None),
    }
}

fn by_tool_text(value: String) -> Sourced<String> {
    Sourced { value, origin: Origin::Tool }
}

/// Returns true if the configuration leaves a value for the call to the component itself, which
/// must be loaded to read it.
fn leaves_open(tool: &kitbag_config::ConfiguredTool) -> bool {
    let source = &tool.source.value;
    source.is_component() && (tool.description.is_none() || source.parameters().is_none())
}

fn is_pinned(tool: &kitbag_config::ConfiguredTool) -> bool {
    matches!(&tool.source.value, ToolSource::Local(local) if !local.pins.is_empty())
}

/// Returns the line for a model about the directories that a file tool is granted.
pub(crate) fn directories_line(grants: &Grants) -> String {
    let directory = |grant: &DirectoryGrant| match grant.access {
        Access::ReadOnly => format!("{} (read-only)", grant.guest),
        Access::ReadWrite => format!("{} (writable)", grant.guest),
    };
    let directories: Vec<_> = grants.directories.iter().map(directory).collect();
    match directories.is_empty() {
        true => "\nDirectories: none".to_owned(),
        false => format!("\nDirectories: {}", directories.join(", ")),
    }
}

/// Returns the own description of a built-in. `build.rs` has checked its form.
fn describe_builtin(builtin: &Builtin) -> ToolDescription {
    serde_json::from_str(builtin.description).unwrap_or_default()
}

/// Returns the possible effects of a tool with its grants. A tool that calls all tools of its
/// caller has the effects of all other enabled tools.
fn effects(state: &ToolboxState, tool: &kitbag_config::ConfiguredTool) -> Effects {
    let grants = &tool.grants.value;
    if grants.tools != ToolGrants::Caller {
        return grants.effects();
    }
    let own = |grants: &Grants| {
        let kinds = grants.kinds().into_iter();
        let own = kinds.filter(|kind| kind.key() != ToolGrants::KEY);
        own.fold(Effects::default(), |all, kind| all.or(kind.effects()))
    };
    let others = state.config.tools.values();
    let others = others.filter(|other| other.is_enabled() && other.name != tool.name);
    others.fold(own(grants), |all, other| {
        all.or(match (&other.source.value, &other.grants.value) {
            (ToolSource::Native, _) => {
                let native = state.program.natives.get(&other.name).map(Native::description);
                let claims = native.and_then(|says| says.annotations).unwrap_or_default();
                Effects {
                    changes: claims.read_only_hint != Some(true),
                    open_world: claims.open_world_hint != Some(false),
                }
            }
            (ToolSource::Server(own), _) => server::effects(own),
            (_, grants) if grants.tools == ToolGrants::Caller => own(grants),
            (_, grants) => grants.effects(),
        })
    })
}

/// Returns the annotations that a built-in declares, limited by its grants. Its code is kitbag's
/// own, so it does no more than it declares.
fn builtin_annotations(effects: Effects, claims: Annotations) -> Annotations {
    let changes = effects.changes && claims.read_only_hint != Some(true);
    let derived = annotations(Effects { changes, ..effects }, claims);
    let destroys = changes && claims.destructive_hint != Some(false);
    Annotations { destructive_hint: Some(destroys), ..derived }
}

/// Derives annotations from the grants. They take precedence over those of the tool.
fn annotations(effects: Effects, claims: Annotations) -> Annotations {
    Annotations {
        read_only_hint: Some(!effects.changes),
        // A tool with write access may also remove existing files, regardless of its annotations.
        destructive_hint: Some(effects.changes),
        idempotent_hint: if effects.changes { claims.idempotent_hint } else { Some(true) },
        open_world_hint: Some(effects.open_world),
    }
}
