//! How far a call is with its approval, and what a suspended one keeps of that.

use std::sync::Arc;

use kitbag_contract::Question;
use kitbag_host::Account;
use serde_json::{Map, Value};

use super::memory::{Approvals, Binding, Standing};

/// Under which key the answers of a suspended call hold its ticket. No question has this id.
const TICKET: &str = "kitbag/ticket";

#[derive(Default)]
pub(crate) enum Approval {
    /// Such a call needs no approval: it renders another one, or is the host's own.
    Exempt,
    #[default]
    Open,
    /// A client goes on with the call, and says that it has this ticket.
    Claimed(String),
    Asked(Box<OpenApproval>),
    /// It may be made. Where a person has said so, with what the call goes on by.
    Given(Option<Ticket>),
}

/// A question that waits for its answer.
pub(crate) struct OpenApproval {
    pub(super) question: Question,
    pub(super) ticket: Ticket,
    /// What a yes until the process ends is bound to. `None`: there is none.
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
    /// Takes the ticket out of the answers that a suspended call had.
    pub(crate) fn claimed(answers: &mut Map<String, Value>) -> Self {
        match answers.remove(TICKET) {
            Some(Value::String(ticket)) => Self::Claimed(ticket),
            _ => Self::Open,
        }
    }

    /// Adds the ticket to the answers of a call that is suspended, and keeps how far it is.
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
