//! The memory of a server, divided between its parts.

use kitbag_base::ByteSize;
use kitbag_contract::LEAST_SERVER_MEMORY;

use crate::schedule::budget::{MemoryBudget, ONE_CALL};
use crate::schedule::state_pool::StatePool;

/// Memory that a server needs while idle: its code, threads and engines, resident memory for later
/// calls, and allocator overhead.
const BASE: ByteSize = ByteSize::mib(128);

/// The budgets of a server. Each part has its own budget, so that no part waits for memory held by
/// another: a message that waits for its call never prevents that call from running.
#[derive(Clone, Debug)]
pub struct ServerMemory {
    /// Running calls and compilations: the remainder.
    pub work: MemoryBudget,
    /// Code of loaded components: an eighth of the total.
    pub components: MemoryBudget,
    /// Requests until they are answered, and answers until they are written: three sixteenths of
    /// the total.
    pub messages: MemoryBudget,
    /// State that outlives requests: a sixteenth of the total.
    pub state: StatePool,
}

impl ServerMemory {
    /// Divides the memory of a server, at least [`LEAST_SERVER_MEMORY`].
    pub fn new(total: ByteSize) -> Self {
        let total = total.max(LEAST_SERVER_MEMORY).as_u64();
        let (messages, components, state) = (total / 16 * 3, total / 8, total / 16);
        let work = total - messages - components - state - BASE.as_u64();
        Self {
            work: MemoryBudget::with_least(ByteSize::bytes(work), ONE_CALL),
            components: MemoryBudget::new(ByteSize::bytes(components)),
            messages: MemoryBudget::new(ByteSize::bytes(messages)),
            state: StatePool::new(MemoryBudget::new(ByteSize::bytes(state))),
        }
    }
}

impl Default for ServerMemory {
    /// Returns unlimited budgets, as for a single call on a command line.
    fn default() -> Self {
        let unlimited = MemoryBudget::unlimited;
        Self {
            work: unlimited(),
            components: unlimited(),
            messages: unlimited(),
            state: StatePool::default(),
        }
    }
}
