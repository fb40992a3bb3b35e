//! How a call ended, or where it stopped: with a question, and with all that it goes on with
//! when that has its answer.

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
use crate::screening::masking::FoundLeak;

/// How a call ended, or where it stopped.
pub enum CallOutcome<R> {
    /// It has ended.
    Completed(Box<Completed>),
    /// A question is open.
    Suspended(Box<Suspended>),
    /// The front end broke it off over a question.
    Refused(R),
}

/// A call that has ended.
pub struct Completed {
    /// How it ended and what it took.
    pub completion: Completion,
    /// The content as the JSON that the tool's output schema promises, where the
    /// invocation asks for it, the tool has one and succeeded.
    pub structured: Result<Option<Value>, ToolboxError>,
    /// What the output limit has cut of the content, where the tool succeeded.
    pub cut: Option<Truncation>,
    /// What is known of the answer besides what it says, of a call that is inside no other.
    pub screening: ScreeningReport,
    /// What was wrong with the tool and did not keep it from running.
    pub problems: Problems,
    /// What the tool was refused in this call and what would allow it, for a person. The error
    /// has it already, as its reader gets it.
    pub advice: Vec<String>,
    /// The requests that calls inside this one were refused since they held a key or a secret, at
    /// most five. The answer need not tell of them: a script can catch the errors.
    pub inner_refusals: Vec<HttpRefusal>,
}

/// A call that waits for an answer: to be made again with all answers so far.
pub struct Suspended {
    /// What the tool wants to know.
    pub question: Question,
    /// Why the last answer did not fit.
    pub rejected: Option<AnswerError>,
    /// How its last run ended, which is with the question.
    pub completion: Completion,
    /// What is known of the question besides what it says.
    pub screening: ScreeningReport,
    pub(crate) call: Box<PreparedCall>,
}

/// The bytes that a suspended call takes besides its strings.
const SUSPENDED_BYTES: usize = 4 << 10;

/// What is known of an answer besides what it says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScreeningReport {
    /// It comes from a tool that reaches the network or runs foreign code.
    pub is_untrusted: bool,
    /// What in it looks like instructions to a model. Empty unless `[output.screen]` is set.
    pub findings: Vec<Finding>,
    /// What in it looks like a key, a token or a password, at most 20. Empty where `mask` of the
    /// tool is off.
    pub leaks: Vec<FoundLeak>,
}

/// What was wrong with a tool and did not keep it from running.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    /// With the disk cache.
    pub cache: Vec<CacheProblem>,
    /// With what the tool says of itself.
    pub description: Option<String>,
}

/// A call that may run: its tool is known, its arguments fit, its grants are settled.
pub(crate) struct PreparedCall {
    /// Its time is what the checks have left of the tool's.
    pub(crate) call: Call,
    /// The time of a whole run, checks included.
    pub(crate) time: Duration,
    pub(crate) tool: Arc<Tool>,
    /// The component, where resolving the tool has loaded it.
    pub(crate) component: Option<Component>,
    pub(crate) presets: BTreeMap<String, Sourced<Answer>>,
    pub(crate) answers: Map<String, Value>,
    /// The content has to fit the tool's output schema.
    pub(crate) is_structured: bool,
    /// How what a model reads of it is marked. `None`: no model reads it, since the call is
    /// inside another one, or kitbag's own.
    pub(crate) fencing: Option<Fencing>,
    /// Whether what looks like a key or a token is masked in what it gives: the call is inside no
    /// other one.
    pub(crate) is_masked: bool,
    pub(crate) problems: Problems,
    pub(crate) approval: Approval,
    /// The tools that it may call. `None`: it calls none.
    pub(crate) callable: Option<Arc<Callable>>,
    pub(crate) inner: Option<InnerCalls>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fencing {
    /// As `[output] fence` says, and where something was found.
    AsSet,
    /// Where something was found alone: a prompt is meant as instructions.
    WhereFound,
}

/// The inner calls of one call, through all of its runs.
#[derive(Default)]
pub struct InnerCalls {
    /// In the order in which they were started.
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
    /// It has ended, and there was no room to keep how.
    Forgotten,
    /// The outer tool did not wait for its end.
    Dropped,
    /// It waits for the answer to this question.
    Asks(Box<Suspended>),
    /// It goes on with the answer to its question in the next run.
    Answered(Box<Suspended>),
}

impl<R> CallOutcome<R> {
    /// How the last run ended, which may be with a question.
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
    /// A call that was answered without running anything.
    pub(crate) fn answered(outcome: Outcome) -> Self {
        let completion = Completion::answered(outcome);
        let (screening, problems) = (ScreeningReport::default(), Problems::default());
        let (structured, advice, inner_refusals) = (Ok(None), Vec::new(), Vec::new());
        Self { completion, structured, cut: None, screening, problems, advice, inner_refusals }
    }
}

impl Suspended {
    /// The answers so far, in the form in which the tool gets them: the state with
    /// which the call is resumed. Of a call that needs approval it holds how far that is, for
    /// an hour and one resumption of the same call in this process.
    pub fn answers(&self) -> Map<String, Value> {
        let mut answers = self.call.answers.clone();
        self.call.approval.add_ticket(&mut answers);
        answers
    }

    /// The name that is called, and the JSON object that the tool gets as its
    /// arguments: the same for the same call.
    pub fn call(&self) -> (&str, &str) {
        (&self.call.call.name, &self.call.call.arguments)
    }

    /// Takes what the call has made of calls of other tools, to go on with
    /// ([`Resumed::inner`](crate::Resumed::inner)). `None` where it made none.
    pub fn take_inner(&mut self) -> Option<InnerCalls> {
        self.call.inner.take().filter(|inner| !inner.is_empty())
    }

    /// How many bytes it takes, about.
    pub(crate) fn size(&self) -> usize {
        let completion = &self.completion;
        let printed = completion.stdout.text.len() + completion.stderr.text.len();
        let answers: usize = self.call.answers.values().map(json::length).sum();
        let inner = self.call.inner.as_ref().map_or(0, InnerCalls::size);
        // The completion has the question, too.
        SUSPENDED_BYTES
            + 2 * self.question.size()
            + self.call.call.arguments.len()
            + answers
            + printed
            + inner
    }

    /// What was wrong with the tool and did not keep it from running.
    pub fn problems(&self) -> &Problems {
        &self.call.problems
    }
}

impl InnerCalls {
    /// How many bytes it takes, about.
    pub fn size(&self) -> usize {
        const EACH: usize = 4 << 10;
        self.kept_bytes + self.asked_bytes() + self.made.len() * EACH
    }

    /// How many bytes the calls take that have asked, about.
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
