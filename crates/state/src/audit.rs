//! The audit log: calls and decisions, one line of JSON each, chained by hash.
//!
//! The log is in the user's state directory, outside every workspace. Each line has the hash of the
//! previous line, and a separate file has the hash of the last one, so that [`AuditLog::verify`]
//! finds changed, removed and truncated lines. An attacker who can replace both the log and that
//! file is not detected, unless a person keeps [`AuditLog::head`] elsewhere.
//!
//! There are two chains: one for outermost calls, approvals and trust, and one for details, such as
//! nested calls and refusals. A call controls the number of its details, but cannot push lines of
//! the first chain out of the log with them.
//!
//! Several processes write one log: each takes a lock, finds the end of the chain, and appends
//! whole lines. `kitbag-toolbox` decides which events are recorded, and `kitbag-config` reads the
//! settings.

mod chain;
mod error;
mod head;
mod log;
mod part;
mod read;
mod record;
mod since;
mod story;
mod verify;
mod writer;

pub use chain::ChainHash;
pub use error::{AuditError, Damage};
pub use head::Head;
pub use log::AuditLog;
pub use part::AuditSize;
pub use read::{AuditEntries, AuditEntry};
pub use record::{
    ApprovalEvent, AuditEvent, CallEvent, CallHead, ClientEvent, PathsEvent, RefusalEvent,
    RemovedEvent, RequestEvent, StartEvent, SummaryEvent, TrustEvent,
};
pub use since::{SinceError, since};
pub use story::{OpenCalls, Story};
pub use verify::Verification;
pub use writer::{Auditor, Syncing, Writing};

#[cfg(test)]
mod tests;
