//! A front end: puts calls into the queue and waits for their ends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::Message;
use futures_util::StreamExt as _;
use kitbag_base::format_duration;
use kitbag_contract::{ErrorKind, Progress};
use kitbag_host::{EventSink, RunContext};
use kitbag_policy::DirectoryGrant;
use kitbag_toolbox::{RemoteCall, RemoteEnd, RemoteFuture, RemoteRunner, ToolboxError};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tracing::warn;

use crate::envelope::{open, seal};
use crate::identity::{Identity, Purpose};
use crate::ledger::{self, Entry, LedgerError, Of};
use crate::members::Members;
use crate::names::{CallId, Priority, Root};
use crate::presence::{Presence, Workers};
use crate::queue::{Queue, QueueError};
use crate::record::{Cause, Record, on_giving_up};
use crate::roots::{RootError, root_of, serving};
use crate::wire::{self, WireCall, WireEnd, WireEvent};
use crate::worker::now;

/// The time after which a front end first looks for the record of a call, and the time between
/// later looks.
const LOOK: Duration = Duration::from_secs(5);

/// The time after the deadline in which a worker that began the call may still end it.
const GRACE: Duration = Duration::from_secs(5);

/// How long a list of workers is used.
const FRESH: Duration = Duration::from_secs(1);

/// The largest arguments and answers of one call that are counted in one permit.
const PERMIT_BYTES: usize = 64 << 10;

/// Messages that wait for one call. Further events are dropped; a dropped end is read from its
/// record.
const MESSAGES: usize = 256;

/// The settings of a front end.
#[derive(Clone, Debug)]
pub struct FrontEndOptions {
    /// The most calls under way, in units of 64 KiB of arguments and answers. Default 16,384.
    pub calls: usize,
    /// How long a call may wait for a worker. Default 30 s.
    pub wait: Duration,
    /// The priority of calls. Default: normal.
    pub priority: Priority,
}

impl Default for FrontEndOptions {
    fn default() -> Self {
        Self { calls: 16_384, wait: Duration::from_secs(30), priority: Priority::default() }
    }
}

/// Makes the calls of a toolbox on workers.
pub struct FrontEnd {
    shared: Arc<Shared>,
    runtime: Handle,
    places: Arc<Semaphore>,
    options: FrontEndOptions,
}

/// The numbers of a front end since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrontEndCounts {
    /// Calls that were put into the queue.
    pub sent: u64,
    /// Calls that got an end from a worker.
    pub answered: u64,
    /// Calls that the front end gave up.
    pub given_up: u64,
    /// Replies that were refused: of strangers, or not valid.
    pub refused: u64,
}

struct Shared {
    queue: Queue,
    identity: Arc<Identity>,
    members: Members,
    /// The list of workers. `None` if the workspace has none.
    workers: Option<Workers>,
    known: tokio::sync::Mutex<Option<(Instant, Vec<Presence>)>>,
    /// The key and the id of this process, as subjects contain them.
    name: String,
    waiting: Mutex<HashMap<String, mpsc::Sender<Message>>>,
    sent: AtomicU64,
    answered: AtomicU64,
    given_up: AtomicU64,
    refused: AtomicU64,
}

impl FrontEnd {
    /// Starts to receive replies. Within a tokio runtime, which must run as long as the front end.
    ///
    /// # Errors
    ///
    /// [`QueueError`].
    pub async fn new(
        queue: Queue,
        identity: Arc<Identity>,
        members: Members,
        options: FrontEndOptions,
    ) -> Result<Arc<Self>, QueueError> {
        let failed = |error: &dyn std::error::Error| QueueError::Nats(error.to_string());
        let process = CallId::random().map_err(|error| failed(&error))?;
        let name = format!("{}.{process}", identity.public());
        let subject = queue.names.every_reply(&name);
        let replies = queue.client.subscribe(subject).await;
        let mut replies = replies.map_err(|error| failed(&error))?;
        let workers = Workers::open(&queue.client, &queue.names).await.ok();
        let shared = Arc::new(Shared {
            queue,
            identity,
            members,
            workers,
            known: tokio::sync::Mutex::default(),
            name,
            waiting: Mutex::default(),
            sent: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            given_up: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        });
        let receiving = Arc::downgrade(&shared);
        tokio::spawn(async move {
            while let Some(message) = replies.next().await {
                let Some(shared) = receiving.upgrade() else { return };
                let waiting = lock(&shared.waiting).get(message.subject.as_str()).cloned();
                if let Some(waiting) = waiting {
                    waiting.try_send(message).ok();
                }
            }
        });
        let places = Arc::new(Semaphore::new(options.calls));
        Ok(Arc::new(Self { shared, runtime: Handle::current(), places, options }))
    }

    /// Returns the recorded end of a call of this caller, for a front end that lost it. `None` if
    /// the call has not ended, or its record is gone.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::Remote`] if the record cannot be read, or belongs to another caller.
    pub async fn recorded(
        &self,
        id: &CallId,
        round: u32,
        caller: &kitbag_toolbox::Caller,
    ) -> Result<Option<RemoteEnd>, ToolboxError> {
        let key = id.record_key(round);
        let shared = &self.shared;
        let read = ledger::read(&shared.queue, &key, &shared.members).await.map_err(system)?;
        match read.entry {
            Some(entry) if entry.call.caller != caller.storage_name() => {
                let message = format!("the call `{id}` was made by another caller");
                Err(ToolboxError::Remote { kind: ErrorKind::State, message })
            }
            Some(Entry { record: Record::Ended(end), .. }) => {
                end.into_end().map(Some).map_err(system)
            }
            Some(_) | None => Ok(None),
        }
    }

    /// Returns the numbers since the start.
    pub fn counts(&self) -> FrontEndCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        FrontEndCounts {
            sent: of(&self.shared.sent),
            answered: of(&self.shared.answered),
            given_up: of(&self.shared.given_up),
            refused: of(&self.shared.refused),
        }
    }

    fn place(&self, call: &RemoteCall) -> Result<OwnedSemaphorePermit, ToolboxError> {
        let answers: usize = call.answers.values().map(|answer| answer.to_string().len()).sum();
        let units = 1 + (call.arguments.len() + answers) / PERMIT_BYTES;
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        Arc::clone(&self.places).try_acquire_many_owned(units).map_err(|_| {
            let message = format!(
                "busy: {} calls are under way at this front end, which is the limit; try again in 1s",
                self.options.calls
            );
            ToolboxError::Remote { kind: ErrorKind::Busy, message }
        })
    }
}

impl RemoteRunner for FrontEnd {
    fn run(
        &self,
        call: RemoteCall,
        directories: &[DirectoryGrant],
        context: RunContext,
    ) -> RemoteFuture<'_, RemoteEnd> {
        let root = root_of(directories);
        Box::pin(async move {
            let place = self.place(&call)?;
            let root = root.map_err(|error| no_worker(&error))?;
            let priority = self.options.priority;
            let time = context.time(call.time);
            let longest = self.shared.queue.longest;
            if self.options.wait + time > longest {
                let message = format!(
                    "calls on workers last at most {}, with the time to wait for a worker; the \
                     limit `time` of `{}` is {}: lower it",
                    format_duration(longest),
                    call.tool,
                    format_duration(time)
                );
                return Err(ToolboxError::Remote { kind: ErrorKind::ExcessLimit, message });
            }
            let deadline = now().saturating_add(millis(self.options.wait));
            let subject = self.shared.queue.names.call(&root, priority, &call.tool);
            let call =
                WireCall::new(call, deadline, priority, &self.shared.name).map_err(system)?;
            let (shared, events) = (Arc::clone(&self.shared), context.events.clone());
            let last = Instant::now() + self.options.wait + time + GRACE;
            let (give_up, given_up) = oneshot::channel();
            let task = self.runtime.spawn(async move {
                let _place = place;
                if let Root::Named(_) = root {
                    shared.find_worker(&root).await?;
                }
                let ended = shared.make(call, subject, last, events, given_up).await?;
                if let RemoteEnd::Refused { kind: ErrorKind::Busy, .. } = ended {
                    shared.find_worker(&root).await?;
                }
                Ok(ended)
            });
            // Dropping the sender, with this future, gives the call up.
            let _give_up = give_up;
            let mut task = task;
            tokio::select! {
                ended = &mut task => return joined(ended),
                () = context.cancellation.cancelled() => {}
            }
            drop(_give_up);
            joined(task.await)
        })
    }
}

fn joined(
    ended: Result<Result<RemoteEnd, ToolboxError>, tokio::task::JoinError>,
) -> Result<RemoteEnd, ToolboxError> {
    ended.unwrap_or_else(|error| {
        let message = format!("the call to a worker failed: {error}");
        Err(ToolboxError::Remote { kind: ErrorKind::Internal, message })
    })
}

fn no_worker(error: &RootError) -> ToolboxError {
    let kind = match error {
        RootError::Draining(_) | RootError::NoWorkers => ErrorKind::Busy,
        RootError::Several(_) | RootError::Name(_) | RootError::NoWorker { .. } => {
            ErrorKind::Configuration
        }
    };
    ToolboxError::Remote { kind, message: error.to_string() }
}

impl Shared {
    /// Checks that a worker can run calls that need this root, as far as the list of workers is
    /// known.
    async fn find_worker(&self, root: &Root) -> Result<(), ToolboxError> {
        let Some(workers) = &self.workers else { return Ok(()) };
        let mut known = self.known.lock().await;
        let is_fresh = known.as_ref().is_some_and(|(at, _)| at.elapsed() < FRESH);
        if !is_fresh {
            let Ok(all) = workers.all().await else { return Ok(()) };
            *known = Some((Instant::now(), all));
        }
        let Some((_, all)) = &*known else { return Ok(()) };
        serving(all, root).map(drop).map_err(|error| no_worker(&error))
    }

    /// Sends a call and waits for its end.
    async fn make(
        &self,
        call: WireCall,
        subject: String,
        last: Instant,
        events: EventSink,
        mut given_up: oneshot::Receiver<()>,
    ) -> Result<RemoteEnd, ToolboxError> {
        let key = call.id.record_key(call.round);
        let reply = self.queue.names.reply(&self.name, &call.id, call.round);
        let (sender, mut messages) = mpsc::channel(MESSAGES);
        lock(&self.waiting).insert(reply.clone(), sender);
        let _waiting = Waiting { shared: self, reply: &reply };
        let sealed = seal(&self.identity, Purpose::Call, &subject, &wire::write(&call));
        self.queue.put(&subject, &key, sealed).await.map_err(|error| {
            let kind = match &error {
                QueueError::Full => ErrorKind::Busy,
                QueueError::Missing(_) => ErrorKind::Configuration,
                QueueError::Nats(_) => ErrorKind::System,
            };
            ToolboxError::Remote { kind, message: error.to_string() }
        })?;
        self.sent.fetch_add(1, Ordering::Relaxed);
        let of = Of::call(&call);
        let mut look = Instant::now() + LOOK;
        loop {
            tokio::select! {
                message = messages.recv() => {
                    let Some(message) = message else { continue };
                    if let Some(end) = self.read_reply(message, &key, &reply, &of, &events).await {
                        return self.deliver(end);
                    }
                }
                () = sleep_until(look.min(last)) => {
                    if Instant::now() >= last {
                        return self.give_up(&call, &key, &of, Cause::Expired).await;
                    }
                    look = Instant::now() + LOOK;
                    if let Ok(Some(end)) = self.recorded(&key, &of).await {
                        return self.deliver(end);
                    }
                }
                _ = &mut given_up => {
                    return self.give_up(&call, &key, &of, Cause::Cancelled).await;
                }
            }
        }
    }

    fn deliver(&self, end: WireEnd) -> Result<RemoteEnd, ToolboxError> {
        self.answered.fetch_add(1, Ordering::Relaxed);
        end.into_end().map_err(system)
    }

    /// Reads a message for a call: an event, which is forwarded, or the record with its end.
    async fn read_reply(
        &self,
        message: Message,
        key: &str,
        reply: &str,
        of: &Of,
        events: &EventSink,
    ) -> Option<WireEnd> {
        let sealed = match self.queue.loaded(message.payload).await {
            Ok(sealed) => sealed,
            Err(error) => {
                warn!("a reply cannot be read: {error}");
                return None;
            }
        };
        let is_worker = |key: &str| self.members.workers.contains(key);
        let event = open(&sealed, Purpose::Reply, reply, "worker", is_worker)
            .and_then(|opened| wire::read::<WireEvent>(opened.body));
        match event {
            Ok(WireEvent::Started) => events.started(),
            Ok(WireEvent::Progress { done, total, message }) => {
                events.progress(Progress { done, total, message });
            }
            Ok(WireEvent::Log { level, message }) => events.log(level, &message),
            Ok(WireEvent::Unknown) => {}
            // It is not an event, or is forged. A record is signed for another place.
            Err(_) => match ledger::open_entry(&sealed, key, &self.members) {
                Ok(Entry { call, record: Record::Ended(end) }) if call == *of => return Some(end),
                Ok(_) => {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    warn!("a reply was refused: {error}");
                }
            },
        }
        None
    }

    async fn recorded(&self, key: &str, of: &Of) -> Result<Option<WireEnd>, LedgerError> {
        let read = ledger::read(&self.queue, key, &self.members).await?;
        Ok(match read.entry {
            Some(Entry { call, record: Record::Ended(end) }) if call == *of => Some(end),
            Some(_) | None => None,
        })
    }

    /// Ends a call that the front end no longer waits for, and then its run. Another end may be
    /// recorded first, and is then returned.
    async fn give_up(
        &self,
        call: &WireCall,
        key: &str,
        of: &Of,
        cause: Cause,
    ) -> Result<RemoteEnd, ToolboxError> {
        self.given_up.fetch_add(1, Ordering::Relaxed);
        loop {
            let read = ledger::read(&self.queue, key, &self.members).await.map_err(system)?;
            let record = read.entry.as_ref().map(|entry| &entry.record);
            let Some(cause) = on_giving_up(record, cause.clone()) else {
                let Some(Record::Ended(end)) = read.entry.map(|entry| entry.record) else {
                    return Err(system(QueueError::Nats("the record changed".to_owned())));
                };
                return end.into_end().map_err(system);
            };
            let end = WireEnd::Without { cause };
            let entry = Entry { call: of.clone(), record: Record::Ended(end.clone()) };
            let sealed = ledger::seal_entry(&self.identity, Purpose::Call, key, &entry);
            let written = self.queue.replace(key, sealed, read.revision).await.map_err(system)?;
            if written.is_some() {
                // Only now: a cancelled worker would record an end of its own.
                let subject = self.queue.names.cancellation(&call.id);
                let sealed = seal(&self.identity, Purpose::Call, &subject, b"{}");
                self.queue.tell(subject, sealed.into()).await.ok();
                return end.into_end().map_err(system);
            }
        }
    }
}

struct Waiting<'a> {
    shared: &'a Shared,
    reply: &'a str,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        lock(&self.shared.waiting).remove(self.reply);
    }
}

fn system(error: impl std::fmt::Display) -> ToolboxError {
    ToolboxError::Remote { kind: ErrorKind::System, message: error.to_string() }
}

fn millis(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
