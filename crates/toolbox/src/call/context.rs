//! The context that a front end gives to a call: its caller, its cancellation, and the front end
//! that answers the tool's questions.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kitbag_config::{Audience, Origin, Sourced};
use kitbag_contract::{Answer, AnswerError, Question};
use kitbag_host::{Account, Cancellation, EventSink, RefusedAccess, RunContext};
use kitbag_policy::http::{HttpRefusal, RefusalKind};

use crate::audit::{Audited, ClientName};
use crate::call::caller::Caller;
use crate::call::scope::Scope;
use crate::remote::Journal;

/// The context of a call from its first step to its last.
///
/// Cheap to clone; clones belong to the same call.
#[derive(Clone)]
pub struct CallContext {
    /// The caller.
    pub caller: Caller,
    /// The receiver of the call's events, and the call's cancellation. The cancellation belongs to
    /// this call alone: dropping the call's future cancels it.
    pub run: RunContext,
    /// The receiver of the record when the call has ended. Default: none.
    pub recorder: Option<Arc<dyn Recorder>>,
    pub(crate) audience: Audience,
    pub(crate) depth: u32,
    pub(crate) scope: Scope,
    /// The owner of the call, which also owns the data that built-in tools keep. `None` before the
    /// call begins: the caller is the owner. Inner calls have the same owner.
    pub(crate) owner: Option<Caller>,
    /// The caller of the outermost call. `None` before that call begins: the caller.
    pub(crate) outermost: Option<Caller>,
    /// The scope of an approval, in addition to the caller, until the process ends: one of several
    /// clients that have the same name. `None`: no approval outlasts its call.
    pub(crate) approver: Option<Arc<str>>,
    /// The program behind the caller, if the caller is a client that names its program.
    pub(crate) client: Option<Arc<ClientName>>,
    /// The entry of the call in the audit log. `None`: the call is not logged.
    pub(crate) audited: Option<Arc<Audited>>,
    /// The journal of effects, if the call may be made again elsewhere after its process ends.
    pub(crate) journal: Option<Arc<dyn Journal>>,
    /// The requests of inner calls that were refused to protect secrets.
    pub(crate) inner_refusals: Arc<Mutex<Vec<HttpRefusal>>>,
}

/// The maximum number of refused requests of inner calls that a call keeps for a person.
const INNER_REFUSALS: usize = 5;

/// The front end that a call comes from: a command line, a server or a program.
pub trait FrontEnd: Send {
    /// The reason why the front end aborts a call over a question.
    type Abort: Send;

    /// The maximum number of times that a question is asked if its answers do not fit.
    const ATTEMPTS: usize = 1;

    /// Waits until the front end can accept another result. The call keeps its permit in the
    /// meantime.
    fn ready(&mut self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Answers a question that the configuration does not answer. `rejected` is the reason why the
    /// previous answer did not fit. A question with [`Question::is_consent`] is for a person: an
    /// answer whose origin is [`Origin::Model`] is rejected.
    fn ask(
        &mut self,
        question: &Question,
        rejected: Option<&AnswerError>,
    ) -> impl Future<Output = Result<Reply, Self::Abort>> + Send;
}

/// The reply of a front end to a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// An answer and its origin.
    Answer(Sourced<Answer>),
    /// There is no answer now: the call is suspended.
    Unanswered,
    /// There is no person to ask. Before a call that needs approval, this refuses the call. Any
    /// other question suspends the call.
    NobodyToAsk,
    /// The person does not want to answer: the call ends.
    Declined,
    /// The person closed the question: the call ends.
    Dismissed,
}

impl Reply {
    /// Returns an answer as text, which is read in the type of the question.
    pub fn text(text: impl Into<String>, origin: Origin) -> Self {
        Self::Answer(Sourced { value: Answer::Text(text.into()), origin })
    }
}

/// A front end without answers. A question suspends the call.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoAnswers;

/// A front end for calls in which no person can be asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unattended;

/// A receiver for the records of calls that have ended.
pub trait Recorder: Send + Sync {
    /// Takes one record.
    fn record(&self, record: &CallRecord<'_>);
}

/// A call that has ended.
#[derive(Clone, Debug)]
pub struct CallRecord<'a> {
    /// The name of the tool that was called. The tool exists.
    pub tool: &'a str,
    /// The caller.
    pub caller: &'a Caller,
    /// The nesting depth of the call. 0 is the outermost call.
    pub depth: u32,
    /// How the call ended.
    pub end: CallStatus,
    /// The time from the call's first step to its last, including questions.
    pub elapsed: Duration,
}

/// How a call ended, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStatus {
    /// The tool answered with success.
    Success,
    /// The tool answered with an error, or was ended by a limit, a trap or the person.
    Error,
    /// The call is suspended over a question.
    Suspended,
    /// The call was not made.
    Refused,
}

impl CallContext {
    /// Creates the context of a call by `caller`, without events and with its own cancellation.
    pub fn new(caller: Caller) -> Self {
        Self {
            caller,
            run: RunContext::default(),
            recorder: None,
            audience: Audience::default(),
            depth: 0,
            scope: Scope::default(),
            owner: None,
            outermost: None,
            approver: Some(Arc::default()),
            client: None,
            audited: None,
            journal: None,
            inner_refusals: Arc::default(),
        }
    }

    /// Keeps the requests of an inner call that were refused because they contained a key or a
    /// secret. A tool that catches the error must not hide them from the person.
    pub(crate) fn keep_refusals(&self, refused: &[RefusedAccess]) {
        if self.depth == 0 {
            return;
        }
        let is_kept = |refusal: &&HttpRefusal| {
            matches!(refusal.kind, RefusalKind::Leak | RefusalKind::Secret)
        };
        let mut kept = self.inner_refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = refused.iter().filter_map(RefusedAccess::as_request);
        for refusal in requests.filter(is_kept) {
            if kept.len() < INNER_REFUSALS && !kept.contains(refusal) {
                kept.push(refusal.clone());
            }
        }
    }

    /// Takes the requests that [`keep_refusals`](Self::keep_refusals) kept. Empty for an inner
    /// call.
    pub(crate) fn take_refusals(&self) -> Vec<HttpRefusal> {
        if self.depth > 0 {
            return Vec::new();
        }
        std::mem::take(&mut *self.inner_refusals.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes the call for an owner other than its caller: the data that built-in tools keep belongs
    /// to the owner.
    #[must_use]
    pub fn with_owner(mut self, owner: Caller) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Restricts an approval until the process ends to the connection of this client, if several
    /// clients have the same name. With `None`, no approval outlasts its call.
    #[must_use]
    pub fn with_approver(mut self, approver: Option<Arc<str>>) -> Self {
        self.approver = approver;
        self
    }

    /// Names the program behind the calling client in the audit log.
    #[must_use]
    pub fn with_client(mut self, client: Option<ClientName>) -> Self {
        self.client = client.map(Arc::new);
        self
    }

    /// Sets the owner and the outermost caller. Inner calls do not change them.
    pub(crate) fn settle_owner(&mut self) {
        self.owner.get_or_insert_with(|| self.caller.clone());
        self.outermost.get_or_insert_with(|| self.caller.clone());
    }

    /// Returns the caller of the outermost call.
    pub(crate) fn outermost(&self) -> &Caller {
        self.outermost.as_ref().unwrap_or(&self.caller)
    }

    /// Charges the call to this tool, unless it is an inner call.
    pub(crate) fn charge_to(&mut self, tool: &str) {
        self.run.account = std::mem::take(&mut self.run.account).charged_to(tool);
    }

    #[cfg(feature = "storage")]
    pub(crate) fn owner(&self) -> &Caller {
        self.owner.as_ref().unwrap_or(&self.caller)
    }

    /// Sends the events of the call to `events`.
    #[must_use]
    pub fn with_events(mut self, events: EventSink) -> Self {
        self.run.events = events;
        self
    }

    /// Charges the resources of the call to the account of a client, if several clients share a
    /// host.
    #[must_use]
    pub fn with_account(mut self, account: Account) -> Self {
        self.run.account = account;
        self
    }

    /// Ends the call when `cancellation` is triggered.
    #[must_use]
    pub fn with_cancellation(mut self, cancellation: Cancellation) -> Self {
        self.run.cancellation = cancellation;
        self
    }

    /// Ends the call at `deadline`, even if its own limits allow more time.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.run.deadline = Some(deadline);
        self
    }

    /// Words the errors of the call, and of its inner calls, for this reader.
    #[must_use]
    pub fn with_audience(mut self, audience: Audience) -> Self {
        self.audience = audience;
        self
    }
}

impl Default for CallContext {
    /// Returns the context of a call by a program without a name.
    fn default() -> Self {
        Self::new(Caller::Program("program".into()))
    }
}

impl FrontEnd for NoAnswers {
    type Abort = Infallible;

    async fn ask(&mut self, _: &Question, _: Option<&AnswerError>) -> Result<Reply, Self::Abort> {
        Ok(Reply::Unanswered)
    }
}

impl FrontEnd for Unattended {
    type Abort = Infallible;

    async fn ask(&mut self, _: &Question, _: Option<&AnswerError>) -> Result<Reply, Self::Abort> {
        Ok(Reply::NobodyToAsk)
    }
}
