//! Compiles components to native code: the only module that runs a compiler.
//!
//! Each compilation has its own engine: setting up Cranelift takes longer than loading a compiled
//! component, and most processes compile nothing. The running engine loads the artifact, whether it
//! is new or cached.
//!
//! A compilation runs in a separate process if the caller names a program for it, and otherwise on
//! a thread of this process.

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

/// The concurrent compilations of this process. A compilation in a separate process keeps its
/// permit and its memory until that process has ended.
#[cfg(feature = "compiler")]
static PERMITS: Permits = Permits::new(2);

/// Compiles a component for this machine, or for any processor of a target.
///
/// `wait` names the component, limits the time, receives reports and cancels the compilation. The
/// compilation waits for its share of `memory`. It runs in a process of `program`; without one, or
/// if it cannot be started, a compilation that exceeds its time continues to its end, which is
/// bounded by the size of the component and of its functions, and its result is dropped.
///
/// # Errors
///
/// [`LoadError::Invalid`] if kitbag cannot run the component, [`LoadError::Busy`] if too many
/// others are being compiled, [`LoadError::NoCompilerMemory`] if `memory` is insufficient,
/// [`LoadError::Compiler`] if the process ended without a result, [`LoadError::Cancelled`].
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
    // Its bytes are in memory already, and inspecting them needs no more.
    let content_memory = reserve(wait, memory, ByteSize::bytes(content.len() as u64))?;
    let checked =
        crate::inspect::check(&content, support, || wait.is_cancelled()).map_err(invalid)?;
    let (heaviest, model) = checked.ok_or(LoadError::Cancelled)?;
    #[cfg(not(feature = "compiler"))]
    let compiled = {
        let _ = (heaviest, model, metering, target, program, content_memory);
        Err(LoadError::NoCompiler)
    };
    #[cfg(feature = "compiler")]
    let compiled = {
        let permit = PERMITS.take(wait, wait.limit())?;
        let share = Share::of(content.len() as u64, heaviest, memory.size());
        // They are part of the share.
        drop(content_memory);
        let reserved = reserve(wait, memory, share.memory)?;
        let content = match program {
            None => content,
            Some(program) => {
                match worker::compile(program, wait, content, (metering, model), share) {
                    Ok(compiled) => return compiled,
                    Err(content) => content,
                }
            }
        };
        let threads = share.threads;
        let target = target.map(str::to_owned);
        let compiled = within(wait, wait.limit(), move || {
            let _held = (permit, reserved);
            artifact(&content, (metering, model), target.as_deref(), threads)
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

/// Waits for memory, at most as long as the compilation may take.
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

/// Compiles a component to native code that is embedded in a binary.
///
/// `path` names the component in errors, and `target` is the triple of the artifact. On x86-64, the
/// artifact requires the instructions of x86-64-v2. Limited to `time`.
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

    /// A wait without reports.
    fn wait() -> Wait<'static> {
        Wait::new(Path::new("a"), 0, &Patient, TIME)
    }

    #[test]
    fn concurrent_compilations_are_limited_by_permits() {
        static ONE: Permits = Permits::new(1);
        let moment = Duration::from_millis(10);
        let (end, ended) = mpsc::channel::<()>();
        let permit = ONE.take(&wait(), moment).unwrap();
        let compiling = move || {
            let _permit = permit;
            let _ = ended.recv();
        };
        // The wait has ended, but the compilation still runs.
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
    fn compilations_stay_within_their_share() {
        let share =
            |bytes: u64, mib| Share::of(bytes, Heaviest::default(), Some(ByteSize::mib(mib)));
        // The least memory of a server for calls and compilations.
        assert_eq!(share(4 << 20, 112), Share { threads: 1, memory: ByteSize::mib(112) });
        let light = share(1 << 20, 1152);
        assert!(light.memory < ByteSize::mib(96 + 8 * 16 + 1), "{light:?}");
        // Two of 12 MiB fit into the default at once.
        assert!(share(12 << 20, 1152).memory < ByteSize::mib(1152 / 2 + 16));
        assert_eq!(share(1 << 30, 64 << 10).memory, MEMORY);
        assert_eq!(Share::of(1, Heaviest::default(), None).memory, MEMORY);
    }

    /// A budget without free memory.
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

    /// A cancelled call.
    struct Cancelled;

    impl Waiter for Cancelled {
        fn is_over(&self) -> bool {
            true
        }
    }

    #[test]
    fn compilations_without_memory_are_busy_or_cancelled() {
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
    fn waits_for_a_hanging_compiler_end_in_time() {
        let moment = Duration::from_millis(10);
        let forever = || std::thread::sleep(Duration::from_secs(60 * 60));
        assert_eq!(
            within(&wait(), moment, forever).unwrap(),
            Err(InvalidComponent::TooSlow { limit: moment })
        );
    }

    #[test]
    fn compiler_panics_are_errors() {
        let panics = || -> u32 { panic!("on purpose") };
        let expected = InvalidComponent::Compile("the compiler panicked".into());
        assert_eq!(within(&wait(), Duration::from_secs(60), panics).unwrap(), Err(expected));
    }
}
