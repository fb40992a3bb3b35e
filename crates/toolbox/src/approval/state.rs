//! The approval state of a call, and the part of it that a suspended call keeps.

use std::sync::Arc;

use kitbag_contract::Question;
use kitbag_host::Account;
use serde_json::{Map, Value};

use super::memory::{Approvals, Binding, Standing};

/// The key of the ticket among the answers of a suspended call. No question has this id.
const TICKET: &str = "kitbag/ticket";

#[derive(Default)]
pub(crate) enum Approval {
    /// The call needs no approval: it renders another call, or is the host's own.
    Exempt,
    #[default]
    Open,
    /// A client continues the call and claims to have this ticket.
    Claimed(String),
    Asked(Box<OpenApproval>),
    /// The call may be made. If a person approved it, the ticket continues the call.
    Given(Option<Ticket>),
}

/// A question that waits for its answer.
pub(crate) struct OpenApproval {
    pub(super) question: Question,
    pub(super) ticket: Ticket,
    /// The binding of an approval until the process ends. `None` if there is no such approval.
    pub(super) remembered: Option<Binding>,
}

#[derive(Clone)]
pub(crate) struct Ticket {
    pub(super) id: String,
    pub(super) binding: Binding,
    pub(super) approvals: Arc<Approvals>,
    pub(super) account: Account,
}

impl Approval {
    /// Takes the ticket out of the answers of a suspended call.
    pub(crate) fn claimed(answers: &mut Map<String, Value>) -> Self {
        match answers.remove(TICKET) {
            Some(Value::String(ticket)) => Self::Claimed(ticket),
            _ => Self::Open,
        }
    }

    /// Adds the ticket to the answers of a call that is suspended, and keeps the state of the call.
    pub(crate) fn add_ticket(&self, answers: &mut Map<String, Value>) {
        let (ticket, standing) = match self {
            Self::Asked(asked) => (&asked.ticket, Standing::Asked(asked.question.clone())),
            Self::Given(Some(ticket)) => (ticket, Standing::Given),
            Self::Exempt | Self::Open | Self::Claimed(_) | Self::Given(None) => return,
        };
        ticket.approvals.keep(&ticket.account, &ticket.id, ticket.binding, standing);
        answers.insert(TICKET.into(), ticket.id.as_str().into());
    }
}
