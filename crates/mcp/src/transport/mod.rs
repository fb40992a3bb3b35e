//! Transports: from the bytes of a client to a parsed message with reserved memory.

pub(crate) mod http;
pub(crate) mod in_flight;
pub(crate) mod message;
pub(crate) mod stdio;
pub(crate) mod sys;
