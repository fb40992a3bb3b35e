//! Options of the HTTP server.

use std::num::NonZeroU32;
use std::time::Duration;

use kitbag_contract::SESSION_IDLE;

use super::token::Token;

/// The path of the endpoint.
pub const PATH: &str = "/mcp";

/// The clients that an HTTP server accepts, in addition to people with a token in `[serve.tokens]`
/// of the user config.
#[derive(Debug, Default)]
pub enum Access {
    /// Any client.
    #[default]
    Anyone,
    /// Clients that present this token.
    Token(Token),
    /// No others.
    People,
}

/// Options of the HTTP server.
#[derive(Debug)]
pub struct HttpOptions {
    /// The clients to accept. Default: any client.
    pub access: Access,
    /// Host names, with or without a port, by which clients may call the server, in addition to
    /// those of the loopback interface.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may call the server, such as `https://app.example.com`, in
    /// addition to its own loopback origins. Default: none.
    pub allowed_origins: Vec<String>,
    /// Maximum size of a request body in bytes. Default: 4 MiB.
    pub body_bytes: usize,
    /// Maximum number of concurrent sessions of clients that use a revision with a handshake.
    /// Default: 1,000.
    pub sessions: usize,
    /// Time after which a session without requests and open streams ends. Default: 30 minutes.
    pub session_idle: Duration,
    /// Maximum number of connections with a valid token, if a token is required. Default: 1,000. At
    /// most 512 other connections are open, and a new one replaces the oldest.
    pub connections: usize,
    /// Maximum number of requests per second from all clients. Default: 10,000.
    pub rate: NonZeroU32,
}

impl Default for HttpOptions {
    fn default() -> Self {
        const RATE: NonZeroU32 = NonZeroU32::new(10_000).expect("not zero");
        Self {
            access: Access::default(),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            body_bytes: 4 << 20,
            sessions: 1_000,
            session_idle: SESSION_IDLE,
            connections: 1_000,
            rate: RATE,
        }
    }
}
