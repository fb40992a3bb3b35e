//! From a component to native code: the only place that runs a compiler.
//!
//! It has an engine of its own, made for one compilation: setting Cranelift up
//! takes longer than loading a component that was compiled before, and most
//! processes compile nothing. The artifact is loaded by the engine that runs
//! it, whether it is fresh or from the cache.
//!
//! A compilation runs in a process of its own where the caller names a program for
//! that, and on a thread of this one
//! elsewhere.

mod code;
#[cfg(feature = "compiler")]
mod in_process;
mod memory;
#[cfg(feature = "compiler")]
mod permits;
#[cfg(feature = "compiler")]
mod share;
#[cfg(feature = "compiler")]
mod worker;

use std::path::Path;

use kitbag_base::ByteSize;

pub use self::code::CompiledCode;
pub use self::memory::{CompileMemory, Unlimited};
#[cfg(feature = "compiler")]
pub use self::worker::{COMPILE_COMMAND, compile_worker};
#[cfg(feature = "compiler")]
use self::{
    in_process::{artifact, within},
    permits::Permits,
    share::Share,
};
use crate::inspect::Support;
use crate::load_error::LoadError;
use crate::metering::Metering;
use crate::wait::Wait;

/// How many components are compiled at once for this process. One that has a process of
/// its own keeps its permit, and its memory, until that has ended.
#[cfg(feature = "compiler")]
static PERMITS: Permits = Permits::new(2);

/// Compiles a component for this machine, or for any processor of a target.
///
/// `wait` names the component, says how long it may take, reports that and cancels it. The
/// compilation waits for its share of `memory`. `program` is started for it; without one,
/// or where it cannot be started, a compilation that exceeds its time goes on to its end,
/// which the size of a component and of its functions bounds, and its result is dropped.
///
/// # Errors
///
/// [`LoadError::Invalid`] where kitbag cannot run the component,
/// [`LoadError::Busy`] where too many others are being compiled,
/// [`LoadError::NoCompilerMemory`] where there is not enough of `memory`,
/// [`LoadError::Compiler`] where the process ended without a result,
/// [`LoadError::Cancelled`].
pub fn compile<M: CompileMemory>(
    wait: &Wait<'_>,
    content: Vec<u8>,
    metering: Metering,
    target: Option<&str>,
    program: Option<&Path>,
    memory: &M,
    support: &Support,
) -> Result<CompiledCode, LoadError> {
    let invalid = |problem| LoadError::invalid(wait.path(), problem);
    // Its bytes are in memory already, and more is not taken for looking at them.
    let held = reserve(wait, memory, ByteSize::bytes(content.len() as u64))?;
    let heaviest =
        crate::inspect::check(&content, support, || wait.is_cancelled()).map_err(invalid)?;
    let heaviest = heaviest.ok_or(LoadError::Cancelled)?;
    #[cfg(not(feature = "compiler"))]
    let compiled = {
        let _ = (heaviest, metering, target, program, held);
        Err(LoadError::NoCompiler)
    };
    #[cfg(feature = "compiler")]
    let compiled = {
        let permit = PERMITS.take(wait, wait.limit())?;
        let share = Share::of(content.len() as u64, heaviest, memory.size());
        // They are part of the share.
        drop(held);
        let reserved = reserve(wait, memory, share.memory)?;
        let content = match program {
            None => content,
            Some(program) => match worker::compile(program, wait, content, metering, share) {
                Ok(compiled) => return compiled,
                Err(content) => content,
            },
        };
        let threads = share.threads;
        let target = target.map(str::to_owned);
        let compiled = within(wait, wait.limit(), move || {
            let _held = (permit, reserved);
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

/// Waits for memory, and no longer than the compilation may take.
fn reserve<M: CompileMemory>(
    wait: &Wait<'_>,
    memory: &M,
    size: ByteSize,
) -> Result<M::Reservation, LoadError> {
    memory.reserve(size.as_u64(), wait).ok_or_else(|| match wait.is_cancelled() {
        true => LoadError::Cancelled,
        false => LoadError::NoCompilerMemory { path: wait.path().to_owned(), size },
    })
}

/// Compiles a component to native code for a binary that it is part of.
///
/// `path` names the component in errors, `target` is the triple that the artifact is for. On x86-64 it
/// needs the instructions of x86-64-v2. Compiling may take `time`.
///
/// # Errors
///
/// [`LoadError::Invalid`] if kitbag cannot run the component, or if compiling it takes longer.
#[cfg(feature = "compiler")]
pub fn precompile(
    path: &Path,
    content: Vec<u8>,
    target: &str,
    time: std::time::Duration,
    support: &Support,
) -> Result<Vec<u8>, LoadError> {
    let wait = Wait::new(path, content.len() as u64, &crate::wait::Patient, time);
    let compiled = compile(&wait, content, Metering::Off, Some(target), None, &Unlimited, support)?;
    Ok(compiled.into_bytes())
}

#[cfg(all(test, feature = "compiler"))]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::share::MEMORY;
    use super::*;
    use crate::inspect::Heaviest;
    use crate::load_error::InvalidComponent;
    use crate::wait::{Patient, Waiter};

    const TIME: Duration = Duration::from_secs(60);

    /// A wait that is not reported.
    fn wait() -> Wait<'static> {
        Wait::new(Path::new("a"), 0, &Patient, TIME)
    }

    #[test]
    fn no_more_is_compiled_at_once_than_there_are_permits() {
        static ONE: Permits = Permits::new(1);
        let moment = Duration::from_millis(10);
        let (end, ended) = mpsc::channel::<()>();
        let permit = ONE.take(&wait(), moment).unwrap();
        let compiling = move || {
            let _permit = permit;
            let _ = ended.recv();
        };
        // The wait has ended, and the compilation still runs.
        assert!(within(&wait(), moment, compiling).unwrap().is_err());
        assert!(matches!(ONE.take(&wait(), moment), Err(LoadError::Busy)));
        end.send(()).unwrap();
        let permit = ONE.take(&wait(), TIME).unwrap();
        let panics = move || {
            let _permit = permit;
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

    /// No memory at all.
    struct Full;

    impl CompileMemory for Full {
        type Reservation = ();

        fn size(&self) -> Option<ByteSize> {
            None
        }

        fn reserve(&self, _: u64, _: &Wait<'_>) -> Option<()> {
            None
        }
    }

    /// A call that was cancelled.
    struct Cancelled;

    impl Waiter for Cancelled {
        fn is_over(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_compilation_without_memory_is_busy_or_cancelled() {
        let given_up = Wait::new(Path::new("a"), 0, &Cancelled, TIME);
        let size = ByteSize::mib(8);
        assert!(matches!(reserve(&given_up, &Full, size), Err(LoadError::Cancelled)));
        assert_eq!(
            reserve(&wait(), &Full, size).unwrap_err().to_string(),
            "busy: calls and compilations in progress leave no room for the 8 MiB that compiling \
             `a` may take; try again later, or raise `memory` under `[serve]`"
        );
    }

    #[test]
    fn the_wait_for_a_compiler_that_does_not_end_is_over_in_time() {
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
