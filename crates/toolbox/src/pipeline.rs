//! One call, for every front end: resolve, check, authorise, run, record.
//!
//! [`drive`] is the only driver. It takes an invocation through the steps and a
//! question to the front end, until the call has ended or is suspended. Where a stretch
//! of it runs is the edge's matter.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kitbag_config::{Disabled, Origin, Sourced, ToolRate, ToolSource};
use kitbag_contract::{
    Action, Answer, ErrorInfo, LimitKind, Limits, Outcome, Question, format_duration,
};
use kitbag_files::Guard;
use kitbag_host::{
    Call, CallError, Completion, Component, LoadError, Metering, RunContext, ToolStorage,
};
use kitbag_policy::{ClassRule, Grants, Rates, StorageRefusal, UsedUp};
use kitbag_rates::{Counted, TakeError};
use kitbag_schema::{Arguments, Schema};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::adapter::{Adapter, Additions};
use crate::approval::{self, Approval, Settled};
use crate::audit::{self, Audited};
use crate::context::{Asked, CallContext, CallEnd, CallRecord, Caller, FrontEnd, ask, may_answer};
use crate::deadline::Deadline;
use crate::edge::Edge;
use crate::error::ToolboxError;
use crate::inner;
use crate::invocation::{
    Completed, Cut, Ended, Invocation, Prepared, Problems, Resumed, Suspended, Target,
};
use crate::marks::{self, Fencing, Marks};
use crate::narrow;
use crate::native::{CALL_DEPTH, NativeCall, NativeTool};
use crate::resolve;
use crate::scope::{Callable, Via};
use crate::script;
use crate::temporary::Temporary;
use crate::tool::Tool;
use crate::{Inner, Toolbox, served};

/// How many questions a tool may ask for one call; for each it is run again.
const QUESTIONS: usize = 100;

/// Makes a call: the one driver, and the one loop that has questions answered.
///
/// # Errors
///
/// [`ToolboxError`] where the call was not made. How the tool ended otherwise is in
/// the completion.
pub(crate) async fn drive<E: Edge, F: FrontEnd>(
    edge: &E,
    toolbox: &Toolbox,
    invocation: Invocation,
    mut context: CallContext,
    front_end: &mut F,
) -> Result<Ended<F::Refusal>, ToolboxError> {
    context.settle_owner();
    if context.depth >= CALL_DEPTH {
        let caller = context.caller.to_string();
        return Err(ToolboxError::TooDeep { caller, limit: CALL_DEPTH });
    }
    context.audited = match invocation.action {
        Action::Run => Audited::begin(&toolbox.0, &context),
        Action::FormatArguments => None,
    };
    let recording = Recording::begin(toolbox, &invocation, &context);
    audit::check(&toolbox.0).map_err(ToolboxError::Audit)?;
    let step = Step::Begin(Box::new(invocation));
    drive_from(edge, toolbox, step, &context, recording, front_end).await
}

/// Goes on with a call that was suspended, whose question has its answer.
///
/// # Errors
///
/// As for [`drive`].
pub(crate) async fn resume<E: Edge, F: FrontEnd>(
    edge: &E,
    toolbox: &Toolbox,
    suspended: Box<Suspended>,
    mut context: CallContext,
    front_end: &mut F,
) -> Result<Ended<F::Refusal>, ToolboxError> {
    context.settle_owner();
    context.audited = Audited::begin(&toolbox.0, &context);
    let recording = Recording::of(toolbox, suspended.call.tool.name.as_str(), &context);
    audit::check(&toolbox.0).map_err(ToolboxError::Audit)?;
    let step = Step::Resume(suspended.call);
    drive_from(edge, toolbox, step, &context, recording, front_end).await
}

/// Makes a call from this step on.
async fn drive_from<E: Edge, F: FrontEnd>(
    edge: &E,
    toolbox: &Toolbox,
    mut step: Step,
    context: &CallContext,
    mut recording: Recording<'_>,
    front_end: &mut F,
) -> Result<Ended<F::Refusal>, ToolboxError> {
    let tool = match &step {
        Step::Begin(invocation) => invocation.target.tool().to_owned(),
        Step::Resume(call) => call.tool.name.to_string(),
    };
    let ended = loop {
        let (worker, accompanying) = (toolbox.clone(), context.clone());
        let work = move || advance(worker, step, accompanying);
        let ready = front_end.ready();
        let cancellation = &context.run.cancellation;
        let stretch = edge.perform(toolbox.host(), &tool, cancellation, ready, work).await;
        let mut asks = match stretch.map_err(ToolboxError::from).flatten() {
            Ok(Stretch::Ended(completed)) => break Ok(Ended::Completed(completed)),
            Ok(Stretch::Asks(asks)) => asks,
            Err(error) => break Err(error),
        };
        match ask(front_end, &asks.question).await {
            Ok(Asked::Answered(answer)) => {
                asks.call.answers.insert(asks.question.id, answer);
                step = Step::Resume(asks.call);
            }
            Ok(Asked::Unanswered(rejected)) => {
                asks.rejected = rejected;
                break Ok(Ended::Suspended(asks));
            }
            Ok(Asked::Refused(refusal)) => break Ok(Ended::Refused(refusal)),
            Err(error) => break Err(error),
        }
    };
    recording.end = end_of(&ended);
    if context.audited.is_some() {
        recording.outcome = audit::outcome(&ended);
    }
    ended
}

/// Where a stretch of a call begins.
enum Step {
    Begin(Box<Invocation>),
    Resume(Box<Prepared>),
}

/// Where a stretch of a call stops.
enum Stretch {
    Ended(Box<Completed>),
    Asks(Box<Suspended>),
}

/// Takes a call as far as it goes without an answer of the front end's.
async fn advance(
    toolbox: Toolbox,
    step: Step,
    context: CallContext,
) -> Result<Stretch, ToolboxError> {
    let call = match step {
        Step::Begin(invocation) => match prepare(&toolbox.0, *invocation, &context)? {
            Ok(call) => Box::new(call),
            Err(refusal) => {
                let completed = Completed::answered(Outcome::Error(refusal));
                return Ok(Stretch::Ended(Box::new(completed)));
            }
        },
        Step::Resume(call) => call,
    };
    run(&toolbox, call, &context).await
}

/// Takes an invocation through the steps before the run. Where the tool's adapter
/// refuses the call, that is its answer.
fn prepare(
    inner: &Inner,
    invocation: Invocation,
    context: &CallContext,
) -> Result<Result<Prepared, ErrorInfo>, ToolboxError> {
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
    } = invocation;
    let directories = target.directories();
    let is_asked_about = action == Action::Run
        && matches!(target, Target::Tool(_) | Target::Prompt(_) | Target::Resource(_));
    let fencing = match &target {
        _ if action != Action::Run || context.depth > 0 => None,
        Target::Tool(_) | Target::Resource(_) => Some(Fencing::AsSet),
        Target::Prompt(_) => Some(Fencing::WhereFound),
        Target::Command { .. } | Target::Builtin(_) => None,
    };
    let mut resolved = resolve(inner, target, context)?;
    let begun = Instant::now();
    let limits = narrow::limits(&resolved.tool, limits)?;
    let own_metering = Metering::of(&resolved.tool.limits.limits());
    if Metering::of(&limits) != own_metering {
        // It does not count its instructions as this call has to.
        resolved.component = None;
    }
    let mut arguments = check(&resolved, arguments, limits.time, context)?;
    let alias_rate = via.as_ref().map(|via| via.check(&arguments)).transpose()?.flatten();
    let mut grants = match grants {
        Some(grants) => narrow::grants(inner, &resolved.tool, grants)?,
        None => resolved.tool.grants.value.clone(),
    };
    grants.directories.extend(directories);
    let authority = match authorise(inner, &resolved, &arguments, action, grants, limits) {
        Ok(authority) => authority,
        Err(refusal) => return Ok(Err(refusal)),
    };
    count(inner, &resolved, action, &context.caller, via.as_ref(), alias_rate)?;
    let callable = match action {
        Action::Run => Callable::new(&resolved.tool.name, &authority.grants.tools, &context.scope),
        Action::FormatArguments => None,
    };
    arguments.extend(authority.arguments);
    let Resolved { name, tool, component, .. } = resolved;
    // A component that has several tools knows them by their own names; one that has one
    // tool may write the name into its answers, and gets the one that the model knows.
    let name = match &tool.source {
        ToolSource::Builtin { name: own }
            if tool.name.as_str() == name && inner.shares_component(&own.value) =>
        {
            own.value.clone()
        }
        ToolSource::Builtin { .. }
        | ToolSource::Local(_)
        | ToolSource::Script(_)
        | ToolSource::Bytes(_)
        | ToolSource::Native => name.into_owned(),
    };
    if action == Action::Run {
        arguments = script::arguments(&tool.source, arguments);
    }
    let arguments = text(&arguments);
    if let Some(audited) = &context.audited {
        audited.prepared(inner, &tool, &authority.grants);
        audited.arguments(inner, &arguments);
    }
    let mut limits = authority.limits;
    let time = limits.time;
    limits.time = time.saturating_sub(begun.elapsed());
    let call = Call {
        name,
        action,
        arguments,
        answers: String::new(),
        grants: authority.grants,
        guard: authority.guard,
        secrets: Arc::clone(&inner.secrets),
        storage: storage_of(inner, &tool, context),
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
    Ok(Ok(Prepared {
        call,
        time,
        tool,
        component,
        presets,
        answers: resumed.answers,
        is_structured,
        fencing,
        problems,
        approval,
        inner: callable.is_some().then(|| resumed.inner.unwrap_or_default()),
        callable,
    }))
}

/// Where a tool keeps something: by the name that it has in the configuration. The built-in
/// tools of one component keep it together, whatever their names are, and for each one apart
/// for whom they are called. No tool has a name with a `/`, so none has the place of another.
#[cfg(feature = "storage")]
fn storage_of(inner: &Inner, tool: &Tool, context: &CallContext) -> Option<ToolStorage> {
    let storage = inner.storage.clone()?;
    let builtin = match &tool.source {
        ToolSource::Builtin { name } => inner.builtins.iter().find(|it| it.name == name.value),
        ToolSource::Local(_)
        | ToolSource::Script(_)
        | ToolSource::Bytes(_)
        | ToolSource::Native => None,
    };
    let namespace = match builtin {
        Some(builtin) => format!("{}/{}", builtin.toolset, context.owner().storage_name()),
        None => tool.name.to_string(),
    };
    Some(ToolStorage { storage, namespace })
}

#[cfg(not(feature = "storage"))]
fn storage_of(_: &Inner, _: &Tool, _: &CallContext) -> Option<ToolStorage> {
    None
}

/// What a name stands for.
struct Resolved {
    /// What the component is called as.
    name: Cow<'static, str>,
    tool: Arc<Tool>,
    /// What the arguments have to fit.
    schema: ArgumentSchema,
    adapter: Option<&'static dyn Adapter>,
    /// The grants of the tool count, which are not the host's own.
    is_granted: bool,
    component: Option<Component>,
}

/// The schema of a call's arguments.
enum ArgumentSchema {
    /// The tool's.
    Tool,
    /// Another one.
    Own(Schema),
    /// The host itself has made them.
    None,
}

/// Finds what is called: the tool with its schema, grants and limits, and its component
/// where it had to be asked for them.
fn resolve(inner: &Inner, target: Target, context: &CallContext) -> Result<Resolved, ToolboxError> {
    let find = |name: &str| -> Result<(Arc<Tool>, Option<Component>), ToolboxError> {
        resolve::resolve(inner, inner.find(name)?, &context.run)
    };
    Ok(match target {
        Target::Tool(name) => {
            let (tool, component) = find(&name)?;
            let adapter = resolve::adapter(&tool.source);
            let schema = ArgumentSchema::Tool;
            let name = Cow::Owned(name);
            Resolved { name, tool, schema, adapter, is_granted: true, component }
        }
        Target::Prompt(prompt) => {
            let (tool, component) = find(prompt.tool.as_str())?;
            let name = format!("{}{}", served::PROMPT_PREFIX, prompt.description.name);
            let schema = ArgumentSchema::Own(served::schema(&prompt.description));
            let name = Cow::Owned(name);
            Resolved { name, tool, schema, adapter: None, is_granted: true, component }
        }
        Target::Resource(tool) => {
            let (tool, component) = find(tool.as_str())?;
            let (name, schema) = (Cow::Borrowed(served::RESOURCE_NAME), ArgumentSchema::None);
            Resolved { name, tool, schema, adapter: None, is_granted: true, component }
        }
        Target::Command { tool, name, .. } => {
            let (tool, component) = find(tool.as_str())?;
            let (name, schema) = (Cow::Borrowed(name), ArgumentSchema::None);
            Resolved { name, tool, schema, adapter: None, is_granted: true, component }
        }
        Target::Builtin(name) => {
            let tool = resolve::resolve_builtin(inner, name)?;
            let adapter = resolve::adapter(&tool.source);
            let (name, schema) = (Cow::Borrowed(name), ArgumentSchema::None);
            Resolved { name, tool, schema, adapter, is_granted: false, component: None }
        }
    })
}

/// Checks the arguments against the schema and fills defaults in.
fn check(
    resolved: &Resolved,
    arguments: Arguments,
    time: Duration,
    context: &CallContext,
) -> Result<Map<String, Value>, ToolboxError> {
    let schema = match &resolved.schema {
        ArgumentSchema::Tool => &resolved.tool.input_schema.value,
        ArgumentSchema::Own(schema) => schema,
        ArgumentSchema::None => match arguments.json {
            Some(Value::Object(arguments)) => return Ok(arguments),
            _ => return Ok(Map::new()),
        },
    };
    let deadline = Deadline::new(&context.run.cancellation, time, context.run.time(time));
    let own = resolved.adapter.map(Adapter::own_arguments).unwrap_or_default();
    schema
        .check_arguments(arguments, &|| deadline.check(), |key| own.contains(&key))
        .map_err(|error| ToolboxError::arguments(&resolved.name, error))
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
    check(&resolved, arguments, time, &context)
}

/// What a call may do.
struct Authority {
    grants: Grants,
    guard: Arc<Guard>,
    limits: Limits,
    /// What the host tells the tool besides what the caller does.
    arguments: Map<String, Value>,
}

/// Settles what the call may reach and use up: `grants` and `limits`, which are no more
/// than the tool's, and what its adapter adds.
///
/// # Errors
///
/// The refusal of the tool's adapter.
fn authorise(
    inner: &Inner,
    resolved: &Resolved,
    arguments: &Map<String, Value>,
    action: Action,
    grants: Grants,
    limits: Limits,
) -> Result<Authority, ErrorInfo> {
    let mut grants = if resolved.is_granted { grants } else { Grants::default() };
    let additions = match (resolved.adapter, action) {
        (Some(adapter), Action::Run) => adapter.prepare(inner, arguments, &limits)?,
        // A call is rendered without any grants.
        (None, _) | (_, Action::FormatArguments) => Additions::default(),
    };
    grants.directories.extend(additions.directories);
    let guard = Arc::clone(inner.guard());
    Ok(Authority { grants, guard, limits, arguments: additions.arguments })
}

/// Counts the call where its tool has a rate, for its caller, and as a call of each other name
/// of the tool whose rate holds for it: also one that goes on with an
/// answer, since the tool runs again. Rendering a call counts as none, and so does what the
/// host itself asks a built-in.
///
/// # Errors
///
/// [`ToolboxError::Rate`] where the rate is used up.
fn count(
    inner: &Inner,
    resolved: &Resolved,
    action: Action,
    caller: &Caller,
    via: Option<&Via>,
    alias_rate: Option<Rates>,
) -> Result<(), ToolboxError> {
    let tool = &resolved.tool;
    let is_counted = !tool.rates.is_empty() || alias_rate.is_some();
    if !is_counted || action != Action::Run || !resolved.is_granted {
        return Ok(());
    }
    let counted = tool.rates.iter();
    let counted =
        counted.map(|it| Counted { rates: &it.rates.value, tool: it.counted_as.as_str() });
    let mut counted: Vec<_> = counted.collect();
    // No tool has a name with a `/`.
    let of_alias = via.map(|via| format!("{}/{}", via.caller, via.alias)).unwrap_or_default();
    counted.extend(alias_rate.as_ref().map(|rates| Counted { rates, tool: &of_alias }));
    let taken = inner.counts.take(&counted, &caller.to_string());
    taken.map_err(|error| match error {
        TakeError::Counts(error) => ToolboxError::Counts(error),
        TakeError::UsedUp { at, used_up: UsedUp { rate, retry_after } }
            if at >= tool.rates.len() =>
        {
            ToolboxError::AliasRate { alias: of_alias.clone(), rate, retry_after }
        }
        TakeError::UsedUp { at, used_up: UsedUp { rate, retry_after } } => {
            let ToolRate { rates, counted_as } = &tool.rates[at];
            let counted_as = (*counted_as != tool.name).then(|| counted_as.to_string());
            let (tool, origin) = (tool.name.to_string(), rates.origin.clone());
            ToolboxError::Rate { tool, counted_as, rate, origin, retry_after }
        }
    })
}

/// Runs the tool with the answers so far, and again for each question that the
/// configuration or the invocation answers. What it emits counts in its last run.
async fn run(
    toolbox: &Toolbox,
    mut call: Box<Prepared>,
    outer: &CallContext,
) -> Result<Stretch, ToolboxError> {
    let context = &outer.run;
    let is_script = matches!(call.tool.source, ToolSource::Script(_));
    if is_script && call.call.action == Action::FormatArguments {
        let rendered = Completed::answered(Outcome::Success(rendered(&call.call)));
        return Ok(Stretch::Ended(Box::new(rendered)));
    }
    let runner = runner(&toolbox.0, &mut call, context)?;
    if let (Some(audited), Runner::Component(component)) = (&outer.audited, &runner) {
        audited.component(component, toolset(&toolbox.0, &call.tool));
    }
    let component = match &runner {
        Runner::Component(component) => Some(component),
        Runner::Native(_) => None,
    };
    let asked = match approval::settle(toolbox, &mut call, component, outer)? {
        Settled::Approved => None,
        Settled::Asked(question) => Some(question),
        // In a place of its own, which calls that are inside each other do not take.
        Settled::Unasked(unasked) => {
            Some(Box::pin(approval::ask(toolbox, &mut call, component, outer, unasked)).await?)
        }
    };
    if let Some(question) = asked {
        let completion = Completion::answered(Outcome::NeedsInput(question.clone()));
        let marks = Marks::default();
        let suspended = Suspended { question, rejected: None, completion, marks, call };
        return Ok(Stretch::Asks(Box::new(suspended)));
    }
    loop {
        let temporary = Temporary::make(&mut call.call.grants.directories)?;
        let mut completion = match &runner {
            Runner::Component(component) => match &call.callable {
                None => {
                    call.call.answers = text(&call.answers);
                    toolbox.host().call(component, &call.call, context).await
                }
                Some(callable) => {
                    let own = call.inner.get_or_insert_default().take_answers(&call.answers);
                    call.call.answers = text(&own);
                    let callable = callable.clone();
                    inner::run(toolbox, component, &mut call, &callable, outer).await?
                }
            },
            Runner::Native(tool) => run_native(&**tool, &call, toolbox, outer).await,
        };
        if let Some(temporary) = temporary {
            temporary.remove(&mut call.call.grants.directories);
        }
        if let Some(audited) = &outer.audited {
            audited.ran(&mut completion);
            audited.answered(&call.answers);
        }
        if let Err(CallError::Limit { kind: LimitKind::Time, .. }) = &completion.result {
            completion.result = Err(ended(&call, context));
        }
        let Some(mut question) = question(&completion) else {
            add_missing_grants(&call, &mut completion);
            let cut = cut(&call, &completion);
            let structured = match &cut {
                Some(cut) if call.is_structured && call.tool.output_schema.is_some() => {
                    Err(ToolboxError::Cut { tool: call.tool.name.to_string(), cut: cut.clone() })
                }
                _ => structured(&call, &completion, context),
            };
            let marks = match call.fencing {
                Some(fencing) => marks::mark(&toolbox.0, &call.tool, fencing, &mut completion)?,
                None => Marks::default(),
            };
            let structured = match completion.result {
                // It was withheld.
                Ok(Outcome::Error(_)) => Ok(None),
                _ => structured,
            };
            let problems = call.problems;
            let completed = Completed { completion, structured, cut, marks, problems };
            return Ok(Stretch::Ended(Box::new(completed)));
        };
        // Native code could hand one on that is not its own.
        let is_own = call.callable.is_none() && question.approval.is_some();
        if is_own || approval::is_reserved(&question.id) {
            return Err(ToolboxError::ReservedQuestion { question: question.id });
        }
        let class = question.class.as_deref();
        let rule = class.and_then(|class| toolbox.0.config.class_rule(class));
        let mut is_for_person = question.approval.is_some();
        match rule.map(|rule| rule.value) {
            Some(ClassRule::Deny) => return Err(approval::denied(&call, &question, rule)),
            Some(ClassRule::Ask) => {
                (question.is_consent, is_for_person) = (true, true);
                completion.result = Ok(Outcome::NeedsInput(question.clone()));
            }
            None => {}
        }
        if call.answers.contains_key(&question.id) {
            return Err(ToolboxError::AskedAgain { question: question.id });
        }
        if call.answers.len() >= QUESTIONS {
            return Err(ToolboxError::TooManyQuestions { limit: QUESTIONS });
        }
        let preset = call.presets.get(&question.id).filter(|_| !is_for_person);
        let Some(preset) = preset.filter(|preset| may_answer(&question, &preset.origin)) else {
            let marks = match call.fencing {
                // The host's own goes to a person and never to a model.
                Some(_) if question.approval.is_none() => {
                    let (marks, said) =
                        marks::mark_question(&toolbox.0, &call.tool, &mut question)?;
                    if let Err(error) = said {
                        let mut completed = Completed::answered(Outcome::Error(error));
                        (completed.marks, completed.problems) = (marks, call.problems);
                        return Ok(Stretch::Ended(Box::new(completed)));
                    }
                    completion.result = Ok(Outcome::NeedsInput(question.clone()));
                    marks
                }
                Some(_) | None => Marks::default(),
            };
            let suspended = Suspended { question, rejected: None, completion, marks, call };
            return Ok(Stretch::Asks(Box::new(suspended)));
        };
        let checked = question.answer_type.check(&preset.value);
        let answer = checked.map_err(|source| ToolboxError::Answer {
            question: question.id.clone(),
            origin: preset.origin.clone(),
            source,
        })?;
        call.answers.insert(question.id, answer);
    }
}

/// The component that has a built-in tool.
fn toolset<'a>(inner: &'a Inner, tool: &Tool) -> Option<&'a str> {
    match &tool.source {
        ToolSource::Builtin { name } => Some(inner.builtin(&name.value).ok()?.toolset),
        ToolSource::Script(_) => Some(script::interpreter(inner).ok()?.toolset),
        ToolSource::Local(_) | ToolSource::Bytes(_) | ToolSource::Native => None,
    }
}

/// What runs a tool.
enum Runner {
    Component(Component),
    Native(Arc<dyn NativeTool>),
}

/// Finds what runs a tool. A component may have changed while a person thought about an
/// answer, and is not kept in memory for that long.
fn runner(
    inner: &Inner,
    call: &mut Prepared,
    context: &RunContext,
) -> Result<Runner, ToolboxError> {
    if let Some(native) = inner.native(&call.tool) {
        return Ok(Runner::Native(native));
    }
    let component = match call.component.take() {
        Some(component) => component,
        None => {
            let source = inner.component_source(&call.tool.source)?;
            let component = inner.host.component(&source, &call.call.limits, context);
            component.map_err(|error| match error {
                LoadError::Cancelled => ended(call, context).into(),
                error => ToolboxError::from(error),
            })?
        }
    };
    call.problems.cache = component.cache_problems().to_vec();
    Ok(Runner::Component(component))
}

/// A call as a person reads it, of a tool that does not render it itself.
fn rendered(call: &Call) -> String {
    format!("{} {}", call.name, call.arguments)
}

/// Runs code of the embedding program. What it calls ends when it has to.
async fn run_native(
    tool: &dyn NativeTool,
    call: &Prepared,
    toolbox: &Toolbox,
    context: &CallContext,
) -> Completion {
    let limits = &call.call.limits;
    let arguments = serde_json::from_str(&call.call.arguments).expect("it was made of an object");
    if call.call.action == Action::FormatArguments {
        return Completion::answered(Outcome::Success(rendered(&call.call)));
    }
    let mut inner = context.clone();
    inner.run.deadline = Instant::now().checked_add(context.run.time(limits.time));
    let native = NativeCall {
        arguments: &arguments,
        answers: &call.answers,
        tool: &call.tool.name,
        toolbox,
        context: &inner,
        turn: Semaphore::new(1),
    };
    toolbox.host().run_native(limits, &context.run, tool.call(native)).await
}

/// Adds to the error of a run what the tool asks for and is not granted, which of its grants
/// give nothing, and the secrets and requests that it was refused, since that is often why
/// it failed.
fn add_missing_grants(call: &Prepared, completion: &mut Completion) {
    let message = match &mut completion.result {
        Ok(Outcome::Error(ErrorInfo { message, .. })) | Err(CallError::Trap { message }) => message,
        Ok(Outcome::Success(_) | Outcome::NeedsInput(_)) | Err(_) => return,
    };
    if call.call.action != Action::Run {
        return;
    }
    let mut lines: Vec<_> = call.tool.missing_grants().collect();
    if lines.is_empty() && completion.misses_directories {
        lines.extend(call.tool.no_directories());
    }
    lines.extend(call.tool.grant_warnings());
    lines.extend(completion.refused_files.iter().map(|it| call.tool.refused_file(it)));
    let requests = completion.refused_requests.iter();
    lines.extend(requests.map(|it| call.tool.refused(&it.reason, it.missing.as_ref())));
    for StorageRefusal { reason, missing } in &completion.refused_storage {
        // Where the tool asks for it, that has been said.
        let advice = missing.as_ref().map(|missing| missing.advice_for(call.tool.name.as_str()));
        let is_said = |advice: String| lines.iter().any(|line| line.contains(&advice));
        if !advice.is_some_and(is_said) {
            lines.push(call.tool.refused(reason, missing.as_ref()));
        }
    }
    for line in lines {
        message.push('\n');
        message.push_str(&line);
    }
}

/// What the output limit has cut of an answer.
fn cut(call: &Prepared, completion: &Completion) -> Option<Cut> {
    let (bytes, limit) = (completion.usage.output_bytes, call.call.limits.output);
    if bytes <= limit.as_u64() || !matches!(completion.result, Ok(Outcome::Success(_))) {
        return None;
    }
    let own = &call.tool.limits.output;
    let origin = if own.value == limit { own.origin.clone() } else { Origin::Caller };
    Some(Cut { bytes, limit: Sourced { value: limit, origin } })
}

/// The error of a call that has to end: its time is over, or it was cancelled.
fn ended(call: &Prepared, context: &RunContext) -> CallError {
    if context.cancellation.is_cancelled() {
        return CallError::Cancelled;
    }
    let limit = match context.deadline.is_some_and(|at| Instant::now() >= at) {
        true => "that of the calling tool".to_owned(),
        false => format_duration(call.time).to_string(),
    };
    CallError::Limit { kind: LimitKind::Time, limit }
}

/// Reads the content as the output schema has it, in what the run has left of the
/// call's time.
fn structured(
    call: &Prepared,
    completion: &Completion,
    context: &RunContext,
) -> Result<Option<Value>, ToolboxError> {
    let Ok(Outcome::Success(content)) = &completion.result else { return Ok(None) };
    if !call.is_structured {
        return Ok(None);
    }
    let left = call.call.limits.time.saturating_sub(completion.usage.elapsed);
    let deadline = Deadline::new(&context.cancellation, call.time, context.time(left));
    call.tool.structured_until(content, &deadline)
}

/// The record of a call, which is made when this is dropped: a call whose future is
/// dropped is recorded too.
struct Recording<'a> {
    toolbox: &'a Toolbox,
    /// The tool, if it exists and there is who wants to know.
    tool: Option<String>,
    context: &'a CallContext,
    audited: Option<Arc<Audited>>,
    start: Instant,
    end: CallEnd,
    /// For the audit log.
    outcome: (&'static str, Option<String>),
}

impl<'a> Recording<'a> {
    fn begin(toolbox: &'a Toolbox, invocation: &Invocation, context: &'a CallContext) -> Self {
        match &invocation.target {
            Target::Tool(name) => Self::of(toolbox, name, context),
            _ => Self::new(toolbox, None, context),
        }
    }

    fn of(toolbox: &'a Toolbox, name: &str, context: &'a CallContext) -> Self {
        // A name of no tool is not recorded: the metrics would keep every one.
        let is_wanted = context.recorder.is_some() || context.audited.is_some();
        let is_untrusted = || {
            let tool = toolbox.config().tools.get(name);
            tool.is_some_and(|tool| tool.disabled == Some(Disabled::Untrusted))
        };
        let is_known = is_wanted && (toolbox.has_tool(name) || is_untrusted());
        Self::new(toolbox, is_known.then(|| name.to_owned()), context)
    }

    fn new(toolbox: &'a Toolbox, tool: Option<String>, context: &'a CallContext) -> Self {
        let audited = context.audited.clone();
        let outcome = ("cancelled", None);
        let start = Instant::now();
        Self { toolbox, tool, context, audited, start, end: CallEnd::Error, outcome }
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        record(self);
    }
}

/// Passes on that a call has ended, and how.
fn record(recording: &mut Recording<'_>) {
    let Some(tool) = &recording.tool else { return };
    let elapsed = recording.start.elapsed();
    if let Some(recorder) = &recording.context.recorder {
        recorder.record(&CallRecord {
            tool,
            caller: &recording.context.caller,
            depth: recording.context.depth,
            end: recording.end,
            elapsed,
        });
    }
    if let Some(audited) = &recording.audited {
        let outcome = std::mem::take(&mut recording.outcome);
        audited.log(&recording.toolbox.0, recording.context, tool, outcome, elapsed);
    }
}

fn end_of<R>(ended: &Result<Ended<R>, ToolboxError>) -> CallEnd {
    match ended {
        Ok(Ended::Completed(call)) => match (&call.completion.result, &call.structured) {
            (Ok(Outcome::Success(_)), Ok(_)) => CallEnd::Success,
            (Err(CallError::Internal(_)), _) => CallEnd::Refused,
            _ => CallEnd::Error,
        },
        Ok(Ended::Suspended(_)) => CallEnd::Suspended,
        Ok(Ended::Refused(_))
        | Err(
            ToolboxError::State(_)
            | ToolboxError::Rate { .. }
            | ToolboxError::AliasRate { .. }
            | ToolboxError::NotGranted { .. }
            | ToolboxError::NotApproved { .. }
            | ToolboxError::Counts(_)
            | ToolboxError::Audit(_)
            | ToolboxError::Call(CallError::Internal(_)),
        ) => CallEnd::Refused,
        Err(_) => CallEnd::Error,
    }
}

/// A JSON object as text, the same for the same object.
pub(crate) fn text(object: &Map<String, Value>) -> String {
    // Room for what is long as a rule, so that it is not copied as this grows.
    let long: usize = object.values().filter_map(Value::as_str).map(str::len).sum();
    let mut text = Vec::with_capacity(long + long / 16 + 128);
    serde_json::to_writer(&mut text, object).expect("every key is a string");
    String::from_utf8(text).expect("JSON is text")
}

/// The question that a run ended with.
fn question(completion: &Completion) -> Option<Question> {
    match &completion.result {
        Ok(Outcome::NeedsInput(question)) => Some(question.clone()),
        Ok(_) | Err(_) => None,
    }
}
