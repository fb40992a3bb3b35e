//! The steps before the run: resolve, check, authorise.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kitbag_config::{Origin, ToolRate, ToolSource};
use kitbag_contract::{Action, Answer, ErrorInfo, ErrorKind, Limits, LogLevel, UnknownArguments};
use kitbag_fs_guard::Guard;
use kitbag_host::{Call, Component, Metering, ToolStorage};
use kitbag_policy::{DirectoryGrant, Grants, RateExceeded, Rates};
use kitbag_schema::{Arguments, Checked, Coercion, Schema};
use kitbag_state::rates::{RatedTool, TakeError};
use serde_json::{Map, Value};

use crate::approval::state::Approval;
use crate::builtins::adapter::{Adapter, AdapterRefusal, Additions};
use crate::builtins::python::{is_python, runs_scripts};
use crate::call::caller::Caller;
use crate::call::context::CallContext;
use crate::call::deadline::Deadline;
use crate::call::invocation::{Invocation, Resumed, Target};
use crate::call::json;
use crate::call::outcome::{Fencing, PreparedCall, Problems};
use crate::call::scope::{Callable, Via};
use crate::error::ToolboxError;
use crate::pipeline::host_paths::HostPaths;
use crate::pipeline::narrow;
use crate::registry::catalog;
use crate::registry::resolve;
use crate::registry::tool::Tool;
use crate::registry::{Toolbox, ToolboxState};
use crate::remote::RemoteState;
use crate::screening::masking;
use crate::sources::server_items::{OwnItem, ServerItem};
use crate::sources::{command, script};

/// Takes an invocation through the steps before the run. If the tool's adapter refuses the call,
/// the refusal is its answer.
pub(super) fn prepare(
    state: &ToolboxState,
    invocation: Invocation,
    context: &CallContext,
) -> Result<Result<PreparedCall, ErrorInfo>, ToolboxError> {
    let Invocation {
        target,
        arguments,
        action,
        answers,
        resume,
        is_structured,
        grants,
        limits,
        via,
        is_for_front_end,
    } = invocation;
    let directories = target.directories();
    // A person has typed the command.
    let is_asked_about =
        action == Action::Run && !is_for_front_end && !matches!(target, Target::Command { .. });
    let is_tool = matches!(target, Target::Tool(_));
    let fencing = match &target {
        _ if action != Action::Run || context.depth > 0 || is_for_front_end => None,
        Target::Server(ServerItem { own: OwnItem::Prompt(_), .. }) | Target::Prompt(_) => {
            Some(Fencing::WhereFound)
        }
        Target::Tool(_) | Target::Resource(_) | Target::Server(_) => Some(Fencing::AsSet),
        Target::Command { .. } | Target::Knowledge { .. } => None,
    };
    // The export of a person is not for a model.
    let is_command = matches!(target, Target::Command { .. });
    let item = match &target {
        Target::Server(item) => Some(item.clone()),
        _ => None,
    };
    let mut resolved = resolve(state, target, context)?;
    if action == Action::Run && grants.is_none() {
        resolved.tool.check_secrets()?;
    }
    let is_masked = context.depth == 0 && !is_command && resolved.tool.mask.value;
    let is_remote = is_tool
        && action == Action::Run
        && context.depth == 0
        && state.remote.is_some()
        && !matches!(resolved.tool.source, ToolSource::Native);
    if is_remote && grants.is_some() {
        let reason = "the grants of a call cannot be narrowed for a worker".to_owned();
        return Err(ToolboxError::Remote { kind: ErrorKind::Usage, message: reason });
    }
    let begun = Instant::now();
    let flags = limits;
    let mut limits = narrow::limits(&resolved.tool, limits)?;
    if resolved.tool.limits.memory.origin == Origin::Tool {
        // The default memory limit of a built-in must leave room for other calls.
        limits.memory = limits.memory.min(state.host.share_of_memory());
    }
    let own_metering = Metering::of(&resolved.tool.limits.limits());
    if Metering::of(&limits) != own_metering {
        // The loaded component does not meter instructions in the way that this call requires.
        resolved.component = None;
    }
    let unknown = match context.caller {
        // A person reads the error, and intends the arguments as typed.
        Caller::User(_) => UnknownArguments::Refuse,
        Caller::Client(_)
        | Caller::Person(_)
        | Caller::Program(_)
        | Caller::Tool(_)
        | Caller::Host => state.config.unknown_arguments.value,
    };
    let Checked { mut arguments, mut digits, coercions } =
        check(&resolved, arguments, unknown, limits.time, context)?;
    if !coercions.is_empty() {
        context.run.events.log(LogLevel::Debug, &coerced(&resolved.name, &coercions));
    }
    let mut grants = match grants {
        Some(grants) => Arc::new(narrow::grants(state, &resolved.tool, grants)?),
        None => Arc::clone(&resolved.tool.grants.value),
    };
    // Conditions, approval and the audit log use the same paths as the tool.
    name_guest_paths(state, &resolved.tool, &context.caller, &grants, &mut arguments);
    let alias_rate =
        via.as_ref().map(|via| via.check(&state.config, &arguments)).transpose()?.flatten();
    add_directories(&mut grants, directories);
    let remote = match is_remote {
        true => Some(Box::new(RemoteState::new(&arguments, &digits, flags)?)),
        false => None,
    };
    let authority = match authorise(state, &resolved, &arguments, action, grants, limits) {
        Ok(authority) => authority,
        Err(AdapterRefusal { reason, answer }) => {
            if let Some(audited) = &context.audited {
                audited.refused(reason);
            }
            return Ok(Err(answer));
        }
    };
    count(state, &resolved, action, context.outermost(), via.as_ref(), alias_rate)?;
    let callable = match action {
        Action::Run => Callable::new(&resolved.tool.name, &authority.grants.tools, &context.scope),
        Action::FormatArguments => None,
    };
    arguments.extend(authority.arguments);
    let Resolved { name, tool, component, .. } = resolved;
    // A component with several tools knows them by their own names. A component with one tool may
    // write the name into its answers, so it receives the name that the model knows.
    let name = match &tool.source {
        ToolSource::Builtin { name: own }
            if tool.name.as_str() == name && state.shares_component(&own.value) =>
        {
            own.value.clone()
        }
        ToolSource::Builtin { .. }
        | ToolSource::Local(_)
        | ToolSource::Script(_)
        | ToolSource::Bytes(_)
        | ToolSource::Native
        | ToolSource::Server(_) => name.into_owned(),
    };
    if action == Action::Run {
        arguments = script::arguments(&tool.source, arguments, &mut digits);
        arguments = command::arguments(&tool.source, arguments, &mut digits);
    }
    let arguments = json::exact_text(arguments, &digits);
    if let Some(audited) = &context.audited {
        audited.prepared(&state.grant_digests, &tool, &authority.grants);
        audited.arguments(&state.config.audit, &arguments);
    }
    let mut limits = authority.limits;
    let time = limits.time;
    limits.time = time.saturating_sub(begun.elapsed());
    let function = tool.source.component_call().and_then(|call| call.function.as_ref());
    let call = Call {
        name,
        function: function.map(|function| function.value.clone()),
        action,
        arguments,
        answers: String::new(),
        grants: authority.grants,
        guard: authority.guard,
        secrets: Arc::clone(&state.secrets),
        storage: storage_of(state, &tool, context),
        limits,
        tools: None,
    };
    let mut resumed = match resume {
        None => Resumed::default(),
        Some(open) => open(&call.name, &call.arguments).map_err(ToolboxError::State)?,
    };
    let approval = match is_asked_about {
        true => Approval::claimed(&mut resumed.answers),
        false => Approval::Exempt,
    };
    let mut presets: BTreeMap<_, _> = tool
        .answers
        .iter()
        .map(|(id, answer)| (id.clone(), answer.clone().map(Answer::Json)))
        .collect();
    for (id, answer) in answers {
        presets.entry(id).or_insert(answer);
    }
    let problems = Problems {
        cache: tool.cache_problems.clone(),
        description: tool.description_problem.clone(),
    };
    Ok(Ok(PreparedCall {
        call,
        time,
        tool,
        component,
        presets,
        answers: resumed.answers,
        is_structured,
        fencing,
        is_masked,
        problems,
        approval,
        inner: callable.is_some().then(|| resumed.inner.unwrap_or_default()),
        callable,
        server: None,
        item,
        roles: Vec::new(),
        remote,
    }))
}

/// Returns the storage of a tool, by its name in the configuration. The built-in tools of one
/// component share a storage under any name, and each caller has a separate one. A tool's name
/// contains no `/`, so no tool can reach the storage of another.
#[cfg(feature = "storage")]
fn storage_of(state: &ToolboxState, tool: &Tool, context: &CallContext) -> Option<ToolStorage> {
    let storage = state.storage.clone()?;
    let builtin = match &tool.source {
        ToolSource::Builtin { name } => {
            state.builtins.iter().find(|it| it.declaration.name == name.value)
        }
        ToolSource::Local(_)
        | ToolSource::Script(_)
        | ToolSource::Bytes(_)
        | ToolSource::Native
        | ToolSource::Server(_) => None,
    };
    let namespace = match builtin {
        Some(builtin) => {
            format!("{}/{}", builtin.declaration.toolset, context.owner().storage_name())
        }
        None => tool.name.to_string(),
    };
    Some(ToolStorage { storage, namespace })
}

#[cfg(not(feature = "storage"))]
fn storage_of(_: &ToolboxState, _: &Tool, _: &CallContext) -> Option<ToolStorage> {
    None
}

struct Resolved {
    name: Cow<'static, str>,
    tool: Arc<Tool>,
    schema: ArgumentSchema,
    adapter: Option<&'static dyn Adapter>,
    component: Option<Component>,
}

enum ArgumentSchema {
    Tool,
    Own(Schema),
    /// Arguments that the host itself made.
    None,
}

/// Finds the target of a call: the tool with its schema, grants and limits, and its component if
/// its description had to be read from it.
fn resolve(
    state: &ToolboxState,
    target: Target,
    context: &CallContext,
) -> Result<Resolved, ToolboxError> {
    let find = |name: &str| -> Result<(Arc<Tool>, Option<Component>), ToolboxError> {
        resolve::resolve(state, state.find(name)?, &context.run)
    };
    Ok(match target {
        Target::Tool(name) => {
            let (tool, component) = find(&name)?;
            let adapter = resolve::adapter(&tool.source);
            let schema = ArgumentSchema::Tool;
            let name = Cow::Owned(name);
            Resolved { name, tool, schema, adapter, component }
        }
        Target::Prompt(prompt) => {
            let (tool, component) = find(prompt.tool.as_str())?;
            let name = format!("{}{}", catalog::PROMPT_PREFIX, prompt.description.name);
            let schema = ArgumentSchema::Own(catalog::schema(&prompt.description));
            let name = Cow::Owned(name);
            Resolved { name, tool, schema, adapter: None, component }
        }
        Target::Resource(tool) => {
            let (tool, component) = find(tool.as_str())?;
            let (name, schema) = (Cow::Borrowed(catalog::RESOURCE_NAME), ArgumentSchema::None);
            Resolved { name, tool, schema, adapter: None, component }
        }
        Target::Server(item) => {
            let (tool, component) = find(item.tool.as_str())?;
            let (name, schema) = match &item.own {
                OwnItem::Prompt(prompt) => {
                    let name = Cow::Owned(format!("{}{}", catalog::PROMPT_PREFIX, item.name));
                    (name, ArgumentSchema::Own(catalog::schema(prompt)))
                }
                OwnItem::Resource(_) => {
                    (Cow::Borrowed(catalog::RESOURCE_NAME), ArgumentSchema::None)
                }
            };
            Resolved { name, tool, schema, adapter: None, component }
        }
        Target::Command { tool, name, .. } => {
            let (tool, component) = find(tool.as_str())?;
            let (name, schema) = (Cow::Borrowed(name), ArgumentSchema::None);
            Resolved { name, tool, schema, adapter: None, component }
        }
        Target::Knowledge { tool, .. } => {
            let (tool, component) = find(tool.as_str())?;
            let adapter = resolve::adapter(&tool.source);
            let (name, schema) = (Cow::Owned(tool.name.to_string()), ArgumentSchema::None);
            Resolved { name, tool, schema, adapter, component }
        }
    })
}

/// Returns a log line about the coerced arguments of a call, without their values.
fn coerced(tool: &str, coercions: &[Coercion]) -> String {
    const SHOWN: usize = 20;
    let shown: Vec<_> = coercions.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = if coercions.len() > SHOWN { "; …" } else { "" };
    format!("arguments of `{tool}` were coerced: {}{more}", shown.join("; "))
}

/// Coerces the arguments, checks them against the schema and fills in defaults. The later steps use
/// only the result.
fn check(
    resolved: &Resolved,
    arguments: Arguments,
    unknown: UnknownArguments,
    time: Duration,
    context: &CallContext,
) -> Result<Checked, ToolboxError> {
    let schema = match &resolved.schema {
        ArgumentSchema::Tool => &resolved.tool.input_schema.value,
        ArgumentSchema::Own(schema) => schema,
        ArgumentSchema::None => match arguments.json {
            Some(Value::Object(arguments)) => return Ok(Checked::as_given(arguments)),
            _ => return Ok(Checked::as_given(Map::new())),
        },
    };
    let deadline = Deadline::new(&context.run.cancellation, time, context.run.time(time));
    let own = resolved.adapter.map(Adapter::own_arguments).unwrap_or_default();
    let checked = schema
        .check_arguments(arguments, unknown, &|| deadline.check(), |key| own.contains(&key))
        .map_err(|error| ToolboxError::arguments(&resolved.name, error))?;
    refuse_masks(resolved, &checked.arguments, context)?;
    Ok(checked)
}

/// Rewrites host paths in the arguments of a built-in that reads the workspace.
///
/// A component that calls the built-in may use only guest paths: otherwise it could find the host
/// path of the workspace by guessing.
fn name_guest_paths(
    state: &ToolboxState,
    tool: &Tool,
    caller: &Caller,
    grants: &Grants,
    arguments: &mut Map<String, Value>,
) {
    let ToolSource::Builtin { name } = &tool.source else { return };
    let is_open = match caller {
        Caller::Tool(caller) => state.config.tools.get(caller).is_some_and(|caller| {
            let source = &caller.source.value;
            is_python(source) || matches!(source, ToolSource::Native)
        }),
        Caller::User(_)
        | Caller::Client(_)
        | Caller::Person(_)
        | Caller::Program(_)
        | Caller::Host => true,
    };
    let reads_workspace =
        state.builtin(&name.value).is_ok_and(|it| it.declaration.workspace.is_some());
    if is_open && reads_workspace {
        let config = &state.config;
        let paths = HostPaths::new(&grants.directories, &config.root.value, config.home());
        paths.rewrite(&name.value, arguments);
    }
}

/// Refuses a mask that a model passes to a tool that changes something or runs code. Text from
/// another tool was not masked, so a mask in it is the text of a file.
fn refuse_masks(
    resolved: &Resolved,
    arguments: &Map<String, Value>,
    context: &CallContext,
) -> Result<(), ToolboxError> {
    let tool = &resolved.tool;
    let is_read_only = tool.annotations.read_only_hint == Some(true);
    if context.depth > 0 || is_read_only && !runs_scripts(&tool.source) {
        return Ok(());
    }
    match masking::find(arguments) {
        None => Ok(()),
        Some((pointer, mask)) => {
            Err(ToolboxError::Masked { tool: resolved.name.to_string(), pointer, mask })
        }
    }
}

/// Resolves a tool and checks arguments for it, without calling it.
pub(crate) fn check_arguments(
    toolbox: &Toolbox,
    name: &str,
    arguments: Arguments,
) -> Result<Map<String, Value>, ToolboxError> {
    let context = CallContext::new(Caller::Host);
    let resolved = resolve(&toolbox.0, Target::Tool(name.to_owned()), &context)?;
    let time = resolved.tool.limits.time.value;
    let unknown = toolbox.config().unknown_arguments.value;
    Ok(check(&resolved, arguments, unknown, time, &context)?.arguments)
}

struct Authority {
    grants: Arc<Grants>,
    guard: Arc<Guard>,
    limits: Limits,
    /// The arguments that the host adds to those of the caller.
    arguments: Map<String, Value>,
}

/// Decides the grants and limits of the call: `grants` and `limits`, which do not exceed those of
/// the tool, and the additions of its adapter.
///
/// # Errors
///
/// The refusal of the tool's adapter.
fn authorise(
    state: &ToolboxState,
    resolved: &Resolved,
    arguments: &Map<String, Value>,
    action: Action,
    mut grants: Arc<Grants>,
    limits: Limits,
) -> Result<Authority, AdapterRefusal> {
    let additions = match (resolved.adapter, action) {
        (Some(adapter), Action::Run) => adapter.prepare(state, arguments, &limits)?,
        // Rendering a call uses no grants.
        (None, _) | (_, Action::FormatArguments) => Additions::default(),
    };
    add_directories(&mut grants, additions.directories);
    let guard = Arc::clone(state.guard());
    Ok(Authority { grants, guard, limits, arguments: additions.arguments })
}

fn add_directories(grants: &mut Arc<Grants>, directories: Vec<DirectoryGrant>) {
    if !directories.is_empty() {
        Arc::make_mut(grants).directories.extend(directories);
    }
}

/// Counts the call against the rate of its tool, for its caller, and against the rates of the
/// tool's other names. A call that continues with an answer is counted, since the tool runs again.
/// Rendering a call is not counted.
///
/// An inner call is counted for the caller of the outermost call, so that a script cannot evade the
/// rate.
///
/// # Errors
///
/// [`ToolboxError::Rate`] if the rate is used up.
fn count(
    state: &ToolboxState,
    resolved: &Resolved,
    action: Action,
    caller: &Caller,
    via: Option<&Via>,
    alias_rate: Option<Rates>,
) -> Result<(), ToolboxError> {
    let tool = &resolved.tool;
    let is_counted = !tool.rates.is_empty() || alias_rate.is_some();
    if !is_counted || action != Action::Run {
        return Ok(());
    }
    let counted = tool.rates.iter();
    let counted =
        counted.map(|it| RatedTool { rates: &it.rates.value, tool: it.counted_as.as_str() });
    let mut counted: Vec<_> = counted.collect();
    // Names of tools contain no `/`.
    let of_alias = via.map(|via| format!("{}/{}", via.caller, via.alias)).unwrap_or_default();
    counted.extend(alias_rate.as_ref().map(|rates| RatedTool { rates, tool: &of_alias }));
    let taken = state.counts.take(&counted, &caller.to_string());
    taken.map_err(|error| match error {
        TakeError::Counts(error) => ToolboxError::Counts(error),
        TakeError::UsedUp { at, used_up: RateExceeded { rate, retry_after } }
            if at >= tool.rates.len() =>
        {
            ToolboxError::AliasRate { alias: of_alias.clone(), rate, retry_after }
        }
        TakeError::UsedUp { at, used_up: RateExceeded { rate, retry_after } } => {
            let ToolRate { rates, counted_as } = &tool.rates[at];
            let counted_as = (*counted_as != tool.name).then(|| counted_as.to_string());
            let (tool, origin) = (tool.name.to_string(), rates.origin.clone());
            ToolboxError::Rate { tool, counted_as, rate, origin, retry_after }
        }
    })
}
