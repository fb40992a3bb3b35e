//! The state that all connections share: the current toolbox, and its changes.

pub(crate) mod background;
mod directories;
pub(crate) mod generation;
pub(crate) mod handler;
mod keep_awake;
pub(crate) mod reload;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use kitbag_host::{MemoryBudget, StatePool};
use kitbag_toolbox::{ItemChange, Toolbox};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::server::background::Background;
use crate::server::generation::{Changes, Generation, GenerationPrecompile};
use crate::server::keep_awake::KeepAwake;
use crate::session::kept_results::KeptResults;
use crate::session::state_codec::StateCodec;
use crate::telemetry::metrics::Metrics;

/// Reloads the toolbox after its files have changed. The error is a message for a person.
pub type Load = Box<dyn Fn() -> Result<Toolbox, String> + Send + Sync>;

/// Minimum length of a key in bytes.
pub const KEY_BYTES: usize = StateCodec::KEY_BYTES;

/// Maximum number of resources of MCP servers whose last change is kept.
const SERVER_RESOURCES: usize = 4_096;

/// Maximum time that the end of a server waits for work in the background.
const ENDING: Duration = Duration::from_secs(1);

/// Maximum time that the end of a server waits for MCP servers.
const ENDING_OF_SERVERS: Duration = Duration::from_secs(2);

/// Serves a toolbox to any number of clients.
///
/// Cheap to clone; clones are the same server.
#[derive(Clone)]
pub struct Server(Arc<ServerState>);

struct ServerState {
    load: Load,
    generation: RwLock<Arc<Generation>>,
    changes: watch::Sender<Changes>,
    state_codec: StateCodec,
    metrics: Metrics,
    closing: CancellationToken,
    keep_awake: KeepAwake,
    background: Arc<Background>,
    kept_results: KeptResults,
    /// True once a client has started a session.
    has_client: AtomicBool,
    #[cfg(feature = "otlp")]
    traces_content: AtomicBool,
}

pub(crate) struct WeakServer(Weak<ServerState>);

impl WeakServer {
    pub(crate) fn upgrade(&self) -> Option<Server> {
        self.0.upgrade().map(Server)
    }
}

impl Server {
    /// Creates a server for a toolbox. A background thread starts to compile the components that
    /// calls need, one after the other, and ends when all are compiled.
    ///
    /// `key` signs the state that clients carry between rounds of questions, so that servers with
    /// the same key can resume each other's calls. Without `key`, a random key is generated.
    ///
    /// # Errors
    ///
    /// If the key is shorter than [`KEY_BYTES`], or the system cannot provide random bytes for one.
    pub fn new(toolbox: Toolbox, load: Load, key: Option<&[u8]>) -> io::Result<Self> {
        let mut random = [0; KEY_BYTES];
        let key = match key {
            Some(key) => key,
            None => {
                getrandom::fill(&mut random).map_err(io::Error::other)?;
                &random
            }
        };
        let state_codec = StateCodec::new(key).map_err(io::Error::other)?;
        let server = Self(Arc::new(ServerState {
            load,
            generation: RwLock::new(Arc::new(Generation::new(toolbox, None))),
            changes: watch::Sender::default(),
            state_codec,
            metrics: Metrics::new(),
            closing: CancellationToken::new(),
            keep_awake: KeepAwake::default(),
            background: Arc::default(),
            kept_results: KeptResults::default(),
            has_client: AtomicBool::new(false),
            #[cfg(feature = "otlp")]
            traces_content: AtomicBool::new(false),
        }));
        server.compile_ahead(&server.generation());
        server.follow_servers(&server.generation().toolbox);
        Ok(server)
    }

    /// Includes arguments and results in the spans of calls. By default a span records only that a
    /// call was made and how it ended.
    #[cfg(feature = "otlp")]
    pub fn trace_content(&self) {
        self.0.traces_content.store(true, Ordering::Relaxed);
    }

    #[cfg(feature = "otlp")]
    pub(crate) fn traces_content(&self) -> bool {
        self.0.traces_content.load(Ordering::Relaxed)
    }

    /// Returns a weak handle.
    pub(crate) fn downgrade(&self) -> WeakServer {
        WeakServer(Arc::downgrade(&self.0))
    }

    /// Loads the toolbox again.
    pub(crate) fn load(&self) -> Result<Toolbox, String> {
        (self.0.load)()
    }

    /// Makes new calls use another generation.
    pub(crate) fn replace(&self, generation: Arc<Generation>) {
        self.compile_ahead(&generation);
        self.follow_servers(&generation.toolbox);
        *self.0.generation.write().unwrap_or_else(PoisonError::into_inner) = generation;
    }

    /// Compiles the components of a generation ahead of its calls.
    fn compile_ahead(&self, generation: &Arc<Generation>) {
        self.background().start(self.precompile(generation));
        if self.0.has_client.load(Ordering::Relaxed) {
            self.background().load_builtins(self.precompile(generation));
        }
    }

    fn precompile(&self, generation: &Arc<Generation>) -> GenerationPrecompile {
        GenerationPrecompile { server: self.downgrade(), generation: Arc::clone(generation) }
    }

    /// Forwards changes of the prompts and resources of MCP servers to clients.
    fn follow_servers(&self, toolbox: &Toolbox) {
        let server = self.downgrade();
        let number = AtomicU64::new(0);
        toolbox.on_server_change(move |change| {
            let Some(server) = server.upgrade() else { return };
            server.tell(|changes| match change {
                ItemChange::Prompts => changes.prompts += 1,
                ItemChange::Resources => changes.resources += 1,
                ItemChange::Resource(uri) => {
                    // Forgetting an old change at most repeats its notification.
                    if changes.server_resources.len() >= SERVER_RESOURCES {
                        changes.server_resources.clear();
                    }
                    let number = number.fetch_add(1, Ordering::Relaxed);
                    changes.server_resources.insert(uri, number);
                }
            });
        });
    }

    /// Starts to load the built-in tools and to check the MCP servers in the background when the
    /// first client starts a session.
    pub(crate) fn client_began(&self) {
        if !self.0.has_client.swap(true, Ordering::Relaxed) {
            self.background().load_builtins(self.precompile(&self.generation()));
            background::check_servers(self);
        }
    }

    /// Ends the work in the background and the MCP servers, and writes the waiting lines of the audit
    /// log, for a program that ends without waiting for every thread. Waits for at most a second, and
    /// for two more if an MCP server does not end.
    pub fn finish(&self) {
        self.0.closing.cancel();
        self.background().stop(ENDING);
        self.generation().toolbox.end_servers(ENDING_OF_SERVERS);
        if let Some(auditor) = self.generation().toolbox.auditor() {
            auditor.flush();
        }
    }

    pub(crate) fn generation(&self) -> Arc<Generation> {
        Arc::clone(&self.0.generation.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn state_codec(&self) -> &StateCodec {
        &self.0.state_codec
    }

    pub(crate) fn state_pool(&self) -> StatePool {
        self.generation().toolbox.host().options().memory.state.clone()
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(crate) fn message_memory(&self) -> MemoryBudget {
        self.generation().toolbox.host().options().memory.messages.clone()
    }

    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.0.closing
    }

    pub(crate) fn background(&self) -> &Arc<Background> {
        &self.0.background
    }

    pub(crate) fn kept_results(&self) -> &KeptResults {
        &self.0.kept_results
    }

    pub(crate) fn keep_awake(&self) -> &KeepAwake {
        &self.0.keep_awake
    }

    /// Enables [`keep_awake`](Self::keep_awake) on this runtime while the returned value lives.
    pub(crate) fn stay_awake(&self) -> JoinSet<()> {
        let (mut task, server) = (JoinSet::new(), self.clone());
        let is_busy = move || server.generation().toolbox.host().is_busy();
        let awake = self.clone();
        task.spawn(async move { awake.keep_awake().keep(is_busy).await });
        task
    }

    pub(crate) fn changes(&self) -> watch::Receiver<Changes> {
        self.0.changes.subscribe()
    }

    pub(crate) fn tell(&self, change: impl FnOnce(&mut Changes)) {
        self.0.changes.send_modify(change);
    }
}
