//! The engines that run components, and their configuration.

#[cfg(target_arch = "x86_64")]
use std::sync::Arc;

use wasmtime::{Config, Engine, WasmBacktraceDetails};

use crate::limits::STACK_BYTES;
use crate::metering::Metering;
use crate::model::Model;
#[cfg(target_arch = "x86_64")]
use crate::sys::InPlace;

/// The engines that can run a component.
pub struct Engines<'a> {
    /// The engine for most components.
    pub first: &'a Engine,
    /// Starts an engine for components that do not fit into the first one.
    pub other: &'a (dyn Fn() -> Option<&'a Engine> + Sync),
    /// Starts the engine for components that need [`Model::Async`].
    pub asynchronous: &'a (dyn Fn() -> Result<&'a Engine, String> + Sync),
}

impl Engines<'_> {
    /// Loads a component for the engine of its model. With [`Model::Basic`], that is the first
    /// engine, or the other if the first engine's pool has no room for such a component.
    pub fn load(
        &self,
        model: Model,
        load: impl Fn(&Engine) -> wasmtime::Result<wasmtime::component::Component>,
    ) -> wasmtime::Result<wasmtime::component::Component> {
        if model == Model::Async {
            return load((self.asynchronous)().map_err(wasmtime::Error::msg)?);
        }
        load(self.first).or_else(|error| match (self.other)() {
            Some(engine) => load(engine),
            None => Err(error),
        })
    }
}

/// The name of the settings below, for the key of the disk cache. Must be changed if [`config`]
/// changes the compiled code.
pub(crate) const SETTINGS: &str = "wasmtime 48; epoch; no address map; no unwind info; 6";

/// Returns the configuration of an engine for a part of the component model.
pub fn config_of(metering: Metering, model: Model) -> Config {
    let mut config = config(metering);
    // Enables asynchronous functions, streams and futures, but not the unfinished parts of the
    // proposal; see `inspect::features`.
    config.concurrency_support(model == Model::Async);
    config
}

/// Returns the configuration of an engine for [`Model::Basic`], both at build time and at run time.
/// Engines that run calls do not compile; see `compile`.
pub fn config(metering: Metering) -> Config {
    let mut config = Config::new();
    #[cfg(feature = "compiler")]
    config.enable_compiler(false);
    config
        // Deadlines and cancellation; see `timer`.
        .epoch_interruption(true)
        .consume_fuel(metering == Metering::Fuel)
        // A guest's native addresses are never shown, and both tables take space and time.
        .generate_address_map(false)
        .native_unwind_info(false)
        // Explicit, since `WASMTIME_BACKTRACE_DETAILS` in a user's environment would otherwise
        // change the engine, so that the embedded artifacts may not load.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .wasm_backtrace_max_frames(None)
        // No component of WASI 0.2 needs it.
        .concurrency_support(false)
        // Features that no tool needs are disabled to reduce the attack surface: in wasmtime
        // 48.0.8, a type of the garbage collection proposal aborts the process
        // (GHSA-rc4p-x33f-vpr2), and 64-bit memories and tables had similar faults.
        .wasm_gc(false)
        .wasm_memory64(false)
        .wasm_wide_arithmetic(false)
        // The same result on every machine.
        .relaxed_simd_deterministic(true)
        .max_wasm_stack(STACK_BYTES);
    // On other processors, embedded artifacts are copied; see `artifact`.
    #[cfg(target_arch = "x86_64")]
    config.with_custom_code_memory(Some(Arc::new(InPlace)));
    config
}
