//! One call of a tool of a server, with all of its questions.

use std::collections::BTreeMap;
use std::sync::Arc;

use kitbag_contract::{Content, LogLevel, Progress, Question};
use kitbag_policy::server::ToolDefinition;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ElicitResult, InputRequest,
    InputRequests, RequestId, ServerResult,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::client::{ActiveCall, Elicitation, accepted, answered, message, question};
use crate::connection::Lease;
use crate::error::ServerError;
use crate::pool::Servers;
use crate::target::ServerTarget;

/// The number of questions that may wait in one call.
const QUESTIONS: usize = 4;

/// The number of times that a stateless server may ask for input in one call.
const ROUNDS: usize = 100;

/// Receives what a server reports during a call, on the thread of the server.
pub trait CallEvents: Send + Sync {
    /// Takes the progress of the call. The message is untrusted.
    fn progress(&self, progress: Progress);

    /// Takes a log message. Untrusted text.
    fn log(&self, level: LogLevel, message: &str);
}

/// One call, from its start to its answer. Dropping it cancels the call at the server.
pub struct ServerCall {
    servers: Servers,
    target: ServerTarget,
    tool: Arc<ToolDefinition>,
    arguments: Map<String, Value>,
    state: State,
    rounds: usize,
}

/// The end of one run of a call.
#[derive(Debug)]
pub enum Round {
    /// The server answered.
    Answered(Answered),
    /// The server asks a question. The call continues with the answer in the next run.
    Asks(Question),
}

/// The answer of a server. All text is untrusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// True if the tool failed.
    pub is_error: bool,
    /// The text, or the structured content if the tool has an output schema.
    pub text: String,
    /// The content besides the text.
    pub content: Vec<Content>,
    /// Why content was omitted.
    pub omitted: Vec<String>,
}

enum State {
    New,
    /// The server works on the request, or waits for an answer within it.
    Sent(Box<Sent>),
    /// The server needs input, and is called again with it.
    Input {
        lease: Lease,
        requests: InputRequests,
        state: Option<String>,
    },
    Ended,
}

struct Sent {
    lease: Lease,
    id: RequestId,
    response: oneshot::Receiver<Result<ServerResult, ServiceError>>,
    questions: mpsc::Receiver<Elicitation>,
    open: Option<(Question, oneshot::Sender<ElicitResult>)>,
    /// The number of questions until now.
    asked: usize,
    is_done: bool,
}

impl ServerCall {
    /// Creates a call. Nothing is sent. `arguments` fit the input schema of `tool`.
    pub fn new(
        servers: &Servers,
        target: ServerTarget,
        tool: Arc<ToolDefinition>,
        arguments: Map<String, Value>,
    ) -> Self {
        let servers = servers.clone();
        Self { servers, target, tool, arguments, state: State::New, rounds: 0 }
    }

    /// Runs the call until it is answered or the server asks a question. `answers` has all known
    /// answers, by the question's id.
    ///
    /// # Errors
    ///
    /// [`ServerError`] if there is no answer.
    pub async fn run(
        &mut self,
        answers: &Map<String, Value>,
        events: &Arc<dyn CallEvents>,
    ) -> Result<Round, ServerError> {
        loop {
            match std::mem::replace(&mut self.state, State::Ended) {
                State::New => {
                    let lease = self.servers.connect(&self.target).await?;
                    lease.0.check(&self.target, &self.tool)?;
                    self.send(lease, None, None, events).await?;
                }
                State::Sent(mut sent) => {
                    let stepped = self.step(&mut sent, answers).await?;
                    match stepped {
                        Step::Asks(question) => {
                            self.state = State::Sent(sent);
                            return Ok(Round::Asks(question));
                        }
                        Step::Answered(answered) => return Ok(Round::Answered(answered)),
                        Step::Input(requests, state) => {
                            let lease = sent.into_lease();
                            self.state = State::Input { lease, requests, state };
                        }
                        Step::Replied => self.state = State::Sent(sent),
                    }
                }
                State::Input { lease, requests, state } => {
                    let mut responses = BTreeMap::new();
                    for (id, request) in &requests {
                        let question = match request {
                            InputRequest::Elicitation(asked) => {
                                question(id.clone(), &asked.params, &lease.0.redaction)
                                    .map_err(|reason| self.protocol(reason))?
                            }
                            InputRequest::ListRoots(_) => {
                                responses.insert(id.clone(), json!({ "roots": [] }));
                                continue;
                            }
                            _ => {
                                let reason = "asks for `sampling/createMessage`, which is \
                                              refused: kitbag has no model";
                                return Err(self.protocol(reason.to_owned()));
                            }
                        };
                        match answers.get(id) {
                            Some(answer) => {
                                let response = serde_json::to_value(accepted(answer));
                                responses.insert(id.clone(), response.unwrap_or_default());
                            }
                            None => {
                                self.state = State::Input { lease, requests, state };
                                return Ok(Round::Asks(question));
                            }
                        }
                    }
                    self.rounds += 1;
                    if self.rounds > ROUNDS {
                        return Err(self.protocol(format!("asked for input {ROUNDS} times")));
                    }
                    self.send(lease, Some(responses), state, events).await?;
                }
                State::Ended => return Err(self.protocol("has already answered".to_owned())),
            }
        }
    }

    async fn send(
        &mut self,
        lease: Lease,
        responses: Option<BTreeMap<String, Value>>,
        state: Option<String>,
        events: &Arc<dyn CallEvents>,
    ) -> Result<(), ServerError> {
        let mut params = CallToolRequestParams::new(self.tool.name.clone());
        params.arguments = Some(self.arguments.clone());
        (params.input_responses, params.request_state) = (responses, state);
        let (questions, asked) = mpsc::channel(QUESTIONS);
        let mut request = CallToolRequest::new(params);
        request.extensions.insert(ActiveCall { events: Arc::clone(events), questions });
        let sent =
            lease.0.peer.send_request_with_option(request.into(), PeerRequestOptions::no_options());
        let handle = match sent.await {
            Ok(handle) => handle,
            Err(error) => return Err(lease.failed(&self.target.name, error).await),
        };
        self.state = State::Sent(Box::new(Sent {
            lease,
            id: handle.id,
            response: handle.rx,
            questions: asked,
            open: None,
            asked: 0,
            is_done: false,
        }));
        Ok(())
    }

    /// Waits for the next event of a request.
    async fn step(
        &self,
        sent: &mut Sent,
        answers: &Map<String, Value>,
    ) -> Result<Step, ServerError> {
        if let Some((question, reply)) = sent.open.take() {
            let Some(answer) = answers.get(&question.id) else {
                sent.open = Some((question.clone(), reply));
                return Ok(Step::Asks(question));
            };
            let _ = reply.send(accepted(answer));
            return Ok(Step::Replied);
        }
        let response = tokio::select! {
            biased;
            response = &mut sent.response => response,
            Some(asked) = sent.questions.recv() => {
                sent.asked += 1;
                let id = format!("input-{}", sent.asked);
                let question = question(id, &asked.params, &sent.lease.0.redaction);
                let question = question.map_err(|reason| self.protocol(reason))?;
                sent.open = Some((question, asked.reply));
                return Ok(Step::Replied);
            }
        };
        sent.is_done = true;
        let redaction = &sent.lease.0.redaction;
        match response {
            Ok(Ok(ServerResult::CallToolResult(result))) => {
                let is_structured = self.tool.output_schema.is_some();
                Ok(Step::Answered(answered(result, is_structured, redaction)))
            }
            Ok(Ok(ServerResult::InputRequiredResult(result))) => {
                Ok(Step::Input(result.input_requests.unwrap_or_default(), result.request_state))
            }
            Ok(Ok(ServerResult::EmptyResult(_))) => Ok(Step::Answered(Answered::default())),
            Ok(Ok(_)) => Err(self.protocol("sent a result that is not one of a tool".to_owned())),
            Ok(Err(ServiceError::McpError(error))) => {
                Err(ServerError::Answered { message: message(&error, redaction) })
            }
            Ok(Err(error)) => Err(sent.lease.failed(&self.target.name, error).await),
            Err(_) => {
                Err(sent.lease.failed(&self.target.name, ServiceError::TransportClosed).await)
            }
        }
    }

    fn protocol(&self, reason: String) -> ServerError {
        ServerError::Protocol { server: self.target.name.clone(), reason }
    }
}

enum Step {
    Answered(Answered),
    Asks(Question),
    Input(InputRequests, Option<String>),
    /// The request continues.
    Replied,
}

impl Sent {
    /// Returns the lease of a request that was answered.
    fn into_lease(self: Box<Self>) -> Lease {
        Lease::new(&self.lease.0)
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        if self.is_done || self.lease.0.peer.is_transport_closed() {
            return;
        }
        let peer = self.lease.0.peer.clone();
        let id = self.id.clone();
        self.lease.0.runtime.spawn(async move {
            let reason = "the caller cancelled the call".to_owned();
            let _ = peer
                .notify_cancelled(CancelledNotificationParam::new(Some(id), Some(reason)))
                .await;
        });
    }
}
