//! Runs the compiler on threads of this process.

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::code::CompiledCode;
use crate::artifact::X86_64_FEATURES;
use crate::engines::config_of;
use crate::load_error::InvalidComponent;
use crate::metering::Metering;
use crate::model::Model;
use crate::translate::translate;
use crate::wait::Wait;

/// The stack size of a compiling thread: that of a main thread.
pub(super) const STACK_BYTES: usize = 8 << 20;

/// Translates a core module to a component, compiles on up to `threads` threads and waits for the
/// result.
///
/// # Errors
///
/// If no threads or engine can be created.
pub(super) fn artifact(
    content: &[u8],
    (metering, model): (Metering, Model),
    target: Option<&str>,
    threads: usize,
) -> Result<Result<CompiledCode, InvalidComponent>, String> {
    let engine = engine(metering, model, target).map_err(|error| format!("{error:#}"))?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .stack_size(STACK_BYTES)
        .thread_name(|_| "kitbag-compile".into())
        .build()
        .map_err(|error| error.to_string())?;
    let content = match translate(content) {
        Ok(content) => content,
        Err(problem) => return Ok(Err(problem)),
    };
    let artifact = pool.install(|| engine.precompile_component(&content));
    Ok(artifact
        .map(|bytes| CompiledCode::new(bytes, model))
        .map_err(|error| InvalidComponent::Compile(format!("{error:#}"))))
}

/// Creates the engine for one compilation.
fn engine(
    metering: Metering,
    model: Model,
    target: Option<&str>,
) -> wasmtime::Result<wasmtime::Engine> {
    let mut config = config_of(metering, model);
    config.enable_compiler(true);
    if let Some(target) = target {
        config.target(target)?;
        if target.starts_with("x86_64") {
            for feature in X86_64_FEATURES {
                let flag = format!("has_{}", feature.replace('.', ""));
                // SAFETY: the flags name instructions of the processor, and an artifact that was
                // compiled with them is loaded only on a processor that has them: wasmtime
                // checks it, and `EmbeddedArtifact::native` before that.
                #[expect(unsafe_code, reason = "flags of Cranelift")]
                unsafe {
                    config.cranelift_flag_enable(&flag)
                };
            }
        }
    }
    wasmtime::Engine::new(&config)
}

/// Runs work on a separate thread and waits for it at most this long. A panic is converted to an
/// error. Fails if no thread can be created.
pub(super) fn within<T: Send + 'static>(
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
