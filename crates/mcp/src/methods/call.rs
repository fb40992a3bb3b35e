//! A `tools/call`, and the questions of any call.

use std::pin::{Pin, pin};
use std::sync::Arc;

use kitbag_base::json::Digits;
use kitbag_config::{Audience, Origin, Sourced};
use kitbag_contract::{Answer, AnswerError, Question};
use kitbag_host::EventSink;
use kitbag_state::audit::Auditor;
use kitbag_toolbox::{
    Arguments, CallContext, CallOutcome, CallRecord, Caller, ClientName, Completed, FrontEnd,
    Invocation, Recorder, Reply, Resumed, Suspended, Toolbox, ToolboxError,
};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ElicitRequest, InputRequest,
    InputRequiredResult, InputResponses,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value};

use crate::methods::catalog::Catalog;
use crate::methods::outcome::{self, internal};
use crate::methods::{discovery, question, results};
use crate::server::Server;
use crate::server::generation::Generation;
use crate::session::Session;
use crate::session::client::Client;
use crate::session::notifications::ClientListener;
use crate::session::resume_state;
use crate::session::state_codec::{Binding, CallState};

/// Argument in which a client without forms passes answers.
const ANSWERS_KEY: &str = "_answers";

/// Key in the answers with the id of a call that has already called other tools.
const CALL_KEY: &str = "_call";

pub(crate) enum Earlier {
    Sealed(String),
    Kept(String),
}

/// Makes a call and returns its result, or the questions that must be answered first.
///
/// # Errors
///
/// If no tool has the name, or if the state belongs to another call.
pub(crate) async fn call(
    session: &Session,
    mut request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let mut digits = digits(context);
    let mut is_direct = true;
    if session.generation().may_be_own_tool(&request.name) {
        let catalog = session.catalog().await?;
        if catalog.is_searched() && request.name == catalog.own.call {
            if let Err(refused) = discovery::unwrap(&catalog.own, &mut request) {
                return Ok((*refused).into());
            }
            (digits, is_direct) = (digits.below("/arguments"), false);
        }
        if let Some(result) = own_result(session, &catalog, &request, context).await? {
            return Ok(result.into());
        }
    }
    let client = Client::of(context);
    let mut arguments = request.arguments.unwrap_or_default();
    let mut given = match (client.has_forms, arguments.get(ANSWERS_KEY)) {
        (false, Some(Value::Object(_))) => match arguments.remove(ANSWERS_KEY) {
            Some(Value::Object(given)) => given,
            _ => Map::new(),
        },
        _ => Map::new(),
    };
    let state = match (request.request_state, given.remove(CALL_KEY)) {
        (Some(sealed), _) => Some(Earlier::Sealed(sealed)),
        (None, Some(Value::String(id))) => Some(Earlier::Kept(id)),
        (None, _) => None,
    };
    let answers = given.clone().into_iter().map(|(id, value)| {
        // A model writes a person's answers as text; they are parsed like typed input.
        let value = match value {
            Value::String(text) => Answer::Text(text),
            value => Answer::Json(value),
        };
        (id, Sourced { value, origin: Origin::Model })
    });
    let name = request.name.into_owned();
    let generation = session.generation();
    results::fill_inputs(session, context, generation.toolbox.config(), &name, &mut arguments);
    let arguments = Arguments::exact(Value::Object(arguments), digits);
    let invocation = Invocation::tool(&*name, arguments).with_answers(answers).structured();
    let server = &session.server;
    let _running = server.metrics().begin();
    server.keep_awake().stay();
    let mut call = Call::new(session, context, &name, request.input_responses);
    call.recorder = Some(Arc::new(server.clone()));
    let called = call.run(&generation, invocation, state).await;
    let config = generation.toolbox.config();
    let response = match called {
        Ok(CallResult::Done(done)) => match outcome::result(config, &name, *done) {
            Ok(mut result) => {
                results::shorten(session, context, &generation, is_direct, &mut result).await;
                Ok(result.into())
            }
            Err(error) => Err(error),
        },
        Ok(CallResult::Asks(asked)) => Ok(asked.into()),
        Ok(CallResult::Open(mut open)) => {
            if let Some(id) = keep(session, context, &mut open)? {
                given.insert(CALL_KEY.into(), id.into());
            }
            Ok(outcome::unanswered(&name, &open, given).into())
        }
        Err(Stop::Protocol(error)) => Err(error),
        Err(Stop::Toolbox(error)) => {
            outcome::refusal(config, &name, error).map(CallToolResponse::from)
        }
    };
    server.keep_awake().stay();
    response
}

/// Returns the result of a call of one of the server's own tools. `None`: another tool is called.
async fn own_result(
    session: &Session,
    catalog: &Arc<Catalog>,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<Option<CallToolResult>, ErrorData> {
    let arguments = || request.arguments.clone().unwrap_or_default();
    if catalog.is_searched() && request.name == catalog.own.find {
        let (catalog, arguments) = (Arc::clone(catalog), arguments());
        let found = tokio::task::spawn_blocking(move || discovery::find(&catalog, arguments));
        return found.await.map(Some).map_err(|error| internal(&error));
    }
    if request.name == catalog.own.read {
        let generation = session.generation();
        let config = generation.toolbox.config();
        return Ok(Some(results::read(session, context, config, &arguments())));
    }
    Ok(None)
}

/// Returns the digits of the numbers in the arguments, from the text of the message.
fn digits(context: &RequestContext<RoleServer>) -> Digits {
    let of_http = || context.extensions.get::<http::request::Parts>()?.extensions.get::<Digits>();
    context.extensions.get::<Digits>().or_else(of_http).cloned().unwrap_or_default()
}

impl Recorder for Server {
    fn record(&self, record: &CallRecord<'_>) {
        self.metrics().ended(record.tool, outcome::kind(record.end), record.elapsed);
    }
}

pub(crate) struct Call<'a> {
    session: &'a Session,
    context: &'a RequestContext<RoleServer>,
    client: Client,
    name: String,
    listener: ClientListener,
    /// The client's answers to the questions of an earlier round.
    responses: InputResponses,
    pub(crate) recorder: Option<Arc<dyn Recorder>>,
}

pub(crate) enum CallResult {
    Done(Box<Completed>),
    /// The client must provide an answer.
    Asks(InputRequiredResult),
    /// A question is open, and the client has no forms to ask a person.
    Open(Box<Suspended>),
}

pub(crate) enum Stop {
    Protocol(ErrorData),
    Toolbox(ToolboxError),
}

impl<'a> Call<'a> {
    pub(crate) fn new(
        session: &'a Session,
        context: &'a RequestContext<RoleServer>,
        tool: &str,
        responses: Option<InputResponses>,
    ) -> Self {
        let client = Client::of(context);
        let level = session.log_level(client, context);
        Self {
            session,
            context,
            client,
            name: tool.to_owned(),
            listener: ClientListener::new(context.meta.get_progress_token(), level),
            responses: responses.unwrap_or_default(),
            recorder: None,
        }
    }

    /// Makes the call with the toolbox of one generation, until the call ends or the client must be
    /// asked. `state` was issued in an earlier round.
    ///
    /// # Errors
    ///
    /// [`Stop`] if the call has no outcome.
    pub(crate) async fn run(
        self,
        generation: &Arc<Generation>,
        mut invocation: Invocation,
        earlier: Option<Earlier>,
    ) -> Result<CallResult, Stop> {
        let server = &self.session.server;
        if let Some(earlier) = earlier {
            let (server, caller) = (server.clone(), self.session.identity.caller());
            invocation = invocation.resume(Box::new(move |name, arguments| {
                let binding = binding(&caller, name, arguments);
                let (answers, kept) = match earlier {
                    Earlier::Sealed(state) => {
                        let CallState { answers, kept } =
                            server.state_codec().open(&state, &binding)?;
                        (answers, kept)
                    }
                    Earlier::Kept(id) => (Map::new(), Some(id)),
                };
                let pool = server.state_pool();
                let inner = kept.map(|id| resume_state::take(&pool, &id, &binding)).transpose()?;
                Ok(Resumed { answers, inner })
            }));
        }
        let mut context = call_context(self.session, self.context)
            .with_events(EventSink::new(Arc::new(self.listener.clone())));
        context.recorder.clone_from(&self.recorder);
        let mut front_end = Asker {
            session: self.session,
            context: self.context,
            client: self.client,
            responses: self.responses,
        };
        let called = pin!(generation.toolbox.call(invocation, context, &mut front_end));
        let work = unless_cancelled(called, self.session, self.context, &self.listener, &self.name);
        let called = work.await;
        warn_unlogged(&generation.toolbox);
        match called?? {
            CallOutcome::Completed(completed) => {
                generation.learned(server, &self.name);
                Ok(CallResult::Done(completed))
            }
            CallOutcome::Suspended(mut open) if self.client.has_forms => {
                require(self.session, self.context, &mut open).map(CallResult::Asks)
            }
            CallOutcome::Suspended(open) => {
                generation.learned(server, &self.name);
                Ok(CallResult::Open(open))
            }
            CallOutcome::Refused(error) => Err(Stop::Protocol(error)),
        }
    }
}

/// Returns the context of a client's call: the client, and the caller on whose behalf it calls.
pub(crate) fn call_context(session: &Session, request: &RequestContext<RoleServer>) -> CallContext {
    let client = request.client_info();
    let client = client.map(|client| ClientName::new(&client.name, &client.version));
    let context = CallContext::new(session.identity.caller())
        .with_client(client)
        .with_account(session.account(request))
        .with_approver(session.approver(Client::of(request)))
        .with_audience(Audience::Model);
    match &session.owner {
        Some(owner) => context.with_owner(owner.clone()),
        None => context,
    }
}

/// Logs a warning that calls are not in the audit log.
pub(crate) fn warn_unlogged(toolbox: &Toolbox) {
    if let Some(problem) = toolbox.auditor().and_then(Auditor::problem) {
        tracing::warn!("calls are not in the audit log: {problem}");
    }
}

/// Asks the person behind a client, or asks the client itself, which returns with the answer.
struct Asker<'a> {
    session: &'a Session,
    context: &'a RequestContext<RoleServer>,
    client: Client,
    responses: InputResponses,
}

impl FrontEnd for Asker<'_> {
    type Abort = ErrorData;

    const ATTEMPTS: usize = 3;

    async fn ready(&mut self) {
        self.session.has_room().await;
    }

    async fn ask(
        &mut self,
        question: &Question,
        rejected: Option<&AnswerError>,
    ) -> Result<Reply, ErrorData> {
        if !self.client.has_forms {
            return Ok(Reply::NobodyToAsk);
        }
        if self.client.is_stateless {
            return match self.responses.remove(&question.id) {
                None => Ok(Reply::Unanswered),
                Some(response) => match serde_json::from_value(response) {
                    Ok(result) => Ok(question::reply(question, result)),
                    Err(error) => {
                        let message = format!(
                            "`inputResponses.{}` is not a valid answer: {error}",
                            question.id
                        );
                        Err(ErrorData::invalid_params(message, None))
                    }
                },
            };
        }
        let form = question::form(question, rejected).map_err(|error| internal(&error))?;
        // Held until the question is answered.
        let account = self.session.account(self.context);
        let _memory = self.session.hold(&account, question::cost(&form))?;
        match self.context.peer.create_elicitation(form).await {
            Ok(result) => Ok(question::reply(question, result)),
            Err(error) => {
                let message = format!("the client could not ask `{}`: {error}", question.id);
                Err(ErrorData::internal_error(message, None))
            }
        }
    }
}

/// Asks in the result, as the stateless revisions do.
fn require(
    session: &Session,
    context: &RequestContext<RoleServer>,
    open: &mut Suspended,
) -> Result<InputRequiredResult, Stop> {
    let kept = keep(session, context, open).map_err(Stop::Protocol)?;
    let question = &open.question;
    let form =
        question::form(question, open.rejected.as_ref()).map_err(|error| internal(&error))?;
    let request = InputRequest::Elicitation(ElicitRequest::new(form));
    let (name, arguments) = open.call();
    let binding = binding(&session.identity.caller(), name, arguments);
    let state = CallState { answers: open.answers(), kept };
    let state = session.server.state_codec().seal(&state, &binding);
    let requests = [(question.id.clone(), request)].into();
    Ok(InputRequiredResult::new(Some(requests), Some(state)))
}

/// Keeps the nested calls of a call until it resumes, and returns the id to resume with. `None` if
/// the call made none.
fn keep(
    session: &Session,
    context: &RequestContext<RoleServer>,
    open: &mut Suspended,
) -> Result<Option<String>, ErrorData> {
    let Some(inner) = open.take_inner() else { return Ok(None) };
    let (name, arguments) = open.call();
    let binding = binding(&session.identity.caller(), name, arguments);
    let account = session.account(context);
    let kept = resume_state::keep(&session.server.state_pool(), &account, inner, &binding);
    kept.map(Some).map_err(|error| ErrorData::internal_error(error, None))
}

/// Waits until the client cancels the call or the server ends. Meanwhile forwards the tool's
/// reports.
async fn unless_cancelled<T>(
    mut work: Pin<&mut impl Future<Output = T>>,
    session: &Session,
    context: &RequestContext<RoleServer>,
    listener: &ClientListener,
    tool: &str,
) -> Result<T, Stop> {
    let pass_on = || listener.pass_on(tool, &context.peer);
    loop {
        tokio::select! {
            biased;
            done = &mut work => {
                pass_on().await;
                return Ok(done);
            }
            () = context.ct.cancelled() => return Err(cancelled()),
            () = session.server.closing().cancelled() => return Err(cancelled()),
            () = listener.news() => pass_on().await,
        }
    }
}

fn binding(caller: &Caller, name: &str, arguments: &str) -> Binding {
    Binding::new(&[caller.to_string().as_bytes(), name.as_bytes(), arguments.as_bytes()])
}

fn cancelled() -> Stop {
    Stop::Toolbox(ToolboxError::Call(kitbag_host::CallError::Cancelled))
}

impl From<ToolboxError> for Stop {
    fn from(error: ToolboxError) -> Self {
        Self::Toolbox(error)
    }
}

impl From<ErrorData> for Stop {
    fn from(error: ErrorData) -> Self {
        Self::Protocol(error)
    }
}
