//! The approval of a call by a person, between `authorise` and `run`.
//!
//! The question is the host's own. No tool asks it, no preset answers it, and no model answers it.
//! Its id contains a number that cannot be guessed, so that an answer fits this question only. An
//! approval is bound to the caller, the tool, its grants and the arguments that were shown.

mod binding;
pub(crate) mod memory;
mod screen;
pub(crate) mod state;

use std::sync::Arc;

use kitbag_config::{Origin, Sourced, ToolSource};
use kitbag_contract::{AnswerType, ApprovalRequest, Choice, Question, ToolDescription};
use kitbag_host::Component;
use kitbag_policy::{ApprovalRule, CallToApprove, ClassRule};
use serde_json::{Map, Value, json};

use self::binding::{Bound, BoundArguments, bound_arguments};
use self::memory::{Binding, Standing};
use self::state::{Approval, OpenApproval, Ticket};
use crate::call::context::CallContext;
use crate::call::outcome::PreparedCall;
use crate::error::{NotApproved, ToolboxError};
use crate::registry::tool::Tool;
use crate::registry::{Toolbox, ToolboxState};
use crate::screening::random;

/// Returns true if an id is reserved for the host.
pub(crate) fn is_reserved(id: &str) -> bool {
    id.starts_with(ApprovalRequest::ID_PREFIX)
}

/// Returns the answer of a person, with its origin, in the form that is passed to the call.
pub(crate) fn answered(answer: &Value, origin: &Origin) -> Value {
    json!({ "answer": answer, "by": origin.to_string() })
}

pub(crate) fn nobody() -> Value {
    json!({ "answer": null })
}

/// Returns the approval rules of a tool: those of the configuration, and those that the tool
/// declares unless the user config sets `never`. A declared rule that cannot be read is treated as
/// `always`.
pub(crate) fn rules(
    configured: &kitbag_config::ToolApproval,
    says: Option<&ToolDescription>,
) -> kitbag_config::ToolApproval {
    let mut approval = configured.clone();
    let requested =
        says.and_then(|says| says.approve.as_ref()).filter(|_| approval.never.is_none());
    let requested =
        requested.map(|requested| ApprovalRule::read(requested).unwrap_or(ApprovalRule::Always));
    if let Some(value) = requested.filter(|requested| *requested != ApprovalRule::Never) {
        approval.rules.push(Sourced { value, origin: Origin::Tool });
    }
    approval
}

/// The step that is needed before a call is made.
pub(crate) enum Settled {
    Approved,
    Asked(Question),
    /// A person must be asked with [`ask`].
    Unasked(Box<Unasked>),
}

/// A call that a person must be asked about.
pub(crate) struct Unasked {
    asking: Vec<Sourced<ApprovalRule>>,
    arguments: Map<String, Value>,
    held: BoundArguments,
    binding: Binding,
    remembered: Option<Binding>,
}

/// Decides whether the call may be made now.
///
/// # Errors
///
/// [`ToolboxError::NotApproved`].
pub(crate) fn settle(
    toolbox: &Toolbox,
    call: &mut PreparedCall,
    component: Option<&Component>,
    context: &CallContext,
) -> Result<Settled, ToolboxError> {
    // The component is found again for each run, so it may have changed while a person considered
    // the question.
    let binding = |call: &PreparedCall| {
        Bound::new(call, component, context).binding(&format!("call {}", call.call.arguments))
    };
    let claimed = match std::mem::take(&mut call.approval) {
        Approval::Exempt => {
            call.approval = Approval::Exempt;
            return Ok(Settled::Approved);
        }
        Approval::Given(Some(ticket)) if ticket.binding == binding(call) => {
            call.approval = Approval::Given(Some(ticket));
            return Ok(Settled::Approved);
        }
        Approval::Asked(asked) if asked.ticket.binding == binding(call) => {
            return answer(toolbox, call, asked, context);
        }
        Approval::Claimed(ticket) => Some(ticket),
        Approval::Open | Approval::Given(_) => None,
        Approval::Asked(asked) => {
            call.answers.remove(&asked.question.id);
            None
        }
    };
    // If the configuration sets everything else of a component, its description was not read.
    let own = match (&call.tool.source, component) {
        (ToolSource::Local(_) | ToolSource::Bytes(_), Some(component)) => {
            let says = component.description();
            says.and_then(|says| {
                says.tool(call.call.function.as_deref().unwrap_or(call.tool.name.as_str()))
            })
        }
        _ => None,
    };
    let is_known = |rule: &Sourced<ApprovalRule>| rule.origin == Origin::Tool;
    let merged;
    let rules = match own.and_then(|own| own.approve.as_ref()) {
        Some(_) if !call.tool.approve.rules.iter().any(is_known) => {
            merged = rules(&call.tool.approve, own).rules;
            &merged
        }
        _ => &call.tool.approve.rules,
    };
    if rules.is_empty() {
        call.approval = Approval::Given(None);
        return Ok(Settled::Approved);
    }
    let arguments = arguments(call);
    let asking: Vec<_> = {
        let call = CallToApprove {
            arguments: &arguments,
            is_read_only: call.tool.annotations.read_only_hint == Some(true),
            root: call.call.grants.root(),
        };
        rules.iter().filter(|rule| rule.value.asks(&call)).cloned().collect()
    };
    if asking.is_empty() {
        call.approval = Approval::Given(None);
        return Ok(Settled::Approved);
    }
    let bound = Bound::new(call, component, context);
    let held = bound_arguments(&call.tool, &asking, &arguments);
    let remembered = context.approver.as_ref().map(|_| bound.binding(&held.to_string()));
    let binding = bound.binding(&format!("call {}", call.call.arguments));
    let approvals = &toolbox.0.approvals;
    if remembered.is_some_and(|binding| approvals.is_remembered(&binding)) {
        log(&toolbox.0, call, context, "remembered", None);
        call.approval = Approval::Given(None);
        return Ok(Settled::Approved);
    }
    let (approvals, account) = (Arc::clone(approvals), context.run.account.clone());
    let taken = claimed.and_then(|id| Some((approvals.take(&id, &binding)?, id)));
    match taken {
        Some((Standing::Given, id)) => {
            call.approval = Approval::Given(Some(Ticket { id, binding, approvals, account }));
            Ok(Settled::Approved)
        }
        Some((Standing::Asked(question), id)) => {
            let ticket = Ticket { id, binding, approvals, account };
            let asked = OpenApproval { question, ticket, remembered };
            answer(toolbox, call, Box::new(asked), context)
        }
        None => {
            let unasked = Unasked { asking, arguments, held, binding, remembered };
            Ok(Settled::Unasked(Box::new(unasked)))
        }
    }
}

/// Asks a person. The call is made only after the question is answered.
///
/// # Errors
///
/// [`ToolboxError::Random`].
pub(crate) async fn ask(
    toolbox: &Toolbox,
    call: &mut PreparedCall,
    component: Option<&Component>,
    context: &CallContext,
    unasked: Box<Unasked>,
) -> Result<Question, ToolboxError> {
    let id = random::number()?;
    let question = question(toolbox, call, component, context, &id, &unasked).await;
    log(&toolbox.0, call, context, "asked", None);
    let Unasked { binding, remembered, .. } = *unasked;
    let (approvals, account) = (Arc::clone(&toolbox.0.approvals), context.run.account.clone());
    let ticket = Ticket { id, binding, approvals, account };
    let asked = OpenApproval { question: question.clone(), ticket, remembered };
    call.approval = Approval::Asked(Box::new(asked));
    Ok(question)
}

/// Takes the answer of a person, if there is one.
fn answer(
    toolbox: &Toolbox,
    call: &mut PreparedCall,
    asked: Box<OpenApproval>,
    context: &CallContext,
) -> Result<Settled, ToolboxError> {
    let Some(answer) = call.answers.remove(&asked.question.id) else {
        let question = asked.question.clone();
        call.approval = Approval::Asked(asked);
        return Ok(Settled::Asked(question));
    };
    let by = answer["by"].as_str().map(str::to_owned);
    let OpenApproval { question, ticket, remembered } = *asked;
    let why = match (answer["answer"].as_str(), remembered) {
        (Some(ApprovalRequest::ONCE), _) => {
            log(&toolbox.0, call, context, ApprovalRequest::ONCE, by);
            call.approval = Approval::Given(Some(ticket));
            return Ok(Settled::Approved);
        }
        (Some(ApprovalRequest::ALWAYS), Some(binding)) => {
            log(&toolbox.0, call, context, ApprovalRequest::ALWAYS, by);
            ticket.approvals.remember(binding);
            call.approval = Approval::Given(Some(ticket));
            return Ok(Settled::Approved);
        }
        (None, _) => {
            log(&toolbox.0, call, context, "nobody", None);
            let advice = question.approval.map(|approval| approval.advice);
            NotApproved::NobodyToAsk { advice: advice.unwrap_or_default() }
        }
        (Some(_), _) => {
            log(&toolbox.0, call, context, ApprovalRequest::NO, by);
            NotApproved::Declined
        }
    };
    Err(ToolboxError::NotApproved { tool: call.tool.name.to_string(), why })
}

/// Returns the outcome of a call that asks under a denied class.
pub(crate) fn denied(
    call: &PreparedCall,
    question: &Question,
    rule: Option<&Sourced<ClassRule>>,
) -> ToolboxError {
    let class = question.class.clone().unwrap_or_default();
    let origin = rule.map(|rule| rule.origin.clone()).unwrap_or_default();
    let (tool, why) = (call.tool.name.to_string(), NotApproved::Class { class, origin });
    ToolboxError::NotApproved { tool, why }
}

fn arguments(call: &PreparedCall) -> Map<String, Value> {
    let all = match serde_json::from_str(&call.call.arguments) {
        Ok(Value::Object(all)) => all,
        _ => Map::new(),
    };
    match (&call.tool.source, all.get("inputs")) {
        (ToolSource::Script(_), Some(Value::Object(inputs))) => inputs.clone(),
        _ => all,
    }
}

async fn question(
    toolbox: &Toolbox,
    call: &PreparedCall,
    component: Option<&Component>,
    context: &CallContext,
    number: &str,
    unasked: &Unasked,
) -> Question {
    let Unasked { asking, arguments, held, .. } = unasked;
    let tool = &call.tool;
    let (name, source) = (&tool.name, screen::source(toolbox, tool));
    let of = source.map(|source| format!(" ({source})")).unwrap_or_default();
    let by = match &context.owner {
        Some(owner) if *owner != context.caller => format!("{}, for {owner}", context.caller),
        _ => context.caller.to_string(),
    };
    let rules = asking.iter().map(|rule| format!("`approve = {}` ({})", rule.value, rule.origin));
    let rules = rules.collect::<Vec<_>>().join(", ");
    let shown = screen::call(toolbox, tool, component, &call.call, arguments, &context.run).await;
    // The call comes first, so that the last lines that a person reads are kitbag's own.
    let mut text = format!("Call of `{name}`{of}:\n{shown}Called by {by}. Rule: {rules}.\n");
    if let Some(reach) = screen::reach(toolbox, tool, &call.call) {
        text.push_str(&format!("{reach}\n"));
    }
    let mut choices = vec![ApprovalRequest::ONCE];
    if context.approver.is_some() {
        text.push_str(&format!(
            "`{}` allows, in this session, every call of `{name}` with {}.\n",
            ApprovalRequest::ALWAYS,
            screen::sentence(held.arguments())
        ));
        choices.push(ApprovalRequest::ALWAYS);
    }
    choices.push(ApprovalRequest::NO);
    text.push_str(&format!("Allow this call of `{name}`?"));
    let choice = |value: &str| Choice { value: value.into(), title: value.to_owned() };
    Question {
        id: format!("{}approve/{number}", ApprovalRequest::ID_PREFIX),
        text,
        answer_type: AnswerType::Select(choices.into_iter().map(choice).collect()),
        default: None,
        is_consent: true,
        class: None,
        asker: None,
        approval: Some(Box::new(ApprovalRequest {
            tool: name.to_string(),
            line: screen::line(tool, arguments),
            advice: advice(&toolbox.0, tool, asking),
            is_inner: false,
        })),
    }
}

/// Returns how to allow the call without a question: the change to make at the place of each rule.
fn advice(state: &ToolboxState, tool: &Tool, asking: &[Sourced<ApprovalRule>]) -> String {
    let own = state.config.own_file.as_deref();
    let own = own.map_or("your user config".into(), |path| path.to_string_lossy());
    let name = &tool.name;
    let line = format!("set `approve = \"never\"` under `[tools.{name}]` in {own}");
    let mut steps: Vec<String> = Vec::new();
    for rule in asking {
        let step = match &rule.origin {
            Origin::File { path, .. } if path.to_string_lossy() != own => {
                format!("remove `approve` at {}", rule.origin)
            }
            _ => line.clone(),
        };
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    steps.join(" and ")
}

/// Logs the answer to the question in the audit log.
fn log(
    state: &ToolboxState,
    call: &PreparedCall,
    context: &CallContext,
    answer: &str,
    by: Option<String>,
) {
    if let (Some(audited), Some(auditor)) = (&context.audited, &state.auditor) {
        let owner = context.owner.as_ref().unwrap_or(&context.caller);
        let by = by.map(|origin| format!("{owner} ({origin})"));
        audited.approval(auditor, &state.config, &context.caller, call, answer, by);
    }
}
