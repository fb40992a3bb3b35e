//! One running server: its start, its connection and its end. Runs on the thread of the server.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use kitbag_http::{Account, CallLimits, Requests};
use kitbag_policy::http::HttpGrants;
use kitbag_policy::server::{
    Era, RemoteServer, ServerAddress, ServerName, ServerProcess, ToolDefinition,
};
use kitbag_policy::{Placement, SecretGrant, SecretName, SecretPlace};
use kitbag_secrets::{CallEnd, CallSecrets, SecretValue, Secrets};
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, RunningService, ServiceError,
    serve_client_with_lifecycle,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::transport::{DynamicTransportError, IntoTransport, Transport};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::client::{
    BoundedLines, BrokerClient, Changes, ClientError, Failure, Guard, Handler, Redaction, Router,
    grant,
};
use crate::error::{ServerError, StartFailure};
use crate::items::{self, ServerItems};
use crate::listing::{self, Listing};
use crate::pool::Means;
use crate::sign_in::{Access, Reach};
use crate::start::{Link, RunningProcess};
use crate::subscriptions::{self, Subscriptions};
use crate::target::ServerTarget;

/// The time in which a server must start and list its tools. Some install themselves first.
const START: Duration = Duration::from_secs(60);

/// The time that a process has to end after its connection before its end is reported without a
/// status, and the time that a connection has to end.
const EXIT: Duration = Duration::from_secs(1);

/// The pause before a server's tools, prompts and resources are listed again.
const RELIST: Duration = Duration::from_secs(1);

/// A server that answers calls.
pub(crate) struct Connection {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) redaction: Redaction,
    pub(crate) listing: Listing,
    tools: RwLock<HashMap<String, ToolDefinition>>,
    /// The thread of the server, for work that outlasts a call.
    pub(crate) runtime: Handle,
    use_: Use,
    end: watch::Sender<Option<String>>,
}

/// The calls that use a connection.
#[derive(Default)]
struct Use {
    calls: AtomicUsize,
    changed: Notify,
}

/// The right to use a connection, which does not end as idle in the meantime.
pub(crate) struct Lease(pub(crate) Arc<Connection>);

/// A started server.
pub(crate) struct Started {
    service: RunningService<RoleClient, Handler>,
    process: Option<Box<dyn RunningProcess>>,
    failure: Arc<Failure>,
    changes: Arc<Changes>,
    pub(crate) connection: Arc<Connection>,
}

impl Connection {
    /// Checks that a tool is as it was added.
    ///
    /// # Errors
    ///
    /// [`ServerError::Changed`] and [`ServerError::Absent`].
    pub(crate) fn check(
        &self,
        target: &ServerTarget,
        tool: &ToolDefinition,
    ) -> Result<(), ServerError> {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        let (server, name) = (target.name.clone(), tool.name.clone());
        let Some(now) = tools.get(&tool.name) else {
            return Err(ServerError::Absent { server, tool: name });
        };
        match difference(tool, now) {
            None => Ok(()),
            Some(part) => Err(ServerError::Changed { server, tool: name, part }),
        }
    }

    /// Waits until the server has ended, and returns why, as a phrase.
    pub(crate) async fn ended(&self) -> String {
        let mut end = self.end.subscribe();
        match end.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => "the connection was closed".to_owned(),
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.use_.calls.load(Ordering::SeqCst) == 0
    }

    fn set_tools(&self, tools: Vec<ToolDefinition>) {
        let tools = tools.into_iter().map(|tool| (tool.name.clone(), tool)).collect();
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = tools;
    }
}

/// Returns the first part of a definition that changed.
fn difference(then: &ToolDefinition, now: &ToolDefinition) -> Option<&'static str> {
    let parts = [
        ("description", then.description == now.description),
        ("input schema", then.input_schema == now.input_schema),
        ("output schema", then.output_schema == now.output_schema),
        ("title", then.title == now.title),
        ("annotations", then.annotations == now.annotations),
    ];
    parts.into_iter().find(|(_, is_same)| !is_same).map(|(part, _)| part)
}

impl Lease {
    pub(crate) fn new(connection: &Arc<Connection>) -> Self {
        connection.use_.calls.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(connection))
    }

    /// Returns the error of a request that got no answer.
    pub(crate) async fn failed(&self, server: &ServerName, error: ServiceError) -> ServerError {
        let redaction = &self.0.redaction;
        let reason = match error {
            ServiceError::TransportClosed | ServiceError::TransportSend(_)
                if self.0.peer.is_transport_closed() =>
            {
                self.0.ended().await
            }
            ServiceError::TransportSend(error) => {
                match transport_failure(&error).map(|reason| redaction.text(reason)) {
                    // The sign-in ended, or has too few scopes.
                    StartFailure::SignIn(reason) => {
                        return ServerError::SignIn { server: server.clone(), reason };
                    }
                    StartFailure::Other(reason) => format!("it cannot be reached: {reason}"),
                }
            }
            error => redaction.text(error.to_string()),
        };
        ServerError::Ended { server: server.clone(), reason }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.use_.calls.fetch_sub(1, Ordering::SeqCst);
        self.0.use_.changed.notify_one();
    }
}

/// Starts a server and lists its tools.
///
/// # Errors
///
/// The reason, for a person.
pub(crate) async fn start(target: &ServerTarget, means: &Means) -> Result<Started, StartFailure> {
    match timeout(START, start_in_any_era(target, means)).await {
        Ok(started) => started,
        Err(_) => Err(format!("it did not start within {} seconds", START.as_secs()).into()),
    }
}

/// Starts a server in the era that it spoke before. If it now speaks the other one, it is started
/// once more.
async fn start_in_any_era(target: &ServerTarget, means: &Means) -> Result<Started, StartFailure> {
    match start_in(target, means, target.era).await {
        Err(Unstarted { is_of_era: true, .. }) if target.era.is_some() => {
            start_in(target, means, None).await.map_err(|error| error.failure)
        }
        started => started.map_err(|error| error.failure),
    }
}

struct Unstarted {
    failure: StartFailure,
    /// True if the server may speak the other era.
    is_of_era: bool,
}

async fn start_in(
    target: &ServerTarget,
    means: &Means,
    era: Option<Era>,
) -> Result<Started, Unstarted> {
    let plain = |reason: String| Unstarted { failure: reason.into(), is_of_era: false };
    match &*target.address {
        ServerAddress::Process(process) => {
            let (link, redaction) = start_process(target, process, means).map_err(plain)?;
            let failure = Arc::<Failure>::default();
            let lines = BoundedLines::new(link.read, Arc::clone(&failure));
            let transport = AsyncRwTransport::new_client(lines, link.write);
            serve(target, transport, link.process, redaction, failure, era).await
        }
        ServerAddress::Remote(remote) => {
            let client = remote_client(target, remote, means).map_err(plain)?;
            let config = StreamableHttpClientTransportConfig::with_uri(&*remote.url);
            let transport = StreamableHttpClientTransport::with_client(client, config);
            let transport = IntoTransport::<RoleClient, _, _>::into_transport(transport);
            // The connections mask the secret in all answers.
            serve(target, transport, None, Redaction::default(), Arc::default(), era).await
        }
    }
}

fn start_process(
    target: &ServerTarget,
    process: &ServerProcess,
    means: &Means,
) -> Result<(Link, Redaction), String> {
    let end = CallEnd::default();
    let mut secrets = Vec::new();
    for name in target.address.secrets() {
        let value = target.secrets.source.read(name, &end).map_err(|error| error.to_string())?;
        secrets.push((name.clone(), Arc::new(value)));
    }
    let redaction = Redaction::new(secrets.iter().map(|(_, value)| &**value));
    let connect = means.connect.as_ref().ok_or("this kitbag cannot start processes")?;
    let link = connect.connect(&target.name, process, &secrets)?;
    Ok((link, redaction))
}

fn remote_client(
    target: &ServerTarget,
    remote: &RemoteServer,
    means: &Means,
) -> Result<BrokerClient, String> {
    let grant = grant(remote).map_err(|refusal| refusal.to_string())?;
    let grants = HttpGrants { grants: vec![Arc::new(grant)], deny: Arc::clone(&target.deny) };
    // Names of tools contain no `/`, so a server shares its connections with no tool.
    let owner = format!("servers/{}", target.name);
    let limits = CallLimits { requests: u64::MAX };
    let (http, url, own) = (means.http.clone(), remote.url.clone(), target.secrets.clone());
    let make = move |token: Option<&str>| {
        let (mut secrets, mut source) = (own.grants.clone(), Arc::clone(&own.source));
        if let Some(token) = token {
            let name = SecretName::new("sign-in").expect("a constant in the right form");
            let value = SecretValue::new(token.into()).map_err(|error| error.to_string())?;
            let place = SecretPlace::new(&url, false).map_err(|error| error.to_string())?;
            secrets.push(SecretGrant {
                name: name.clone(),
                to: vec![place],
                within: None,
                added: Some(Placement::Bearer),
                variables: Vec::new(),
                in_query: false,
                in_body: false,
            });
            source = Arc::new(Secrets::with_value(source, name, value));
        }
        let secrets = CallSecrets::new(secrets, source).map_err(|error| error.to_string())?;
        let (account, secrets) = (Account::default(), Some(Arc::new(secrets)));
        Ok(Requests::new(&http, owner.clone(), account, grants.clone(), limits, secrets))
    };
    // A secret of the configuration is used instead of a sign-in.
    let store = means.sign_ins.as_ref().filter(|_| remote.secret.is_none());
    let reach = Reach {
        http: means.http.clone(),
        deny: Arc::clone(&target.deny),
        addresses: remote.addresses.clone(),
    };
    let access = store.map(|store| Access::new(&target.name, &remote.url, reach, store));
    let invalid = |name| format!("the header `{name}` is not valid");
    BrokerClient::new(&target.name, Box::new(make), access, &remote.headers).map_err(invalid)
}

/// Shakes hands over a transport and lists the tools.
async fn serve<T: Transport<RoleClient> + 'static>(
    target: &ServerTarget,
    transport: T,
    mut process: Option<Box<dyn RunningProcess>>,
    redaction: Redaction,
    failure: Arc<Failure>,
    era: Option<Era>,
) -> Result<Started, Unstarted> {
    let router = Arc::new(Router::new(target.name.as_str(), redaction.clone()));
    let changes = Arc::<Changes>::default();
    let handler = Handler::new(Arc::clone(&router), Arc::clone(&changes));
    let guard = Guard::new(transport, router, Arc::clone(&failure));
    let lifecycle = lifecycle(era);
    let shaken = serve_client_with_lifecycle(handler, guard, lifecycle).await;
    let service = match shaken {
        Ok(service) => service,
        Err(error) => {
            let reason = unstarted(&error, process.as_deref_mut(), &failure).await;
            let reason = reason.map(|reason| redaction.text(reason));
            if let Some(mut process) = process {
                process.end().await;
            }
            let is_of_era = failure.get().is_none() && is_of_era(&error);
            return Err(Unstarted { failure: reason, is_of_era });
        }
    };
    let peer = service.peer().clone();
    let plain = |reason: String| Unstarted { failure: reason.into(), is_of_era: false };
    let info = peer.peer_info().ok_or_else(|| plain("it sent no information".into()))?;
    let has_tools = info.capabilities.tools.is_some();
    let tools = match has_tools {
        true => match listing::tools(&peer, &redaction).await {
            Ok(tools) => tools,
            Err(reason) => {
                let reason = failure.get().map_or(reason, str::to_owned);
                drop(service);
                if let Some(mut process) = process {
                    process.end().await;
                }
                return Err(plain(redaction.text(format!("it {reason}"))));
            }
        },
        false => Vec::new(),
    };
    let own = info.server_info.as_ref();
    let text = |text: &String| redaction.text(text.clone());
    let is_stateless = !info.protocol_version.has_initialize();
    let listing = Listing {
        era: if is_stateless { Era::Stateless } else { Era::Initialize },
        version: info.protocol_version.to_string(),
        name: own.map(|own| text(&own.name)),
        server_version: own.map(|own| text(&own.version)),
        instructions: info.instructions.as_ref().map(text),
        tools: tools.clone(),
    };
    let connection = Connection {
        peer,
        redaction,
        listing,
        tools: RwLock::default(),
        runtime: Handle::current(),
        use_: Use::default(),
        end: watch::Sender::new(None),
    };
    connection.set_tools(tools);
    let connection = Arc::new(connection);
    Ok(Started { service, process, failure, changes, connection })
}

fn lifecycle(era: Option<Era>) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    match era {
        Some(Era::Initialize) => ClientLifecycleMode::Initialize,
        Some(Era::Stateless) => ClientLifecycleMode::Discover { preferred_versions },
        None => ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
    }
}

/// Returns true if a handshake failed in a way that a server of the other era could cause.
fn is_of_era(error: &ClientInitializeError) -> bool {
    matches!(
        error,
        ClientInitializeError::JsonRpcError(_)
            | ClientInitializeError::NoCompatibleProtocolVersion { .. }
            | ClientInitializeError::ExpectedInitResponse(_)
            | ClientInitializeError::ExpectedInitResult(_)
    )
}

/// Returns why a server did not start.
async fn unstarted(
    error: &ClientInitializeError,
    process: Option<&mut (dyn RunningProcess + 'static)>,
    failure: &Failure,
) -> StartFailure {
    let reason = match (failure.get(), error) {
        (Some(failure), _) => format!("it {failure}").into(),
        (None, error) => shaken(error),
    };
    match reason {
        StartFailure::Other(reason) => ending(reason, process).await.into(),
        sign_in => sign_in,
    }
}

/// Returns why a handshake failed.
fn shaken(error: &ClientInitializeError) -> StartFailure {
    let reason = match error {
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection".to_owned(),
        ClientInitializeError::TransportError { error, .. } => return transport_failure(error),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => return shaken(fallback),
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_) => {
            "it answered the handshake with another result".to_owned()
        }
        ClientInitializeError::JsonRpcError(error) => {
            format!("it refused the handshake: {}", error.message)
        }
        error => error.to_string(),
    };
    reason.into()
}

/// Returns the innermost reason why a message was not sent.
fn transport_failure(error: &DynamicTransportError) -> StartFailure {
    let mut innermost: &(dyn std::error::Error + 'static) = &*error.error;
    loop {
        if let Some(StreamableHttpError::Client(ClientError::SignIn(reason))) =
            innermost.downcast_ref::<StreamableHttpError<ClientError>>()
        {
            return StartFailure::SignIn(reason.clone());
        }
        match innermost.source() {
            Some(source) => innermost = source,
            None => break,
        }
    }
    let text = innermost.to_string();
    // The text of rmcp's error around the one of a request, or around ours.
    let own =
        text.strip_prefix("unexpected server response: ").filter(|own| own.starts_with("its "));
    let text = own.or(text.strip_prefix("Client error: ")).unwrap_or(&text);
    text.to_owned().into()
}

/// Adds the exit status of a process and its last errors to a reason.
async fn ending(
    mut reason: String,
    process: Option<&mut (dyn RunningProcess + 'static)>,
) -> String {
    let Some(process) = process else { return reason };
    if let Ok(status) = timeout(EXIT, process.ended()).await {
        reason = format!("{reason} ({status})");
    }
    let errors = process.last_errors();
    let errors = errors.trim_end();
    match errors.is_empty() {
        true => reason,
        false => format!("{reason}; it wrote:\n{errors}"),
    }
}

impl Started {
    /// Waits until the server ends, or ends it: when it is idle, and when `stop` is cancelled.
    /// `release` decides whether an idle server may end. `publish` receives the prompts and
    /// resources whenever they are listed, for which no request waits, and `updated` the URIs of
    /// changed resources. Returns why a server failed; `None` if it was ended.
    #[expect(clippy::too_many_arguments, reason = "callbacks of one caller")]
    pub(crate) async fn supervise(
        self,
        target: &ServerTarget,
        subscriptions: &Subscriptions,
        stop: &CancellationToken,
        release: impl Fn() -> bool,
        items: ServerItems,
        publish: impl Fn(&ServerItems),
        updated: impl Fn(BTreeSet<String>),
    ) -> Option<String> {
        let Self { service, mut process, failure, changes, connection } = self;
        let cancellation = service.cancellation_token();
        let mut closed = Box::pin(service.waiting());
        let mut relist = None;
        let list_items = |items: ServerItems, pause: Duration| {
            let connection = Arc::clone(&connection);
            Box::pin(async move {
                sleep(pause).await;
                items::list(&connection.peer, &connection.redaction, items).await
            })
        };
        let (mut items, mut relist_items) =
            (items.clone(), Some(list_items(items, Duration::ZERO)));
        let mut follow =
            Box::pin(subscriptions::follow(&target.name, &connection, &changes, subscriptions));
        let mut changed_resources = Box::pin(changes.resources.wait());
        let idle = target.idle;
        let mut idle_at = Instant::now() + idle;
        let is_failure = loop {
            tokio::select! {
                _ = &mut closed => break true,
                () = failure.failed() => break true,
                () = stop.cancelled() => break false,
                () = connection.use_.changed.notified() => idle_at = Instant::now() + idle,
                () = sleep_until(idle_at) => match connection.is_idle() && release() {
                    true => break false,
                    false => idle_at = Instant::now() + idle,
                },
                () = &mut follow => {}
                uris = &mut changed_resources => {
                    changed_resources = Box::pin(changes.resources.wait());
                    updated(uris);
                }
                () = changes.items.wait(), if relist_items.is_none() => {
                    relist_items = Some(list_items(items.clone(), RELIST));
                }
                listed = async { relist_items.as_mut().expect("it was checked").await },
                    if relist_items.is_some() =>
                {
                    relist_items = None;
                    items = listed;
                    publish(&items);
                }
                () = changes.tools.wait(), if relist.is_none() => {
                    let connection = Arc::clone(&connection);
                    relist = Some(Box::pin(async move {
                        sleep(RELIST).await;
                        listing::tools(&connection.peer, &connection.redaction).await
                    }));
                }
                tools = async { relist.as_mut().expect("it was checked").await },
                    if relist.is_some() =>
                {
                    relist = None;
                    // Without a new list, no tool is as it was added.
                    connection.set_tools(tools.unwrap_or_default());
                }
            }
        };
        let reason = match (is_failure, failure.get()) {
            (_, Some(failure)) => format!("it {failure}"),
            (true, None) => "it closed the connection".to_owned(),
            (false, None) => "kitbag ended it".to_owned(),
        };
        let reason = match is_failure {
            true => connection.redaction.text(ending(reason, process.as_deref_mut()).await),
            false => reason,
        };
        connection.end.send_replace(Some(reason.clone()));
        if !is_failure {
            // Closes the standard input of a process, and the session of a remote server.
            cancellation.cancel();
            let _ = timeout(EXIT, closed).await;
        }
        if let Some(mut process) = process {
            process.end().await;
        }
        is_failure.then_some(reason)
    }
}
