//! MCP servers whose tools kitbag offers.
//!
//! [`Servers`] has one connection to each server for all callers. A server starts at its first
//! call, ends when it is idle, and is restarted with increasing delays. Its thread owns the
//! connection and the process, so that no server can delay another.
//!
//! Everything that a server sends is bounded and untrusted: a server that floods, hangs or lies
//! fails its own calls only.

mod backoff;
mod call;
mod client;
mod connection;
mod error;
mod items;
mod listing;
mod pool;
pub mod process;
mod request;
pub mod sign_in;
mod start;
mod subscriptions;
mod target;

pub use call::{Answered, CallEvents, Round, ServerCall};
pub use error::ServerError;
pub use items::{ServerChange, ServerItems};
pub use listing::Listing;
pub use pool::{Servers, ServersOptions};
pub use request::{Completed, ReadContents, RenderedMessage, RenderedPrompt};
pub use start::{Connect, Link, ProcessFuture, Processes, RunningProcess};
pub use subscriptions::ResourceSubscription;
pub use target::{ServerTarget, TargetSecrets};
