//! From a component to native code: the only place that runs a compiler.
//!
//! It has an engine of its own, made for one compilation: setting Cranelift up
//! takes longer than loading a component that was compiled before, and most
//! processes compile nothing. The artifact is loaded by the engine that runs
//! it, whether it is fresh or from the cache.
//!
//! A compilation runs in a process of its own where the caller names a program for
//! that ([`HostOptions::compiler`](crate::HostOptions)), and on a thread of this one
//! elsewhere.

#[cfg(feature = "compiler")]
mod worker;

use std::path::Path;
#[cfg(feature = "compiler")]
use std::{
    sync::mpsc::RecvTimeoutError,
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

#[cfg(feature = "compiler")]
use kitbag_contract::ByteSize;

use crate::budget::MemoryBudget;
#[cfg(feature = "compiler")]
use crate::budget::Reservation;
use crate::engines::Metering;
#[cfg(feature = "compiler")]
use crate::error::InvalidComponent;
use crate::error::LoadError;
#[cfg(feature = "compiler")]
use crate::inspect::Heaviest;
#[cfg(feature = "compiler")]
use crate::queue::processors;
#[cfg(feature = "compiler")]
use crate::wait::TIME;
use crate::wait::Wait;

#[cfg(feature = "compiler")]
pub use self::worker::{COMPILE_COMMAND, compile_worker};

/// Native code that this process has compiled, in wasmtime's own format.
pub(crate) struct Compiled(Vec<u8>);

impl Compiled {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    #[cfg(feature = "compiler")]
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// The stack of a thread that compiles, which is what a main thread has.
#[cfg(feature = "compiler")]
const STACK_BYTES: usize = 8 << 20;

/// The most threads that compile one component.
#[cfg(feature = "compiler")]
const THREADS: usize = 16;

/// How many components are compiled at once for this process. One that has a process of
/// its own keeps its place, and its memory, until that has ended.
#[cfg(feature = "compiler")]
static PLACES: Places = Places { free: Mutex::new(2), freed: Condvar::new() };

/// How much memory a compilation may take where the server has no bound on it. The
/// worst that is let through to the compiler takes 1.0 GiB.
#[cfg(feature = "compiler")]
const MEMORY: ByteSize = ByteSize::mib(2 << 10);

/// Compiles a component for this machine, or for any processor of a target.
///
/// `wait` names the component, hears how long it takes and gives it up. It waits for
/// what it needs of `memory`. `program` is started to compile it; without one, or where it cannot be started, what takes
/// longer than it may goes on by itself to its end, which the size of a component and
/// of its functions bounds, and is then forgotten.
///
/// # Errors
///
/// [`LoadError::Invalid`] where it is no component that kitbag can run,
/// [`LoadError::Busy`] where too many others are being compiled,
/// [`LoadError::NoCompilerMemory`] where there is not enough of `memory`,
/// [`LoadError::Compiler`] where the process ended without a result,
/// [`LoadError::Cancelled`].
pub(crate) fn compile(
    wait: &Wait<'_>,
    content: Vec<u8>,
    metering: Metering,
    target: Option<&str>,
    program: Option<&Path>,
    memory: &MemoryBudget,
) -> Result<Compiled, LoadError> {
    let invalid = |problem| LoadError::invalid(wait.path(), problem);
    let heaviest = crate::inspect::check(&content).map_err(invalid)?;
    #[cfg(not(feature = "compiler"))]
    let compiled = {
        let _ = (heaviest, metering, target, program, memory);
        Err(LoadError::NoCompiler)
    };
    #[cfg(feature = "compiler")]
    let compiled = {
        let place = PLACES.take(wait, TIME)?;
        let share = Share::of(content.len() as u64, heaviest, memory.size());
        let reserved = reserve(wait, memory, share.memory, TIME)?;
        let content = match program {
            None => content,
            Some(program) => match worker::compile(program, wait, content, metering, share) {
                Ok(compiled) => return compiled,
                Err(content) => content,
            },
        };
        let threads = share.threads;
        let target = target.map(str::to_owned);
        let compiled = within(wait, TIME, move || {
            let _held = (place, reserved);
            artifact(&content, metering, target.as_deref(), threads)
        })
        .map_err(|error| LoadError::Engine(error.to_string()))?;
        match compiled {
            Ok(Ok(compiled)) => compiled.map_err(invalid),
            Ok(Err(error)) => Err(LoadError::Engine(error)),
            Err(_) if wait.is_cancelled() => Err(LoadError::Cancelled),
            Err(problem) => Err(invalid(problem)),
        }
    };
    compiled
}

/// What a compilation may take of this machine.
#[cfg(feature = "compiler")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    threads: usize,
    memory: ByteSize,
}

#[cfg(feature = "compiler")]
impl Share {
    /// What a component of so many bytes needs, of a budget of this size.
    fn of(bytes: u64, heaviest: Heaviest, budget: Option<ByteSize>) -> Self {
        let at_once = heaviest.at_once().max(1);
        let threads = processors().get().min(at_once).min(THREADS);
        let Some(budget) = budget else { return Self { threads, memory: MEMORY } };
        let most = budget.min(MEMORY).as_u64();
        let memory = |threads| needed(bytes, threads, at_once);
        let threads = (1..=threads).rev().find(|n| memory(*n) <= most).unwrap_or(1);
        Self { threads, memory: ByteSize::bytes(memory(threads).min(most)) }
    }
}

/// What a compilation takes at most, in bytes. Measured: 27 MiB for 0.2 MiB of honest
/// code, 63 MiB for 2 MiB, 374 MiB for 18 MiB, and 1.0 GiB for the heaviest function.
#[cfg(feature = "compiler")]
fn needed(bytes: u64, threads: usize, at_once: usize) -> u64 {
    const BASE: u64 = 64 << 20;
    const PER_BYTE: u64 = 32;
    const HEAVIEST: u64 = 1 << 30;
    let (threads, at_once) = (threads as u64, at_once as u64);
    let functions = HEAVIEST.saturating_mul(threads) / at_once;
    bytes
        .saturating_mul(PER_BYTE)
        .saturating_add(BASE + threads * STACK_BYTES as u64)
        .saturating_add(functions)
}

/// Waits for memory, and no longer than this.
#[cfg(feature = "compiler")]
fn reserve(
    wait: &Wait<'_>,
    memory: &MemoryBudget,
    size: ByteSize,
    time: Duration,
) -> Result<Reservation, LoadError> {
    if let Some(reserved) = memory.reserve(size.as_u64()) {
        return Ok(reserved);
    }
    let mut waiting = Box::pin(memory.wait(size.as_u64()));
    let reserved = wait.until(time, |slice| {
        let waited = crate::blocking::block_on(async {
            tokio::time::timeout(slice, waiting.as_mut()).await.ok()
        });
        waited.ok()??
    });
    reserved.ok_or_else(|| match wait.is_cancelled() {
        true => LoadError::Cancelled,
        false => LoadError::NoCompilerMemory { path: wait.path().to_owned(), size },
    })
}

/// Compiles on as many threads, and waits for that.
///
/// # Errors
///
/// Where no threads or no engine can be had.
#[cfg(feature = "compiler")]
fn artifact(
    content: &[u8],
    metering: Metering,
    target: Option<&str>,
    threads: usize,
) -> Result<Result<Compiled, InvalidComponent>, String> {
    let engine = engine(metering, target).map_err(|error| format!("{error:#}"))?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .stack_size(STACK_BYTES)
        .thread_name(|_| "kitbag-compile".into())
        .build()
        .map_err(|error| error.to_string())?;
    let artifact = pool.install(|| engine.precompile_component(content));
    Ok(artifact.map(Compiled).map_err(|error| InvalidComponent::Compile(format!("{error:#}"))))
}

/// The engine for one compilation.
#[cfg(feature = "compiler")]
fn engine(metering: Metering, target: Option<&str>) -> wasmtime::Result<wasmtime::Engine> {
    let mut config = crate::engines::config(metering);
    config.enable_compiler(true);
    if let Some(target) = target {
        config.target(target)?;
    }
    wasmtime::Engine::new(&config)
}

/// Does work on a thread of its own, and waits for it no longer than this. A
/// panic in there is an error like another. Fails where no thread can be had.
#[cfg(feature = "compiler")]
fn within<T: Send + 'static>(
    wait: &Wait<'_>,
    time: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<Result<T, InvalidComponent>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::Builder::new().name("kitbag-compile".into()).spawn(move || sender.send(work()))?;
    let ended = wait.until(time, |slice| match receiver.recv_timeout(slice) {
        Ok(done) => Some(Ok(done)),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => {
            Some(Err(InvalidComponent::Compile("the compiler panicked".into())))
        }
    });
    Ok(ended.unwrap_or(Err(InvalidComponent::TooSlow { limit: time })))
}

/// Places for compilations.
#[cfg(feature = "compiler")]
struct Places {
    free: Mutex<usize>,
    freed: Condvar,
}

/// A compilation's place; the next one may have it when this is dropped.
#[cfg(feature = "compiler")]
struct Place(&'static Places);

#[cfg(feature = "compiler")]
impl Places {
    /// Waits for a place, and no longer than this.
    fn take(&'static self, wait: &Wait<'_>, time: Duration) -> Result<Place, LoadError> {
        let place = wait.until(time, |slice| {
            let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = self.freed.wait_timeout_while(free, slice, |free| *free == 0);
            let (mut free, _) = waited.unwrap_or_else(PoisonError::into_inner);
            *free = free.checked_sub(1)?;
            Some(Place(self))
        });
        place.ok_or_else(|| match wait.is_cancelled() {
            true => LoadError::Cancelled,
            false => LoadError::Busy,
        })
    }
}

#[cfg(feature = "compiler")]
impl Drop for Place {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(all(test, feature = "compiler"))]
mod tests {
    use std::sync::{LazyLock, mpsc};

    use super::*;
    use crate::report::Audience;
    use crate::timer::Cancellation;

    /// A wait of which nobody hears.
    fn wait() -> Wait<'static> {
        static NOBODY: Audience = Audience::NOBODY;
        static NEVER: LazyLock<Cancellation> = LazyLock::new(Cancellation::default);
        Wait::new(Path::new("a"), 0, &NOBODY, &NEVER)
    }

    #[test]
    fn no_more_is_compiled_at_once_than_there_are_places() {
        static ONE: Places = Places { free: Mutex::new(1), freed: Condvar::new() };
        let moment = Duration::from_millis(10);
        let (end, ended) = mpsc::channel::<()>();
        let place = ONE.take(&wait(), moment).unwrap();
        let compiling = move || {
            let _place = place;
            let _ = ended.recv();
        };
        // Nobody waits for it any longer, and it is still there.
        assert!(within(&wait(), moment, compiling).unwrap().is_err());
        assert!(matches!(ONE.take(&wait(), moment), Err(LoadError::Busy)));
        end.send(()).unwrap();
        let place = ONE.take(&wait(), TIME).unwrap();
        let panics = move || {
            let _place = place;
            panic!("on purpose")
        };
        assert_eq!(
            within(&wait(), TIME, panics).unwrap(),
            Err::<(), _>(InvalidComponent::Compile("the compiler panicked".into()))
        );
        assert!(ONE.take(&wait(), TIME).is_ok());
    }

    #[test]
    fn a_compilation_takes_no_more_than_there_is() {
        let share =
            |bytes: u64, mib| Share::of(bytes, Heaviest::default(), Some(ByteSize::mib(mib)));
        // As little as a server has for calls and compilations.
        assert_eq!(share(4 << 20, 112), Share { threads: 1, memory: ByteSize::mib(112) });
        let light = share(1 << 20, 1152);
        assert!(light.memory < ByteSize::mib(96 + 8 * 16 + 1), "{light:?}");
        // Two of 12 MiB fit into the default at once.
        assert!(share(12 << 20, 1152).memory < ByteSize::mib(1152 / 2 + 16));
        assert_eq!(share(1 << 30, 64 << 10).memory, MEMORY);
        assert_eq!(Share::of(1, Heaviest::default(), None).memory, MEMORY);
    }

    #[test]
    fn a_compilation_waits_for_memory_until_it_is_cancelled() {
        let memory = MemoryBudget::new(ByteSize::mib(8));
        let cancelled = Cancellation::default();
        cancelled.cancel();
        let given_up = Wait::new(Path::new("a"), 0, &Audience::NOBODY, &cancelled);
        let held = memory.reserve(4 << 20).unwrap();
        let size = ByteSize::mib(8);
        assert!(matches!(reserve(&given_up, &memory, size, TIME), Err(LoadError::Cancelled)));
        let refused = reserve(&wait(), &memory, size, Duration::ZERO).map(drop).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "busy: calls and compilations in progress leave no room for the 8 MiB that compiling \
             `a` may take; try again later, or raise `memory` under `[serve]`"
        );
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| reserve(&wait(), &memory, size, TIME).map(drop));
            drop(held);
            assert!(waiting.join().unwrap().is_ok());
        });
        assert_eq!(memory.reserved(), ByteSize::bytes(0));
    }

    #[test]
    fn nobody_waits_for_a_compiler_that_does_not_end() {
        let moment = Duration::from_millis(10);
        let forever = || std::thread::sleep(Duration::from_secs(60 * 60));
        assert_eq!(
            within(&wait(), moment, forever).unwrap(),
            Err(InvalidComponent::TooSlow { limit: moment })
        );
    }

    #[test]
    fn a_compiler_that_panics_is_an_error() {
        let panics = || -> u32 { panic!("on purpose") };
        let expected = InvalidComponent::Compile("the compiler panicked".into());
        assert_eq!(within(&wait(), Duration::from_secs(60), panics).unwrap(), Err(expected));
    }
}
