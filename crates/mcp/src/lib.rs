//! The tools of a toolbox for any MCP client.
//!
//! One handler speaks the revisions with a handshake (up to 2025-11-25) and
//! those without (2026-07-28). The protocol itself is `rmcp`'s; here is what a
//! tool, an outcome and a question of kitbag become in it, and the two ways in:
//! standard input and output, and HTTP.

mod allowed_hosts;
mod background;
mod call;
mod catalog;
mod connection;
mod content;
mod directories;
mod era;
mod handler;
mod handshake;
mod http;
mod keep_awake;
mod kept;
mod knowledge;
mod message;
mod metrics;
mod notifications;
#[cfg(feature = "otlp")]
mod otlp;
mod outcome;
mod output;
mod page;
mod pending;
mod question;
mod rate;
mod reload;
mod served;
mod server;
mod session;
mod slot;
mod state_codec;
mod stdio;
mod subscription;
mod sys;
mod token;
mod trace;
#[cfg(feature = "otlp")]
mod trace_context;
mod trust;

pub use http::{HttpOptions, PATH as HTTP_PATH, is_loopback};
#[cfg(feature = "otlp")]
pub use otlp::{Otlp, OtlpError};
pub use reload::log_broken;
pub use server::{KEY_BYTES, Load, Server};
pub use stdio::{LINE_BYTES, StdioError};
pub use sys::take_over_stdio;
pub use token::{Token, TokenError};
