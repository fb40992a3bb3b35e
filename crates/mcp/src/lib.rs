//! The tools of a toolbox for any MCP client.
//!
//! One handler serves the revisions with a handshake (up to 2025-11-25) and those without
//! (2026-07-28). `rmcp` implements the protocol. This crate maps tools, outcomes and questions of
//! kitbag to it, and has the two transports: standard input and output, and HTTP.
//!
//! | module | content |
//! |---|---|
//! | `server` | the state that all connections share, and the handler behind each |
//! | `transport` | stdio and HTTP, up to a message that was read |
//! | `session` | the client of a connection: its revision, subscriptions, notifications and resume state |
//! | `methods` | the methods of the protocol |
//! | `telemetry` | metrics and traces |

mod methods;
mod server;
mod session;
mod telemetry;
#[cfg(test)]
mod tests;
mod transport;

pub use methods::outcome::ErrorForm;
pub use server::reload::log_broken;
pub use server::{KEY_BYTES, Load, Server};
#[cfg(feature = "otlp")]
pub use telemetry::otlp::{Otlp, OtlpError};
pub use transport::http::health::check_health;
pub use transport::http::is_loopback;
pub use transport::http::options::{Access, HttpOptions, PATH as HTTP_PATH};
pub use transport::http::token::{Token, TokenError};
pub use transport::stdio::StdioError;
pub use transport::stdio::input::LINE_BYTES;
pub use transport::sys::take_over_stdio;
