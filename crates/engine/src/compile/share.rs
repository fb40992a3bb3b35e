//! The share of this machine for a compilation.

use kitbag_base::ByteSize;

use super::in_process::STACK_BYTES;
use crate::inspect::Heaviest;

/// Maximum number of threads that compile one component.
const THREADS: usize = 16;

/// The memory limit of a compilation if the server has none. The worst component that is accepted
/// takes 1.0 GiB.
pub(super) const MEMORY: ByteSize = ByteSize::mib(2 << 10);

/// The share of this machine for a compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) threads: usize,
    pub(super) memory: ByteSize,
}

impl Share {
    /// Returns the share for a component of this size, out of a budget.
    pub(super) fn of(bytes: u64, heaviest: Heaviest, budget: Option<ByteSize>) -> Self {
        let at_once = heaviest.at_once().max(1);
        let threads = processors().min(at_once).min(THREADS);
        let Some(budget) = budget else { return Self { threads, memory: MEMORY } };
        let most = budget.min(MEMORY).as_u64();
        let memory = |threads| needed(bytes, threads, at_once);
        let threads = (1..=threads).rev().find(|n| memory(*n) <= most).unwrap_or(1);
        Self { threads, memory: ByteSize::bytes(memory(threads).min(most)) }
    }
}

/// Returns the number of processors of this process.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the maximum memory of a compilation in bytes. Measured: 27 MiB for 0.2 MiB of ordinary
/// code, 63 MiB for 2 MiB, 374 MiB for 18 MiB, and 1.0 GiB for the heaviest function.
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
