//! From a component to native code: the only place that runs a compiler.
//!
//! It has an engine of its own, made for one compilation: setting Cranelift up
//! takes longer than loading a component that was compiled before, and most
//! processes compile nothing. The artifact is loaded by the engine that runs
//! it, whether it is fresh or from the cache.

use std::path::Path;
#[cfg(feature = "compiler")]
use std::{sync::mpsc::RecvTimeoutError, time::Duration};

use crate::engine::Metering;
#[cfg(feature = "compiler")]
use crate::error::InvalidComponent;
use crate::error::LoadError;

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

/// How long a compilation may take. One that takes longer goes on by itself to
/// its end, which the size of a component and of its functions bounds, and is
/// then forgotten.
#[cfg(feature = "compiler")]
const TIME: Duration = Duration::from_secs(60);

/// Compiles a component for this machine, or for any processor of a target.
///
/// `path` names the component in errors.
///
/// # Errors
///
/// [`LoadError::Invalid`] where it is no component that kitbag can run.
pub(crate) fn compile(
    path: &Path,
    content: Vec<u8>,
    metering: Metering,
    target: Option<&str>,
) -> Result<Compiled, LoadError> {
    crate::inspect::check(&content).map_err(|problem| LoadError::invalid(path, problem))?;
    #[cfg(not(feature = "compiler"))]
    let compiled = {
        let _ = (metering, target);
        Err(LoadError::NoCompiler)
    };
    #[cfg(feature = "compiler")]
    let compiled = {
        let engine =
            engine(metering, target).map_err(|error| LoadError::Engine(format!("{error:#}")))?;
        let compiled = within(TIME, move || engine.precompile_component(&content))
            .map_err(|error| LoadError::Engine(error.to_string()))?;
        compiled
            .and_then(|artifact| {
                artifact.map_err(|error| InvalidComponent::Compile(format!("{error:#}")))
            })
            .map(Compiled)
            .map_err(|problem| LoadError::invalid(path, problem))
    };
    compiled
}

/// The engine for one compilation.
#[cfg(feature = "compiler")]
fn engine(metering: Metering, target: Option<&str>) -> wasmtime::Result<wasmtime::Engine> {
    let mut config = crate::engine::config(metering);
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
    time: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<Result<T, InvalidComponent>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::Builder::new()
        .name("kitbag-compile".into())
        // What a main thread has.
        .stack_size(8 << 20)
        .spawn(move || sender.send(work()))?;
    Ok(receiver.recv_timeout(time).map_err(|error| match error {
        RecvTimeoutError::Timeout => InvalidComponent::TooSlow { limit: time },
        RecvTimeoutError::Disconnected => InvalidComponent::Compile("the compiler panicked".into()),
    }))
}

#[cfg(all(test, feature = "compiler"))]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_a_compiler_that_does_not_end() {
        let moment = Duration::from_millis(10);
        let forever = || std::thread::sleep(Duration::from_secs(60 * 60));
        assert_eq!(
            within(moment, forever).unwrap(),
            Err(InvalidComponent::TooSlow { limit: moment })
        );
    }

    #[test]
    fn a_compiler_that_panics_is_an_error() {
        let panics = || -> u32 { panic!("on purpose") };
        let expected = InvalidComponent::Compile("the compiler panicked".into());
        assert_eq!(within(Duration::from_secs(60), panics).unwrap(), Err(expected));
    }
}
