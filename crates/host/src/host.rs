//! The sandbox as a whole: its options, and state that is created on first use.

use std::cell::{Cell, LazyCell};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use kitbag_base::{ByteSize, ContentDigest};
use kitbag_contract::{Limits, Outcome};
use kitbag_engine::{
    Content as _, DescribeResult, DiskCache, Engines, Key, Lane, LoadError, Metering, Model,
    Omission, OpenComponent, act_skill, check_pins, config, config_of, described_section,
    digest_of_bytes, lane_of, omissions_of,
};
use kitbag_http::{Account, Client, ClientOptions};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use wasmtime::Engine;
use wasmtime::component::InstancePre;

use crate::call::context::RunContext;
use crate::call::native;
use crate::call::state::State;
use crate::call::{self, Call, Completion};
use crate::component::components::Components;
use crate::component::support::SUPPORT;
use crate::component::{Compilation, Component, ComponentSource};
use crate::description::NotNow;
use crate::error::CallError;
use crate::lanes::Entry;
use crate::pool::pool;
use crate::schedule::blocking::{block_on, in_own_runtime, set_outer_runtime};
use crate::schedule::budget::{MemoryBudget, Reservation};
use crate::schedule::queue::{Concurrency, Permit, Queue, processors};
use crate::schedule::server_memory::ServerMemory;
use crate::schedule::threads::Threads;
use crate::schedule::timer::{Cancellation, Timer};

/// The sandbox: loads components and runs calls.
///
/// Cheap to create, since the first call that needs an engine starts it, and cheap to clone, since
/// clones share everything. Several threads may call at once.
#[derive(Clone)]
pub struct Host(Arc<HostState>);

/// Options of a [`Host`].
#[derive(Clone, Debug, Default)]
pub struct HostOptions {
    /// Cache of compiled components. Default: none.
    pub cache: Option<DiskCache>,
    /// True to reserve memory for calls at the first call, and to wipe and reuse it for later
    /// calls. Faster for many calls, slower for a single one. Not used for calls with fuel limits.
    /// Default: false.
    pub pool: bool,
    /// Number of calls that run at once, and number of calls that wait.
    pub concurrency: Concurrency,
    /// Memory for calls, components and messages together. Default: unlimited.
    pub memory: ServerMemory,
    /// A program that compiles components, each in its own process with limits on memory and time.
    /// It must be this build of kitbag, or forward its arguments to `compile_worker`. By default,
    /// and if the program cannot be started, components are compiled in this process.
    pub compiler: Option<PathBuf>,
    /// Options for the connections of tools.
    pub connections: ClientOptions,
}

struct HostState {
    options: HostOptions,
    plain: Lazy<Engine>,
    /// Like `plain`, for components that do not fit into its pool.
    unpooled: Lazy<Engine>,
    metered: Lazy<Engine>,
    /// For components that need asynchronous functions, without a pool.
    asynchronous: Lazy<Engine>,
    asynchronous_metered: Lazy<Engine>,
    timer: Lazy<Timer>,
    components: Components,
    client: Client,
    queue: Arc<Queue>,
    threads: LazyLock<Threads>,
}

impl Host {
    /// Creates a host. Nothing is started, read or created before the first use.
    pub fn new(options: HostOptions) -> Self {
        let queue = Queue::new(options.concurrency);
        let components = Components::new(options.memory.components.clone());
        let client = Client::new(options.connections.clone());
        Self(Arc::new(HostState {
            client,
            options,
            plain: Lazy::new(),
            unpooled: Lazy::new(),
            metered: Lazy::new(),
            asynchronous: Lazy::new(),
            asynchronous_metered: Lazy::new(),
            timer: Lazy::new(),
            components,
            queue,
            threads: LazyLock::new(|| Threads::new(processors())),
        }))
    }

    /// Returns the options of this host.
    pub fn options(&self) -> &HostOptions {
        &self.0.options
    }

    /// Returns the client that opens the connections of tools.
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// Returns true if an engine has been started.
    pub fn is_started(&self) -> bool {
        self.0.plain.cell.get().is_some() || self.0.metered.cell.get().is_some()
    }

    /// Returns a quarter of the memory for calls, and at least the default of one call.
    pub fn share_of_memory(&self) -> ByteSize {
        let size = self.0.options.memory.work.size();
        let quarter = size.map_or(u64::MAX, |size| size.as_u64() / 4);
        ByteSize::bytes(quarter).max(Limits::default().memory)
    }

    /// Finds a component in this binary, in memory or on disk, or compiles it.
    ///
    /// Compilation is reported to the context's events and stops when the context ends. Blocks
    /// this thread. `limits` determine whether calls count their instructions, and how long
    /// compilation may take.
    ///
    /// # Errors
    ///
    /// [`LoadError`] names the file and the problem; [`LoadError::Cancelled`] if the context
    /// ended.
    pub fn component(
        &self,
        source: &ComponentSource,
        limits: &Limits,
        context: &RunContext,
    ) -> Result<Component, LoadError> {
        let metering = Metering::of(limits);
        let other = || self.unpooled(metering);
        let first = self.engine(metering).map_err(LoadError::Engine)?;
        let asynchronous = || self.asynchronous(metering);
        let engines = Engines { first, other: &other, asynchronous: &asynchronous };
        let timer = self.timer().map_err(LoadError::Engine)?;
        let memory = &self.0.options.memory.work;
        let describe = Self::describe(timer, metering, memory);
        let cache = self.0.options.cache.as_ref();
        let program = self.0.options.compiler.as_deref();
        let compiling = Compilation { program, memory, time: limits.compile, context };
        self.0.components.get(source, metering, &engines, cache, &compiling, describe)
    }

    /// Drops the components of all other files and bytes as soon as no call uses them.
    pub fn retain_components(&self, sources: &HashSet<ComponentSource>) {
        self.0.components.retain(sources);
    }

    /// Returns a component's description from memory, from the component's own section
    /// `kitbag:describe`, or from the cache, even if the cache does not have its native code.
    /// Compiles nothing and starts no engine.
    ///
    /// # Errors
    ///
    /// [`LoadError::Pinned`] if the component is not the pinned one: its description is then
    /// ignored.
    pub fn known_description(
        &self,
        source: &ComponentSource,
        metering: Metering,
    ) -> Result<Option<DescribeResult>, LoadError> {
        if let Some(component) = self.0.components.loaded(source, metering) {
            return Ok(Some(component.described().clone()));
        }
        let Some(content) = content(source) else { return Ok(None) };
        let digest = LazyCell::new(|| digest_of_bytes(&content));
        if is_pinned(source) {
            check(source, *digest)?;
        }
        if let Some(described) = described_section(&content, &SUPPORT) {
            return Ok(Some(described));
        }
        let Some(cache) = &self.0.options.cache else { return Ok(None) };
        let load = |model| cache.load(Key::of(*digest, metering, model)).ok().flatten();
        let entry = Model::ALL.into_iter().find_map(load);
        Ok(entry.map(|entry| entry.described).or_else(|| cache.remembered(*digest)))
    }

    /// Recognises the lane of a component without compiling it. `None` if it cannot be read or is
    /// not made for a known host.
    pub fn lane(&self, source: &ComponentSource, metering: Metering) -> Option<Lane> {
        if let ComponentSource::Embedded(_) = source {
            return Some(Lane::Run);
        }
        match self.0.components.loaded(source, metering) {
            Some(component) => Some(component.lane()),
            None => lane_of(&content(source)?),
        }
    }

    /// Returns the exported functions of a component that are not tools, without compiling it.
    pub fn omissions(&self, source: &ComponentSource) -> Vec<Omission> {
        content(source).map(|bytes| omissions_of(&bytes)).unwrap_or_default()
    }

    /// Returns the skill in a component for ACT, as a tar archive. `None` if it has none, or cannot be
    /// read. Compiles nothing.
    ///
    /// # Errors
    ///
    /// [`LoadError`] if the component is not the required one.
    pub fn act_skill(&self, source: &ComponentSource) -> Result<Option<Vec<u8>>, LoadError> {
        let Some(content) = content(source) else { return Ok(None) };
        let Some(skill) = act_skill(&content) else { return Ok(None) };
        if lane_of(&content) != Some(Lane::Act) {
            return Ok(None);
        }
        if is_pinned(source) {
            check(source, digest_of_bytes(&content))?;
        }
        Ok(Some(skill.to_vec()))
    }

    /// Returns the private directory of the cache, which is created if necessary. `None`: there is
    /// no cache, or its directory is not private.
    pub fn cache_path(&self) -> Option<&Path> {
        self.0.options.cache.as_ref()?.private_path().ok()
    }

    /// Returns the cached description of the component with this digest.
    pub fn remembered(&self, digest: ContentDigest) -> Option<DescribeResult> {
        self.0.options.cache.as_ref()?.remembered(digest)
    }

    /// Returns true if a component is in memory.
    pub fn is_loaded(&self, source: &ComponentSource, metering: Metering) -> bool {
        self.0.components.loaded(source, metering).is_some()
    }

    /// Returns true if a component is in memory or in the cache, so that loading it compiles
    /// nothing. The native code is not verified.
    pub fn is_compiled(&self, source: &ComponentSource, metering: Metering) -> bool {
        if let ComponentSource::Embedded(artifact) = source
            && artifact.native(metering).is_some()
        {
            return true;
        }
        if self.is_loaded(source, metering) {
            return true;
        }
        let Some(cache) = &self.0.options.cache else { return false };
        digest(source).is_some_and(|component| {
            let load = |model| cache.load(Key::of(component, metering, model));
            Model::ALL.into_iter().any(|model| matches!(load(model), Ok(Some(_))))
        })
    }

    /// Runs one call on the thread that polls it. The guest blocks the thread while it computes,
    /// so await this within [`block_on`](Self::block_on), with a [`permit`](Self::permit). A call
    /// may be awaited inside another call.
    ///
    /// When a tool is run again with an answer, it continues the same events.
    pub async fn call(
        &self,
        component: &Component,
        call: &Call,
        context: &RunContext,
    ) -> Completion {
        let timer = match self.timer() {
            Ok(timer) => timer,
            Err(error) => return Completion::failed(CallError::Internal(error)),
        };
        let memory = &self.0.options.memory.work;
        let completion = call::run(timer, component, call, context, memory, &self.0.client).await;
        completion.unwrap_or_else(Completion::failed)
    }

    /// Awaits code of the embedding program as a call: within the limits on time and output, and
    /// inside the program's own runtime, if any.
    pub async fn run_native(
        &self,
        limits: &Limits,
        context: &RunContext,
        work: impl Future<Output = Outcome>,
    ) -> Completion {
        let timer = match self.timer() {
            Ok(timer) => timer,
            Err(error) => return Completion::failed(CallError::Internal(error)),
        };
        let completion = native::run(timer, limits, context, work).await;
        completion.unwrap_or_else(Completion::failed)
    }

    /// Awaits a call inside another call, whose permit it uses.
    pub async fn nested<T>(work: impl Future<Output = T>) -> T {
        in_own_runtime(work).await
    }

    /// Runs [`call`](Self::call) on this thread, with its own permit.
    ///
    /// May be called from anywhere. Inside an asynchronous runtime, it blocks an executor's thread
    /// until the permit is granted and the call has ended.
    pub fn call_blocking(
        &self,
        component: &Component,
        call: &Call,
        context: &RunContext,
    ) -> Completion {
        let work = || async {
            let account = context.account_of(&call.name);
            let _permit = self.permit(&account, &context.cancellation).await?;
            Ok(self.call(component, call, context).await)
        };
        Self::block_on(work).flatten().unwrap_or_else(Completion::failed)
    }

    /// Waits for the right to run one call that is charged to an account. Returns `None` on the
    /// threads of [`offload`](Self::offload), whose work already has a permit.
    ///
    /// # Errors
    ///
    /// [`CallError::Busy`] if the maximum number of calls is waiting, [`CallError::Cancelled`].
    pub async fn permit(
        &self,
        account: &Account,
        cancellation: &Cancellation,
    ) -> Result<Option<Permit>, CallError> {
        if IS_OURS.get() {
            return Ok(None);
        }
        if let Some(permit) = self.0.queue.try_enter(account) {
            return Ok(Some(permit));
        }
        tokio::select! {
            biased;
            () = cancellation.cancelled() => Err(CallError::Cancelled),
            permit = self.0.queue.enter(account) => permit.map(Some),
        }
    }

    /// Runs a nested call of another tool as soon as a place is free at this depth. Returns `None`
    /// beyond the maximum depth.
    pub async fn inner<T>(
        &self,
        depth: u32,
        account: &Account,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let _place = self.0.queue.enter_inner(depth, account).await?;
        Some(work.await)
    }

    /// Reserves memory for other data that a call passes to the host. Returns `None` if the
    /// account has used up its share, or if no memory is left.
    pub fn reserve(&self, account: &Account, bytes: u64) -> Option<Reservation> {
        self.0.options.memory.work.reserve_for(account, bytes)
    }

    /// Waits for a future on this thread, with the timers that guests need.
    ///
    /// May be called from anywhere. Inside an asynchronous runtime, it blocks an executor's
    /// thread.
    ///
    /// # Errors
    ///
    /// [`CallError::Internal`] if the system has no timers or threads left.
    pub fn block_on<T: Send, F: Future<Output = T>>(
        work: impl FnOnce() -> F + Send,
    ) -> Result<T, CallError> {
        block_on(work)
    }

    /// Runs blocking work, such as loading and calling, on a dedicated thread and awaits it
    /// without blocking. Works with any executor. At most [`HostOptions::concurrency`] jobs run at
    /// once; others wait. `account` has a share of these places.
    ///
    /// Calls run on their own threads because a guest in an endless loop, or in a file operation
    /// that does not return, would block an executor's thread.
    ///
    /// # Errors
    ///
    /// [`CallError::Busy`] if the maximum number of calls is waiting, [`CallError::Internal`] if
    /// no thread is available or the work panicked.
    pub async fn offload<T: Send + 'static>(
        &self,
        account: &Account,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, CallError> {
        self.offload_when(account, std::future::ready(()), work).await
    }

    /// Like [`offload`](Self::offload), but takes its place first and then awaits `ready` before
    /// the work begins.
    ///
    /// # Errors
    ///
    /// See [`offload`](Self::offload).
    pub async fn offload_when<T: Send + 'static>(
        &self,
        account: &Account,
        ready: impl Future<Output = ()>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, CallError> {
        let permit = self.0.queue.enter(account).await?;
        ready.await;
        let (sender, done) = oneshot::channel();
        let outer = Handle::try_current().ok();
        let work = move || {
            IS_OURS.set(true);
            set_outer_runtime(outer);
            let done = work();
            // Held until the work has ended, even if its caller no longer waits.
            drop(permit);
            let _ = sender.send(done);
        };
        self.0.threads.run(work).map_err(CallError::internal)?;
        if self.is_busy() {
            self.make_way();
        }
        done.await.map_err(|_| CallError::internal("the work panicked"))
    }

    /// Returns true if every processor has a call.
    pub fn is_busy(&self) -> bool {
        self.0.threads.are_busy()
    }

    /// Makes long-running guests yield to other calls.
    fn make_way(&self) {
        let state = &self.0;
        let engines = [
            &state.plain,
            &state.unpooled,
            &state.metered,
            &state.asynchronous,
            &state.asynchronous_metered,
        ];
        engines.iter().filter_map(|engine| engine.cell.get()).for_each(Engine::increment_epoch);
    }

    /// Waits until no call runs, including cancelled calls that still clean up. Works with any
    /// executor.
    pub async fn idle(&self) {
        self.0.queue.idle().await;
    }

    /// Returns the function that asks a component for its description on this thread.
    fn describe<'a>(
        timer: &'a Timer,
        metering: Metering,
        memory: &'a MemoryBudget,
    ) -> impl Fn(&Entry, &InstancePre<State>) -> Result<DescribeResult, NotNow> + 'a {
        move |entry, instance| {
            let asked = block_on(|| call::describe(timer, metering, entry, instance, memory));
            asked.unwrap_or_else(|error| Err(NotNow(error.to_string())))
        }
    }

    fn engine(&self, metering: Metering) -> Result<&Engine, String> {
        let slot = match metering {
            Metering::Off => &self.0.plain,
            Metering::Fuel => &self.0.metered,
        };
        let make = || {
            let mut config = config(metering);
            // If the system does not provide that much address space, memory is allocated per
            // call, which is only slower.
            if self.0.options.pool && metering == Metering::Off {
                config.allocation_strategy(pool(self.0.options.concurrency));
                if let Ok(engine) = Engine::new(&config) {
                    return Ok(engine);
                }
                config.allocation_strategy(wasmtime::InstanceAllocationStrategy::OnDemand);
            }
            Engine::new(&config).map_err(|error| format!("{error:#}"))
        };
        slot.get_or_try(make)
    }

    /// Returns the engine without a pool, if the other engine has one.
    fn unpooled(&self, metering: Metering) -> Option<&Engine> {
        let has_pool = self.0.options.pool && metering == Metering::Off;
        has_pool.then(|| self.0.unpooled.get_or_try(|| Engine::new(&config(metering))).ok())?
    }

    /// Returns the engine for components that need asynchronous functions.
    fn asynchronous(&self, metering: Metering) -> Result<&Engine, String> {
        let slot = match metering {
            Metering::Off => &self.0.asynchronous,
            Metering::Fuel => &self.0.asynchronous_metered,
        };
        let make = || Engine::new(&config_of(metering, Model::Async));
        slot.get_or_try(|| make().map_err(|error| format!("{error:#}")))
    }

    fn timer(&self) -> Result<&Timer, String> {
        self.0.timer.get_or_try(|| Timer::new().map_err(|error| error.to_string()))
    }
}

/// Returns the digest of a component that is not part of this binary, if it can be read.
fn digest(source: &ComponentSource) -> Option<ContentDigest> {
    match source {
        ComponentSource::Embedded(_) => None,
        ComponentSource::File(file) => OpenComponent::new(file).ok()?.digest().ok(),
        ComponentSource::Bytes(bytes) => Some(bytes.digest()),
    }
}

fn is_pinned(source: &ComponentSource) -> bool {
    matches!(source, ComponentSource::File(file) if !file.pins.is_empty())
}

/// Refuses a component whose digest is not the required one.
fn check(source: &ComponentSource, found: ContentDigest) -> Result<(), LoadError> {
    match source {
        ComponentSource::File(file) => check_pins(&file.path, &file.pins, found),
        ComponentSource::Embedded(_) | ComponentSource::Bytes(_) => Ok(()),
    }
}

/// Returns the bytes of a component that is not part of this binary, if they can be read.
fn content(source: &ComponentSource) -> Option<Vec<u8>> {
    match source {
        ComponentSource::Embedded(_) => None,
        ComponentSource::File(file) => OpenComponent::new(file).ok()?.read().ok(),
        ComponentSource::Bytes(bytes) => bytes.clone().read().ok(),
    }
}

/// A value that is created on first use. A failed attempt is repeated at the next use.
struct Lazy<T> {
    cell: OnceLock<T>,
    making: Mutex<()>,
}

impl<T> Lazy<T> {
    const fn new() -> Self {
        Self { cell: OnceLock::new(), making: Mutex::new(()) }
    }

    fn get_or_try<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.cell.get() {
            return Ok(value);
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        match self.cell.get() {
            Some(value) => Ok(value),
            None => {
                let value = make()?;
                Ok(self.cell.get_or_init(|| value))
            }
        }
    }
}

thread_local! {
    /// True on the threads that [`Host::offload`] keeps, whose work already has a permit.
    static IS_OURS: Cell<bool> = const { Cell::new(false) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ComponentBytes;
    use crate::lanes::tests::call;

    /// Returns an empty command.
    fn command(version: &str, kind: &str) -> String {
        format!(
            r#"(component
            (core module $main (func (export "run") (result i32) (i32.const 0)))
            (core instance $main (instantiate $main))
            (func $run {kind} (result (result)) (canon lift (core func $main "run")))
            (instance $instance (export "run" (func $run)))
            (export "wasi:cli/run@{version}" (instance $instance)))"#
        )
    }

    #[test]
    fn wasi_0_3_has_an_engine_of_its_own() {
        let host = Host::new(HostOptions::default());
        let run = |text: &str| {
            let bytes = wat::parse_str(text).unwrap();
            let source = ComponentSource::Bytes(ComponentBytes::new("tool.wasm", bytes));
            let context = RunContext::default();
            let component = host.component(&source, &Limits::default(), &context).unwrap();
            let completion = host.call_blocking(&component, &call("{}"), &context);
            assert!(completion.result.is_ok(), "{completion:?}");
        };
        run(&command("0.2.0", ""));
        let state = &host.0;
        assert!(state.plain.cell.get().is_some());
        assert!(state.asynchronous.cell.get().is_none());
        run(&command("0.3.0", "async"));
        assert!(state.asynchronous.cell.get().is_some());
        assert!(state.asynchronous_metered.cell.get().is_none());
    }
}
