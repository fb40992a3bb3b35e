//! A cluster on loopback: a NATS server, front ends, and workers that end like a killed process.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kitbag_cluster::permissions::server_config;
use kitbag_cluster::presence::{Presence, Readiness, Workers};
use kitbag_cluster::{
    Drain, Execute, FrontEnd, FrontEndOptions, Identity, Members, Names, Nats, Queue, QueueOptions,
    Worker, WorkerCounts, WorkerOptions,
};
use kitbag_config::LimitFlags;
use kitbag_contract::{AnswerType, ErrorKind, Outcome, Question, ToolName};
use kitbag_host::{Cancellation, RunContext};
use kitbag_policy::{Access, DirectoryGrant};
use kitbag_test_servers::NatsServer;
use kitbag_toolbox::{
    Caller, Journal, RemoteCall, RemoteCompletion, RemoteEnd, RemoteFailure, RemoteRunner as _,
    RemoteUsage, ToolboxError,
};
use serde_json::{Map, Value};

const ACK_WAIT: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) type End = Result<RemoteEnd, ToolboxError>;

/// The effects of all workers.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) count: AtomicUsize,
    pub(crate) repeated: AtomicUsize,
    pub(crate) order: AtomicUsize,
    seen: Mutex<HashSet<String>>,
}

/// Runs the tools of the tests: `echo`, `sleep`, `act`, `put` (idempotent), `ask`, `order`.
pub(crate) struct Tools {
    effects: Arc<Effects>,
    pub(crate) skip_waits: bool,
}

pub(crate) struct Cluster {
    pub(crate) server: NatsServer,
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) front_end: Arc<FrontEnd>,
    pub(crate) effects: Arc<Effects>,
    front_key: KeyFile,
    worker_key: KeyFile,
    members: Members,
}

/// A key that can be loaded several times.
struct KeyFile {
    directory: tempfile::TempDir,
}

pub(crate) struct RunningWorker {
    pub(crate) drain: Drain,
    runtime: Option<tokio::runtime::Runtime>,
}

pub(crate) struct Pending {
    task: tokio::task::JoinHandle<End>,
    pub(crate) cancellation: Cancellation,
    handle: tokio::runtime::Handle,
}

impl KeyFile {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn identity(&self) -> Identity {
        Identity::load_or_create(&self.directory.path().join("key")).unwrap()
    }
}

pub(crate) async fn connect(server: &NatsServer, identity: &Identity) -> async_nats::Client {
    let nats = Nats { urls: vec![server.url()], ..Nats::default() };
    kitbag_cluster::connect(&nats, identity).await.unwrap()
}

pub(crate) fn call(tool: &str, arguments: &str) -> RemoteCall {
    RemoteCall {
        id: kitbag_cluster::CallId::random().unwrap().to_string(),
        round: 0,
        tool: ToolName::new(tool).unwrap(),
        arguments: arguments.to_owned(),
        answers: Map::new(),
        caller: Caller::Client("test".into()),
        owner: Caller::Client("test".into()),
        time: Duration::from_secs(60),
        limits: LimitFlags::default(),
    }
}

pub(crate) fn text_of(end: &End) -> String {
    match end {
        Ok(RemoteEnd::Completed(completed)) => match &completed.result {
            Ok(Outcome::Success(text)) => text.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

pub(crate) fn kind_of(end: &End) -> Option<ErrorKind> {
    match end {
        Ok(RemoteEnd::Refused { kind, .. }) => Some(*kind),
        Ok(_) => None,
        Err(error) => Some(error.kind()),
    }
}

impl Cluster {
    pub(crate) fn queue_options() -> QueueOptions {
        QueueOptions {
            bytes: 64 << 20,
            record_bytes: 64 << 20,
            body_bytes: 64 << 20,
            ack_wait: ACK_WAIT,
            ..QueueOptions::default()
        }
    }

    pub(crate) fn start() -> Self {
        Self::start_with(Self::queue_options())
    }

    pub(crate) fn start_with(options: QueueOptions) -> Self {
        Self::start_on(options, false)
    }

    /// A cluster whose members have only the permissions of their tasks.
    pub(crate) fn with_permissions() -> Self {
        Self::start_on(Self::queue_options(), true)
    }

    fn start_on(options: QueueOptions, has_permissions: bool) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (front_key, worker_key) = (KeyFile::new(), KeyFile::new());
        let members = Members {
            front_ends: [front_key.identity().public().to_owned()].into(),
            workers: [worker_key.identity().public().to_owned()].into(),
        };
        let (names, publisher) = (Names::new("team").unwrap(), Identity::generate());
        let server = match has_permissions {
            false => NatsServer::start(),
            true => {
                let publishers = [publisher.public().to_owned()].into();
                let config = server_config(&names, &publishers, &members);
                NatsServer::start_with(&config, None)
            }
        };
        let front_end = runtime.block_on(async {
            let client = connect(&server, &publisher).await;
            Workers::create(&client, &names, 1).await.unwrap();
            Queue::create(client, names.clone(), &options).await.unwrap();
            let identity = front_key.identity();
            let client = connect(&server, &identity).await;
            let queue = Queue::open(client, names).await.unwrap();
            front_end(queue, Arc::new(identity), &members, FrontEndOptions::default()).await
        });
        let effects = Arc::default();
        Self { server, runtime, front_end, effects, front_key, worker_key, members }
    }

    pub(crate) fn another_front_end(&self, options: FrontEndOptions) -> Arc<FrontEnd> {
        self.front_end_as(self.front_key.identity(), options)
    }

    pub(crate) fn front_end_as(
        &self,
        identity: Identity,
        options: FrontEndOptions,
    ) -> Arc<FrontEnd> {
        self.runtime.block_on(async {
            let client = connect(&self.server, &identity).await;
            let queue = Queue::open(client, Names::new("team").unwrap()).await.unwrap();
            front_end(queue, Arc::new(identity), &self.members, options).await
        })
    }

    pub(crate) fn worker(&self, places: usize) -> RunningWorker {
        self.worker_with(places, |_| {})
    }

    pub(crate) fn worker_with(
        &self,
        places: usize,
        change: impl FnOnce(&mut Tools),
    ) -> RunningWorker {
        self.start_worker(self.worker_key.identity(), places, &[], change)
    }

    pub(crate) fn worker_as(&self, identity: Identity, places: usize) -> RunningWorker {
        self.start_worker(identity, places, &[], |_| {})
    }

    pub(crate) fn worker_with_roots(&self, roots: &[&str]) -> RunningWorker {
        self.start_worker(self.worker_key.identity(), 1, roots, |_| {})
    }

    fn start_worker(
        &self,
        identity: Identity,
        places: usize,
        roots: &[&str],
        change: impl FnOnce(&mut Tools),
    ) -> RunningWorker {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let mut tools = Tools { effects: Arc::clone(&self.effects), skip_waits: false };
        change(&mut tools);
        let roots: Vec<_> = roots.iter().map(|root| (*root).to_owned()).collect();
        let options = WorkerOptions { roots: roots.clone(), places };
        let members = self.members.clone();
        let worker = runtime.block_on(async {
            let client = connect(&self.server, &identity).await;
            let names = Names::new("team").unwrap();
            let presence = Presence {
                id: kitbag_cluster::CallId::random().unwrap().to_string(),
                key: identity.public().to_owned(),
                roots: roots.into_iter().collect(),
                readiness: Readiness::Ready,
                ..Presence::default()
            };
            let workers = Workers::open(&client, &names).await.unwrap();
            workers.announce(&presence).await.unwrap();
            let queue = Queue::open(client, names).await.unwrap();
            let tools: Arc<dyn Execute> = Arc::new(tools);
            Worker::new(queue, Arc::new(identity), members, tools, &options).await.unwrap()
        });
        let drain = worker.drain();
        runtime.spawn(worker.run());
        RunningWorker { drain, runtime: Some(runtime) }
    }

    pub(crate) fn call(&self, tool: &str, arguments: &str) -> End {
        self.run(&self.front_end, call(tool, arguments))
    }

    pub(crate) fn run(&self, front_end: &Arc<FrontEnd>, call: RemoteCall) -> End {
        self.begin_at(front_end, call).end()
    }

    pub(crate) fn begin(&self, tool: &str, arguments: &str) -> Pending {
        self.begin_at(&self.front_end, call(tool, arguments))
    }

    pub(crate) fn begin_at(&self, front_end: &Arc<FrontEnd>, call: RemoteCall) -> Pending {
        let (front_end, context) = (Arc::clone(front_end), RunContext::default());
        let cancellation = context.cancellation.clone();
        let directories = match call.tool.as_str() {
            "rooted" => vec![rooted()],
            _ => Vec::new(),
        };
        let run = async move { front_end.run(call, &directories, context).await };
        let task = self.runtime.spawn(run);
        Pending { task, cancellation, handle: self.runtime.handle().clone() }
    }

    pub(crate) fn wait_for_effects(&self, count: usize) {
        wait(|| self.effects.count.load(Ordering::SeqCst) >= count);
    }

    pub(crate) fn wait_for_sent(&self, count: u64) {
        wait(|| self.front_end.counts().sent >= count);
    }
}

/// A directory of the root `data`.
fn rooted() -> DirectoryGrant {
    DirectoryGrant {
        host: "$ROOT/data".into(),
        guest: "/data".parse().unwrap(),
        access: Access::ReadOnly,
        include: Vec::new(),
        protected: None,
        identity: None,
    }
}

async fn front_end(
    queue: Queue,
    identity: Arc<Identity>,
    members: &Members,
    options: FrontEndOptions,
) -> Arc<FrontEnd> {
    FrontEnd::new(queue, identity, members.clone(), options).await.unwrap()
}

impl Pending {
    pub(crate) fn end(self) -> End {
        self.end_within(PATIENCE)
    }

    pub(crate) fn end_within(self, time: Duration) -> End {
        let waiting = async { tokio::time::timeout(time, self.task).await };
        self.handle.block_on(waiting).expect("an end").expect("no panic")
    }
}

impl RunningWorker {
    pub(crate) fn counts(&self) -> WorkerCounts {
        self.drain.counts()
    }

    pub(crate) fn running(&self) -> usize {
        self.drain.running()
    }

    pub(crate) fn wait_for_run(&self) {
        wait(|| self.running() > 0);
    }

    pub(crate) fn wait_for_idle(&self) {
        wait(|| self.running() == 0);
    }

    /// Ends the worker where it is, without any message.
    pub(crate) fn kill(mut self) {
        self.runtime.take().expect("it runs").shutdown_background();
    }
}

impl Drop for RunningWorker {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn wait(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "it does not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Tools {
    async fn pause(&self, arguments: &Value, key: &str) {
        let time = arguments[key].as_u64().filter(|_| !self.skip_waits).unwrap_or_default();
        let time = Duration::from_millis(time);
        match arguments["blocking"] == true {
            // Blocks the only thread of the worker.
            true => std::thread::sleep(time),
            false => tokio::time::sleep(time).await,
        }
    }

    async fn act(
        &self,
        call: &RemoteCall,
        arguments: &Value,
        journal: &dyn Journal,
    ) -> Result<Outcome, ToolboxError> {
        self.pause(arguments, "before").await;
        journal.before_effects(&call.tool, call.tool.as_str() == "put").await?;
        self.effects.count.fetch_add(1, Ordering::SeqCst);
        if !self.effects.seen.lock().unwrap().insert(call.id.clone()) {
            self.effects.repeated.fetch_add(1, Ordering::SeqCst);
        }
        self.pause(arguments, "after").await;
        Ok(Outcome::Success("acted".to_owned()))
    }

    async fn run(&self, call: RemoteCall, journal: &dyn Journal) -> Result<Outcome, ToolboxError> {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
        match call.tool.as_str() {
            "act" | "put" => self.act(&call, &arguments, journal).await,
            "sleep" => {
                self.pause(&arguments, "before").await;
                Ok(Outcome::Success("slept".to_owned()))
            }
            "order" => {
                let number = self.effects.order.fetch_add(1, Ordering::SeqCst) + 1;
                Ok(Outcome::Success(number.to_string()))
            }
            "ask" => match call.answers.get("which").and_then(Value::as_str) {
                Some(answer) => Ok(Outcome::Success(answer.to_owned())),
                None => Ok(Outcome::NeedsInput(Question {
                    id: "which".to_owned(),
                    text: "Which one?".to_owned(),
                    answer_type: AnswerType::Text,
                    default: None,
                    is_consent: false,
                    class: None,
                    asker: None,
                    approval: None,
                })),
            },
            _ => Ok(Outcome::Success(call.arguments)),
        }
    }
}

impl Execute for Tools {
    fn execute(
        self: Arc<Self>,
        call: RemoteCall,
        context: RunContext,
        journal: Arc<dyn Journal>,
    ) -> Pin<Box<dyn Future<Output = RemoteEnd> + Send>> {
        Box::pin(async move {
            let answers = call.answers.clone();
            let result = tokio::select! {
                result = self.run(call, &*journal) => result,
                () = context.cancellation.cancelled() => {
                    return RemoteEnd::Completed(Box::new(completion(Err(RemoteFailure::Cancelled))));
                }
            };
            match result {
                Ok(Outcome::NeedsInput(question)) => {
                    RemoteEnd::Asks { question: Box::new(question), answers }
                }
                Ok(outcome) => RemoteEnd::Completed(Box::new(completion(Ok(outcome)))),
                Err(error) => RemoteEnd::Refused { kind: error.kind(), message: error.to_string() },
            }
        })
    }
}

fn completion(result: Result<Outcome, RemoteFailure>) -> RemoteCompletion {
    RemoteCompletion {
        result,
        emitted: Vec::new(),
        stdout: String::new(),
        stderr: String::new(),
        usage: RemoteUsage::default(),
        advice: Vec::new(),
    }
}
