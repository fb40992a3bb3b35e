//! Connections of tools: the only crate that opens any for them.
//!
//! A [`Client`] belongs to a process, and [`Requests`] to one call of a tool. Each request, and
//! each hop of a redirect, is first checked against the grants; then its host is resolved, every
//! address is checked, and exactly the checked address is connected to. `kitbag-policy` decides
//! which requests are allowed, and `kitbag-host` provides the guest interface.
//!
//! Nothing is set up before the first request that a grant allows: no thread, no resolver and no
//! root certificates.

mod active_request;
mod body;
mod call;
mod client;
mod connect;
mod dial;
mod error;
mod exchange;
mod headers;
mod inspected_body;
mod io;
mod lease;
mod outgoing_request;
mod pool;
mod proxy;
mod recordings;
mod redirect;
mod request_body;
mod requests;
mod resolve;
mod secrets;
mod shares;
mod tls;

pub use body::IncomingBody;
pub use call::{CallLimits, FailedConnection, RefusedRequest, RequestRecord, RequestTimes};
pub use client::{Client, ClientOptions};
pub use error::{BoxError, RequestError, TimePhase};
pub use kitbag_policy::http::{Direct, DirectError, Proxy, ProxyError, ProxyRules};
pub use outgoing_request::OutgoingBody;
pub use recordings::{RecordedResponse, Recordings};
pub use requests::Requests;
pub use resolve::Nameservers;
pub use shares::{Account, Share, Shares};
pub use tls::{Roots, RootsError};
