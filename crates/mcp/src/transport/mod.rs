//! Transports: bytes of a client, up to a message that was read and has memory.

pub(crate) mod http;
pub(crate) mod in_flight;
pub(crate) mod message;
pub(crate) mod stdio;
pub(crate) mod sys;
