//! One engine, made when it is first needed, and what goes with it.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use kitbag_contract::Description;
use tokio::runtime::{Handle, Runtime};
use wasmtime::component::{ComponentExportIndex, InstancePre};
use wasmtime::{Config, Engine, WasmBacktraceDetails};

use crate::cache::{DiskCache, Key};
use crate::call::{self, Call, Completion, State};
use crate::code_memory::InPlace;
use crate::component::{self, Component, ComponentSource, Components};
use crate::error::{CallError, LoadError};
use crate::timer::{Cancellation, Timer};

/// How many calls that were handed to a thread run at once, per processor.
const CALLS_PER_PROCESSOR: usize = 8;

/// The sandbox: loads components and runs calls.
///
/// Cheap to make, since the engine is started by the first call that needs it,
/// and cheap to clone, since clones share everything. Several threads may call
/// at once.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

/// What a [`Host`] is told by whoever makes it.
#[derive(Clone, Debug, Default)]
pub struct HostOptions {
    /// Where compiled components are kept. Default: nowhere.
    pub cache: Option<DiskCache>,
    /// Directories that no tool may write to, whatever it is granted: where
    /// kitbag keeps its own configuration and compiled code. Absolute.
    pub private: Vec<PathBuf>,
}

struct Inner {
    options: HostOptions,
    running: OnceLock<Result<Running, String>>,
    components: Components,
    threads: OnceLock<Option<Runtime>>,
}

/// What there is from the first call on.
struct Running {
    engine: Engine,
    timer: Timer,
}

impl Host {
    /// Makes a host. Nothing is started, read or created before the first use.
    pub fn new(options: HostOptions) -> Self {
        Self(Arc::new(Inner {
            options,
            running: OnceLock::new(),
            components: Components::default(),
            threads: OnceLock::new(),
        }))
    }

    /// What this host was told.
    pub fn options(&self) -> &HostOptions {
        &self.0.options
    }

    /// Whether the engine has been started.
    pub fn is_started(&self) -> bool {
        self.0.running.get().is_some()
    }

    /// Finds a component: in this binary, in memory, on disk, or by compiling.
    ///
    /// # Errors
    ///
    /// [`LoadError`] names the file and what is wrong with it.
    pub fn component(&self, source: &ComponentSource) -> Result<Component, LoadError> {
        let Running { engine, timer } = self.running()?;
        let describe = |instance: &InstancePre<State>, export: &ComponentExportIndex| {
            call::describe(timer, instance, export)
        };
        self.0.components.get(source, engine, self.0.options.cache.as_ref(), describe)
    }

    /// What a component said of itself when it was compiled, if the disk cache
    /// has it. Nothing is compiled, and no engine is started.
    pub fn cached_description(&self, path: &Path) -> Option<Description> {
        let cache = self.0.options.cache.as_ref()?;
        let content = component::read(path).ok()?;
        cache.load(Key::of(&content)).ok()??.description
    }

    /// Runs one call and waits for it on this thread.
    ///
    /// May be called from anywhere, inside an asynchronous runtime too, where
    /// it blocks an executor's thread for as long as the call takes.
    pub fn call_blocking(
        &self,
        component: &Component,
        call: &Call,
        cancellation: &Cancellation,
    ) -> Completion {
        match self.running() {
            Ok(Running { timer, .. }) => {
                let run =
                    || call::run(timer, component, call, cancellation, &self.0.options.private);
                if Handle::try_current().is_err() || IS_OURS.get() {
                    return run();
                }
                // Waiting inside somebody's runtime would panic.
                let ran = std::thread::scope(|scope| scope.spawn(run).join());
                ran.unwrap_or_else(|_| Completion::failed(CallError::internal("a call panicked")))
            }
            Err(error) => Completion::failed(CallError::Load(error)),
        }
    }

    /// Does work that blocks, such as loading and calling, on a thread kept for
    /// that, and waits for it without blocking. Any executor will do.
    ///
    /// Calls run on threads of their own because a guest in an endless loop, or
    /// in a file operation that does not return, would hold an executor's.
    ///
    /// # Errors
    ///
    /// [`CallError::Internal`] when no thread can be had or the work panicked.
    pub async fn offload<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, CallError> {
        let threads = self.0.threads.get_or_init(threads).as_ref();
        let threads = threads.ok_or_else(|| CallError::internal("no thread can be started"))?;
        threads.spawn_blocking(work).await.map_err(CallError::internal)
    }

    /// Compiles a component to what [`EmbeddedArtifact::new`] takes.
    ///
    /// `path` names the component in errors, `target` is the triple that the artifact is for. It uses no feature that
    /// not every processor of that target has.
    ///
    /// # Errors
    ///
    /// [`LoadError::Invalid`] where it is no component that kitbag can run.
    ///
    /// [`EmbeddedArtifact::new`]: crate::EmbeddedArtifact::new
    #[cfg(feature = "compiler")]
    pub fn precompile(path: &Path, content: &[u8], target: &str) -> Result<Vec<u8>, LoadError> {
        crate::inspect::check(content).map_err(|problem| LoadError::invalid(path, problem))?;
        let mut config = config();
        let engine = config.target(target).and_then(|config| Engine::new(config));
        let engine = engine.map_err(|error| LoadError::Engine(format!("{error:#}")))?;
        engine.precompile_component(content).map_err(|error| {
            LoadError::invalid(path, crate::InvalidComponent::Compile(format!("{error:#}")))
        })
    }

    fn running(&self) -> Result<&Running, LoadError> {
        let start = || {
            let engine = Engine::new(&config()).map_err(|error| format!("{error:#}"))?;
            let timer = Timer::new(&engine).map_err(|error| error.to_string())?;
            Ok(Running { engine, timer })
        };
        self.0.running.get_or_init(start).as_ref().map_err(|error| LoadError::Engine(error.clone()))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Dropping a runtime waits for its threads, which must not happen on an
        // executor's thread; those that still run end with their calls.
        if let Some(Some(threads)) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}

thread_local! {
    /// Whether this is one of the threads that [`Host::offload`] keeps. They
    /// belong to a runtime, and yet may wait.
    static IS_OURS: Cell<bool> = const { Cell::new(false) };
}

fn threads() -> Option<Runtime> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    tokio::runtime::Builder::new_current_thread()
        .thread_name("kitbag-call")
        .on_thread_start(|| IS_OURS.set(true))
        .max_blocking_threads(processors * CALLS_PER_PROCESSOR)
        .build()
        .ok()
}

/// Names the settings below, for the key of the disk cache. To be changed
/// whenever [`config`] changes what is compiled.
pub(crate) const SETTINGS: &str = "wasmtime 48; epoch; no address map; no unwind info; 1";

/// The one configuration of the engine, at build time and at run time.
fn config() -> Config {
    let mut config = Config::new();
    config
        // Deadlines and cancellation; see `timer`.
        .epoch_interruption(true)
        // Nobody sees a guest's native addresses, and both take space and time.
        .generate_address_map(false)
        .native_unwind_info(false)
        // Said outright because `WASMTIME_BACKTRACE_DETAILS` in a user's
        // environment would otherwise change the engine and with it whether the
        // embedded artifacts load.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .wasm_backtrace_max_frames(None)
        // No component of WASI 0.2 needs it.
        .concurrency_support(false)
        // The same result on every machine.
        .relaxed_simd_deterministic(true)
        .max_wasm_stack(call::STACK_BYTES)
        .with_custom_code_memory(Some(Arc::new(InPlace)));
    config
}
