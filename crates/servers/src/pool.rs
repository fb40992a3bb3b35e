//! The servers of one configuration, each with one connection for all callers.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kitbag_http::Client;
use kitbag_policy::server::{ServerAddress, ServerName, ToolDefinition};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::connection::{self, Connection, Lease};
use crate::error::{ServerError, StartFailure};
use crate::items::{ServerChange, ServerItems};
use crate::listing::Listing;
use crate::sign_in::SignInStore;
use crate::start::Connect;
use crate::subscriptions::Subscriptions;
use crate::target::ServerTarget;

/// The connections to servers. Clones share them; the last one ends all servers.
///
/// Creating this starts nothing. A server starts at its first call or listing.
#[derive(Clone)]
pub struct Servers(Arc<Pool>);

/// The means to reach servers.
#[derive(Clone, Default)]
pub struct ServersOptions {
    /// Starts processes. `None`: only remote servers can be reached.
    pub connect: Option<Arc<dyn Connect>>,
    /// Sends requests to remote servers.
    pub http: Client,
    /// Keeps the sign-ins to remote servers. `None`: there are no sign-ins.
    pub sign_ins: Option<Arc<dyn SignInStore>>,
}

pub(crate) type Means = ServersOptions;

struct Pool {
    means: Means,
    slots: Mutex<HashMap<ServerName, Arc<Slot>>>,
    listener: Listener,
    is_ended: AtomicBool,
}

/// Receives changes, on the thread of the server.
type OnChange = Arc<dyn Fn(ServerChange) + Send + Sync>;

/// The receiver of changes, if there is one.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Option<OnChange>>>);

/// The state of one server.
struct Slot {
    name: ServerName,
    address: Arc<ServerAddress>,
    state: watch::Sender<State>,
    stop: CancellationToken,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The prompts and resources that the server listed last, also if it does not run now.
    items: Mutex<Arc<ServerItems>>,
    subscriptions: Subscriptions,
    listener: Listener,
}

#[derive(Default)]
struct State {
    phase: Phase,
    backoff: Backoff,
}

#[derive(Clone, Default)]
enum Phase {
    #[default]
    Stopped,
    Starting,
    Failed(StartFailure),
    Running(Arc<Connection>),
}

impl Servers {
    /// Creates the connections. Nothing is started.
    pub fn new(options: ServersOptions) -> Self {
        Self(Arc::new(Pool {
            means: options,
            slots: Mutex::default(),
            listener: Listener::default(),
            is_ended: AtomicBool::new(false),
        }))
    }

    /// Starts a server if necessary, and returns what it offers.
    ///
    /// # Errors
    ///
    /// [`ServerError`] if it does not start.
    pub async fn list(&self, target: &ServerTarget) -> Result<Listing, ServerError> {
        Ok(self.connect(target).await?.0.listing.clone())
    }

    /// Starts a server if necessary, and returns an error for each of these tools that is not as it
    /// was added.
    ///
    /// # Errors
    ///
    /// [`ServerError`] if it does not start.
    pub async fn check<'a>(
        &self,
        target: &ServerTarget,
        tools: impl IntoIterator<Item = &'a ToolDefinition>,
    ) -> Result<Vec<ServerError>, ServerError> {
        let lease = self.connect(target).await?;
        let checked = tools.into_iter().map(|tool| lease.0.check(target, tool));
        Ok(checked.filter_map(Result::err).collect())
    }

    /// Returns the prompts and resources that a server listed last. Starts nothing and waits for
    /// nothing: a server that has not listed them yet has none.
    pub fn items(&self, target: &ServerTarget) -> Arc<ServerItems> {
        self.0.known_slot(target).map(|slot| slot.items()).unwrap_or_default()
    }

    /// Calls a function when the prompts or resources of a server, or a resource with a
    /// [subscription](Self::subscribe) changed, instead of the function that was set before.
    pub fn on_change(&self, listener: impl Fn(ServerChange) + Send + Sync + 'static) {
        *self.0.listener.0.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Arc::new(listener));
    }

    /// Ends all servers, and waits until they have ended, at most for `time`. No server starts
    /// again.
    pub fn end(&self, time: Duration) {
        self.0.is_ended.store(true, Ordering::SeqCst);
        let slots: Vec<_> = self.0.slots().drain().map(|(_, slot)| slot).collect();
        for slot in &slots {
            slot.stop.cancel();
        }
        let deadline = Instant::now() + time;
        let is_running = |slot: &Arc<Slot>| {
            let thread = slot.thread.lock().unwrap_or_else(PoisonError::into_inner);
            thread.as_ref().is_some_and(|thread| !thread.is_finished())
        };
        while slots.iter().any(is_running) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends all servers but these, at once. Their running calls fail.
    pub fn retain(&self, is_kept: impl Fn(&ServerName, &ServerAddress) -> bool) {
        let mut slots = self.0.slots();
        let is_ended = |name: &ServerName, slot: &mut Arc<Slot>| !is_kept(name, &slot.address);
        let ended: Vec<_> = slots.extract_if(is_ended).collect();
        drop(slots);
        for (_, slot) in ended {
            slot.stop.cancel();
        }
    }

    /// Returns the names of the servers that run now.
    pub fn running(&self) -> Vec<ServerName> {
        let is_running = |slot: &Slot| matches!(slot.state.borrow().phase, Phase::Running(_));
        let slots = self.0.slots();
        let running = slots.iter().filter(|(_, slot)| is_running(slot));
        running.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the connection to a server that runs.
    pub(crate) fn lease(&self, target: &ServerTarget) -> Option<Lease> {
        self.0.known_slot(target)?.lease()
    }

    /// Returns the connection to a server, which is started if necessary, and its subscriptions.
    pub(crate) async fn connect_for_subscription(
        &self,
        target: &ServerTarget,
    ) -> Result<(Lease, Subscriptions), ServerError> {
        let lease = self.connect(target).await?;
        Ok((lease, self.0.slot(target).subscriptions.clone()))
    }

    /// Returns the connection to a server, which is started if necessary.
    pub(crate) async fn connect(&self, target: &ServerTarget) -> Result<Lease, ServerError> {
        if self.0.is_ended.load(Ordering::SeqCst) {
            let reason = "kitbag ends".to_owned();
            return Err(ServerError::Start { server: target.name.clone(), reason });
        }
        let slot = self.0.slot(target);
        let mut changes = slot.state.subscribe();
        if let Some(lease) = slot.lease() {
            return Ok(lease);
        }
        slot.begin(target, &self.0.means)?;
        loop {
            let phase =
                match changes.wait_for(|state| !matches!(state.phase, Phase::Starting)).await {
                    Ok(state) => state.phase.clone(),
                    Err(_) => Phase::Stopped,
                };
            match phase {
                Phase::Running(_) => match slot.lease() {
                    Some(lease) => return Ok(lease),
                    None => slot.begin(target, &self.0.means)?,
                },
                Phase::Failed(failure) => return Err(failure.of_start(target.name.clone())),
                Phase::Stopped | Phase::Starting => slot.begin(target, &self.0.means)?,
            }
        }
    }
}

impl Pool {
    /// Returns the state of a server. A server with another address is replaced.
    fn slot(&self, target: &ServerTarget) -> Arc<Slot> {
        let mut slots = self.slots();
        if let Some(slot) = slots.get(&target.name) {
            if slot.address == target.address {
                return Arc::clone(slot);
            }
            slot.stop.cancel();
        }
        let slot = Arc::new(Slot {
            name: target.name.clone(),
            address: Arc::clone(&target.address),
            state: watch::Sender::default(),
            stop: CancellationToken::new(),
            thread: Mutex::default(),
            items: Mutex::default(),
            subscriptions: Subscriptions::default(),
            listener: self.listener.clone(),
        });
        slots.insert(target.name.clone(), Arc::clone(&slot));
        slot
    }

    /// Returns the state of a server that was started before.
    fn known_slot(&self, target: &ServerTarget) -> Option<Arc<Slot>> {
        let slots = self.slots();
        slots.get(&target.name).filter(|slot| slot.address == target.address).cloned()
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<ServerName, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let slots: Vec<_> = self.slots().drain().map(|(_, slot)| slot).collect();
        for slot in &slots {
            slot.stop.cancel();
        }
        for slot in slots {
            let thread = slot.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
            // A call on the thread of a server may own the last clone.
            if let Some(thread) = thread.filter(|it| it.thread().id() != thread::current().id()) {
                let _ = thread.join();
            }
        }
    }
}

impl Slot {
    /// Returns a lease of the connection, unless the server has to be started. A server that has
    /// been leased does not end as idle, since its end takes the state for writing.
    fn lease(&self) -> Option<Lease> {
        let state = self.state.borrow();
        match &state.phase {
            Phase::Running(connection) if !connection.peer.is_transport_closed() => {
                Some(Lease::new(connection))
            }
            _ => None,
        }
    }

    /// Starts the server on a thread of its own, unless it is starting or runs.
    fn begin(self: &Arc<Self>, target: &ServerTarget, means: &Means) -> Result<(), ServerError> {
        let (mut refusal, now) = (None, Instant::now());
        let is_begun = self.state.send_if_modified(|state| {
            let is_gone = match &state.phase {
                Phase::Stopped | Phase::Failed(_) => true,
                Phase::Running(connection) => connection.peer.is_transport_closed(),
                Phase::Starting => false,
            };
            if !is_gone {
                return false;
            }
            if let Some((reason, retry_after)) = state.backoff.wait(now) {
                let (server, reason) = (self.name.clone(), reason.to_owned());
                refusal = Some(ServerError::Backoff { server, reason, retry_after });
                return false;
            }
            state.phase = Phase::Starting;
            true
        });
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        if !is_begun {
            return Ok(());
        }
        let (slot, target, means) = (Arc::clone(self), target.clone(), means.clone());
        let name = format!("server {}", self.name);
        match thread::Builder::new().name(name).spawn(move || slot.run(&target, &means)) {
            Ok(thread) => {
                *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
            }
            Err(error) => self.failed(format!("no thread: {error}").into(), now),
        }
        Ok(())
    }

    /// Runs the server from its start to its end.
    fn run(&self, target: &ServerTarget, means: &Means) {
        let begun = Instant::now();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => return self.failed(error.to_string().into(), begun),
        };
        runtime.block_on(async {
            let started = tokio::select! {
                started = connection::start(target, means) => started,
                () = self.stop.cancelled() => Err("kitbag ended it".to_owned().into()),
            };
            let started = match started {
                Ok(started) => started,
                Err(failure) => return self.failed(failure, begun),
            };
            let connection = Arc::clone(&started.connection);
            self.state.send_modify(|state| {
                state.phase = Phase::Running(Arc::clone(&connection));
            });
            let release = || {
                self.state.send_if_modified(|state| {
                    let is_idle = connection.is_idle() && self.subscriptions.is_empty();
                    if is_idle {
                        state.phase = Phase::Stopped;
                    }
                    is_idle
                })
            };
            let publish = |items: &ServerItems| self.publish(items);
            let items = self.items().as_ref().clone();
            let updated = |uris: BTreeSet<String>| self.updated(uris);
            let own = &self.subscriptions;
            let failed =
                started.supervise(target, own, &self.stop, release, items, publish, updated).await;
            self.state.send_modify(|state| {
                if let Some(reason) = failed {
                    state.backoff.failed(reason, begun.elapsed(), Instant::now());
                }
                let is_own = match &state.phase {
                    Phase::Running(running) => Arc::ptr_eq(running, &connection),
                    _ => false,
                };
                if is_own {
                    state.phase = Phase::Stopped;
                }
            });
        });
        // Tasks of the connection end with the runtime, and the process with its thread.
        runtime.shutdown_background();
    }

    fn items(&self) -> Arc<ServerItems> {
        Arc::clone(&self.items.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the prompts and resources, and reports the lists that changed.
    fn publish(&self, items: &ServerItems) {
        let before = {
            let mut own = self.items.lock().unwrap_or_else(PoisonError::into_inner);
            if **own == *items {
                return;
            }
            std::mem::replace(&mut *own, Arc::new(items.clone()))
        };
        let Some(listener) = self.listener() else { return };
        if before.prompts != items.prompts {
            listener(ServerChange::Prompts);
        }
        if before.resources != items.resources || before.templates != items.templates {
            listener(ServerChange::Resources);
        }
    }

    /// Reports the changed resources that have a subscription.
    fn updated(&self, uris: BTreeSet<String>) {
        let Some(listener) = self.listener() else { return };
        for uri in uris.into_iter().filter(|uri| self.subscriptions.has(uri)) {
            listener(ServerChange::Resource { server: self.name.clone(), uri });
        }
    }

    fn listener(&self) -> Option<OnChange> {
        self.listener.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn failed(&self, failure: StartFailure, begun: Instant) {
        self.state.send_modify(|state| {
            // A server that requires a sign-in has not failed, and is called again after it.
            if let StartFailure::Other(reason) = &failure {
                state.backoff.failed(reason.clone(), begun.elapsed(), Instant::now());
            }
            state.phase = Phase::Failed(failure);
        });
    }
}
