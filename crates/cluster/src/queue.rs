//! The streams and buckets of a workspace: the queue of calls, their records, and long bodies.

use std::io;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, Consumer, pull};
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::kv::{self, UpdateErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::object_store::{self, ObjectStore};
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, Subject};
use bytes::Bytes;
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, sleep};

use crate::connection::causes;
use crate::names::{CallId, Names, Priority, Root};

/// The room that a message needs besides its payload: subject and headers.
const MESSAGE_OVERHEAD: usize = 4 << 10;

/// The largest body that is read from the object store.
const LONGEST_BODY: u64 = 64 << 20;

/// The first bytes of a message whose content is in the object store.
const STORED: &[u8] = b"kitbag-stored ";

/// The default of [`QueueOptions::ack_wait`].
pub(crate) const ACK_WAIT: Duration = Duration::from_secs(10);

/// How long a write is repeated while the server does not answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The sizes and times of the queue of a workspace. They are set when the queue is created. The
/// server reserves the bytes on its disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    /// The most calls that wait or run. Default 20,000.
    pub calls: i64,
    /// The most bytes of calls that wait or run. Default 256 MiB.
    pub bytes: i64,
    /// The most bytes of records. Default 2 GiB.
    pub record_bytes: i64,
    /// The most bytes of long arguments and answers. Default 1 GiB.
    pub body_bytes: i64,
    /// The longest time from the start of a call to its end. Default 15 min.
    pub longest: Duration,
    /// How much longer a record is kept, for front ends that lost its answer. Default 5 min. The
    /// clocks of machines may differ by as much.
    pub keep: Duration,
    /// The time after which a call is delivered again if its worker is silent. Default 10 s.
    pub ack_wait: Duration,
    /// The number of servers that store each message. Default 1.
    pub replicas: usize,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            calls: 20_000,
            bytes: 256 << 20,
            record_bytes: 2 << 30,
            body_bytes: 1 << 30,
            longest: Duration::from_secs(900),
            keep: Duration::from_secs(300),
            ack_wait: ACK_WAIT,
            replicas: 1,
        }
    }
}

/// An error of the queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// The queue has as many calls or bytes as it may have.
    #[error("busy: the queue of the workspace is full; try again in {} s", Self::RETRY_AFTER.as_secs())]
    Full,
    /// The queue does not exist.
    #[error("the workspace `{0}` has no queue on this NATS server; `kitbag publish` creates it")]
    Missing(String),
    /// NATS does not answer, or refuses the request.
    #[error("NATS: {0}")]
    Nats(String),
}

impl QueueError {
    /// The time after which to try again if the queue is full.
    pub const RETRY_AFTER: Duration = Duration::from_secs(2);
}

/// The queue of a workspace.
#[derive(Clone)]
pub struct Queue {
    pub(crate) client: Client,
    pub(crate) names: Names,
    context: Context,
    records: kv::Store,
    bodies: ObjectStore,
    /// [`QueueOptions::longest`] of the queue.
    pub(crate) longest: Duration,
}

/// A record as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) revision: u64,
    pub(crate) sealed: Bytes,
}

impl Queue {
    /// Creates the streams and buckets of a workspace that do not exist, and opens the queue.
    ///
    /// # Errors
    ///
    /// [`QueueError::Nats`].
    pub async fn create(
        client: Client,
        names: Names,
        options: &QueueOptions,
    ) -> Result<Self, QueueError> {
        let context = jetstream::new(client.clone());
        let stream = stream::Config {
            name: names.call_stream(),
            description: Some("Calls of kitbag".to_owned()),
            subjects: vec![names.every_call()],
            retention: RetentionPolicy::WorkQueue,
            discard: DiscardPolicy::New,
            max_messages: options.calls,
            max_bytes: options.bytes,
            max_age: options.longest,
            duplicate_window: Duration::from_secs(120).min(options.longest),
            num_replicas: options.replicas,
            ..stream::Config::default()
        };
        context.get_or_create_stream(stream).await.map_err(failed)?;
        let max_age = options.longest + options.keep;
        if context.get_key_value(names.record_bucket()).await.is_err() {
            let bucket = kv::Config {
                bucket: names.record_bucket(),
                description: "Records of calls of kitbag".to_owned(),
                history: 1,
                max_age,
                max_bytes: options.record_bytes,
                num_replicas: options.replicas,
                ..kv::Config::default()
            };
            context.create_key_value(bucket).await.map_err(failed)?;
        }
        if context.get_object_store(names.body_store()).await.is_err() {
            let store = object_store::Config {
                bucket: names.body_store(),
                max_age,
                max_bytes: options.body_bytes,
                num_replicas: options.replicas,
                ..object_store::Config::default()
            };
            context.create_object_store(store).await.map_err(failed)?;
        }
        // The consumers of named roots are created by the first worker that has the root.
        let queue = Self::open(client, names).await?;
        for priority in Priority::ALL {
            queue.consumer(&Root::Any, priority, options.ack_wait).await?;
        }
        Ok(queue)
    }

    /// Opens the queue of a workspace.
    ///
    /// # Errors
    ///
    /// [`QueueError::Missing`] if [`create`](Self::create) was not called for the workspace.
    pub async fn open(client: Client, names: Names) -> Result<Self, QueueError> {
        let context = jetstream::new(client.clone());
        let missing = || QueueError::Missing(names.workspace().to_owned());
        let records = context.get_key_value(names.record_bucket()).await.map_err(|_| missing())?;
        let bodies = context.get_object_store(names.body_store()).await.map_err(|_| missing())?;
        let stream = context.get_stream(names.call_stream()).await.map_err(|_| missing())?;
        let longest = stream.cached_info().config.max_age;
        Ok(Self { client, names, context, records, bodies, longest })
    }

    /// Returns the consumer of the calls with this root and priority, which all workers share.
    pub(crate) async fn consumer(
        &self,
        root: &Root,
        priority: Priority,
        ack_wait: Duration,
    ) -> Result<Consumer<pull::Config>, QueueError> {
        let name = self.names.consumer(root, priority);
        let stream = self.names.call_stream();
        if let Ok(consumer) = self.context.get_consumer_from_stream(&name, &stream).await {
            return Ok(consumer);
        }
        let config = pull::Config {
            durable_name: Some(name),
            ack_policy: AckPolicy::Explicit,
            ack_wait,
            max_deliver: -1,
            filter_subject: self.names.calls_of(root, priority),
            max_ack_pending: -1,
            ..pull::Config::default()
        };
        self.context.create_consumer_on_stream(config, stream).await.map_err(failed)
    }

    /// Puts a call into the queue. A call with the same id is put once.
    pub(crate) async fn put(
        &self,
        subject: &str,
        id: &str,
        sealed: Vec<u8>,
    ) -> Result<(), QueueError> {
        let payload = self.stored(id, sealed).await?;
        let until = Instant::now() + PATIENCE;
        loop {
            let message = PublishMessage::build().payload(payload.clone()).message_id(id);
            let sent = self.context.send_publish(subject.to_owned(), message).await;
            let error = match sent {
                Ok(acknowledged) => match acknowledged.await {
                    Ok(_) => return Ok(()),
                    Err(error) => error,
                },
                Err(error) => error,
            };
            let is_silent =
                matches!(error.kind(), PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe);
            if !is_silent || Instant::now() >= until {
                let text = causes(&error);
                return Err(
                    match text.contains("maximum messages") || text.contains("maximum bytes") {
                        true => QueueError::Full,
                        false => QueueError::Nats(text),
                    },
                );
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Reads a record. `None` if there is none.
    pub(crate) async fn record(&self, key: &str) -> Result<Option<Stored>, QueueError> {
        let entry = self.records.entry(key).await.map_err(failed)?;
        let Some(entry) = entry else { return Ok(None) };
        let sealed = self.loaded(entry.value).await?;
        Ok(Some(Stored { revision: entry.revision, sealed }))
    }

    /// Replaces the record of this revision. Returns the new revision, or `None` if the record has
    /// another revision. A write whose result got lost is found by its content.
    pub(crate) async fn replace(
        &self,
        key: &str,
        sealed: Vec<u8>,
        revision: u64,
    ) -> Result<Option<u64>, QueueError> {
        let payload = self.stored(key, sealed).await?;
        let until = Instant::now() + PATIENCE;
        loop {
            match self.records.update(key, payload.clone(), revision).await {
                Ok(revision) => return Ok(Some(revision)),
                Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => {
                    let entry = self.records.entry(key).await.map_err(failed)?;
                    let own = entry.filter(|entry| entry.value == payload);
                    return Ok(own.map(|entry| entry.revision));
                }
                Err(error) if Instant::now() >= until => return Err(failed(error)),
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        }
    }

    /// Publishes a message that is not stored.
    pub(crate) async fn tell(&self, subject: String, payload: Bytes) -> Result<(), QueueError> {
        self.client.publish(Subject::from(subject), payload).await.map_err(failed)
    }

    /// Returns the payload for a body, which is a reference to the object store if it is long.
    pub(crate) async fn stored(&self, name: &str, sealed: Vec<u8>) -> Result<Bytes, QueueError> {
        let most = self.client.server_info().max_payload.saturating_sub(MESSAGE_OVERHEAD);
        if sealed.len() <= most {
            return Ok(sealed.into());
        }
        let random = CallId::random().map_err(failed)?;
        let name = format!("{name}.{random}");
        let mut data = &sealed[..];
        self.bodies.put(name.as_str(), &mut data).await.map_err(failed)?;
        Ok([STORED, name.as_bytes()].concat().into())
    }

    /// Returns the body of a payload. Its signature says whether it belongs there.
    pub(crate) async fn loaded(&self, payload: Bytes) -> Result<Bytes, QueueError> {
        let Some(name) = payload.strip_prefix(STORED) else { return Ok(payload) };
        let name = std::str::from_utf8(name).map_err(failed)?;
        let object = self.bodies.get(name).await.map_err(failed)?;
        let mut body = Vec::new();
        object
            .take(LONGEST_BODY)
            .read_to_end(&mut body)
            .await
            .map_err(|error: io::Error| failed(error))?;
        Ok(body.into())
    }
}

fn failed(error: impl std::error::Error) -> QueueError {
    QueueError::Nats(causes(&error))
}
