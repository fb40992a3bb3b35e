//! The approvals of this process, and the calls that wait for one.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kitbag_contract::Question;
use kitbag_host::{Account, StatePool};

/// The number of approvals that are remembered until the process ends. A further approval replaces
/// the oldest.
const MOST_REMEMBERED: usize = 1024;

/// The size of a waiting call in bytes, without its question.
const WAITING_BYTES: u64 = 512;

/// The digest of all values that an approval is bound to.
pub(super) type Binding = [u8; 32];

pub(crate) struct Approvals {
    remembered: Mutex<VecDeque<Binding>>,
    waiting: StatePool,
}

/// A call that was returned to a client, which may repeat the call to continue it.
struct Waiting {
    binding: Binding,
    standing: Standing,
}

/// The approval state of a call that a client continues.
#[derive(Clone)]
pub(super) enum Standing {
    Asked(Question),
    /// A person has approved the call.
    Given,
}

impl Approvals {
    pub(crate) fn new(waiting: StatePool) -> Self {
        Self { remembered: Mutex::default(), waiting }
    }

    /// Applies an approval to all calls with the same binding until the process ends.
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

    /// Keeps the state of a call for the client that returns with its ticket.
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
        // If there is no room, the person is asked again.
        let _ = self.waiting.keep(account, &id(ticket), WAITING_BYTES + question, waiting);
    }

    /// Takes the state of the call with this ticket, once. `None` if the ticket belongs to a
    /// different call.
    pub(super) fn take(&self, ticket: &str, binding: &Binding) -> Option<Standing> {
        let waiting = self.waiting.take::<Waiting>(&id(ticket))?;
        (waiting.binding == *binding).then_some(waiting.standing)
    }
}

/// Returns the id of a waiting call in the pool.
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
    fn a_ticket_is_valid_once_and_for_its_own_call() {
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
    fn waiting_calls_do_not_evict_other_clients() {
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
