//! The run of a component or of native code, repeated for each answered question.

use std::mem;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use kitbag_base::format_duration;
use kitbag_config::{Origin, Sourced, ToolSource};
use kitbag_contract::{Action, LimitKind, Outcome, Question};
use kitbag_host::{CallError, Completion, Component, LoadError, RunContext};
use kitbag_policy::ClassRule;
use serde_json::Value;

use super::ask::may_answer;
use super::effects;
use super::native::{rendered, run_native};
use crate::advice;
use crate::approval::{self, Settled};
use crate::audit;
use crate::builtins::python;
use crate::call::caller::Caller;
use crate::call::context::CallContext;
use crate::call::deadline::Deadline;
use crate::call::json;
use crate::call::outcome::{Completed, PreparedCall, ScreeningReport, Suspended};
use crate::error::{ToolboxError, Truncation};
use crate::pipeline::nested_calls;
use crate::pipeline::server;
use crate::pipeline::temporary::Temporary;
use crate::registry::resolve;
use crate::registry::tool::Tool;
use crate::registry::{Toolbox, ToolboxState};
use crate::remote;
use crate::screening::annotations;
use crate::screening::masking::{self, FoundLeak, Masking};
use crate::sources::native::NativeTool;

/// The maximum number of questions of a tool in one call. The tool is run again for each.
const QUESTIONS: usize = 100;

pub(super) enum Stretch {
    Ended(Box<Completed>),
    Asks(Box<Suspended>),
    /// A worker makes the call, with [`returned`] after it.
    Away(Box<PreparedCall>),
}

/// Runs the tool with the existing answers, and again for each question that the configuration or
/// the invocation answers. The result has the events of the last run.
pub(super) async fn run(
    toolbox: &Toolbox,
    mut call: Box<PreparedCall>,
    outer: &CallContext,
) -> Result<Stretch, ToolboxError> {
    let context = &outer.run;
    let is_script = matches!(call.tool.source, ToolSource::Script(_));
    if is_script && call.call.action == Action::FormatArguments {
        let rendered = Completed::answered(Outcome::Success(rendered(&call.call)));
        return Ok(Stretch::Ended(Box::new(rendered)));
    }
    if call.remote.is_some() {
        return begin_remote(toolbox, call, outer).await;
    }
    let runner = runner(&toolbox.0, &mut call, context)?;
    if let Runner::Component(component) = &runner
        && let Some(configured) = toolbox.config().tools.get(&call.tool.name)
    {
        let checked = resolve::check_call(configured, Some(component.lane()));
        checked.map_err(|reason| resolve::not_callable(configured, reason))?;
    }
    if let Runner::Component(component) = &runner
        && component.lane().is_foreign()
    {
        settle_foreign(&toolbox.0, &mut call, component)?;
        // Only components for kitbag render their calls.
        if call.call.action == Action::FormatArguments {
            let rendered = Completed::answered(Outcome::Success(rendered(&call.call)));
            return Ok(Stretch::Ended(Box::new(rendered)));
        }
    }
    if let (Some(audited), Runner::Component(component)) = (&outer.audited, &runner) {
        audited.component(component, toolset(&toolbox.0, &call.tool));
    }
    if let (Some(audited), ToolSource::Server(server)) = (&outer.audited, &call.tool.source) {
        audited.server(server);
    }
    let component = match &runner {
        Runner::Component(component) => Some(component),
        Runner::Native(_) | Runner::Server => None,
    };
    let asked = match approval::settle(toolbox, &mut call, component, outer)? {
        Settled::Approved => None,
        Settled::Asked(question) => Some(question),
        // The boxed future takes no space in nested calls.
        Settled::Unasked(unasked) => {
            Some(Box::pin(approval::ask(toolbox, &mut call, component, outer, unasked)).await?)
        }
    };
    if let Some(question) = asked {
        let completion = Completion::answered(Outcome::NeedsInput(question.clone()));
        let screening = ScreeningReport::default();
        let suspended = Suspended { question, rejected: None, completion, screening, call };
        return Ok(Stretch::Asks(Box::new(suspended)));
    }
    start(toolbox, &call, outer)?;
    if let Some(journal) = &outer.journal
        && effects::may_act(&call)
    {
        // The boxed future takes no space in other calls.
        let is_idempotent = call.tool.annotations.idempotent_hint == Some(true);
        journal.before_effects(&call.tool.name, is_idempotent).await?;
    }
    loop {
        let completion = run_once(toolbox, &runner, &mut call, outer).await?;
        let Some(question) = question(&completion) else {
            return finish(&toolbox.0, call, completion, outer);
        };
        call = match answer(&toolbox.0, call, completion, question)? {
            ControlFlow::Continue(answered) => answered,
            ControlFlow::Break(stretch) => return Ok(stretch),
        };
    }
}

/// Prepares a call for a worker: settles its approval and logs its start.
async fn begin_remote(
    toolbox: &Toolbox,
    mut call: Box<PreparedCall>,
    outer: &CallContext,
) -> Result<Stretch, ToolboxError> {
    let question = match approval::settle(toolbox, &mut call, None, outer)? {
        Settled::Approved => {
            start(toolbox, &call, outer)?;
            return Ok(Stretch::Away(call));
        }
        Settled::Asked(question) => question,
        Settled::Unasked(unasked) => {
            Box::pin(approval::ask(toolbox, &mut call, None, outer, unasked)).await?
        }
    };
    let completion = Completion::answered(Outcome::NeedsInput(question.clone()));
    let screening = ScreeningReport::default();
    let suspended = Suspended { question, rejected: None, completion, screening, call };
    Ok(Stretch::Asks(Box::new(suspended)))
}

/// Has a worker make a call, again for each question that the configuration or the invocation
/// answers. Holds no thread and no permit while it waits.
pub(super) async fn run_away(
    toolbox: &Toolbox,
    mut call: Box<PreparedCall>,
    outer: &CallContext,
) -> Result<Stretch, ToolboxError> {
    loop {
        let mut completion = remote::run(&toolbox.0, &mut call, outer).await?;
        if let Some(audited) = &outer.audited {
            let has_tool = |name: &str| toolbox.config().tools.contains_key(name);
            audited.ran(toolbox.config(), &mut completion, None, has_tool);
            audited.answered(&call.answers);
        }
        let Some(question) = question(&completion) else {
            return finish(&toolbox.0, call, completion, outer);
        };
        call = match answer(&toolbox.0, call, completion, question)? {
            ControlFlow::Continue(answered) => answered,
            ControlFlow::Break(stretch) => return Ok(stretch),
        };
    }
}

/// Runs the tool once with the existing answers.
async fn run_once(
    toolbox: &Toolbox,
    runner: &Runner,
    call: &mut PreparedCall,
    outer: &CallContext,
) -> Result<Completion, ToolboxError> {
    let context = &outer.run;
    let temporary = Temporary::make(&mut call.call.grants)?;
    let mut completion = match runner {
        Runner::Component(component) => match &call.callable {
            None => {
                call.call.answers = json::text(&call.answers);
                toolbox.host().call(component, &call.call, context).await
            }
            Some(callable) => {
                let own = call.inner.get_or_insert_default().take_answers(&call.answers);
                call.call.answers = json::text(&own);
                let callable = callable.clone();
                nested_calls::run(toolbox, component, call, &callable, outer).await?
            }
        },
        Runner::Native(tool) => run_native(&**tool, call, toolbox, outer).await,
        Runner::Server => server::run(call, toolbox, context).await?,
    };
    if python::runs_scripts(&call.tool.source) {
        python::settle_trap(&mut completion);
    }
    if let Some(audited) = &outer.audited {
        let has_tool = |name: &str| toolbox.config().tools.contains_key(name);
        audited.ran(toolbox.config(), &mut completion, temporary.as_ref(), has_tool);
        audited.answered(&call.answers);
    }
    if let Some(temporary) = temporary {
        temporary.remove(&mut call.call.grants);
    }
    if let Err(CallError::Limit { kind: LimitKind::Time, .. }) = &completion.result {
        completion.result = Err(ended(call, context));
    }
    Ok(completion)
}

/// Completes a call whose last run ended without a question: adds advice, masks, structured content
/// and marks.
fn finish(
    state: &ToolboxState,
    mut call: Box<PreparedCall>,
    mut completion: Completion,
    outer: &CallContext,
) -> Result<Stretch, ToolboxError> {
    let context = &outer.run;
    // A program may pass the error on to a model.
    let is_of_person = outer.depth == 0 && matches!(outer.caller, Caller::User(_));
    let mut advice =
        advice::add(&state.config, &call, &mut completion, outer.audience, is_of_person);
    advice.extend(
        call.remote.as_mut().map(|remote| mem::take(&mut remote.advice)).into_iter().flatten(),
    );
    let cut = cut(&call, &completion);
    // Masking comes before the content is parsed as JSON, so that text and structured content are
    // the same.
    let leaks = mask(state, &call, &mut completion, context);
    outer.keep_refusals(&completion.refused);
    let inner_refusals = outer.take_refusals();
    let structured = match &cut {
        Some(cut) if call.is_structured && call.tool.output_schema.is_some() => {
            Err(ToolboxError::Cut { tool: call.tool.name.to_string(), cut: cut.clone() })
        }
        _ => structured(&call, &completion, context),
    };
    let mut screening = match call.fencing {
        Some(fencing) => annotations::mark(state, &call.tool, fencing, &mut completion)?,
        None => ScreeningReport::default(),
    };
    screening.leaks = leaks;
    let structured = match (&completion.result, structured) {
        // The answer was withheld.
        (Ok(Outcome::Error(_)), _) => Ok(None),
        (_, Err(error)) if call.fencing.is_some() => {
            Err(annotations::marked_error(state, &call.tool, error))
        }
        (_, structured) => structured,
    };
    let PreparedCall { problems, roles, .. } = *call;
    let completed = Completed {
        completion,
        structured,
        cut,
        screening,
        problems,
        advice,
        inner_refusals,
        roles,
    };
    Ok(Stretch::Ended(Box::new(completed)))
}

/// Answers the question of a run with a preset answer, so that the tool can run again, or suspends
/// the call.
fn answer(
    state: &ToolboxState,
    mut call: Box<PreparedCall>,
    mut completion: Completion,
    mut question: Question,
) -> Result<ControlFlow<Stretch, Box<PreparedCall>>, ToolboxError> {
    let is_for_person = check_question(state, &call, &mut completion, &mut question)?;
    let preset = call.presets.get(&question.id).filter(|_| !is_for_person);
    let Some(preset) = preset.filter(|preset| may_answer(&question, &preset.origin)) else {
        return suspend(state, call, completion, question).map(ControlFlow::Break);
    };
    let checked = question.answer_type.check(&preset.value);
    let answer = checked.map_err(|source| ToolboxError::Answer {
        question: question.id.clone(),
        origin: preset.origin.clone(),
        source,
    })?;
    call.answers.insert(question.id, answer);
    Ok(ControlFlow::Continue(call))
}

/// Checks that the tool may ask its question, and applies the rule of its class. Returns true if
/// only a person may answer the question.
fn check_question(
    state: &ToolboxState,
    call: &PreparedCall,
    completion: &mut Completion,
    question: &mut Question,
) -> Result<bool, ToolboxError> {
    // Native code could pass on a question that is not its own.
    let is_own = call.callable.is_none() && question.approval.is_some();
    if is_own || approval::is_reserved(&question.id) {
        return Err(ToolboxError::ReservedQuestion { question: question.id.clone() });
    }
    if let Some(reason) = question.flaw().filter(|_| question.approval.is_none()) {
        return Err(ToolboxError::QuestionFlaw { question: question.id.clone(), reason });
    }
    // The question of an inner call already names its tool.
    if question.approval.is_none() && question.asker.is_none() {
        question.asker = Some(call.tool.name.to_string());
        completion.result = Ok(Outcome::NeedsInput(question.clone()));
    }
    let class = question.class.as_deref();
    let rule = class.and_then(|class| state.config.class_rule(class));
    let mut is_for_person = question.approval.is_some();
    match rule.map(|rule| rule.value) {
        Some(ClassRule::Deny) => return Err(approval::denied(call, question, rule)),
        Some(ClassRule::Ask) => {
            (question.is_consent, is_for_person) = (true, true);
            completion.result = Ok(Outcome::NeedsInput(question.clone()));
        }
        None => {}
    }
    if call.answers.contains_key(&question.id) {
        return Err(ToolboxError::AskedAgain { question: question.id.clone() });
    }
    if call.answers.len() >= QUESTIONS {
        return Err(ToolboxError::TooManyQuestions { limit: QUESTIONS });
    }
    Ok(is_for_person)
}

/// Suspends a call over a question, which is masked and marked in the same way as answers.
fn suspend(
    state: &ToolboxState,
    call: Box<PreparedCall>,
    mut completion: Completion,
    mut question: Question,
) -> Result<Stretch, ToolboxError> {
    let withheld = |error, screening, call: Box<PreparedCall>| {
        let mut completed = Completed::answered(Outcome::Error(error));
        (completed.screening, completed.problems) = (screening, call.problems);
        Ok(Stretch::Ended(Box::new(completed)))
    };
    let mut masking = Masking::new(&state.secrets);
    if call.is_masked {
        if let Err(error) = masking.question(&mut question) {
            return withheld(error, ScreeningReport::default(), call);
        }
        completion.result = Ok(Outcome::NeedsInput(question.clone()));
    }
    let mut screening = match call.fencing {
        // The host's own question is put to a person and never to a model.
        Some(_) if question.approval.is_none() => {
            let (screening, said) = annotations::mark_question(state, &call.tool, &mut question)?;
            if let Err(error) = said {
                return withheld(error, screening, call);
            }
            completion.result = Ok(Outcome::NeedsInput(question.clone()));
            screening
        }
        Some(_) | None => ScreeningReport::default(),
    };
    screening.leaks = masking.found;
    let suspended = Suspended { question, rejected: None, completion, screening, call };
    Ok(Stretch::Asks(Box::new(suspended)))
}

/// Logs that a call starts, if the call can change or send something. A killed process therefore
/// loses no record of data that was sent.
///
/// # Errors
///
/// [`ToolboxError::Audit`] if the start cannot be logged. The call must not be made then.
fn start(toolbox: &Toolbox, call: &PreparedCall, outer: &CallContext) -> Result<(), ToolboxError> {
    let annotations = &call.tool.annotations;
    let has_effects =
        annotations.read_only_hint != Some(true) || annotations.open_world_hint == Some(true);
    if !has_effects || call.call.action != Action::Run {
        return Ok(());
    }
    let (Some(audited), Some(auditor)) = (&outer.audited, toolbox.auditor()) else { return Ok(()) };
    let by = (&outer.caller, outer.client.as_deref());
    if audited.started(auditor, toolbox.config(), by, call.tool.name.as_str()) {
        audit::check(Some(auditor), &toolbox.config().audit).map_err(ToolboxError::Audit)?;
    }
    Ok(())
}

/// Masks keys and tokens in the output of the outermost call, and logs them.
fn mask(
    state: &ToolboxState,
    call: &PreparedCall,
    completion: &mut Completion,
    context: &RunContext,
) -> Vec<FoundLeak> {
    if !call.is_masked {
        return Vec::new();
    }
    let found = Masking::new(&state.secrets).completion(completion);
    masking::log(&found, &context.events);
    found
}

fn toolset<'a>(state: &'a ToolboxState, tool: &Tool) -> Option<&'a str> {
    match &tool.source {
        ToolSource::Builtin { name } => Some(state.builtin(&name.value).ok()?.declaration.toolset),
        ToolSource::Script(_) => Some(state.interpreter().ok()?.declaration.toolset),
        ToolSource::Local(_)
        | ToolSource::Bytes(_)
        | ToolSource::Native
        | ToolSource::Server(_) => None,
    }
}

/// Settles the call of a component that was made for another host: its own name of the tool, and
/// no grants by default, even if its file has changed since the tool was resolved.
fn settle_foreign(
    state: &ToolboxState,
    call: &mut PreparedCall,
    component: &Component,
) -> Result<(), ToolboxError> {
    if call.tool.grants.has_default_workspace() {
        Arc::make_mut(&mut call.call.grants).directories.clear();
    }
    let Some(configured) = state.config.tools.get(&call.tool.name) else { return Ok(()) };
    let own = resolve::own_tool(configured, Some(component.lane()), component.described());
    let own = own.map_err(|reason| resolve::not_callable(configured, reason))?;
    if let Some(own) = own.filter(|own| !own.name.is_empty() && !resolve::is_interface(own)) {
        call.call.function = Some(own.name.clone());
    }
    Ok(())
}

enum Runner {
    Component(Component),
    Native(Arc<dyn NativeTool>),
    Server,
}

/// Finds the code that runs a tool. A component may have changed while a person considered an
/// answer, and is not kept in memory during that time.
fn runner(
    state: &ToolboxState,
    call: &mut PreparedCall,
    context: &RunContext,
) -> Result<Runner, ToolboxError> {
    if let Some(native) = state.native(&call.tool) {
        return Ok(Runner::Native(native));
    }
    if matches!(call.tool.source, ToolSource::Server(_)) {
        return Ok(Runner::Server);
    }
    let component = match call.component.take() {
        Some(component) => component,
        None => {
            let source = state.component_source(&call.tool.source)?;
            let component = state.host.component(&source, &call.call.limits, context);
            component.map_err(|error| match error {
                LoadError::Cancelled => ended(call, context).into(),
                error => ToolboxError::from(error),
            })?
        }
    };
    call.problems.cache = component.cache_problems().to_vec();
    Ok(Runner::Component(component))
}

fn cut(call: &PreparedCall, completion: &Completion) -> Option<Truncation> {
    let (bytes, limit) = (completion.usage.output_bytes, call.call.limits.output);
    if bytes <= limit.as_u64() || !matches!(completion.result, Ok(Outcome::Success(_))) {
        return None;
    }
    let own = &call.tool.limits.output;
    let origin = if own.value == limit { own.origin.clone() } else { Origin::Caller };
    Some(Truncation { bytes, limit: Sourced { value: limit, origin } })
}

/// Returns the error of a call that must end because its time is up or it was cancelled.
fn ended(call: &PreparedCall, context: &RunContext) -> CallError {
    if context.cancellation.is_cancelled() {
        return CallError::Cancelled;
    }
    let limit = match context.deadline.is_some_and(|at| Instant::now() >= at) {
        true => "that of the calling tool".to_owned(),
        false => format_duration(call.time).to_string(),
    };
    CallError::Limit { kind: LimitKind::Time, limit }
}

/// Reads the content in the form of the output schema, in the time that the run left of the call.
fn structured(
    call: &PreparedCall,
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

fn question(completion: &Completion) -> Option<Question> {
    match &completion.result {
        Ok(Outcome::NeedsInput(question)) => Some(question.clone()),
        Ok(_) | Err(_) => None,
    }
}
