//! Memory that compilations reserve in advance.

use kitbag_base::ByteSize;

use crate::wait::Wait;

/// A memory budget for compilations.
pub trait CompileMemory {
    /// A reservation, which ends when this is dropped.
    type Reservation: Send + 'static;

    /// Returns the whole budget; `None` if there is no limit.
    fn size(&self) -> Option<ByteSize>;

    /// Reserves memory as soon as it is free. `None` if the wait was cancelled or took as long as
    /// the compilation may take.
    fn reserve(&self, bytes: u64, wait: &Wait<'_>) -> Option<Self::Reservation>;
}

/// A budget without limit: every reservation succeeds immediately.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unlimited;

impl CompileMemory for Unlimited {
    type Reservation = ();

    fn size(&self) -> Option<ByteSize> {
        None
    }

    fn reserve(&self, _: u64, _: &Wait<'_>) -> Option<()> {
        Some(())
    }
}
