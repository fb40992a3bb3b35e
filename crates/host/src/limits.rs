//! The fixed limits of the host, and the error that names one.

use kitbag_base::format_duration;
use kitbag_base::{ARGUMENTS_BYTES, ByteSize};
use kitbag_contract::{LimitKind, Limits};
use kitbag_engine::{INSTANCES, STACK_BYTES};

use crate::error::CallError;
use crate::schedule::limiter::{MEMORIES, TABLE_ELEMENTS};

/// Number of handles that a guest may hold at once. Most hold a file descriptor of the host; a
/// process has 1,024 by default.
pub(crate) const HANDLES: usize = 512;

/// Maximum number of random bytes per request.
pub(crate) const RANDOM_BYTES: u64 = 1 << 20;

/// Maximum data that the host copies from a guest at once (an answer, or an argument of a host
/// function), unless the output limit is larger or the guest's own memory is smaller.
pub(crate) const HOST_DATA: ByteSize = ByteSize::mib(16);

/// Returns the maximum data that the host copies at once from a guest with these limits. Larger
/// than the output limit, so that a longer answer can be truncated.
pub(crate) fn host_data(limits: &Limits) -> ByteSize {
    let output = ByteSize::bytes(limits.output.as_u64().saturating_mul(2));
    limits.memory.min(HOST_DATA.max(output))
}

/// A host function of ours refused the guest's request.
#[derive(Debug, thiserror::Error)]
#[error("a limit was reached")]
pub(crate) struct LimitReached(pub(crate) LimitKind);

/// Returns the error for a limit, with its value in a readable form.
pub(crate) fn exceeded(kind: LimitKind, limits: &Limits) -> CallError {
    let limit = match kind {
        LimitKind::Memory => limits.memory.to_string(),
        LimitKind::Time => format_duration(limits.time).to_string(),
        LimitKind::Arguments => ByteSize::bytes(ARGUMENTS_BYTES as u64).to_string(),
        LimitKind::Stack => ByteSize::bytes(STACK_BYTES as u64).to_string(),
        LimitKind::Table => format!("{TABLE_ELEMENTS} elements"),
        LimitKind::Handles => format!("{HANDLES} handles"),
        LimitKind::Random => format!("{} at once", ByteSize::bytes(RANDOM_BYTES)),
        LimitKind::HostData => host_data(limits).to_string(),
        LimitKind::Instances => format!("{INSTANCES} instances, {MEMORIES} memories or tables"),
        LimitKind::Written => limits.written.to_string(),
        LimitKind::Fuel => limits.fuel.unwrap_or_default().to_string(),
    };
    CallError::Limit { kind, limit }
}
