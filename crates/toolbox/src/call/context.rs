//! What a front end brings to a call: who calls, what ends it, who answers the tool's
//! questions.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kitbag_config::{Audience, Sourced};
use kitbag_contract::{Answer, AnswerError, Question};
use kitbag_host::{Account, Cancellation, EventSink, RefusedAccess, RunContext};
use kitbag_policy::http::{HttpRefusal, RefusalKind};

use crate::audit::{Audited, ClientName};
use crate::call::caller::Caller;
use crate::call::scope::Scope;

/// What goes with one call from its first step to its last.
///
/// Cheap to clone; clones belong to the same call.
#[derive(Clone)]
pub struct CallContext {
    /// Who makes the call.
    pub caller: Caller,
    /// What takes its events and what ends it. The cancellation belongs to this call
    /// alone: dropping the call's future cancels it.
    pub run: RunContext,
    /// What takes the record of the call when it has ended. Default: nothing.
    pub recorder: Option<Arc<dyn Recorder>>,
    pub(crate) audience: Audience,
    pub(crate) depth: u32,
    pub(crate) scope: Scope,
    /// The owner of the call: what built-in tools keep belongs to it. `None`, before the
    /// call begins: its caller. Calls inside of it have the same.
    pub(crate) owner: Option<Caller>,
    /// The caller of the outermost call. `None`, before that begins: the caller.
    pub(crate) outermost: Option<Caller>,
    /// Whom an approval until the process ends counts for, besides the caller: one client of
    /// several that have the same name. `None`: none counts longer than its call.
    pub(crate) approver: Option<Arc<str>>,
    /// The program behind the caller, where that is a client which names it.
    pub(crate) client: Option<Arc<ClientName>>,
    /// What the audit log is to say of it. `None`: nothing.
    pub(crate) audited: Option<Arc<Audited>>,
    /// The requests that calls inside this one were refused to protect secrets.
    pub(crate) inner_refusals: Arc<Mutex<Vec<HttpRefusal>>>,
}

/// The most refused requests of inner calls that a call keeps for a person.
const INNER_REFUSALS: usize = 5;

/// The front end that a call comes from: a command line, a server, a program.
pub trait FrontEnd: Send {
    /// Why the front end breaks a call off over a question.
    type Abort: Send;

    /// How often a question is asked where the answer does not fit.
    const ATTEMPTS: usize = 1;

    /// Waits until the front end can take another result. The call has its permit
    /// meanwhile.
    fn ready(&mut self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Answers a question that the configuration does not answer. `rejected` says why
    /// the answer before did not fit. A question with [`Question::is_consent`] is for a
    /// person: an answer to it whose origin is
    /// [`Origin::Model`](kitbag_config::Origin::Model) counts as none.
    fn ask(
        &mut self,
        question: &Question,
        rejected: Option<&AnswerError>,
    ) -> impl Future<Output = Result<Reply, Self::Abort>> + Send;
}

/// What a front end replies to a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// An answer, and where it came from.
    Answer(Sourced<Answer>),
    /// There is no answer now: the call is suspended.
    Unanswered,
    /// There is nobody who could be asked. Before a call that needs approval this refuses it;
    /// any other question suspends the call.
    NobodyToAsk,
    /// The person does not want to answer: the call ends.
    Declined,
    /// The person closed the question: the call ends.
    Dismissed,
}

/// A front end without answers: a question suspends the call.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoAnswers;

/// A front end of calls in which nobody can be asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unattended;

/// Takes the records of calls that have ended.
pub trait Recorder: Send + Sync {
    /// Takes one record.
    fn record(&self, record: &CallRecord<'_>);
}

/// A call that has ended.
#[derive(Clone, Debug)]
pub struct CallRecord<'a> {
    /// The tool that was called, which exists.
    pub tool: &'a str,
    /// Who called it.
    pub caller: &'a Caller,
    /// How many calls it was inside of.
    pub depth: u32,
    /// How the call ended.
    pub end: CallStatus,
    /// From the call's first step to its last, questions included.
    pub elapsed: Duration,
}

/// How a call ended, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStatus {
    /// The tool answered with success.
    Success,
    /// The tool answered with an error, or a limit, a trap or the person ended it.
    Error,
    /// It is suspended over a question.
    Suspended,
    /// It was not made.
    Refused,
}

impl CallContext {
    /// The context of a call by `caller`, without events and with a cancellation of its
    /// own.
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
            inner_refusals: Arc::default(),
        }
    }

    /// Keeps the requests that a call inside another one was refused because they held a key or
    /// a secret: a tool that catches the error must not hide them from the person.
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

    /// Takes what [`keep_refusals`](Self::keep_refusals) has kept. Nothing, inside another call.
    pub(crate) fn take_refusals(&self) -> Vec<HttpRefusal> {
        if self.depth > 0 {
            return Vec::new();
        }
        std::mem::take(&mut *self.inner_refusals.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes the call for another one than its caller: what built-in tools keep is found and
    /// kept as that one's.
    #[must_use]
    pub fn with_owner(mut self, owner: Caller) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Has an approval until the process ends count for this client alone, of those that have
    /// the same name: for its connection. With `None` no approval counts longer than its call.
    #[must_use]
    pub fn with_approver(mut self, approver: Option<Arc<str>>) -> Self {
        self.approver = approver;
        self
    }

    /// Has the audit log name the program behind the client that calls.
    #[must_use]
    pub fn with_client(mut self, client: Option<ClientName>) -> Self {
        self.client = client.map(Arc::new);
        self
    }

    /// Settles the owner and the caller of the outermost call, which calls inside of it do not
    /// change.
    pub(crate) fn settle_owner(&mut self) {
        self.owner.get_or_insert_with(|| self.caller.clone());
        self.outermost.get_or_insert_with(|| self.caller.clone());
    }

    /// The caller of the outermost call.
    pub(crate) fn outermost(&self) -> &Caller {
        self.outermost.as_ref().unwrap_or(&self.caller)
    }

    /// Charges the call to this tool, unless it is in another call.
    pub(crate) fn charge_to(&mut self, tool: &str) {
        self.run.account = std::mem::take(&mut self.run.account).charged_to(tool);
    }

    #[cfg(feature = "storage")]
    pub(crate) fn owner(&self) -> &Caller {
        self.owner.as_ref().unwrap_or(&self.caller)
    }

    /// Passes the events of the call on.
    #[must_use]
    pub fn with_events(mut self, events: EventSink) -> Self {
        self.run.events = events;
        self
    }

    /// Charges what the call takes to the account of a client, of several that share a host.
    #[must_use]
    pub fn with_account(mut self, account: Account) -> Self {
        self.run.account = account;
        self
    }

    /// Has `cancellation` end the call.
    #[must_use]
    pub fn with_cancellation(mut self, cancellation: Cancellation) -> Self {
        self.run.cancellation = cancellation;
        self
    }

    /// Has the call end at `deadline`, whatever time its own limits leave.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.run.deadline = Some(deadline);
        self
    }

    /// Has errors of the call, and of calls inside it, put for this reader.
    #[must_use]
    pub fn with_audience(mut self, audience: Audience) -> Self {
        self.audience = audience;
        self
    }

    /// Has the call recorded when it has ended.
    #[must_use]
    pub fn with_recorder(mut self, recorder: Arc<dyn Recorder>) -> Self {
        self.recorder = Some(recorder);
        self
    }
}

impl Default for CallContext {
    /// The context of a call by a program without a name.
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
