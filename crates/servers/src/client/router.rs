//! Forwards what a server sends during calls to these calls.
#![expect(deprecated, reason = "logging is deprecated since 2026-07-28; older servers use it")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use kitbag_base::text::printable;
use kitbag_contract::Progress;
use rmcp::RoleClient;
use rmcp::model::{
    ClientNotification, ElicitRequestParams, ElicitResult, Extensions, GetExtensions, GetMeta,
    JsonRpcMessage, ProgressToken, RequestId, ServerNotification,
};
use rmcp::service::{InboundStreamOrigin, RxJsonRpcMessage, TxJsonRpcMessage};
use tokio::sync::{Notify, mpsc, oneshot};

use super::content::log_level;
use super::redaction::Redaction;
use crate::call::CallEvents;

/// The longest progress message or log message, in bytes.
const MESSAGE_BYTES: usize = 16 << 10;

/// Why a connection failed, if the client ended it.
#[derive(Default)]
pub(crate) struct Failure {
    reason: OnceLock<String>,
    news: Notify,
}

impl Failure {
    /// Sets the reason, as a verb phrase. Later reasons have no effect.
    pub(crate) fn set(&self, reason: String) {
        let _ = self.reason.set(reason);
        self.news.notify_one();
    }

    pub(crate) fn get(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }

    /// Waits until the connection failed.
    pub(crate) async fn failed(&self) {
        while self.get().is_none() {
            self.news.notified().await;
        }
    }
}

/// A question of a server within a call.
pub(crate) struct Elicitation {
    pub(crate) params: ElicitRequestParams,
    pub(crate) reply: oneshot::Sender<ElicitResult>,
}

/// The receiver of what a server sends during one call. A request carries it to the router.
#[derive(Clone)]
pub(crate) struct ActiveCall {
    pub(crate) events: Arc<dyn CallEvents>,
    pub(crate) questions: mpsc::Sender<Elicitation>,
}

/// The requests that wait for their answers.
pub(crate) struct Router {
    requests: Mutex<Requests>,
    redaction: Redaction,
    /// The name for log messages outside of calls.
    server: String,
}

#[derive(Default)]
struct Requests {
    by_id: HashMap<RequestId, Option<(ProgressToken, ActiveCall)>>,
    by_token: HashMap<ProgressToken, RequestId>,
}

/// The receiver of a message of the server.
pub(crate) enum Routed {
    /// rmcp handles the answer to a request.
    Answer(RxJsonRpcMessage<RoleClient>),
    /// rmcp handles a message that no request caused.
    Other(RxJsonRpcMessage<RoleClient>),
    /// The message is handled, or ignored.
    Done,
}

impl Router {
    pub(crate) fn new(server: &str, redaction: Redaction) -> Self {
        Self { requests: Mutex::default(), redaction, server: server.to_owned() }
    }

    /// Notes a request that is sent, before the server can answer it, and returns its id.
    pub(crate) fn sends(&self, message: &mut TxJsonRpcMessage<RoleClient>) -> Option<RequestId> {
        match message {
            JsonRpcMessage::Request(request) => {
                let call = request.request.extensions_mut().remove::<ActiveCall>();
                let token = request.request.get_meta().get_progress_token();
                let mut requests = self.requests();
                let call = token.zip(call);
                if let Some((token, _)) = &call {
                    requests.by_token.insert(token.clone(), request.id.clone());
                }
                requests.by_id.insert(request.id.clone(), call);
                Some(request.id.clone())
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.requests().remove(id);
                }
                None
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => None,
        }
    }

    /// Forgets a request that was not sent.
    pub(crate) fn forget(&self, id: &RequestId) {
        self.requests().remove(id);
    }

    /// Handles a message of the server.
    pub(crate) fn receives(&self, message: RxJsonRpcMessage<RoleClient>) -> Routed {
        match message {
            JsonRpcMessage::Response(ref response) if self.requests().remove(&response.id) => {
                Routed::Answer(message)
            }
            JsonRpcMessage::Error(ref error)
                if error.id.as_ref().is_some_and(|id| self.requests().remove(id)) =>
            {
                Routed::Answer(message)
            }
            // No request has this id: it is forged, late or repeated.
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => Routed::Done,
            JsonRpcMessage::Notification(notification) => match notification.notification {
                ServerNotification::ProgressNotification(progress) => {
                    let params = progress.params;
                    if let Some(call) = self.requests().by_token(&params.progress_token) {
                        let is_amount = |amount: &f64| amount.is_finite() && *amount >= 0.0;
                        if is_amount(&params.progress) {
                            call.events.progress(Progress {
                                done: params.progress,
                                total: params.total.filter(is_amount),
                                message: params.message.map(|message| self.text(message)),
                            });
                        }
                    }
                    Routed::Done
                }
                ServerNotification::LoggingMessageNotification(logged) => {
                    let text = match logged.params.data {
                        serde_json::Value::String(text) => text,
                        data => data.to_string(),
                    };
                    let text = self.text(text);
                    match self.requests().call_of(&logged.extensions) {
                        Some(call) => call.events.log(log_level(logged.params.level), &text),
                        None => {
                            tracing::debug!(server = self.server, "logged: {}", printable(&text));
                        }
                    }
                    Routed::Done
                }
                notification => Routed::Other(JsonRpcMessage::notification(notification)),
            },
            JsonRpcMessage::Request(_) => Routed::Other(message),
        }
    }

    /// Returns the call that a message belongs to: by the stream that it arrived on, or the only
    /// one.
    pub(crate) fn call_of(&self, extensions: &Extensions) -> Option<ActiveCall> {
        self.requests().call_of(extensions)
    }

    fn text(&self, text: String) -> String {
        let mut text = self.redaction.text(text);
        if text.len() > MESSAGE_BYTES {
            text.truncate(text.floor_char_boundary(MESSAGE_BYTES));
            text.push('…');
        }
        text
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Requests {
    /// Removes a request. Some servers answer with the id as a string.
    fn remove(&mut self, id: &RequestId) -> bool {
        let number = |id: &RequestId| match id {
            RequestId::String(id) => id.parse().ok().map(RequestId::Number),
            RequestId::Number(_) => None,
        };
        let removed = match self.by_id.remove(id) {
            None => number(id).and_then(|id| self.by_id.remove(&id)),
            removed => removed,
        };
        if let Some(Some((token, _))) = &removed {
            self.by_token.remove(token);
        }
        removed.is_some()
    }

    fn by_token(&self, token: &ProgressToken) -> Option<ActiveCall> {
        let (_, call) = self.by_id.get(self.by_token.get(token)?)?.as_ref()?;
        Some(call.clone())
    }

    fn call_of(&self, extensions: &Extensions) -> Option<ActiveCall> {
        if let Some(InboundStreamOrigin::OutboundRequest(id)) = extensions.get() {
            return Some(self.by_id.get(id)?.as_ref()?.1.clone());
        }
        let mut calls = self.by_id.values().flatten();
        match (calls.next(), calls.next()) {
            (Some((_, only)), None) => Some(only.clone()),
            _ => None,
        }
    }
}
