//! What was approved in this process, and what waits for it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kitbag_contract::Question;

/// How many approvals count until the process ends; where one more comes, the oldest goes.
const MOST_REMEMBERED: usize = 1024;

/// How many calls wait that have gone to a client; where one more comes, the oldest goes.
const MOST_WAITING: usize = 256;

/// How long such a call waits, and how long an approval counts for the rest of its call.
const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// The digest of everything that an approval is bound to.
pub(super) type Binding = [u8; 32];

/// The approvals of one process.
#[derive(Default)]
pub(crate) struct Approvals {
    remembered: Mutex<VecDeque<Binding>>,
    waiting: Mutex<VecDeque<Waiting>>,
}

/// A call that has gone to a client, which may make it again to go on.
struct Waiting {
    ticket: String,
    binding: Binding,
    standing: Standing,
    since: Instant,
}

/// How far a call is that a client goes on with.
#[derive(Clone)]
pub(super) enum Standing {
    /// A person is asked this.
    Asked(Question),
    /// A person has said yes.
    Given,
}

impl Approvals {
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

    /// Whether such a call was allowed until the process ends.
    pub(super) fn is_remembered(&self, binding: &Binding) -> bool {
        lock(&self.remembered).contains(binding)
    }

    /// Keeps how far a call is, for the client that comes back with its ticket.
    pub(super) fn keep(&self, ticket: &str, binding: Binding, standing: Standing) {
        let mut waiting = lock(&self.waiting);
        waiting.retain(|it| it.ticket != ticket && it.since.elapsed() < LIFETIME);
        if waiting.len() >= MOST_WAITING {
            waiting.pop_front();
        }
        let (ticket, since) = (ticket.to_owned(), Instant::now());
        waiting.push_back(Waiting { ticket, binding, standing, since });
    }

    /// Takes how far the call is that has this ticket, once. `None` where it is another call.
    pub(super) fn take(&self, ticket: &str, binding: &Binding) -> Option<Standing> {
        let mut waiting = lock(&self.waiting);
        let at = waiting.iter().position(|it| it.ticket == ticket)?;
        let found = waiting.remove(at)?;
        let is_it = found.binding == *binding && found.since.elapsed() < LIFETIME;
        is_it.then_some(found.standing)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_counts_once_and_for_its_call_alone() {
        let approvals = Approvals::default();
        approvals.keep("a", [1; 32], Standing::Given);
        assert!(approvals.take("b", &[1; 32]).is_none());
        assert!(approvals.take("a", &[1; 32]).is_some());
        assert!(approvals.take("a", &[1; 32]).is_none());
        approvals.keep("a", [1; 32], Standing::Given);
        assert!(approvals.take("a", &[2; 32]).is_none());
        assert!(approvals.take("a", &[1; 32]).is_none(), "what was tried for another call is gone");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let approvals = Approvals::default();
        for number in 0..=MOST_WAITING {
            approvals.keep(&number.to_string(), [0; 32], Standing::Given);
        }
        assert!(approvals.take("0", &[0; 32]).is_none());
        assert!(approvals.take("1", &[0; 32]).is_some());
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
