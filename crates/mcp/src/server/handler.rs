//! The handler behind each connection.
#![expect(deprecated, reason = "logging is deprecated since 2026-07-28; older clients use it")]

use std::sync::Arc;
use std::time::Duration;

use kitbag_base::text::printable;
use kitbag_config::{Config, Disabled};
use kitbag_toolbox::{SERVER_SCHEME, Toolbox};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, DiscoverResult, ErrorCode, GetPromptRequestParams, GetPromptResponse,
    GetSkillRequestParams, GetSkillResult, Implementation, InitializeRequestParams,
    InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListSkillsResult, ListToolsResult, PaginatedRequestParams, ReadResourceDirectoryRequestParams,
    ReadResourceDirectoryResult, ReadResourceRequestParams, ReadResourceResponse, Reference,
    ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::methods::call::{call_context, warn_unlogged};
use crate::methods::page::page;
use crate::methods::{call, knowledge, prompts, resources, results, server_items, skills};
use crate::server::generation::Changes;
use crate::session::Session;
use crate::session::client::{Client, HANDSHAKE};
use crate::session::subscription::{self, Subscriptions};
use crate::session::{notifications, trust_notice};
use crate::telemetry::trace::{Target, Trace};

/// Maximum time that the first answer waits for the block of knowledge.
const INSTRUCTIONS_TIME: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub(crate) struct Handler {
    session: Session,
    /// Resources for which the client receives change notifications.
    subscriptions: Subscriptions,
    ended: CancellationToken,
    _end: Arc<DropGuard>,
}

impl Handler {
    pub(crate) fn new(session: Session) -> Self {
        let ended = CancellationToken::new();
        let _end = Arc::new(ended.clone().drop_guard());
        Self { session, subscriptions: Subscriptions::default(), ended, _end }
    }

    /// Returns the server's instructions: a notice if the workspace is not trusted, the reason if
    /// file tools are off, and the block of knowledge.
    async fn instructions(&self, context: &RequestContext<RoleServer>) -> Option<String> {
        let toolbox = self.session.generation().toolbox.clone();
        let (trust, files) =
            (trust_notice::notice(toolbox.config()), files_notice(toolbox.config()));
        let parts = [trust, files, self.knowledge(&toolbox, context).await];
        parts.into_iter().flatten().reduce(|before, part| format!("{before}\n{part}"))
    }

    /// Returns the block of knowledge. Returns none if reading it takes longer than
    /// `INSTRUCTIONS_TIME`.
    async fn knowledge(
        &self,
        toolbox: &Toolbox,
        context: &RequestContext<RoleServer>,
    ) -> Option<String> {
        let asked = toolbox.knowledge_prompt(call_context(&self.session, context));
        let asked = tokio::time::timeout(INSTRUCTIONS_TIME, asked).await;
        warn_unlogged(toolbox);
        let problem = match asked {
            Ok(Ok(prompt)) => {
                for problem in &prompt.problems {
                    tracing::warn!("knowledge: {}", printable(problem));
                }
                return (!prompt.text.is_empty()).then_some(prompt.text);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it takes longer than {}s", INSTRUCTIONS_TIME.as_secs()),
        };
        tracing::warn!("the instructions omit the knowledge block: {problem}");
        None
    }

    async fn tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let catalog = self.session.catalog().await?;
        let mut listed = catalog.listed();
        let mut with_own = Vec::new();
        let client = Client::of(context);
        if results::lists_read_tool(&client, &catalog)
            || self.session.server.kept_results().has_any(&self.session, context)
        {
            let read = results::read_tool(&catalog.own.read);
            let at = listed.partition_point(|tool| tool.name < read.name);
            with_own.extend_from_slice(listed);
            with_own.insert(at, read);
            listed = &with_own;
        }
        let (mut tools, next) = page(listed, |tool| &tool.name, request)?;
        if !client.has_structured {
            tools.iter_mut().for_each(|tool| tool.output_schema = None);
        }
        let mut result = ListToolsResult::with_all_items(tools);
        result.next_cursor = next;
        Ok(result)
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_skills_with_directory_read()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        let server = Implementation::new("kitbag", env!("CARGO_PKG_VERSION")).with_title("kitbag");
        let mut info = ServerConfig::new(capabilities).with_server_info(server);
        info.protocol_version = HANDSHAKE;
        info
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let work = async {
            self.session.begin(&context)?;
            let mut info = self.negotiate_initialize(&request)?;
            info.instructions = self.instructions(&context).await;
            self.session.server.client_began();
            Ok(info)
        };
        Trace::begin("initialize", Target::Nothing, &context).run(work).await
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let work = async {
            let mut info = self.get_info();
            info.instructions = self.instructions(&context).await;
            self.session.server.client_began();
            let versions = self.supported_protocol_versions().into_owned();
            Ok(DiscoverResult::from_server_info(versions, info))
        };
        Trace::begin("server/discover", Target::Nothing, &context).run(work).await
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let session = self.session.clone();
        let mut changes = session.server.changes();
        let mut seen = changes.borrow_and_update().clone();
        let closing = session.server.closing().clone();
        let subscriptions = self.subscriptions.clone();
        let ended = self.ended.clone();
        tokio::spawn(async move {
            let tell_trust = async || {
                let generation = session.generation();
                let config = generation.toolbox.config();
                trust_notice::tell(&context.peer, session.session_level(), config).await
            };
            let is_untrusted = session.generation().toolbox.config().trust_notice().is_some();
            if is_untrusted && tell_trust().await.is_err() {
                return;
            }
            loop {
                let now = tokio::select! {
                    now = next(&mut changes, &closing) => now,
                    // The client's subscriptions have ended.
                    () = ended.cancelled() => None,
                };
                let Some(now) = now else { return };
                let peer = &context.peer;
                let notify = async {
                    if now.trust != seen.trust {
                        tell_trust().await?;
                    }
                    if now.tools != seen.tools {
                        peer.notify_tool_list_changed().await?;
                    }
                    if now.prompts != seen.prompts {
                        peer.notify_prompt_list_changed().await?;
                    }
                    if now.resources != seen.resources {
                        peer.notify_resource_list_changed().await?;
                    }
                    for uri in subscriptions.updated(&session, &seen, &now) {
                        let updated = ResourceUpdatedNotificationParam::new(uri);
                        peer.notify_resource_updated(updated).await?;
                    }
                    Ok::<_, rmcp::ServiceError>(())
                };
                if notify.await.is_err() {
                    return;
                }
                seen = now;
            }
        });
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(subscription::accepted(&self.session, requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.session.server.changes();
        let mut seen = changes.borrow_and_update().clone();
        let _at_servers = subscription::at_servers(&self.session, context.accepted());
        loop {
            let now = tokio::select! {
                now = next(&mut changes, self.session.server.closing()) => now,
                () = context.cancelled() => None,
            };
            let Some(now) = now else { return Ok(()) };
            let (sink, accepted) = (context.sink(), context.accepted());
            let wants = |filter: Option<bool>| filter == Some(true);
            let notify = async {
                if now.tools != seen.tools && wants(accepted.tools_list_changed) {
                    sink.notify_tool_list_changed().await?;
                }
                if now.prompts != seen.prompts && wants(accepted.prompts_list_changed) {
                    sink.notify_prompt_list_changed().await?;
                }
                if now.resources != seen.resources && wants(accepted.resources_list_changed) {
                    sink.notify_resource_list_changed().await?;
                }
                for uri in accepted.resource_subscriptions.iter().flatten() {
                    if subscription::is_updated(&self.session, uri, &seen, &now) {
                        sink.notify_resource_updated(uri).await?;
                    }
                }
                Ok::<_, rmcp::service::SubscriptionSendError>(())
            };
            if notify.await.is_err() {
                return Ok(());
            }
            seen = now;
        }
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let work = async {
            of_session("logging/setLevel", &context)?;
            self.session.set_log_level(notifications::read(request.level));
            Ok(())
        };
        Trace::begin("logging/setLevel", Target::Nothing, &context).run(work).await
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let trace = Trace::begin("tools/list", Target::Nothing, &context);
        trace.run(self.tools(request, &context)).await
    }

    /// Finds a tool for the HTTP headers that repeat arguments. Clients learn these headers from a
    /// listing, so none exist before the first listing.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let catalog = self.session.generation().known_catalog()?;
        catalog.tool(name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let trace = Trace::begin("tools/call", Target::Tool(&request.name), &context);
        #[cfg(feature = "otlp")]
        if self.session.server.traces_content() {
            trace.content("gen_ai.tool.call.arguments", &request.arguments);
        }
        let response = trace.run(call::call(&self.session, request, &context)).await?;
        trace.tool_result(&response);
        #[cfg(feature = "otlp")]
        if let CallToolResponse::Complete(result) = &response
            && self.session.server.traces_content()
        {
            trace.content("gen_ai.tool.call.result", &result.content);
        }
        Ok(response)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let trace = Trace::begin("resources/list", Target::Nothing, &context);
        trace.run(resources::list(&self.session, request, &context)).await
    }

    async fn list_skills(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        let trace = Trace::begin("skills/list", Target::Nothing, &context);
        trace.run(skills::list(&self.session, request, &context)).await
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        let trace = Trace::begin("skills/get", Target::Resource(&request.uri), &context);
        trace.run(skills::get(&self.session, &request, &context)).await
    }

    async fn read_resource_directory(
        &self,
        request: ReadResourceDirectoryRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceDirectoryResult, ErrorData> {
        let target = Target::Resource(&request.uri);
        let trace = Trace::begin("resources/directory/read", target, &context);
        trace.run(skills::directory(&self.session, request.clone(), &context)).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let trace = Trace::begin("resources/templates/list", Target::Nothing, &context);
        trace.run(resources::templates(&self.session, request)).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let trace = Trace::begin("resources/read", Target::Resource(&request.uri), &context);
        trace.run(resources::read(&self.session, request, &context)).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let trace = Trace::begin("resources/subscribe", Target::Resource(&request.uri), &context);
        let work = async {
            of_session("resources/subscribe", &context)?;
            let account = self.session.account(&context);
            self.subscriptions.add(&self.session, &account, request.uri).await
        };
        trace.run(work).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let trace = Trace::begin("resources/unsubscribe", Target::Resource(&request.uri), &context);
        let work = async {
            of_session("resources/unsubscribe", &context)?;
            self.subscriptions.remove(&request.uri);
            Ok(())
        };
        trace.run(work).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let trace = Trace::begin("completion/complete", Target::Nothing, &context);
        let is_of_server = match &request.r#ref {
            Reference::Resource(template) => template.uri.starts_with(SERVER_SCHEME),
            _ => true,
        };
        match is_of_server {
            true => trace.run(server_items::complete(&self.session, &request)).await,
            false => trace.run(knowledge::complete(&self.session, request, &context)).await,
        }
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let trace = Trace::begin("prompts/list", Target::Nothing, &context);
        trace.run(prompts::list(&self.session, request)).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let trace = Trace::begin("prompts/get", Target::Prompt(&request.name), &context);
        trace.run(prompts::get(&self.session, request, &context)).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // A known method arrives here if its parameters cannot be read.
        let method = &request.method;
        let is_gone = Client::of(&context).is_stateless && OF_SESSIONS.contains(&&**method);
        Err(match METHODS.contains(&&**method) && !is_gone {
            true => ErrorData::invalid_params(format!("invalid parameters of `{method}`"), None),
            false => no_method(method),
        })
    }
}

const METHODS: &[&str] = &[
    "completion/complete",
    "initialize",
    "logging/setLevel",
    "prompts/get",
    "prompts/list",
    "resources/directory/read",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "server/discover",
    "skills/get",
    "skills/list",
    "subscriptions/listen",
    "tools/call",
    "tools/list",
];

/// Methods that the stateless revisions do not have.
const OF_SESSIONS: &[&str] =
    &["initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// Refuses a method that exists only in sessions.
fn of_session(method: &str, context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    match Client::of(context).is_stateless {
        true => Err(no_method(method)),
        false => Ok(()),
    }
}

fn no_method(method: &str) -> ErrorData {
    let message = format!("there is no method `{method}`");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

/// Waits for the next change. `None` if the server ends.
async fn next(
    changes: &mut tokio::sync::watch::Receiver<Changes>,
    closing: &CancellationToken,
) -> Option<Changes> {
    tokio::select! {
        changed = changes.changed() => changed.ok().map(|()| changes.borrow_and_update().clone()),
        () = closing.cancelled() => None,
    }
}

/// Explains why the file tools are off in a directory that is not a workspace, such as the home
/// directory: a client that was set up for every directory starts the server there.
fn files_notice(config: &Config) -> Option<String> {
    let reasons = config.tools.values().filter_map(|tool| tool.disabled.as_ref());
    let reason = reasons.into_iter().find(
        |reason| matches!(reason, Disabled::NoWorkspace { toolset, .. } if toolset == "files"),
    )?;
    Some(format!("Note: the file tools are {reason}.\n"))
}
