//! MCP over standard input and output: one message per line.

pub(crate) mod input;
pub(crate) mod output;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kitbag_host::MemoryBudget;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, GetExtensions, JsonRpcMessage,
    ServerJsonRpcMessage,
};
use rmcp::service::{ServerInitializeError, serve_server};
use rmcp::transport::Transport;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::input::{InputLine, LINE_BYTES, LineReader};
use crate::server::Server;
use crate::server::handler::Handler;
use crate::session::Session;
use crate::session::handshake;
use crate::transport::in_flight::InFlight;
use crate::transport::message::{self, Line, MESSAGE_BYTES};
use crate::transport::stdio::output::{Output, UNWRITTEN_BYTES, Unwritten, WRITE_TIME};
use crate::transport::sys::Handle;

/// Time that running calls have after the client closes its input.
const GRACE: Duration = Duration::from_millis(500);

/// Maximum number of requests in flight: more than run and wait, with room for requests that are
/// not calls.
const REQUESTS: usize = 4_096;

/// The reason why a session could not be served.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// Standard input or output failed.
    #[error("standard input and output cannot be used")]
    Io(#[from] io::Error),
    /// The client does not use the protocol.
    #[error("the client started no session: {0}")]
    Protocol(String),
}

impl Server {
    /// Serves one client until its end of `input` is closed. Writes only messages to `output`.
    ///
    /// After that every running call ends within half a second.
    ///
    /// # Errors
    ///
    /// [`StdioError`] if no session was established.
    pub async fn serve_stdio(&self, input: Handle, output: Handle) -> Result<(), StdioError> {
        let closing = self.closing().clone();
        // Calls end with their client.
        let _closed = closing.clone().drop_guard();
        let transport = Stdio::new(input, output, self.message_memory(), closing.clone())?;
        let output = Arc::clone(&transport.output);
        let session = Session::with_output(self.clone(), Arc::clone(&output));
        let handler = Handler::new(session);
        let _awake = self.stay_awake();
        let session = tokio::select! {
            session = serve_server(handler, transport) => session,
            () = closing.cancelled() => return Ok(()),
            // Before a session starts, each response is written before the next request is handled.
            () = output.stalls() => {
                let seconds = WRITE_TIME.as_secs();
                tracing::error!("the session ends: the client has read nothing for {seconds}s");
                return Ok(());
            }
        };
        match session {
            Ok(session) => {
                let end = session.cancellation_token();
                let waiting = session.waiting();
                tokio::pin!(waiting);
                tokio::select! {
                    _ = &mut waiting => {}
                    () = closing.cancelled() => {
                        end.cancel();
                        // Does not wait for a client that no longer reads.
                        let _ = tokio::time::timeout(GRACE / 2, waiting).await;
                    }
                }
                Ok(())
            }
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(StdioError::Protocol(error.to_string())),
        }
    }
}

struct Stdio {
    input: LineReader,
    output: Arc<Output>,
    closing: CancellationToken,
    memory: MemoryBudget,
    in_flight: InFlight,
    /// The time since which the client has not read any pending output, and the number of bytes that
    /// it had read by then.
    stalled: Option<(Instant, u64)>,
    /// A request was received. Earlier messages are ignored.
    is_begun: bool,
    has_session: bool,
    refusals: JoinSet<io::Result<()>>,
}

/// Returns whether a session starts with this valid request. Some requests may precede the session.
fn begins_session(request: &ClientRequest) -> bool {
    !matches!(request, ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_))
}

impl Stdio {
    fn new(
        input: Handle,
        output: Handle,
        memory: MemoryBudget,
        closing: CancellationToken,
    ) -> io::Result<Self> {
        Ok(Self {
            input: LineReader::new(input)?,
            output: Arc::new(Output::new(output)?),
            closing,
            memory,
            in_flight: InFlight::default(),
            stalled: None,
            is_begun: false,
            has_session: false,
            refusals: JoinSet::new(),
        })
    }

    /// Writes a message. It counts as unwritten from this call on, before the future is polled.
    fn put(&self, message: &ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + use<> {
        let output = Arc::clone(&self.output);
        let text = serde_json::to_vec(message).map(|mut text| {
            text.push(b'\n');
            text
        });
        let unwritten = Unwritten::new(
            &self.output,
            MESSAGE_BYTES as usize + text.as_ref().map_or(0, Vec::len),
        );
        async move {
            let _unwritten = unwritten;
            output.write(&text?).await
        }
    }

    /// Waits until the client has read enough to receive more. Returns `false` if it has read
    /// nothing for [`WRITE_TIME`].
    async fn wait_for_client(&mut self) -> bool {
        loop {
            let taken = self.output.taken();
            // Kept across calls, since this future may be dropped before it completes.
            let since = match self.stalled {
                Some((since, before)) if before == taken => since,
                _ => Instant::now(),
            };
            self.stalled = Some((since, taken));
            let left = WRITE_TIME.saturating_sub(since.elapsed());
            if tokio::time::timeout(left, self.output.has_room()).await.is_ok() {
                self.stalled = None;
                return true;
            }
            if self.output.taken() == taken {
                return false;
            }
        }
    }

    /// Classifies a line: a message to handle, a response, or nothing.
    fn admit(&mut self, line: &[u8]) -> Line {
        let refused = |answer| Line::Refused(Box::new(answer));
        let normalized = message::normalized(line);
        let line = normalized.as_deref().unwrap_or(line);
        let Some(memory) = message::reserve(&self.memory, message::cost(line)) else {
            return refused(message::no_memory(line, &self.memory));
        };
        let mut message = match message::read(line) {
            Line::Message(message) => message,
            other => return other,
        };
        if !self.has_session
            && let Some(answer) = handshake::before_session(&message, "")
        {
            self.is_begun = true;
            return refused(answer);
        }
        match &mut *message {
            JsonRpcMessage::Request(request) => {
                self.is_begun = true;
                self.has_session |= begins_session(&request.request);
                if self.in_flight.len() >= REQUESTS {
                    return refused(message::too_many(request.id.clone(), REQUESTS));
                }
                let Some(pending) = self.in_flight.add(&request.id, memory) else {
                    return refused(message::duplicate(&request.id));
                };
                request.request.extensions_mut().insert(pending);
            }
            _ if !self.is_begun => {
                tracing::debug!("ignored before the first request");
                return Line::Empty;
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.in_flight.cancelled(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Line::Message(message)
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        match &message {
            JsonRpcMessage::Response(response) => self.in_flight.answered(&response.id),
            JsonRpcMessage::Error(error) => {
                error.id.iter().for_each(|id| self.in_flight.answered(id));
            }
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
        // A client that has closed its input would treat the result of an abandoned call as an
        // invalid message.
        let put = (!self.closing.is_cancelled()).then(|| self.put(&message));
        async move {
            match put {
                Some(put) => put.await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if !self.wait_for_client().await {
                tracing::error!(
                    "the session ends: the client has read nothing for {}s, and {} MiB wait for it",
                    WRITE_TIME.as_secs(),
                    UNWRITTEN_BYTES >> 20
                );
                self.closing.cancel();
                return None;
            }
            let mut refused = match self.input.line().await {
                Ok(Some(InputLine::Line(line))) => match self.admit(&line) {
                    Line::Empty => continue,
                    Line::Message(message) => return Some(*message),
                    Line::Refused(answer) => *answer,
                },
                Ok(Some(InputLine::TooLong(skim))) => message::too_long(&skim, LINE_BYTES),
                Ok(None) => break,
                Err(error) => {
                    tracing::error!("standard input cannot be read: {error}");
                    break;
                }
            };
            if let ServerJsonRpcMessage::Error(error) = &mut refused
                && error.id.as_ref().is_some_and(|id| self.in_flight.contains(id))
            {
                // The client would match it to the request with this id.
                error.id = None;
            }
            // On separate tasks, since this future may be dropped before it completes.
            while self.refusals.try_join_next().is_some() {}
            let put = self.put(&refused);
            self.refusals.spawn(put);
        }
        // The client has sent all its requests, as in `echo … | kitbag serve`.
        let written = async { while self.refusals.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(GRACE, written).await;
        // The client has closed its input. Its requests may still be answered for a short time.
        let closing = self.closing.clone();
        tokio::spawn(async move {
            tokio::time::sleep(GRACE).await;
            closing.cancel();
        });
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}
