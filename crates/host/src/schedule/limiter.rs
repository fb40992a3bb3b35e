//! Limits on a guest's allocations.

use kitbag_contract::LimitKind;
use kitbag_engine::INSTANCES;
use wasmtime::ResourceLimiter;

/// Maximum number of elements in all tables of one call. A guest's function table has a few
/// thousand; an element takes one pointer in the host.
pub(crate) const TABLE_ELEMENTS: usize = 100_000;

/// Maximum number of memories, and of tables, of one component.
pub(crate) const MEMORIES: usize = 16;

/// Grants or refuses growth, and remembers the last refusal.
///
/// A guest whose allocation is refused usually ends with an invalid instruction; only the limiter
/// knows the reason.
#[derive(Debug)]
pub(crate) struct Limiter {
    memory_bytes: usize,
    memory_used: usize,
    table_used: usize,
    refused: Option<LimitKind>,
}

impl Limiter {
    pub(crate) fn new(memory_bytes: usize) -> Self {
        Self { memory_bytes, memory_used: 0, table_used: 0, refused: None }
    }

    /// Returns the linear memory of all instances, in bytes.
    pub(crate) fn memory_used(&self) -> usize {
        self.memory_used
    }

    /// Returns the limit that was refused last, if any.
    pub(crate) fn refused(&self) -> Option<LimitKind> {
        self.refused
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // `current` is part of `memory_used`: the limiter is called for every memory, including
        // its initial size.
        let used = (self.memory_used - current).saturating_add(desired);
        if used > self.memory_bytes {
            self.refused = Some(LimitKind::Memory);
            return Ok(false);
        }
        self.memory_used = used;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let used = (self.table_used - current).saturating_add(desired);
        if used > TABLE_ELEMENTS {
            self.refused = Some(LimitKind::Table);
            return Ok(false);
        }
        self.table_used = used;
        Ok(true)
    }

    fn instances(&self) -> usize {
        INSTANCES
    }

    fn tables(&self) -> usize {
        MEMORIES
    }

    fn memories(&self) -> usize {
        MEMORIES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_counted_over_all_memories() {
        let mut limiter = Limiter::new(100);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(!limiter.memory_growing(0, 60, None).unwrap());
        assert_eq!(limiter.refused(), Some(LimitKind::Memory));
        assert!(limiter.memory_growing(0, 40, None).unwrap());
        assert!(!limiter.memory_growing(40, 41, None).unwrap());
        assert_eq!(limiter.memory_used(), 100);
    }

    #[test]
    fn an_overflowing_request_is_refused() {
        let mut limiter = Limiter::new(usize::MAX - 1);
        assert!(limiter.memory_growing(0, 10, None).unwrap());
        assert!(!limiter.memory_growing(0, usize::MAX, None).unwrap());
    }

    #[test]
    fn tables_are_counted_together() {
        let mut limiter = Limiter::new(0);
        assert!(limiter.table_growing(0, TABLE_ELEMENTS, None).unwrap());
        assert!(!limiter.table_growing(0, 1, None).unwrap());
        assert_eq!(limiter.refused(), Some(LimitKind::Table));
    }
}
