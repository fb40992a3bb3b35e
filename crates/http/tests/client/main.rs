//! The client against real servers on loopback.

mod addresses;
mod bodies;
mod caller;
mod calls;
mod decisions;
mod protocol;
mod proxies;
mod recordings;
mod redirects;
mod refusals;
mod reuse;
mod secrets;
mod tls;
