//! The pool of memory for calls.

use kitbag_engine::INSTANCES;
use wasmtime::{Enabled, PoolingAllocationConfig};

use crate::schedule::limiter;
use crate::schedule::queue::{Concurrency, INNER_DEPTHS, inner_calls};

/// Memory, and table memory, that the pool keeps resident for later calls: 4 MiB for each of the
/// calls that two processors run.
const RESIDENT_BYTES: usize = 96 << 20;
const RESIDENT_TABLE_BYTES: usize = 16 << 20;

/// Creates a pool with room for the maximum number of calls at each depth, plus a few components
/// that describe themselves. Each call has one memory; a component with more memories runs without
/// the pool, so that the number of calls bounds the resident memory.
///
/// The memory that a call touched is wiped and kept. The kernel reports the touched pages if it
/// can (Linux 6.7). Source of the sizes: measurements, `docs/architecture.md`.
pub(crate) fn pool(concurrency: Concurrency) -> PoolingAllocationConfig {
    const SPARE: usize = 8;
    let calls = concurrency.calls.get().saturating_add(inner_calls(concurrency) * INNER_DEPTHS);
    let calls = u32::try_from(calls.saturating_add(SPARE)).unwrap_or(u32::MAX);
    let (instances, tables) = (INSTANCES as u32, limiter::MEMORIES as u32);
    let each = |bytes: usize, slots: u32| bytes / slots as usize;
    let mut pool = PoolingAllocationConfig::new();
    // As much as all calls together may use, so that no call takes another's share. Unused parts
    // take only address space.
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
