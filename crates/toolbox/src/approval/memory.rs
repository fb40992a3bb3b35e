//! What was approved in this process, and what waits for it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kitbag_contract::Question;
use kitbag_host::{Account, StatePool};

/// How many approvals count until the process ends; where one more comes, the oldest goes.
const MOST_REMEMBERED: usize = 1024;

/// The bytes that a waiting call takes besides its question.
const WAITING_BYTES: u64 = 512;

/// The digest of everything that an approval is bound to.
pub(super) type Binding = [u8; 32];

pub(crate) struct Approvals {
    remembered: Mutex<VecDeque<Binding>>,
    waiting: StatePool,
}

/// A call that has gone to a client, which may make it again to go on.
struct Waiting {
    binding: Binding,
    standing: Standing,
}

/// How far a call is that a client goes on with.
#[derive(Clone)]
pub(super) enum Standing {
    Asked(Question),
    /// A person has said yes.
    Given,
}

impl Approvals {
    pub(crate) fn new(waiting: StatePool) -> Self {
        Self { remembered: Mutex::default(), waiting }
    }

    /// Has a yes count for all calls that are bound alike, until the process ends.
    pub(super) fn remember(&self, binding: Binding) {
        let mut remembered = lock(&self.remembered);
        if !remembered.contains(&binding) {
            if remembered.len() >= MOST_REMEMBERED {
                remembered.pop_front();
            }
            remembered.push_back(binding);
        }
    }

    pub(super) fn is_remembered(&self, binding: &Binding) -> bool {
        lock(&self.remembered).contains(binding)
    }

    /// Keeps how far a call is, for the client that comes back with its ticket.
    pub(super) fn keep(
        &self,
        account: &Account,
        ticket: &str,
        binding: Binding,
        standing: Standing,
    ) {
        let question = match &standing {
            Standing::Asked(question) => question.size() as u64,
            Standing::Given => 0,
        };
        let waiting = Waiting { binding, standing };
        // Without room the person is asked again.
        let _ = self.waiting.keep(account, &id(ticket), WAITING_BYTES + question, waiting);
    }

    /// Takes how far the call is that has this ticket, once. `None` where it is another call.
    pub(super) fn take(&self, ticket: &str, binding: &Binding) -> Option<Standing> {
        let waiting = self.waiting.take::<Waiting>(&id(ticket))?;
        (waiting.binding == *binding).then_some(waiting.standing)
    }
}

/// The id of a call that waits, in the pool.
fn id(ticket: &str) -> String {
    format!("approval/{ticket}")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approvals() -> Approvals {
        Approvals::new(StatePool::default())
    }

    #[test]
    fn a_ticket_counts_once_and_for_its_call_alone() {
        let approvals = approvals();
        let keep = || approvals.keep(&Account::default(), "a", [1; 32], Standing::Given);
        keep();
        assert!(approvals.take("b", &[1; 32]).is_none());
        assert!(approvals.take("a", &[1; 32]).is_some());
        assert!(approvals.take("a", &[1; 32]).is_none());
        keep();
        assert!(approvals.take("a", &[2; 32]).is_none());
        assert!(approvals.take("a", &[1; 32]).is_none(), "what was tried for another call is gone");
    }

    #[test]
    fn many_calls_that_wait_push_out_none_of_another_client() {
        let approvals = approvals();
        let keep = |client: &str, ticket: &str| {
            let account = Account::of_client(client).charged_to("write_file");
            approvals.keep(&account, ticket, [0; 32], Standing::Given);
        };
        keep("honest", "honest");
        (0..2_000).for_each(|number| keep("greedy", &number.to_string()));
        assert!(approvals.take("honest", &[0; 32]).is_some());
        assert!(approvals.take("0", &[0; 32]).is_none());
        assert!(approvals.take("1999", &[0; 32]).is_some());
    }

    #[test]
    fn remembered_approvals_are_bounded() {
        let approvals = approvals();
        let binding = |number: usize| {
            let mut binding = [0; 32];
            binding[..8].copy_from_slice(&number.to_le_bytes());
            binding
        };
        (0..=MOST_REMEMBERED).for_each(|number| approvals.remember(binding(number)));
        assert!(!approvals.is_remembered(&binding(0)));
        assert!(approvals.is_remembered(&binding(1)));
    }
}
