//! From a component to native code: the only place that runs a compiler.
//!
//! It has an engine of its own, made for one compilation: setting Cranelift up
//! takes longer than loading a component that was compiled before, and most
//! processes compile nothing. The artifact is loaded by the engine that runs
//! it, whether it is fresh or from the cache.

use std::path::Path;

use crate::engine::Metering;
use crate::error::LoadError;

/// Native code that this process has compiled, in wasmtime's own format.
pub(crate) struct Compiled(Vec<u8>);

impl Compiled {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Compiles a component for this machine, or for any processor of a target.
///
/// `path` names the component in errors.
///
/// # Errors
///
/// [`LoadError::Invalid`] where it is no component that kitbag can run.
#[cfg(feature = "compiler")]
pub(crate) fn compile(
    path: &Path,
    content: &[u8],
    metering: Metering,
    target: Option<&str>,
) -> Result<Compiled, LoadError> {
    use crate::error::InvalidComponent;

    crate::inspect::check(content).map_err(|problem| LoadError::invalid(path, problem))?;
    let mut config = crate::engine::config(metering);
    config.enable_compiler(true);
    let engine = target
        .map_or(Ok(()), |target| config.target(target).map(drop))
        .and_then(|()| wasmtime::Engine::new(&config))
        .map_err(|error| LoadError::Engine(format!("{error:#}")))?;
    engine
        .precompile_component(content)
        .map(Compiled)
        .map_err(|error| LoadError::invalid(path, InvalidComponent::Compile(format!("{error:#}"))))
}

#[cfg(not(feature = "compiler"))]
pub(crate) fn compile(
    path: &Path,
    content: &[u8],
    _: Metering,
    _: Option<&str>,
) -> Result<Compiled, LoadError> {
    crate::inspect::check(content).map_err(|problem| LoadError::invalid(path, problem))?;
    Err(LoadError::NoCompiler)
}
