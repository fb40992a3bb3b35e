//! Commands for stored data: secrets, storage, the audit log and the cache.

pub(crate) mod audit;
pub(crate) mod cache;
pub(crate) mod memory;
pub(crate) mod secret;
pub(crate) mod storage;
