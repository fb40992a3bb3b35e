//! Real servers on loopback, for the tests of everything that opens connections.
//!
//! Each server has its own thread and port, behaves according to its [`Behaviour`], and records
//! connections and requests. It stops when it is dropped.
//!
//! ```
//! use kitbag_test_servers::{Behaviour, Server};
//!
//! let server = Server::start(Behaviour::Echo);
//! assert!(server.url().starts_with("http://127.0.0.1:"));
//! assert_eq!(server.seen().connections, 0);
//! ```
//!
//! No test waits for a fixed time: slow bodies are sent by the test ([`Server::send`]), and tests
//! wait for events ([`Server::wait_for_requests`]).

mod behaviour;
mod bomb;
mod dns;
mod http;
mod nats;
mod oauth;
mod raw;
mod registry;
mod runtime;
mod seen;
mod server;
mod sigstore;
#[cfg(test)]
mod tests;
mod tls;

pub use behaviour::{Answer, Behaviour, Coding};
pub use dns::{Dns, DnsAnswer, DnsQuestion, DnsRecord};
pub use nats::NatsServer;
pub use oauth::{OAuthServer, OAuthState};
pub use registry::{OciRegistry, signing_key};
pub use seen::{Seen, SeenRequest};
pub use server::Server;
pub use sigstore::{ISSUED, Keyless, Sigstore, VALID};
pub use tls::{Authority, Tls};
