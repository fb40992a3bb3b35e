//! The outcome of a call: its end, or its suspension with a question and the state to continue with
//! after the answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kitbag_base::json;
use kitbag_config::Sourced;
use kitbag_contract::{Answer, AnswerError, Outcome, Question};
use kitbag_host::{CacheProblem, Call, Completion, Component, Replay, ToolAnswer};
use kitbag_policy::http::HttpRefusal;
use kitbag_policy::screening::Finding;
use serde_json::{Map, Value};

use crate::approval::state::Approval;
use crate::call::scope::Callable;
use crate::error::{ToolboxError, Truncation};
use crate::registry::tool::Tool;
use crate::remote::RemoteState;
use crate::screening::masking::FoundLeak;
use crate::sources::server::OpenCall;
use crate::sources::server_items::{PromptRole, ServerItem};

/// The outcome of a call.
pub enum CallOutcome<R> {
    /// The call has ended.
    Completed(Box<Completed>),
    /// A question is open.
    Suspended(Box<Suspended>),
    /// The front end aborted the call over a question.
    Refused(R),
}

/// A call that has ended.
pub struct Completed {
    /// How the call ended and the resources that it used.
    pub completion: Completion,
    /// The content as the JSON that the tool's output schema promises, if the invocation requests
    /// it, the tool has a schema and the call succeeded.
    pub structured: Result<Option<Value>, ToolboxError>,
    /// The truncation of the content by the output limit, if the tool succeeded.
    pub cut: Option<Truncation>,
    /// Findings about the answer of an outermost call that the answer does not contain.
    pub screening: ScreeningReport,
    /// Problems with the tool that did not prevent the run.
    pub problems: Problems,
    /// The accesses that the tool was refused in this call, with advice on each for a person. The
    /// error already contains the advice for its own reader.
    pub advice: Vec<String>,
    /// The requests of inner calls that were refused because they contained a key or a secret, at
    /// most five. The answer need not mention them: a script can catch the errors.
    pub inner_refusals: Vec<HttpRefusal>,
    /// The role of each emitted content, if the call rendered a prompt of a server. Text of a message
    /// is a resource without a URI.
    pub roles: Vec<PromptRole>,
}

/// A call that waits for an answer. It is made again with all answers that it has.
pub struct Suspended {
    /// The tool's question.
    pub question: Question,
    /// Why the last answer did not fit.
    pub rejected: Option<AnswerError>,
    /// How the last run of the call ended, which is with the question.
    pub completion: Completion,
    /// Findings about the question that the question does not contain.
    pub screening: ScreeningReport,
    pub(crate) call: Box<PreparedCall>,
}

/// The size of a suspended call without its strings, in bytes.
const SUSPENDED_BYTES: usize = 4 << 10;

/// Findings about an answer that the answer does not contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScreeningReport {
    /// True if the answer comes from a tool that reaches the network or runs foreign code.
    pub is_untrusted: bool,
    /// Parts of the answer that look like instructions to a model. Empty unless `[output.screen]`
    /// is set.
    pub findings: Vec<Finding>,
    /// Parts of the answer that look like a key, a token or a password, at most 20. Empty if `mask`
    /// of the tool is off.
    pub leaks: Vec<FoundLeak>,
}

/// Problems with a tool that did not prevent its run.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    /// Problems with the disk cache.
    pub cache: Vec<CacheProblem>,
    /// The problem with the tool's own description.
    pub description: Option<String>,
}

/// A call that may run: its tool is resolved, its arguments fit and its grants are settled.
pub(crate) struct PreparedCall {
    /// The call. Its time limit is the part of the tool's limit that the checks left.
    pub(crate) call: Call,
    /// The time limit of a whole run, including checks.
    pub(crate) time: Duration,
    pub(crate) tool: Arc<Tool>,
    /// The component, if resolving the tool loaded it.
    pub(crate) component: Option<Component>,
    pub(crate) presets: BTreeMap<String, Sourced<Answer>>,
    pub(crate) answers: Map<String, Value>,
    /// True if the content must fit the tool's output schema.
    pub(crate) is_structured: bool,
    /// How text for a model is marked. `None` if no model reads it, because the call is an inner
    /// call or kitbag's own.
    pub(crate) fencing: Option<Fencing>,
    /// True if the call masks keys and tokens in its output, which only the outermost call does.
    pub(crate) is_masked: bool,
    pub(crate) problems: Problems,
    pub(crate) approval: Approval,
    /// The tools that the call may call. `None` if it may call no tools.
    pub(crate) callable: Option<Arc<Callable>>,
    pub(crate) inner: Option<InnerCalls>,
    /// The call of a server's tool, once it was sent. It may wait for an answer.
    #[cfg_attr(not(feature = "servers"), expect(dead_code, reason = "no call is ever open"))]
    pub(crate) server: Option<OpenCall>,
    /// The prompt or resource that is requested from a server instead of a call.
    pub(crate) item: Option<ServerItem>,
    pub(crate) roles: Vec<PromptRole>,
    /// The part of the call for a worker, if a worker makes it.
    pub(crate) remote: Option<Box<RemoteState>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fencing {
    /// As `[output] fence` sets, and around findings.
    AsSet,
    /// Only around findings, because a prompt is meant as instructions.
    WhereFound,
}

/// The inner calls of one call, in all of its runs.
#[derive(Default)]
pub struct InnerCalls {
    /// The inner calls, in the order in which they were started.
    pub(crate) made: Vec<InnerCall>,
    pub(crate) asked: BTreeSet<String>,
    pub(crate) kept_bytes: usize,
    pub(crate) replay: Replay,
}

pub(crate) struct InnerCall {
    pub(crate) alias: String,
    pub(crate) arguments: blake3::Hash,
    pub(crate) state: InnerState,
}

pub(crate) enum InnerState {
    Runs,
    Ended(ToolAnswer),
    /// The call has ended, but there was no room to keep its outcome.
    Forgotten,
    /// The outer tool did not wait for the end of the call.
    Dropped,
    /// The call waits for the answer to this question.
    Asks(Box<Suspended>),
    /// The call continues with the answer to its question in the next run.
    Answered(Box<Suspended>),
}

impl<R> CallOutcome<R> {
    /// Returns the end of the last run, which may be a question.
    ///
    /// # Errors
    ///
    /// The refusal of the front end.
    pub fn completion(self) -> Result<Completion, R> {
        match self {
            Self::Completed(call) => Ok(call.completion),
            Self::Suspended(call) => Ok(call.completion),
            Self::Refused(refusal) => Err(refusal),
        }
    }
}

impl Completed {
    /// Returns the end of a call that was answered without a run.
    pub(crate) fn answered(outcome: Outcome) -> Self {
        let completion = Completion::answered(outcome);
        let (screening, problems) = (ScreeningReport::default(), Problems::default());
        Self {
            completion,
            structured: Ok(None),
            cut: None,
            screening,
            problems,
            advice: Vec::new(),
            inner_refusals: Vec::new(),
            roles: Vec::new(),
        }
    }
}

impl Suspended {
    /// Returns the answers that the call has, in the form that the tool receives. They are the
    /// state with which the call is resumed. For a call that needs approval, they also contain its
    /// approval state, which is valid for an hour and for one resumption of the same call in this
    /// process.
    pub fn answers(&self) -> Map<String, Value> {
        let mut answers = self.call.answers.clone();
        self.call.approval.add_ticket(&mut answers);
        answers
    }

    /// Returns the called name, and the JSON object that the tool receives as its arguments. Equal
    /// calls give equal strings.
    pub fn call(&self) -> (&str, &str) {
        (&self.call.call.name, &self.call.call.arguments)
    }

    /// Takes the inner calls that the call has made, to continue with
    /// ([`Resumed::inner`](crate::Resumed::inner)). `None` if it made no inner calls.
    pub fn take_inner(&mut self) -> Option<InnerCalls> {
        self.call.inner.take().filter(|inner| !inner.is_empty())
    }

    /// Returns the approximate size of the suspended call in bytes.
    pub(crate) fn size(&self) -> usize {
        let completion = &self.completion;
        let printed = completion.stdout.text.len() + completion.stderr.text.len();
        let answers: usize = self.call.answers.values().map(json::length).sum();
        let inner = self.call.inner.as_ref().map_or(0, InnerCalls::size);
        // The completion also contains the question.
        SUSPENDED_BYTES
            + 2 * self.question.size()
            + self.call.call.arguments.len()
            + answers
            + printed
            + inner
    }

    /// Returns the problems with the tool that did not prevent the run.
    pub fn problems(&self) -> &Problems {
        &self.call.problems
    }
}

impl InnerCalls {
    /// Returns the approximate size of the inner calls in bytes.
    pub fn size(&self) -> usize {
        const EACH: usize = 4 << 10;
        self.kept_bytes + self.asked_bytes() + self.made.len() * EACH
    }

    /// Returns the approximate size in bytes of the inner calls that have asked a question.
    pub(crate) fn asked_bytes(&self) -> usize {
        let asking = self.made.iter().filter_map(|made| match &made.state {
            InnerState::Asks(asks) | InnerState::Answered(asks) => Some(asks.size()),
            _ => None,
        });
        asking.sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.made.is_empty()
    }
}
