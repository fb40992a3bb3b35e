//! The engines that run components, and their one configuration.

#[cfg(target_arch = "x86_64")]
use std::sync::Arc;

use wasmtime::{Config, Enabled, Engine, PoolingAllocationConfig, WasmBacktraceDetails};

use crate::limiter;
use crate::limits::STACK_BYTES;
use crate::metering::Metering;
use crate::queue::{Concurrency, INNER_DEPTHS, inner_calls};
#[cfg(target_arch = "x86_64")]
use crate::sys::InPlace;

/// The engines that may run a component.
pub(crate) struct Engines<'a> {
    pub(crate) first: &'a Engine,
    pub(crate) other: &'a (dyn Fn() -> Option<&'a Engine> + Sync),
}

impl Engines<'_> {
    /// Loads a component for the first engine, or for the other where the first has
    /// no room in its pool for one of that kind.
    pub(crate) fn load(
        &self,
        load: impl Fn(&Engine) -> wasmtime::Result<wasmtime::component::Component>,
    ) -> wasmtime::Result<wasmtime::component::Component> {
        load(self.first).or_else(|error| match (self.other)() {
            Some(engine) => load(engine),
            None => Err(error),
        })
    }
}

/// Names the settings below, for the key of the disk cache. To be changed
/// whenever [`config`] changes what is compiled.
pub(crate) const SETTINGS: &str = "wasmtime 48; epoch; no address map; no unwind info; 5";

/// The one configuration of an engine, at build time and at run time. What runs
/// calls compiles nothing; see `compile`.
pub(crate) fn config(metering: Metering) -> Config {
    let mut config = Config::new();
    #[cfg(feature = "compiler")]
    config.enable_compiler(false);
    config
        // Deadlines and cancellation; see `timer`.
        .epoch_interruption(true)
        .consume_fuel(metering == Metering::Fuel)
        // A guest's native addresses are never shown, and both take space and time.
        .generate_address_map(false)
        .native_unwind_info(false)
        // Said outright because `WASMTIME_BACKTRACE_DETAILS` in a user's
        // environment would otherwise change the engine and with it whether the
        // embedded artifacts load.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .wasm_backtrace_max_frames(None)
        // No component of WASI 0.2 needs it.
        .concurrency_support(false)
        // What no tool needs is not there to be attacked: in wasmtime 48.0.8 a
        // type from the proposal on garbage collection aborts the process
        // (GHSA-rc4p-x33f-vpr2), and 64-bit memories and tables have had their
        // share of such faults.
        .wasm_gc(false)
        .wasm_memory64(false)
        .wasm_wide_arithmetic(false)
        // The same result on every machine.
        .relaxed_simd_deterministic(true)
        .max_wasm_stack(STACK_BYTES);
    // Elsewhere embedded artifacts are copied; see `artifact`.
    #[cfg(target_arch = "x86_64")]
    config.with_custom_code_memory(Some(Arc::new(InPlace)));
    config
}

/// How much memory, and of tables, the pool keeps for the next calls altogether:
/// 4 MiB for each of the calls that two processors run.
const RESIDENT_BYTES: usize = 96 << 20;
const RESIDENT_TABLE_BYTES: usize = 16 << 20;

/// Room for as many calls as run at once, at each depth, and a few that are asked to
/// describe themselves meanwhile. Each has one memory; a component with more of them runs
/// without the pool, so that what stays behind is bounded by the number of calls.
///
/// What a call has touched of its memory is wiped and kept; the kernel is asked
/// which pages that were, where it can tell (Linux 6.7). Source of the sizes:
/// measurements, `docs/architecture.md`.
pub(crate) fn pool(concurrency: Concurrency) -> PoolingAllocationConfig {
    const SPARE: usize = 8;
    let calls = concurrency.calls.get().saturating_add(inner_calls(concurrency) * INNER_DEPTHS);
    let calls = u32::try_from(calls.saturating_add(SPARE)).unwrap_or(u32::MAX);
    let (instances, tables) = (limiter::INSTANCES as u32, limiter::MEMORIES as u32);
    let each = |bytes: usize, slots: u32| bytes / slots as usize;
    let mut pool = PoolingAllocationConfig::new();
    // As much as every call at once may have, so that none takes another's. Of
    // what is not used there is nothing but addresses.
    pool.total_component_instances(calls)
        .total_stacks(calls)
        .total_core_instances(calls.saturating_mul(instances))
        .total_memories(calls)
        .total_tables(calls.saturating_mul(tables))
        .max_core_instances_per_component(instances)
        .max_memories_per_component(1)
        .max_tables_per_component(tables)
        .max_tables_per_module(tables)
        .max_memories_per_module(1)
        .max_component_instance_size(1 << 20)
        .max_core_instance_size(1 << 20)
        .table_elements(limiter::TABLE_ELEMENTS)
        .linear_memory_keep_resident(each(RESIDENT_BYTES, calls).min(4 << 20))
        .table_keep_resident(each(RESIDENT_TABLE_BYTES, calls.saturating_mul(tables)).min(1 << 16))
        .pagemap_scan(Enabled::Auto);
    pool
}
