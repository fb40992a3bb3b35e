//! Calls of kitbag's tools on many machines, over NATS.
//!
//! A front end puts signed calls into a queue of JetStream. A worker takes a call, runs it with its
//! own configuration and records the end of the call before it answers. `record` has the rules
//! that keep a call from being answered twice or having its effects twice.

mod connection;
mod identity;
mod members;
mod names;
pub mod record;

pub use connection::{ConnectionError, Nats, connect};
pub use identity::{Identity, IdentityError, Purpose, is_public_key, is_signed};
pub use members::Members;
pub use names::{CallId, NameError, Names, Priority, Root, WORKSPACE_NAME_BYTES};
