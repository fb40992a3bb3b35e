//! The client's side of one connection, over rmcp.

mod content;
mod elicitation;
mod guard;
mod handler;
mod http;
mod lines;
mod redaction;
mod router;

pub(crate) use content::{Block, answered, block, checked_resource, message};
pub(crate) use elicitation::{accepted, question};
pub(crate) use guard::Guard;
pub(crate) use handler::{Changes, Handler};
pub(crate) use http::{BrokerClient, ClientError, grant};
pub(crate) use lines::BoundedLines;
pub(crate) use redaction::Redaction;
pub(crate) use router::{ActiveCall, Elicitation, Failure, Router};
