//! Calls of kitbag's tools on many machines, over NATS.
//!
//! A front end puts signed calls into a queue of JetStream. A worker takes a call, runs it with its
//! own configuration and records the end of the call before it answers. `record` has the rules
//! that keep a call from being answered twice or having its effects twice.

mod connection;
mod envelope;
mod front_end;
mod identity;
mod ledger;
mod members;
mod names;
pub mod permissions;
pub mod presence;
mod queue;
pub mod record;
mod roots;
pub mod snapshot;
mod wire;
mod worker;

pub use async_nats::Client;
pub use connection::{ConnectionError, Nats, connect};
pub use envelope::{OLDEST_WIRE_VERSION, WIRE_VERSION, WireError};
pub use front_end::{FrontEnd, FrontEndCounts, FrontEndOptions};
pub use identity::{Identity, IdentityError, Purpose, is_public_key, is_signed};
pub use members::Members;
pub use names::{CallId, NameError, Names, Priority, Root, WORKSPACE_NAME_BYTES};
pub use queue::{Queue, QueueError, QueueOptions};
pub use roots::{RootError, root_of, serving};
pub use worker::{Drain, Execute, Worker, WorkerCounts, WorkerOptions};
