//! The memory that compilations reserve before they take it.

use kitbag_base::ByteSize;

use crate::wait::Wait;

/// A budget of memory for compilations.
pub trait CompileMemory {
    /// Memory that is reserved until this is dropped.
    type Reservation: Send + 'static;

    /// The whole budget; `None` if there is no bound.
    fn size(&self) -> Option<ByteSize>;

    /// Reserves so many bytes as soon as they are free. `None` if the wait was cancelled or took
    /// as long as the compilation may take.
    fn reserve(&self, bytes: u64, wait: &Wait<'_>) -> Option<Self::Reservation>;
}

/// No bound: each reservation succeeds at once.
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
