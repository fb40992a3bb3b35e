//! The client's answers to requests of a server.
#![expect(deprecated, reason = "sampling is deprecated since 2026-07-28; older servers ask for it")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, ErrorCode,
    FormElicitationCapability, Implementation, ResourceUpdatedNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use tokio::sync::{Notify, oneshot};
use tokio::time::sleep;

use super::router::{Elicitation, Router};
use kitbag_contract::LogLevel;

/// The time in which changes of one resource are reported once.
const MOMENT: Duration = Duration::from_millis(50);

/// The largest number of resources that change in this time, and their longest URI in bytes.
const MOST_CHANGED: usize = 1_000;
const URI_BYTES: usize = 4 << 10;

/// Answers requests of one server.
pub(crate) struct Handler {
    router: Arc<Router>,
    changes: Arc<Changes>,
}

/// Changes of the server's lists that were not looked at yet.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) tools: Change,
    /// Changes of prompts and resources.
    pub(crate) items: Change,
    pub(crate) resources: ChangedResources,
}

/// A change of a list.
#[derive(Default)]
pub(crate) struct Change {
    is_news: AtomicBool,
    news: Notify,
}

/// The URIs of changed resources.
#[derive(Default)]
pub(crate) struct ChangedResources {
    uris: Mutex<BTreeSet<String>>,
    news: Notify,
}

impl Handler {
    pub(crate) fn new(router: Arc<Router>, changes: Arc<Changes>) -> Self {
        Self { router, changes }
    }
}

impl Change {
    /// Waits until the list changed.
    pub(crate) async fn wait(&self) {
        while !self.is_news.swap(false, Ordering::Relaxed) {
            self.news.notified().await;
        }
    }

    /// Notes that the list changed.
    pub(crate) fn note(&self) {
        self.is_news.store(true, Ordering::Relaxed);
        self.news.notify_one();
    }
}

impl ChangedResources {
    /// Waits for changes, and returns all of the last moment.
    pub(crate) async fn wait(&self) -> BTreeSet<String> {
        while self.uris().is_empty() {
            self.news.notified().await;
        }
        sleep(MOMENT).await;
        std::mem::take(&mut *self.uris())
    }

    /// Notes that a resource changed.
    pub(crate) fn note(&self, uri: String) {
        let mut uris = self.uris();
        if uris.len() < MOST_CHANGED && uri.len() <= URI_BYTES {
            uris.insert(uri);
            self.news.notify_one();
        }
    }

    fn uris(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.uris.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let form = FormElicitationCapability::default();
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(form));
        let own = Implementation::new("kitbag", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, own)
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        const REFUSED: &str = "`sampling/createMessage` is refused: kitbag has no model";
        if let Some(call) = self.router.call_of(&context.extensions) {
            call.events.log(LogLevel::Notice, REFUSED);
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, REFUSED, None))
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let Some(call) = self.router.call_of(&context.extensions) else {
            let reason = "no call, or more than one, could have caused the question";
            return Err(ErrorData::invalid_request(reason, None));
        };
        let (reply, answer) = oneshot::channel();
        if call.questions.try_send(Elicitation { params, reply }).is_err() {
            let reason = "too many questions of one call wait for answers";
            return Err(ErrorData::invalid_request(reason, None));
        }
        drop(call);
        tokio::select! {
            answer = answer => Ok(answer.unwrap_or(ElicitResult::new(ElicitationAction::Cancel))),
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.tools.note();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.items.note();
    }

    async fn on_resource_updated(
        &self,
        updated: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.changes.resources.note(updated.uri);
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.items.note();
    }
}
