//! A worker: takes calls from the queue, as many as it has places, and runs them.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_nats::jetstream::consumer::{Consumer, pull};
use async_nats::jetstream::{AckKind, Message};
use bytes::Bytes;
use futures_util::{Stream as _, StreamExt as _};
use kitbag_contract::{ErrorKind, LogLevel, Progress, ToolName};
use kitbag_host::{Cancellation, EventSink, Listener, RunContext};
use kitbag_toolbox::{Journal, RemoteCall, RemoteEnd, RemoteFuture, Toolbox, ToolboxError};
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{debug, warn};

use crate::envelope::{WireError, open, seal};
use crate::identity::{Identity, Purpose};
use crate::ledger::{self, Entry, Of};
use crate::members::Members;
use crate::names::{CallId, Priority, Root};
use crate::queue::{ACK_WAIT, Queue, QueueError};
use crate::record::{Attempt, Delivery, Permission, Record, Verdict, on_delivery};
use crate::wire::{self, WireCall, WireEnd, WireEvent};

/// How long a worker without calls waits for one in a single request.
const POLL: Duration = Duration::from_secs(2);

/// The time after which a worker that cannot run a call yet hands it back.
const RETRY: Duration = Duration::from_secs(5);

/// Events that wait to be sent. Further ones are dropped.
const EVENTS: usize = 4096;

/// Runs calls. [`Toolbox`] is the usual one.
pub trait Execute: Send + Sync + 'static {
    /// Runs a call with the configuration, grants and limits of this worker. Awaits `journal`
    /// before the call can have an effect, and ends when the context is cancelled.
    fn execute(
        self: Arc<Self>,
        call: RemoteCall,
        context: RunContext,
        journal: Arc<dyn Journal>,
    ) -> Pin<Box<dyn Future<Output = RemoteEnd> + Send>>;
}

impl Execute for Toolbox {
    fn execute(
        self: Arc<Self>,
        call: RemoteCall,
        context: RunContext,
        journal: Arc<dyn Journal>,
    ) -> Pin<Box<dyn Future<Output = RemoteEnd> + Send>> {
        Box::pin(async move { self.run_remote(call, context, journal).await })
    }
}

/// The settings of a worker.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// The names of the directories that the worker has.
    pub roots: Vec<String>,
    /// The number of calls that run at once. Default: the number of processors.
    pub places: usize,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        let places = std::thread::available_parallelism().map_or(1, usize::from);
        Self { roots: Vec::new(), places }
    }
}

/// A worker of a workspace.
pub struct Worker {
    shared: Arc<Shared>,
    sources: Vec<Consumer<pull::Config>>,
    places: Arc<Semaphore>,
    all_places: usize,
    events: mpsc::Receiver<(String, WireEvent)>,
}

/// Ends a worker from another task.
#[derive(Clone)]
pub struct Drain(Arc<Shared>);

/// The numbers of a worker since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounts {
    /// Calls that this worker ran and answered.
    pub answered: u64,
    /// Deliveries of calls that another process has ended or taken over.
    pub repeated: u64,
    /// Calls that were ended without a run.
    pub ended: u64,
    /// Messages that were refused: forged, not valid or of another version.
    pub refused: u64,
    /// Calls that were handed back.
    pub returned: u64,
}

struct Shared {
    queue: Queue,
    identity: Arc<Identity>,
    members: Members,
    executor: Arc<dyn Execute>,
    /// The name of this process in records.
    instance: String,
    ack_wait: Duration,
    runs: AtomicU64,
    running: Mutex<HashMap<String, Cancellation>>,
    events: mpsc::Sender<(String, WireEvent)>,
    is_draining: AtomicBool,
    is_over: AtomicBool,
    is_ended: AtomicBool,
    draining: Notify,
    changed: Notify,
    counts: Mutex<WorkerCounts>,
}

struct Arrived {
    message: Message,
    at: Instant,
}

impl Worker {
    /// Opens the queue of a workspace for a worker.
    ///
    /// # Errors
    ///
    /// [`QueueError`]; a root with a name that is not valid.
    pub async fn new(
        queue: Queue,
        identity: Arc<Identity>,
        members: Members,
        executor: Arc<dyn Execute>,
        options: &WorkerOptions,
    ) -> Result<Self, QueueError> {
        let invalid = |error: &dyn std::error::Error| QueueError::Nats(error.to_string());
        let mut roots = vec![Root::Any];
        for root in &options.roots {
            roots.push(Root::named(root).map_err(|error| invalid(&error))?);
        }
        // The consumers of roots are created like those of the queue.
        let first = queue.consumer(&Root::Any, Priority::High, ACK_WAIT).await?;
        let ack_wait = first.cached_info().config.ack_wait;
        let mut sources = Vec::new();
        for priority in Priority::ALL {
            for root in &roots {
                sources.push(queue.consumer(root, priority, ack_wait).await?);
            }
        }
        let instance = CallId::random().map_err(|error| invalid(&error))?.to_string();
        let (sender, events) = mpsc::channel(EVENTS);
        let all_places = options.places.max(1);
        let shared = Shared {
            queue,
            identity,
            members,
            executor,
            instance,
            ack_wait,
            runs: AtomicU64::new(0),
            running: Mutex::default(),
            events: sender,
            is_draining: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            is_ended: AtomicBool::new(false),
            draining: Notify::new(),
            changed: Notify::new(),
            counts: Mutex::default(),
        };
        let places = Arc::new(Semaphore::new(all_places));
        Ok(Self { shared: Arc::new(shared), sources, places, all_places, events })
    }

    /// Returns a handle that ends this worker.
    pub fn drain(&self) -> Drain {
        Drain(Arc::clone(&self.shared))
    }

    /// Takes and runs calls until the worker is drained. Within a tokio runtime.
    ///
    /// # Errors
    ///
    /// [`QueueError`] if the connection was closed.
    pub async fn run(self) -> Result<(), QueueError> {
        let Self { shared, sources, places, all_places, mut events } = self;
        let cancellations = shared.queue.names.every_cancellation();
        let subscribed = shared.queue.client.subscribe(cancellations).await;
        let mut cancellations = subscribed.map_err(|error| QueueError::Nats(error.to_string()))?;
        let mut helpers = JoinSet::new();
        let own = Arc::clone(&shared);
        helpers.spawn(async move {
            while let Some((subject, event)) = events.recv().await {
                let sealed = seal(&own.identity, Purpose::Reply, &subject, &wire::write(&event));
                own.queue.tell(subject, sealed.into()).await.ok();
            }
        });
        let own = Arc::clone(&shared);
        helpers.spawn(async move {
            while let Some(message) = cancellations.next().await {
                own.cancel(message.subject.as_str(), &message.payload);
            }
        });
        let mut calls = JoinSet::new();
        let mut polls: Vec<Option<pull::Batch>> = sources.iter().map(|_| None).collect();
        while !shared.is_draining.load(Ordering::SeqCst) {
            while calls.try_join_next().is_some() {}
            let acquired = tokio::select! {
                acquired = Arc::clone(&places).acquire_owned() => acquired,
                () = shared.draining.notified() => continue,
            };
            let Ok(place) = acquired else { break };
            let Some(first) = next(&shared, &sources, &mut polls).await else { continue };
            spawn(&mut calls, &shared, first, place);
            // There is work: fill the other places without waiting, in the order of priority.
            for source in &sources {
                let free = places.available_permits();
                if free == 0 || shared.is_draining.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(mut batch) = source.fetch().max_messages(free).messages().await else {
                    break;
                };
                while let Ok(Some(Ok(message))) = timeout(POLL, batch.next()).await {
                    // Only this task takes places.
                    let Ok(place) = Arc::clone(&places).try_acquire_owned() else { break };
                    spawn(&mut calls, &shared, Arrived { message, at: Instant::now() }, place);
                }
            }
        }
        // Requests that are under way end within the time of a poll. Calls that they still
        // deliver are returned.
        let returning = async {
            for mut batch in polls.into_iter().flatten() {
                while let Ok(Some(Ok(message))) = timeout(2 * POLL, batch.next()).await {
                    message.ack_with(AckKind::Nak(None)).await.ok();
                }
            }
        };
        let finishing = async { while calls.join_next().await.is_some() {} };
        tokio::join!(returning, finishing);
        debug_assert_eq!(places.available_permits(), all_places);
        helpers.abort_all();
        shared.queue.client.flush().await.ok();
        shared.is_ended.store(true, Ordering::SeqCst);
        shared.changed.notify_one();
        Ok(())
    }
}

impl Drain {
    /// Takes no further call, and waits for those that run.
    pub fn begin(&self) {
        self.0.is_draining.store(true, Ordering::SeqCst);
        self.0.draining.notify_one();
        self.0.changed.notify_one();
    }

    /// Also ends the calls that run: those without effects are handed back to the queue.
    pub fn finish(&self) {
        self.begin();
        self.0.is_over.store(true, Ordering::SeqCst);
        for cancellation in lock(&self.0.running).values() {
            cancellation.cancel();
        }
    }

    /// Returns the name of the worker's process in records and lists.
    pub fn instance(&self) -> &str {
        &self.0.instance
    }

    /// Returns true if the worker takes no further call.
    pub fn is_draining(&self) -> bool {
        self.0.is_draining.load(Ordering::SeqCst)
    }

    /// Returns true if the worker has ended.
    pub fn is_ended(&self) -> bool {
        self.0.is_ended.load(Ordering::SeqCst)
    }

    /// Waits until the worker begins to drain, or ends.
    pub async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Returns the numbers since the worker's start.
    pub fn counts(&self) -> WorkerCounts {
        *lock(&self.0.counts)
    }

    /// Returns the number of calls that run.
    pub fn running(&self) -> usize {
        lock(&self.0.running).len()
    }
}

fn spawn(
    calls: &mut JoinSet<()>,
    shared: &Arc<Shared>,
    arrived: Arrived,
    place: OwnedSemaphorePermit,
) {
    let shared = Arc::clone(shared);
    calls.spawn(async move {
        handle(&shared, arrived).await;
        drop(place);
    });
}

/// Takes the next call: of the highest priority if there are calls, or else the first that comes.
/// `None` if the worker should look again.
async fn next(
    shared: &Shared,
    sources: &[Consumer<pull::Config>],
    polls: &mut [Option<pull::Batch>],
) -> Option<Arrived> {
    for (source, poll) in sources.iter().zip(polls.iter_mut()) {
        if poll.is_none() {
            let Ok(mut batch) = source.fetch().max_messages(1).messages().await else {
                // The connection is lost, and is being renewed.
                tokio::time::sleep(Duration::from_millis(100)).await;
                return None;
            };
            if let Ok(Some(Ok(message))) = timeout(POLL, batch.next()).await {
                return Some(Arrived { message, at: Instant::now() });
            }
        }
    }
    for (source, poll) in sources.iter().zip(polls.iter_mut()) {
        if poll.is_none() {
            *poll = source.batch().max_messages(1).expires(POLL).messages().await.ok();
        }
    }
    let first = poll_fn(|context| {
        let mut is_empty = true;
        for poll in polls.iter_mut() {
            let Some(batch) = poll else { continue };
            is_empty = false;
            match Pin::new(batch).poll_next(context) {
                Poll::Ready(Some(Ok(message))) => return Poll::Ready(Some(message)),
                Poll::Ready(Some(Err(_)) | None) => {
                    *poll = None;
                    return Poll::Ready(None);
                }
                Poll::Pending => {}
            }
        }
        match is_empty {
            true => Poll::Ready(None),
            false => Poll::Pending,
        }
    });
    let message = tokio::select! {
        message = first => message,
        () = shared.draining.notified() => None,
    };
    match message {
        Some(message) => Some(Arrived { message, at: Instant::now() }),
        None => {
            tokio::task::yield_now().await;
            None
        }
    }
}

/// Handles one delivery of a call.
async fn handle(shared: &Arc<Shared>, arrived: Arrived) {
    let acknowledgement = match consider(shared, &arrived).await {
        Ok(acknowledgement) => acknowledgement,
        Err(error) => {
            warn!("a call was not handled: {error}");
            shared.count(|counts| counts.returned += 1);
            Some(AckKind::Nak(Some(RETRY)))
        }
    };
    if let Some(kind) = acknowledgement {
        arrived.message.ack_with(kind).await.ok();
    }
}

/// Decides on a delivery, runs the call if it must run, and returns how to acknowledge it. `None`:
/// another delivery of the call is acknowledged instead.
async fn consider(
    shared: &Arc<Shared>,
    arrived: &Arrived,
) -> Result<Option<AckKind>, ledger::LedgerError> {
    let message = &arrived.message;
    let sealed = shared.queue.loaded(message.payload.clone()).await?;
    let call = match read_call(&sealed, &message.subject, &shared.members) {
        Ok(call) => call,
        // A newer worker may know the version.
        Err(error @ WireError::Version { .. }) => {
            warn!("{error}");
            shared.count(|counts| counts.refused += 1);
            return Ok(Some(AckKind::Nak(Some(RETRY))));
        }
        Err(error) => {
            warn!("a call was refused: {error}");
            shared.count(|counts| counts.refused += 1);
            return Ok(Some(AckKind::Term));
        }
    };
    let key = call.id.record_key(call.round);
    let read = ledger::read(&shared.queue, &key, &shared.members).await?;
    let of = Of::call(&call);
    let record = read.entry.as_ref().map(|entry| &entry.record);
    let delivery = Delivery {
        is_running_here: lock(&shared.running).contains_key(&key),
        is_late: now() >= call.deadline,
        deliveries: message.info().map_or(1, |info| info.delivered.max(1) as u64),
    };
    let reply = shared.queue.names.reply(&call.front_end, &call.id, call.round);
    match on_delivery(record, delivery) {
        Verdict::Ignore => Ok(None),
        Verdict::Answer(_) => {
            shared.count(|counts| counts.repeated += 1);
            shared.answer(&key, reply, read.sealed).await?;
            Ok(Some(AckKind::Ack))
        }
        // The call may have been delivered again in the meantime, and run by another worker.
        Verdict::End(_) if arrived.at.elapsed() > shared.ack_wait / 2 => Ok(None),
        Verdict::End(cause) => {
            let end = WireEnd::Without { cause };
            let is_known =
                shared.end(&key, &of, end, read.revision, &reply, |counts| counts.ended += 1);
            Ok(is_known.await?.then_some(AckKind::Ack))
        }
        Verdict::Run => run(shared, arrived, call, of, record, read.revision, reply).await,
    }
}

/// Runs a call, and records and sends its end.
async fn run(
    shared: &Arc<Shared>,
    arrived: &Arrived,
    call: WireCall,
    of: Of,
    record: Option<&Record<WireEnd>>,
    revision: u64,
    reply: String,
) -> Result<Option<AckKind>, ledger::LedgerError> {
    let key = call.id.record_key(call.round);
    let cancellation = Cancellation::default();
    let number = shared.runs.fetch_add(1, Ordering::Relaxed);
    let attempt = Attempt::begin(&format!("{}.{number}", shared.instance), revision, record);
    let journal = Arc::new(CallJournal {
        shared: Arc::clone(shared),
        key: key.clone(),
        of: of.clone(),
        attempt: tokio::sync::Mutex::new(attempt),
        runtime: Handle::current(),
    });
    {
        let mut running = lock(&shared.running);
        if running.contains_key(&key) {
            return Ok(None);
        }
        running.insert(key.clone(), cancellation.clone());
    }
    let _running = Running { shared, key: &key };
    let context = RunContext {
        events: EventSink::new(Arc::new(Events {
            shared: Arc::clone(shared),
            subject: reply.clone(),
        })),
        cancellation,
        ..RunContext::default()
    };
    let end = match call.into_call() {
        Ok(call) => {
            let executor = Arc::clone(&shared.executor);
            let own = Arc::new(SharedJournal(Arc::clone(&journal)));
            let executing = executor.execute(call, context, own);
            keep_alive(&arrived.message, shared.ack_wait, executing).await
        }
        Err(error) => RemoteEnd::Refused { kind: ErrorKind::System, message: error.to_string() },
    };
    let attempt = journal.attempt.lock().await;
    let is_without_effects = matches!(attempt.before_effect("", false), Permission::After(_));
    if shared.is_over.load(Ordering::SeqCst) && is_without_effects {
        shared.count(|counts| counts.returned += 1);
        return Ok(Some(AckKind::Nak(None)));
    }
    let Some(expected) = attempt.expected() else {
        shared.count(|counts| counts.repeated += 1);
        return Ok(None);
    };
    drop(attempt);
    let is_known =
        shared.end(&key, &of, end.into(), expected, &reply, |counts| counts.answered += 1);
    Ok(is_known.await?.then_some(AckKind::Ack))
}

/// Runs a call and tells the server meanwhile that this worker still runs it.
async fn keep_alive<T>(message: &Message, ack_wait: Duration, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let mut ticks = tokio::time::interval(ack_wait / 3);
    ticks.tick().await;
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = ticks.tick() => {
                message.ack_with(AckKind::Progress).await.ok();
            }
        }
    }
}

/// Opens a call of a front end.
fn read_call(sealed: &[u8], subject: &str, members: &Members) -> Result<WireCall, WireError> {
    let is_member = |key: &str| members.front_ends.contains(key);
    let opened = open(sealed, Purpose::Call, subject, "front end", is_member)?;
    let call: WireCall = wire::read(opened.body)?;
    // The subject names the tool, so that permissions and filters hold for the call itself.
    let is_of_subject = subject.rsplit('.').next() == Some(call.tool.as_str());
    if !is_of_subject {
        return Err(WireError::Form("its tool is not that of its subject".to_owned()));
    }
    // A front end gets the answers to its own calls only.
    if call.front_end.split('.').next() != Some(opened.key) {
        return Err(WireError::Form("it names another front end".to_owned()));
    }
    Ok(call)
}

impl Shared {
    /// Records the end of a run and sends it. Returns false if another process has the call.
    async fn end(
        &self,
        key: &str,
        of: &Of,
        end: WireEnd,
        revision: u64,
        reply: &str,
        count: impl FnOnce(&mut WorkerCounts),
    ) -> Result<bool, ledger::LedgerError> {
        let entry = Entry { call: of.clone(), record: Record::Ended(end) };
        let sealed = ledger::seal_entry(&self.identity, Purpose::Reply, key, &entry);
        if self.queue.replace(key, sealed.clone(), revision).await?.is_some() {
            self.count(count);
            self.answer(key, reply.to_owned(), sealed.into()).await?;
            return Ok(true);
        }
        let read = ledger::read(&self.queue, key, &self.members).await?;
        let is_ended = read.entry.is_some_and(|entry| matches!(entry.record, Record::Ended(_)));
        if is_ended {
            self.count(|counts| counts.repeated += 1);
            self.answer(key, reply.to_owned(), read.sealed).await?;
        }
        Ok(is_ended)
    }

    /// Sends a recorded end. A front end that does not receive it reads the record.
    async fn answer(&self, key: &str, reply: String, sealed: Bytes) -> Result<(), QueueError> {
        let payload = self.queue.stored(key, sealed.into()).await?;
        self.queue.tell(reply, payload).await
    }

    fn cancel(&self, subject: &str, payload: &[u8]) {
        let is_member = |key: &str| self.members.front_ends.contains(key);
        if open(payload, Purpose::Call, subject, "front end", is_member).is_err() {
            self.count(|counts| counts.refused += 1);
            return;
        }
        let id = subject.rsplit('.').next().unwrap_or_default();
        for (key, cancellation) in lock(&self.running).iter() {
            if key.strip_prefix(id).is_some_and(|round| round.starts_with('.')) {
                debug!("the call {id} was cancelled");
                cancellation.cancel();
            }
        }
    }

    fn count(&self, add: impl FnOnce(&mut WorkerCounts)) {
        add(&mut lock(&self.counts));
    }
}

struct Running<'a> {
    shared: &'a Shared,
    key: &'a str,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        lock(&self.shared.running).remove(self.key);
    }
}

/// Sends the events of a call, which run on the thread of the call.
struct Events {
    shared: Arc<Shared>,
    subject: String,
}

impl Events {
    fn send(&self, event: WireEvent) {
        self.shared.events.try_send((self.subject.clone(), event)).ok();
    }
}

impl Listener for Events {
    fn log(&self, level: LogLevel, message: &str) {
        self.send(WireEvent::Log { level, message: message.to_owned() });
    }

    fn progress(&self, progress: &Progress) {
        let Progress { done, total, message } = progress.clone();
        self.send(WireEvent::Progress { done, total, message });
    }

    fn started(&self) {
        self.send(WireEvent::Started);
    }
}

/// The journal of one run. Calls await it on their own threads, which have no runtime.
struct CallJournal {
    shared: Arc<Shared>,
    key: String,
    of: Of,
    attempt: tokio::sync::Mutex<Attempt>,
    runtime: Handle,
}

impl CallJournal {
    async fn record(&self, tool: ToolName, is_idempotent: bool) -> Result<(), ToolboxError> {
        let mut attempt = self.attempt.lock().await;
        let taken = || ToolboxError::Remote {
            kind: ErrorKind::Cancelled,
            message: "another process has taken over the call".to_owned(),
        };
        let acting = match attempt.before_effect(tool.as_str(), is_idempotent) {
            Permission::Granted => return Ok(()),
            Permission::Denied => return Err(taken()),
            Permission::After(acting) => acting,
        };
        let expected = attempt.expected().ok_or_else(taken)?;
        let entry = Entry { call: self.of.clone(), record: Record::Acting(acting.clone()) };
        let shared = &self.shared;
        let sealed = ledger::seal_entry(&shared.identity, Purpose::Reply, &self.key, &entry);
        let written = shared.queue.replace(&self.key, sealed, expected).await;
        let revision = written.map_err(|error| ToolboxError::Remote {
            kind: ErrorKind::System,
            message: format!("the start of the call cannot be recorded: {error}"),
        })?;
        attempt.recorded(acting, revision);
        attempt.expected().map(|_| ()).ok_or_else(taken)
    }
}

/// A journal that can be awaited on any thread.
struct SharedJournal(Arc<CallJournal>);

impl Journal for SharedJournal {
    fn before_effects(&self, tool: &ToolName, is_idempotent: bool) -> RemoteFuture<'_, ()> {
        let (journal, tool) = (Arc::clone(&self.0), tool.clone());
        let task = self.0.runtime.spawn(async move { journal.record(tool, is_idempotent).await });
        Box::pin(async move {
            task.await.unwrap_or_else(|error| {
                let message = format!("the start of the call was not recorded: {error}");
                Err(ToolboxError::Remote { kind: ErrorKind::Internal, message })
            })
        })
    }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis().try_into().unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
