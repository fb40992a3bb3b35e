//! The audit log: what was called and decided, one line of JSON each, chained by hash.
//!
//! The log lies in the state directory of the user, outside of every workspace. Each line holds
//! the hash of the line before it, and a file of its own holds the hash of the last one, so that
//! a line which was changed, removed or cut off is found by [`AuditLog::verify`]. Who can replace
//! both the log and that file is not found out, unless a person keeps [`AuditLog::head`]
//! elsewhere.
//!
//! There are two chains: one of outermost calls, approvals and trust, and one of details, such as
//! inner calls and refusals. A call decides how many details it has, and cannot push the lines of
//! the first chain out of the log with them.
//!
//! Several processes write one log: each takes a lock, looks where the chain ends, and adds whole
//! lines. What is recorded is decided by `kitbag-toolbox`, and the settings by `kitbag-config`.

mod chain;
mod error;
mod head;
mod log;
mod read;
mod record;
mod since;
mod story;
mod verify;
mod writer;

pub use chain::ChainHash;
pub use error::{AuditError, Damage};
pub use head::Head;
pub use log::{AuditLog, AuditSize};
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
