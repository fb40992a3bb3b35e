//! One `tools/call`; and the questions in between, of any run of a component.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use kitbag_config::{Origin, Sourced};
use kitbag_contract::{Action, Answer, Outcome, Question};
use kitbag_host::{Audience, Cancellation, Completion};
use kitbag_toolbox::{Arguments, Session, Toolbox, ToolboxError};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ElicitRequest, InputRequest, InputRequiredResult,
    InputResponses,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value};

use crate::era::Client;
use crate::handler::Handler;
use crate::outcome;
use crate::question::{self, Asked};
use crate::seal::Binding;
use crate::server::Generation;
use crate::told::Ear;

/// The argument in which a client without forms passes answers on.
const ANSWERS_KEY: &str = "_answers";

/// How often a person is asked again after an answer that does not fit.
const TRIES: usize = 3;

/// Makes a call and returns its result, or what has to be answered first.
///
/// # Errors
///
/// For a name that is no tool, and for a state that is not of this call.
pub(crate) async fn call(
    handler: &Handler,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let client = Client::of(context);
    let mut arguments = request.arguments.unwrap_or_default();
    let given = match (client.has_forms, arguments.get(ANSWERS_KEY)) {
        (false, Some(Value::Object(_))) => match arguments.remove(ANSWERS_KEY) {
            Some(Value::Object(given)) => given,
            _ => Map::new(),
        },
        _ => Map::new(),
    };
    let name = request.name.into_owned();
    let mut call = Call::new(handler, context, &name, request.input_responses);
    let metrics = handler.server.metrics();
    let (_running, start) = (metrics.begin(), Instant::now());
    handler.server.alert().stay();
    let prepare = {
        let name = name.clone();
        move |toolbox: &Toolbox, audience, cancellation: &Cancellation| {
            let arguments = Arguments::json(Value::Object(arguments));
            toolbox.prepare_with_audience(&name, arguments, Action::Run, audience, cancellation)
        }
    };
    let generation = handler.server.generation();
    let response = match call.run(generation, prepare, given, request.request_state).await {
        Ok(Ended::Done(done)) => outcome::result(&name, *done).map(CallToolResponse::from),
        Ok(Ended::Asks(asked)) => Ok(asked.into()),
        Ok(Ended::Refused(message)) => Ok(outcome::failure(&message, false).into()),
        Err(Stop::Protocol(error)) => Err(error),
        Err(Stop::Toolbox(error)) => outcome::refusal(error).map(CallToolResponse::from),
    };
    handler.server.alert().stay();
    // A name that somebody made up is not counted: each one would be kept.
    if handler.server.generation().toolbox.has_tool(&name) {
        metrics.ended(&name, outcome::kind(&response), start.elapsed());
    }
    response
}

/// A run of a component, with the questions in between.
pub(crate) struct Call<'a> {
    handler: &'a Handler,
    context: &'a RequestContext<RoleServer>,
    client: Client,
    /// The tool, as whoever listens hears of it.
    name: String,
    cancellation: Cancellation,
    ear: Ear,
    /// What the client answers to the questions of an earlier round.
    responses: InputResponses,
}

/// How a run ended.
pub(crate) enum Ended {
    /// It is over. A question is still open only where nobody can be asked.
    Done(Box<Done>),
    /// The client has to bring an answer.
    Asks(InputRequiredResult),
    /// There will be no answer; this says why.
    Refused(String),
}

/// A run that is over.
pub(crate) struct Done {
    pub(crate) completion: Completion,
    /// The tool's content as its output schema has it.
    pub(crate) structured: Result<Option<Value>, ToolboxError>,
}

/// Why a call goes no further.
pub(crate) enum Stop {
    Protocol(ErrorData),
    Toolbox(ToolboxError),
}

/// What a question came to.
enum Next {
    /// It was answered; the tool is to be run again.
    Run,
    /// The call ends here, for now.
    End(Ended),
}

impl<'a> Call<'a> {
    pub(crate) fn new(
        handler: &'a Handler,
        context: &'a RequestContext<RoleServer>,
        tool: &str,
        responses: Option<InputResponses>,
    ) -> Self {
        let client = Client::of(context);
        Self {
            handler,
            context,
            client,
            name: tool.to_owned(),
            cancellation: Cancellation::default(),
            ear: Ear::new(context.meta.get_progress_token(), handler.log_level(client, context)),
            responses: responses.unwrap_or_default(),
        }
    }

    /// Runs what `prepare` prepares, until it is over or has to be asked. `given`
    /// are answers that came with the arguments, `state` is what an earlier round
    /// gave out.
    ///
    /// # Errors
    ///
    /// [`Stop`], where it comes to no end of its own.
    pub(crate) async fn run(
        &mut self,
        generation: Arc<Generation>,
        prepare: impl FnOnce(&Toolbox, Audience, &Cancellation) -> Result<Session, ToolboxError>
        + Send
        + 'static,
        given: Map<String, Value>,
        state: Option<String>,
    ) -> Result<Ended, Stop> {
        let server = self.handler.server.clone();
        let (principal, cancellation) = (self.handler.principal.clone(), self.cancellation.clone());
        let toolbox = generation.toolbox.clone();
        let audience = Audience::new(Arc::new(self.ear.clone()));
        // Everything up to the first answer on the other thread: each way there
        // and back takes as long as a small call.
        let start = move || {
            let mut session = prepare(&toolbox, audience, &cancellation)?;
            if let Some(state) = state {
                let binding = binding(&principal, &session);
                session.resume(server.seal().open(&state, &binding).map_err(Stop::Protocol)?);
            }
            session.offer(given.into_iter().map(|(id, value)| {
                // What a model writes down for a person is taken as typed.
                let value = match value {
                    Value::String(text) => Answer::Text(text),
                    value => Answer::Json(value),
                };
                (id, Sourced { value, origin: Origin::Caller })
            }));
            Ok::<_, Stop>(run(session, &cancellation))
        };
        let (mut session, mut done) = self.offload(start).await??;
        loop {
            let ended = done?;
            let question = match &ended.completion.result {
                Ok(Outcome::NeedsInput(question)) if self.can_ask() => question.clone(),
                _ => {
                    generation.learned(&self.handler.server, &self.name);
                    return Ok(Ended::Done(Box::new(ended)));
                }
            };
            match self.ask(&mut session, &question).await? {
                Next::End(ended) => return Ok(ended),
                Next::Run => {}
            }
            let cancellation = self.cancellation.clone();
            (session, done) = self.offload(move || run(session, &cancellation)).await?;
        }
    }

    /// Whether there is a person behind the client who can be asked.
    fn can_ask(&self) -> bool {
        self.client.has_forms
    }

    /// Takes a question to the person, or to the client that will come back with
    /// the answer.
    async fn ask(&mut self, session: &mut Session, question: &Question) -> Result<Next, Stop> {
        let mut problem: Option<String> = None;
        for _ in 0..TRIES {
            let asked = match self.client.is_stateless {
                true => match self.responses.remove(&question.id) {
                    Some(response) => read(question, response)?,
                    None => {
                        return self.require(session, question, problem.as_deref()).map(Next::End);
                    }
                },
                false => self.elicit(question, problem.as_deref()).await?,
            };
            let answer = match asked {
                Asked::Answer(answer) => answer,
                Asked::Declined => {
                    return Ok(Next::End(self.refused(question, "declined to answer")));
                }
                Asked::Dismissed => return Ok(Next::End(self.refused(question, "dismissed"))),
            };
            match session.answer(question, Sourced { value: answer, origin: Origin::Caller }) {
                Ok(()) => return Ok(Next::Run),
                Err(ToolboxError::Answer { source, .. }) => problem = Some(source.to_string()),
                Err(error) => return Err(error.into()),
            }
        }
        let problem = problem.unwrap_or_default();
        let message = format!("the answer to `{}` does not fit: {problem}", question.id);
        Ok(Next::End(Ended::Refused(message)))
    }

    /// Asks in the result, as the stateless revisions do.
    fn require(
        &self,
        session: &Session,
        question: &Question,
        problem: Option<&str>,
    ) -> Result<Ended, Stop> {
        let form = question::form(question, problem).map_err(internal)?;
        let request = InputRequest::Elicitation(ElicitRequest::new(form));
        let binding = binding(&self.handler.principal, session);
        let state = self.handler.server.seal().close(session.answers(), &binding);
        let requests = [(question.id.clone(), request)].into();
        Ok(Ended::Asks(InputRequiredResult::new(Some(requests), Some(state))))
    }

    /// Asks with a request to the client, as the revisions with a handshake do.
    async fn elicit(&self, question: &Question, problem: Option<&str>) -> Result<Asked, Stop> {
        let form = question::form(question, problem).map_err(internal)?;
        let asked = self.unless_cancelled(self.context.peer.create_elicitation(form)).await?;
        match asked {
            Ok(result) => Ok(question::answer(question, result)),
            Err(error) => {
                let message = format!("the client could not ask `{}`: {error}", question.id);
                Err(Stop::Protocol(ErrorData::internal_error(message, None)))
            }
        }
    }

    fn refused(&self, question: &Question, how: &str) -> Ended {
        Ended::Refused(format!(
            "the user {how} `{}` ({}); nothing was done",
            question.id,
            question.text.trim_end(),
        ))
    }

    async fn offload<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Stop> {
        let generation = self.handler.server.generation();
        let work = generation.toolbox.host().offload_when(self.handler.has_room(), work);
        Ok(self.unless_cancelled(work).await?.map_err(ToolboxError::from)?)
    }

    /// Waits, unless the client gives the call up or the server ends, and passes
    /// on meanwhile what the tool tells.
    async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Result<T, Stop> {
        let mut work = pin!(work);
        let pass_on = || self.ear.pass_on(&self.name, &self.context.peer);
        loop {
            tokio::select! {
                biased;
                done = &mut work => {
                    pass_on().await;
                    return Ok(done);
                }
                () = self.context.ct.cancelled() => return Err(cancelled()),
                () = self.handler.server.closing().cancelled() => return Err(cancelled()),
                () = self.ear.news() => pass_on().await,
            }
        }
    }
}

impl Drop for Call<'_> {
    /// Ends a guest that nobody waits for any longer.
    fn drop(&mut self) {
        self.cancellation.cancel();
    }
}

/// Runs a session and checks what the tool answers. Both are part of the call, and
/// happen on its thread.
fn run(mut session: Session, cancellation: &Cancellation) -> (Session, Result<Done, ToolboxError>) {
    let done = session.run(cancellation).map(|completion| {
        let structured = session.structured(&completion, cancellation);
        Done { completion, structured }
    });
    (session, done)
}

fn binding(principal: &str, session: &Session) -> Binding {
    let (name, arguments) = session.call();
    Binding::new(&[principal.as_bytes(), name.as_bytes(), arguments.as_bytes()])
}

fn read(question: &Question, response: Value) -> Result<Asked, Stop> {
    match serde_json::from_value(response) {
        Ok(result) => Ok(question::answer(question, result)),
        Err(error) => {
            let message = format!("`inputResponses.{}` is no answer: {error}", question.id);
            Err(Stop::Protocol(ErrorData::invalid_params(message, None)))
        }
    }
}

fn cancelled() -> Stop {
    Stop::Toolbox(ToolboxError::Call(kitbag_host::CallError::Cancelled))
}

fn internal(error: impl std::fmt::Display) -> Stop {
    Stop::Protocol(ErrorData::internal_error(error.to_string(), None))
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
