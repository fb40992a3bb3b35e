//! Memory for compilations, reserved from the memory of calls.

use kitbag_base::ByteSize;
use kitbag_engine::{CompileMemory, Wait};

use crate::schedule::blocking::block_on;
use crate::schedule::budget::{MemoryBudget, Reservation};

impl CompileMemory for MemoryBudget {
    type Reservation = Reservation;

    fn size(&self) -> Option<ByteSize> {
        self.size()
    }

    fn reserve(&self, bytes: u64, wait: &Wait<'_>) -> Option<Reservation> {
        if let Some(reserved) = self.reserve(bytes) {
            return Some(reserved);
        }
        let mut waiting = Box::pin(self.wait(bytes));
        wait.until(wait.limit(), |slice| {
            let waited =
                block_on(|| async { tokio::time::timeout(slice, waiting.as_mut()).await.ok() });
            waited.ok()??
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::call::context::RunContext;

    #[test]
    fn a_compilation_waits_for_memory_until_it_is_cancelled() {
        let time = Duration::from_secs(60);
        let memory = MemoryBudget::new(ByteSize::mib(8));
        let whole = 8 << 20;
        let reserve = |context: &RunContext, time| {
            let wait = Wait::new(Path::new("a"), 0, context, time);
            CompileMemory::reserve(&memory, whole, &wait).is_some()
        };
        let held = memory.reserve(4 << 20).unwrap();
        let cancelled = RunContext::default();
        cancelled.cancellation.cancel();
        assert!(!reserve(&cancelled, time));
        assert!(!reserve(&RunContext::default(), Duration::ZERO));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| reserve(&RunContext::default(), time));
            drop(held);
            assert!(waiting.join().unwrap());
        });
        assert_eq!(memory.reserved(), ByteSize::bytes(0));
    }
}
