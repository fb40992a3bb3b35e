//! Inner calls, which a component makes of other tools.
//!
//! The guest asks through a [`ToolPort`]. [`run`] awaits the guest and its inner calls together, on
//! one thread. An inner call is a complete call, with one exception: its question ends the run of
//! the outer tool and becomes a question of the outer call. With the answer, the outer tool runs
//! again from the start, and each inner call that had ended is answered from its kept result.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use kitbag_base::json::{self, JsonBudget};
use kitbag_config::{Audience, Disabled};
use kitbag_contract::{ErrorInfo, LimitKind, Outcome, Question};
use kitbag_host::{
    CALL_DEPTH, CallError, CallableTool, Completion, Component, NestedRequest, PendingAnswer,
    Reservation, SOUGHT_TOOLS, ToolAnswer, ToolCalls, ToolPort, ToolStart, ToolSuccess,
};
use kitbag_schema::Arguments;
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, oneshot};

use crate::call::caller::Caller;
use crate::call::context::{CallContext, NoAnswers};
use crate::call::invocation::Invocation;
use crate::call::outcome::{
    CallOutcome, Completed, InnerCall, InnerCalls, InnerState, PreparedCall, Suspended,
};
use crate::call::scope::{Callable, Via};
use crate::error::ToolboxError;
use crate::pipeline::edge::Nested;
use crate::registry::Toolbox;
use crate::registry::resolve;

/// The number of inner calls of one call that run concurrently. The others wait.
const AT_ONCE: usize = 4;

/// The maximum size of the results of ended inner calls that are kept for the next run.
const KEPT_BYTES: usize = 8 << 20;

/// The maximum size of the arguments of waiting inner calls, as text. Above it, no further call is
/// started.
const WAITING_BYTES: usize = 4 << 20;

/// The maximum size of inner calls that have asked a question. Above it, their questions are put to
/// the person before other calls are made.
const ASKED_BYTES: usize = 4 << 20;

/// The maximum size of the arguments of all running inner calls, as values. The arguments of one
/// call may exceed it, and are then reserved separately.
const RUNNING_BYTES: u64 = 8 << 20;

type InnerEnd = (usize, End, Option<ArgumentMemory>);

enum End {
    /// The guest did not wait for the call.
    Dropped,
    Answered(ToolAnswer, oneshot::Sender<PendingAnswer>),
    Asks(Box<Suspended>, oneshot::Sender<PendingAnswer>),
    /// The call has the time limit of the outer call and ends with it. The guest receives no
    /// answer, since it could run on briefly as if the limit were one of the inner call.
    OutOfTime(oneshot::Sender<PendingAnswer>),
}

/// An inner call that has ended without an answer, and for which the guest still waits. The
/// question is `None` if the guest's own time is also up.
type Unanswered = (Option<Question>, oneshot::Sender<PendingAnswer>);

type Running<'a> = Pin<Box<dyn Future<Output = InnerEnd> + 'a>>;

/// An inner call to make.
struct Job {
    position: usize,
    alias: String,
    work: Work,
    reply: oneshot::Sender<PendingAnswer>,
}

enum Work {
    Begin(Box<Unread>),
    Resume(Box<Suspended>),
}

/// An inner call whose arguments are parsed when the call is made.
struct Unread {
    tool: String,
    via: Option<Via>,
    arguments: String,
}

impl Work {
    fn arguments(&self) -> &str {
        match self {
            Self::Begin(unread) => &unread.arguments,
            Self::Resume(asks) => asks.call().1,
        }
    }
}

/// The memory for the arguments of a running inner call.
enum ArgumentMemory {
    /// A part of [`RUNNING_BYTES`].
    OfOuter(u64),
    Reserved {
        _reservation: Reservation,
    },
}

enum Begun {
    Made(Work),
    /// The previous run made the call.
    Kept(ToolAnswer),
    /// The previous run did not wait for the call.
    Never,
    Denied(&'static str, ErrorInfo),
    Asks(Question),
}

impl InnerCalls {
    /// Takes the answers to questions of inner calls, and keeps those of the outer tool.
    pub(crate) fn take_answers(&mut self, answers: &Map<String, Value>) -> Map<String, Value> {
        let mut own = Map::new();
        for (id, answer) in answers {
            if !self.asked.contains(id) {
                own.insert(id.clone(), answer.clone());
                continue;
            }
            let Some(made) = position(id).and_then(|position| self.made.get_mut(position)) else {
                continue;
            };
            made.state = match std::mem::replace(&mut made.state, InnerState::Runs) {
                InnerState::Asks(mut asks) if question_id(id, &asks.question) => {
                    asks.call.answers.insert(asks.question.id.clone(), answer.clone());
                    InnerState::Answered(asks)
                }
                state => state,
            };
        }
        own
    }

    /// Records how a call ended, and answers the guest. Returns the call if the guest must continue
    /// to wait for it.
    fn end(&mut self, position: usize, end: End, port: &ToolPort) -> Option<Unanswered> {
        let made = self.made.get_mut(position)?;
        match end {
            End::Dropped => {
                made.state = InnerState::Dropped;
                None
            }
            End::OutOfTime(reply) => {
                made.state = InnerState::Dropped;
                Some((None, reply))
            }
            End::Answered(answer, reply) => {
                let bytes =
                    answer.as_ref().map_or_else(|error| error.message.len(), ToolSuccess::size);
                made.state = match self.kept_bytes.saturating_add(bytes) {
                    kept if kept > KEPT_BYTES => InnerState::Forgotten,
                    kept => {
                        self.kept_bytes = kept;
                        InnerState::Ended(answer.clone())
                    }
                };
                // The guest may have dropped the call in the meantime.
                let _ = reply.send(port.hold(answer));
                None
            }
            End::Asks(asks, reply) => {
                let question = asked(position, &made.alias, &asks.question);
                self.asked.insert(question.id.clone());
                made.state = InnerState::Asks(asks);
                Some((Some(question), reply))
            }
        }
    }

    /// Decides how to handle the next call, at this position.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::Diverged`] if the previous run made a different call at this position.
    fn begin(
        &mut self,
        position: usize,
        alias: &str,
        arguments: &str,
        callable: impl FnOnce() -> Result<(String, Option<Via>), (&'static str, ErrorInfo)>,
    ) -> Result<Begun, ToolboxError> {
        let digest = blake3::hash(arguments.as_bytes());
        let Some(made) = self.made.get_mut(position) else {
            return Ok(match callable() {
                Ok((tool, via)) => {
                    let state = InnerState::Runs;
                    self.made.push(InnerCall { alias: alias.to_owned(), arguments: digest, state });
                    let arguments = arguments.to_owned();
                    Begun::Made(Work::Begin(Box::new(Unread { tool, via, arguments })))
                }
                Err((reason, error)) => Begun::Denied(reason, error),
            });
        };
        if made.alias != alias || made.arguments != digest {
            return Err(ToolboxError::Diverged {
                number: position + 1,
                before: made.alias.clone(),
                now: alias.to_owned(),
            });
        }
        Ok(match std::mem::replace(&mut made.state, InnerState::Runs) {
            InnerState::Answered(asks) => Begun::Made(Work::Resume(asks)),
            InnerState::Ended(answer) => {
                made.state = InnerState::Ended(answer.clone());
                Begun::Kept(answer)
            }
            InnerState::Asks(asks) => {
                let question = asked(position, alias, &asks.question);
                made.state = InnerState::Asks(asks);
                Begun::Asks(question)
            }
            InnerState::Dropped | InnerState::Forgotten | InnerState::Runs => {
                made.state = InnerState::Dropped;
                Begun::Never
            }
        })
    }

    /// Adds the other calls that wait for approval to an approval question, before its last line.
    fn add_waiting(&self, question: &mut Question) {
        if question.approval.is_none() {
            return;
        }
        let asked = position(&question.id);
        let waiting = self.made.iter().enumerate().filter_map(|(at, made)| match &made.state {
            InnerState::Asks(asks) if Some(at) != asked => asks.question.approval.as_ref(),
            _ => None,
        });
        let lines: Vec<_> = waiting.map(|approval| format!("  {}\n", approval.line)).collect();
        if !lines.is_empty() {
            let calls = if lines.len() == 1 { "call waits" } else { "calls wait" };
            let more = format!("{} more {calls} for approval:\n{}", lines.len(), lines.concat());
            let last = question.text.rfind('\n').map_or(0, |at| at + 1);
            question.text.insert_str(last, &more);
        }
    }

    /// Checks that the tool can be run again after a question.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::TooMuchToKeep`].
    fn check_kept(&self) -> Result<(), ToolboxError> {
        match self.made.iter().any(|made| matches!(made.state, InnerState::Forgotten)) {
            true => Err(ToolboxError::TooMuchToKeep { limit: KEPT_BYTES }),
            false => Ok(()),
        }
    }
}

/// Runs a component that may call other tools. A question of an inner call becomes a question of
/// this call.
///
/// # Errors
///
/// [`ToolboxError::Diverged`] if the component does not make the calls of its previous run, and
/// [`ToolboxError::TooMuchToKeep`] if a question cannot be asked.
pub(crate) async fn run(
    toolbox: &Toolbox,
    component: &Component,
    prepared: &mut PreparedCall,
    callable: &Arc<Callable>,
    outer: &CallContext,
) -> Result<Completion, ToolboxError> {
    let (port, mut requests) = ToolPort::new();
    let replay = prepared.inner.get_or_insert_default().replay.clone();
    prepared.call.tools = Some(ToolCalls { port: port.clone(), replay });
    let context = context(prepared, callable, outer);
    let PreparedCall { call, inner, .. } = prepared;
    let calls = inner.get_or_insert_default();
    let limit = usize::try_from(call.limits.tool_calls).unwrap_or(usize::MAX);
    let (mut started, mut misses_tools) = (0, false);
    let mut sought_tools = Vec::new();
    // Replies that are never sent.
    let mut never = Vec::new();
    let mut waiting = VecDeque::<Job>::new();
    let mut running = FuturesUnordered::<Running<'_>>::new();
    // The sizes of `waiting` and `running`.
    let (mut waiting_bytes, mut running_bytes) = (0, 0);
    let mut guest = pin!(toolbox.host().call(component, call, &outer.run));
    // The first call that waits for approval. Further calls that the guest starts are still
    // started, so that all waiting calls are shown together. The person is asked when the guest
    // itself waits.
    let mut approval: Option<Question> = None;
    let question = loop {
        while running.len() < AT_ONCE
            && (approval.is_none() || calls.asked_bytes() <= ASKED_BYTES)
            && let Some(job) = waiting.front()
        {
            let cost = json::cost(job.work.arguments().as_bytes());
            let memory = if cost > RUNNING_BYTES {
                let reserved = toolbox.host().reserve(&context.run.account, cost);
                reserved.map(|reservation| ArgumentMemory::Reserved { _reservation: reservation })
            } else if running_bytes + cost <= RUNNING_BYTES {
                running_bytes += cost;
                Some(ArgumentMemory::OfOuter(cost))
            } else {
                break;
            };
            let job = waiting.pop_front().expect("it is the first");
            waiting_bytes -= job.work.arguments().len();
            running.push(Box::pin(perform(toolbox, job, memory, context.clone(), outer)));
        }
        let request = tokio::select! {
            biased;
            completion = &mut guest => match approval {
                None => return Ok(Completion { misses_tools, sought_tools, ..completion }),
                Some(question) => break question,
            },
            Some((position, end, memory)) = running.next(), if !running.is_empty() => {
                if let Some(ArgumentMemory::OfOuter(bytes)) = memory {
                    running_bytes -= bytes;
                }
                let Some((question, reply)) = calls.end(position, end, &port) else { continue };
                never.push(reply);
                // If there is no question, the guest's own time limit ends it.
                let Some(question) = question else { continue };
                if question.approval.is_none() {
                    break question;
                }
                approval.get_or_insert(question);
                continue;
            }
            Some(request) = requests.recv(), if waiting_bytes <= WAITING_BYTES => request,
            () = std::future::ready(()), if approval.is_some() => {
                break approval.expect("it is some");
            }
        };
        let (alias, arguments, reply) = match request {
            NestedRequest::List { reply } => {
                // The guest may have ended in the meantime, here and below.
                let _ = reply.send(list(toolbox, callable));
                continue;
            }
            NestedRequest::Find { alias, reply } => {
                let found = find(toolbox, callable, &alias, outer);
                if found.is_none()
                    && let Some(reason) = why_not_found(toolbox, callable, &alias)
                {
                    refuse(outer, &alias, reason);
                }
                let is_news = found.is_none() && !sought_tools.contains(&alias);
                if is_news && sought_tools.len() < SOUGHT_TOOLS {
                    sought_tools.push(alias);
                }
                let _ = reply.send(found);
                continue;
            }
            NestedRequest::Start { alias, arguments, reply } => (alias, arguments, reply),
        };
        let begun = calls.begin(started, &alias, &arguments, || {
            let refused = |reason| move |error| (reason, error);
            if started >= limit {
                return Err((
                    "limit",
                    ErrorInfo::new(format!(
                        "the call made {limit} calls of other tools, its limit `tool_calls`"
                    )),
                ));
            }
            if arguments.len() > JsonBudget::ARGUMENTS.bytes {
                read(&arguments).map_err(refused("arguments"))?;
            }
            let resolved = callable.resolve(toolbox.config(), &alias, outer.audience);
            misses_tools |= resolved.is_err();
            let (tool, via) = resolved.map_err(refused("grant"))?;
            if !toolbox.config().tools.contains_key(tool) {
                // This is not a call of a tool, which would have its own line.
                refuse(outer, &alias, "unknown");
            }
            Ok((tool.to_owned(), via))
        })?;
        let (sender, receiver) = oneshot::channel();
        let answer: ToolStart = match begun {
            Begun::Denied(reason, error) => {
                refuse(outer, &alias, reason);
                let _ = reply.send(Err(error));
                continue;
            }
            Begun::Asks(question) => break question,
            Begun::Made(work) => {
                if let Some(audited) = &outer.audited {
                    audited.called(&alias);
                }
                waiting_bytes += work.arguments().len();
                waiting.push_back(Job { position: started, alias, work, reply: sender });
                Ok(receiver)
            }
            Begun::Kept(answer) => {
                let _ = sender.send(port.hold(answer));
                Ok(receiver)
            }
            Begun::Never => {
                never.push(sender);
                Ok(receiver)
            }
        };
        started += 1;
        let _ = reply.send(answer);
    };
    let mut question = question;
    // Running calls continue to their end, since a started call is not made a second time. Waiting
    // calls are made in the next run. The guest waits in the meantime.
    let begun = waiting.iter().map(|job| job.position).min();
    while let Some((position, end, _)) = running.next().await {
        if let Some((None, reply)) = calls.end(position, end, &port) {
            never.push(reply);
            return Ok(guest.await);
        }
    }
    calls.made.truncate(begun.unwrap_or(usize::MAX));
    calls.check_kept()?;
    calls.add_waiting(&mut question);
    Ok(Completion::answered(Outcome::NeedsInput(question)))
}

/// Returns the context of inner calls: the remaining time of the outer call, without its rights.
fn context(prepared: &PreparedCall, callable: &Arc<Callable>, outer: &CallContext) -> CallContext {
    let mut context = outer.clone();
    context.caller = Caller::Tool(prepared.tool.name.clone());
    context.depth += 1;
    context.scope = callable.scope();
    context.run.events = kitbag_host::EventSink::default();
    context.run.deadline = Instant::now().checked_add(outer.run.time(prepared.call.limits.time));
    context.run.inner_memory.get_or_insert_with(|| Arc::new(Semaphore::new(1)));
    context
}

/// Makes an inner call, unless the guest drops it or its arguments do not fit in memory.
async fn perform(
    toolbox: &Toolbox,
    job: Job,
    memory: Option<ArgumentMemory>,
    context: CallContext,
    outer: &CallContext,
) -> InnerEnd {
    let Job { position, alias, work, mut reply } = job;
    if memory.is_none() {
        let busy = "busy: other calls have reserved the memory for arguments of this size";
        let error = ErrorInfo { transient: true, ..ErrorInfo::new(busy) };
        return (position, End::Answered(Err(error), reply), None);
    }
    let (depth, caller) = (context.depth, context.caller.to_string());
    let (deadline, audience) = (context.run.deadline, context.audience);
    let account = context.run.account.clone();
    let call = async {
        match work {
            Work::Begin(unread) => {
                let Unread { tool, via, arguments } = *unread;
                let read = read(&arguments)?;
                drop(arguments);
                let invocation = Invocation::tool(tool, read).via(via).structured();
                Ok(toolbox.drive(&Nested, invocation, context, &mut NoAnswers).await)
            }
            Work::Resume(asks) => Ok(toolbox.resume(&Nested, asks, context, &mut NoAnswers).await),
        }
    };
    tokio::select! {
        biased;
        () = reply.closed() => (position, End::Dropped, memory),
        ended = toolbox.host().inner(depth, &account, call) => {
            let is_over = || deadline.is_some_and(|at| Instant::now() >= at);
            let end = match ended.transpose() {
                Err(unread) => {
                    refuse(outer, &alias, "arguments");
                    End::Answered(Err(unread), reply)
                }
                Ok(Some(Ok(CallOutcome::Completed(completed)))) => match &completed.completion.result {
                    Err(error) if is_time(error) && is_over() => End::OutOfTime(reply),
                    _ => End::Answered(answer(*completed, audience), reply),
                },
                Ok(Some(Ok(CallOutcome::Suspended(asks)))) => End::Asks(asks, reply),
                Ok(Some(Ok(CallOutcome::Refused(refusal)))) => match refusal {},
                Ok(Some(Err(ToolboxError::Call(error)))) if is_time(&error) && is_over() => {
                    End::OutOfTime(reply)
                }
                Ok(Some(Err(error))) => End::Answered(Err(failure(&error, audience)), reply),
                Ok(None) => {
                    refuse(outer, &alias, "depth");
                    let error = ToolboxError::TooDeep { caller, limit: CALL_DEPTH };
                    End::Answered(Err(failure(&error, audience)), reply)
                }
            };
            (position, end, memory)
        }
    }
}

fn is_time(error: &CallError) -> bool {
    matches!(error, CallError::Limit { kind: LimitKind::Time, .. })
}

fn answer(completed: Completed, audience: Audience) -> ToolAnswer {
    let Completed { completion, structured, .. } = completed;
    match completion.result {
        Ok(Outcome::Success(text)) => {
            let structured = structured.map_err(|error| failure(&error, audience))?;
            let structured = structured.map(|value| value.to_string());
            Ok(ToolSuccess { text, structured, content: completion.emitted })
        }
        Ok(Outcome::Error(error)) => Err(error),
        Ok(Outcome::NeedsInput(question)) => Err(ErrorInfo::new(question.text)),
        Err(error) => Err(failure(&ToolboxError::Call(error), audience)),
    }
}

fn failure(error: &ToolboxError, audience: Audience) -> ErrorInfo {
    let message = error.message_for(audience, None);
    ErrorInfo { transient: error.kind().is_transient(), ..ErrorInfo::new(message) }
}

fn read(arguments: &str) -> Result<Arguments, ErrorInfo> {
    let read = json::parse_exact(arguments.as_bytes(), JsonBudget::ARGUMENTS);
    let (value, digits) =
        read.map_err(|error| ErrorInfo::new(format!("invalid arguments: {error}")))?;
    Ok(Arguments::exact(value, digits))
}

/// Records that a call of another tool was refused.
fn refuse(outer: &CallContext, alias: &str, reason: &'static str) {
    if let Some(audited) = &outer.audited {
        audited.refused_call(alias, reason);
    }
}

/// Returns the reason why the guest cannot find an existing tool. `None` if the tool does not
/// exist.
fn why_not_found(toolbox: &Toolbox, callable: &Callable, alias: &str) -> Option<&'static str> {
    let Some(name) = callable.find(alias) else {
        return toolbox.config().tools.contains_key(alias).then_some("grant");
    };
    match toolbox.config().tools.get(name.as_str())?.disabled {
        Some(Disabled::Untrusted | Disabled::UntrustedSwitch { .. }) => Some("trust"),
        Some(_) => Some("disabled"),
        None => None,
    }
}

/// Returns the tools that the guest can call. Tools that cannot be loaded are omitted.
fn list(toolbox: &Toolbox, callable: &Callable) -> Vec<CallableTool> {
    let tools = callable.tools(toolbox.config()).into_iter();
    let described = tools.filter_map(|(alias, name)| {
        let tool = toolbox.tool(name.as_str()).ok()?;
        Some(CallableTool {
            alias,
            description: tool.description.map(|it| it.value).unwrap_or_default(),
            input_schema: tool.input_schema.value.to_string(),
            output_schema: tool.output_schema.map(|schema| schema.value.to_string()),
        })
    });
    described.collect()
}

/// Returns the tool with this alias, if the guest can call it and it can be loaded.
fn find(
    toolbox: &Toolbox,
    callable: &Callable,
    alias: &str,
    outer: &CallContext,
) -> Option<CallableTool> {
    let name = callable.find(alias)?;
    let configured = toolbox.0.find(name.as_str()).ok()?;
    let (tool, _) = resolve::resolve(&toolbox.0, configured, &outer.run).ok()?;
    Some(CallableTool {
        alias: alias.to_owned(),
        description: tool.description.as_ref().map(|it| it.value.clone()).unwrap_or_default(),
        input_schema: tool.input_schema.value.to_string(),
        output_schema: tool.output_schema.as_ref().map(|schema| schema.value.to_string()),
    })
}

/// Returns the question of an inner call as a question of the outer call.
fn asked(position: usize, alias: &str, question: &Question) -> Question {
    let id = format!("{position}/{alias}/{}", question.id);
    let mut question = Question { id, ..question.clone() };
    if let Some(approval) = &mut question.approval {
        approval.is_inner = true;
    }
    question
}

fn position(id: &str) -> Option<usize> {
    id.split_once('/')?.0.parse().ok()
}

/// Returns true if `id` is the id of this question of an inner call.
fn question_id(id: &str, question: &Question) -> bool {
    id.splitn(3, '/').nth(2) == Some(&*question.id)
}
