//! Queues, threads, deadlines and memory of calls.

pub(crate) mod blocking;
pub(crate) mod budget;
pub(crate) mod compile_memory;
pub(crate) mod limiter;
pub(crate) mod queue;
pub(crate) mod server_memory;
pub(crate) mod state_pool;
pub(crate) mod threads;
pub(crate) mod timer;
