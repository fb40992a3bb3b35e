//! The fixed limits of the host, and the error that names one.

use kitbag_base::format_duration;
use kitbag_base::{ARGUMENTS_BYTES, ByteSize};
use kitbag_contract::{LimitKind, Limits};
use kitbag_engine::{INSTANCES, STACK_BYTES};

use crate::error::CallError;
use crate::schedule::limiter::{MEMORIES, TABLE_ELEMENTS};

/// Handles that a guest holds at once. Most hold a file descriptor of the
/// host's, of which a process has 1,024 by default.
pub(crate) const HANDLES: usize = 512;

/// The most random bytes that a guest gets at once.
pub(crate) const RANDOM_BYTES: u64 = 1 << 20;

/// The most that the host copies of what a guest hands over at once, an answer or an
/// argument of a host function, where neither the output limit asks for more nor the
/// guest's own memory is less.
const HOST_DATA: ByteSize = ByteSize::mib(16);

/// The most that the host copies at once of what a guest with these limits hands over.
/// It is more than the output limit, so that a longer answer can be cut.
pub(crate) fn host_data(limits: &Limits) -> ByteSize {
    let output = ByteSize::bytes(limits.output.as_u64().saturating_mul(2));
    limits.memory.min(HOST_DATA.max(output))
}

/// A host function of ours refused what the guest asked for.
#[derive(Debug, thiserror::Error)]
#[error("a limit was reached")]
pub(crate) struct LimitReached(pub(crate) LimitKind);

/// The error of a limit, with its value as a person writes it.
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
