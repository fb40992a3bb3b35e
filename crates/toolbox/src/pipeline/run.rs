//! The run: of a component or of native code, and again for each question that has its answer.

use std::sync::Arc;
use std::time::Instant;

use kitbag_config::{Origin, Sourced, ToolSource};
use kitbag_contract::{Action, LimitKind, Outcome, Question, format_duration};
use kitbag_host::{Call, CallError, Completion, Component, LoadError, RunContext};
use kitbag_policy::ClassRule;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::ask::may_answer;
use crate::advice;
use crate::approval::{self, Settled};
use crate::audit;
use crate::context::CallContext;
use crate::deadline::Deadline;
use crate::ended::{Completed, Marks, Prepared, Suspended};
use crate::error::{Cut, ToolboxError};
use crate::inner;
use crate::json;
use crate::marks;
use crate::masking::{self, FoundLeak, Masking};
use crate::native::{NativeCall, NativeTool};
use crate::registry::{Inner, Toolbox};
use crate::temporary::Temporary;
use crate::tool::Tool;

/// How many questions a tool may ask for one call; for each it is run again.
const QUESTIONS: usize = 100;

/// Where a stretch of a call stops.
pub(super) enum Stretch {
    Ended(Box<Completed>),
    Asks(Box<Suspended>),
}

/// Runs the tool with the answers so far, and again for each question that the
/// configuration or the invocation answers. What it emits counts in its last run.
pub(super) async fn run(
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
    start(toolbox, &call, outer)?;
    loop {
        let temporary = Temporary::make(&mut call.call.grants)?;
        let mut completion = match &runner {
            Runner::Component(component) => match &call.callable {
                None => {
                    call.call.answers = json::text(&call.answers);
                    toolbox.host().call(component, &call.call, context).await
                }
                Some(callable) => {
                    let own = call.inner.get_or_insert_default().take_answers(&call.answers);
                    call.call.answers = json::text(&own);
                    let callable = callable.clone();
                    inner::run(toolbox, component, &mut call, &callable, outer).await?
                }
            },
            Runner::Native(tool) => run_native(&**tool, &call, toolbox, outer).await,
        };
        if let Some(audited) = &outer.audited {
            let has_tool = |name: &str| toolbox.config().tools.contains_key(name);
            audited.ran(toolbox.config(), &mut completion, temporary.as_ref(), has_tool);
            audited.answered(&call.answers);
        }
        if let Some(temporary) = temporary {
            temporary.remove(&mut call.call.grants);
        }
        if let Err(CallError::Limit { kind: LimitKind::Time, .. }) = &completion.result {
            completion.result = Err(ended(&call, context));
        }
        let Some(mut question) = question(&completion) else {
            let advice = advice::add(toolbox.config(), &call, &mut completion, outer.audience);
            let cut = cut(&call, &completion);
            // Before it is read as JSON, so that text and structured content are the same.
            let leaks = mask(&toolbox.0, &call, &mut completion, context);
            outer.keep_refusals(&completion.refused_requests);
            let inner_refusals = outer.take_refusals();
            let structured = match &cut {
                Some(cut) if call.is_structured && call.tool.output_schema.is_some() => {
                    Err(ToolboxError::Cut { tool: call.tool.name.to_string(), cut: cut.clone() })
                }
                _ => structured(&call, &completion, context),
            };
            let mut marks = match call.fencing {
                Some(fencing) => marks::mark(&toolbox.0, &call.tool, fencing, &mut completion)?,
                None => Marks::default(),
            };
            marks.leaks = leaks;
            let structured = match (&completion.result, structured) {
                // It was withheld.
                (Ok(Outcome::Error(_)), _) => Ok(None),
                (_, Err(error)) if call.fencing.is_some() => {
                    Err(marks::marked_error(&toolbox.0, &call.tool, error))
                }
                (_, structured) => structured,
            };
            let problems = call.problems;
            let completed =
                Completed { completion, structured, cut, marks, problems, advice, inner_refusals };
            return Ok(Stretch::Ended(Box::new(completed)));
        };
        // Native code could hand one on that is not its own.
        let is_own = call.callable.is_none() && question.approval.is_some();
        if is_own || approval::is_reserved(&question.id) {
            return Err(ToolboxError::ReservedQuestion { question: question.id });
        }
        if let Some(reason) = question.flaw().filter(|_| question.approval.is_none()) {
            return Err(ToolboxError::QuestionFlaw { question: question.id, reason });
        }
        // The question of an inner call has its own tool already.
        if question.approval.is_none() && question.asker.is_none() {
            question.asker = Some(call.tool.name.to_string());
            completion.result = Ok(Outcome::NeedsInput(question.clone()));
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
            let mut masking = Masking::new(&toolbox.0.secrets);
            if call.is_masked {
                if let Err(error) = masking.question(&mut question) {
                    let mut completed = Completed::answered(Outcome::Error(error));
                    completed.problems = call.problems;
                    return Ok(Stretch::Ended(Box::new(completed)));
                }
                completion.result = Ok(Outcome::NeedsInput(question.clone()));
            }
            let mut marks = match call.fencing {
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
            marks.leaks = masking.found;
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

/// Logs that a call begins, if it can change or send something: a kill of the process loses
/// nothing that was sent.
///
/// # Errors
///
/// [`ToolboxError::Audit`] if that cannot be logged, and no call may be made then.
fn start(toolbox: &Toolbox, call: &Prepared, outer: &CallContext) -> Result<(), ToolboxError> {
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

/// Masks what looks like a key or a token in what the outermost call gives, and logs it.
fn mask(
    inner: &Inner,
    call: &Prepared,
    completion: &mut Completion,
    context: &RunContext,
) -> Vec<FoundLeak> {
    if !call.is_masked {
        return Vec::new();
    }
    let found = Masking::new(&inner.secrets).completion(completion);
    masking::log(&found, &context.events);
    found
}

/// The component that has a built-in tool.
fn toolset<'a>(inner: &'a Inner, tool: &Tool) -> Option<&'a str> {
    match &tool.source {
        ToolSource::Builtin { name } => Some(inner.builtin(&name.value).ok()?.toolset),
        ToolSource::Script(_) => Some(inner.interpreter().ok()?.toolset),
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

/// The question that a run ended with.
fn question(completion: &Completion) -> Option<Question> {
    match &completion.result {
        Ok(Outcome::NeedsInput(question)) => Some(question.clone()),
        Ok(_) | Err(_) => None,
    }
}
