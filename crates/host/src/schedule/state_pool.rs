//! State that outlives the request that created it.
//!
//! State has its own memory, so that no client prevents requests of another from being read. Each
//! client has a share. State that waits for its client, such as an approval, may be evicted for
//! other state; the oldest state of the client that holds the most is evicted first.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kitbag_http::Account;

use crate::schedule::budget::{MemoryBudget, Reservation, Shortage};

/// Maximum number of entries, in total and per client.
const ENTRIES: usize = 512;
const ENTRIES_OF_CLIENT: usize = ENTRIES - ENTRIES / 4;

const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// State that outlives requests. Clones share one pool.
#[derive(Clone)]
pub struct StatePool(Arc<Shared>);

struct Shared {
    memory: MemoryBudget,
    entries: Mutex<VecDeque<Entry>>,
}

struct Entry {
    id: String,
    account: Account,
    since: Instant,
    bytes: u64,
    value: Box<dyn Any + Send>,
    _memory: Reservation,
}

impl StatePool {
    /// Creates a pool of this memory.
    pub fn new(memory: MemoryBudget) -> Self {
        Self(Arc::new(Shared { memory, entries: Mutex::default() }))
    }

    /// Returns the memory of the pool.
    pub fn memory(&self) -> &MemoryBudget {
        &self.0.memory
    }

    /// Stores a value of about `bytes` bytes for the client of an account, replacing the value
    /// with the same id. It can be taken by its id for an hour, unless it is evicted for other
    /// state.
    ///
    /// # Errors
    ///
    /// [`NoRoom`] if the pool cannot hold it in addition to state that cannot be evicted.
    pub fn keep<T: Any + Send>(
        &self,
        account: &Account,
        id: &str,
        bytes: u64,
        value: T,
    ) -> Result<(), NoRoom> {
        let account = account.of_its_client();
        let mut entries = self.entries();
        entries.retain(|entry| entry.id != id && entry.since.elapsed() < LIFETIME);
        if entries.iter().filter(|entry| entry.account == account).count() >= ENTRIES_OF_CLIENT {
            remove_oldest(&mut entries, &account);
        } else if entries.len() >= ENTRIES {
            let count = |own: &Account| entries.iter().filter(|it| it.account == *own).count();
            let most = entries.iter().max_by_key(|entry| count(&entry.account));
            let most = most.map(|entry| entry.account.clone());
            most.iter().for_each(|account| remove_oldest(&mut entries, account));
        }
        let memory = self.room(&mut entries, &account, bytes).ok_or(NoRoom)?;
        let (id, since) = (id.to_owned(), Instant::now());
        let value = Box::new(value);
        entries.push_back(Entry { id, account, since, bytes, value, _memory: memory });
        Ok(())
    }

    /// Takes the value with an id.
    pub fn take<T: Any + Send>(&self, id: &str) -> Option<T> {
        let mut entries = self.entries();
        let at = entries.iter().position(|entry| entry.id == id)?;
        let entry = entries.remove(at)?;
        drop(entries);
        let value = entry.value.downcast::<T>().ok()?;
        (entry.since.elapsed() < LIFETIME).then_some(*value)
    }

    /// Reserves memory for state that cannot be evicted, such as a session. Returns `None` if the
    /// client of the account has used up its share, or other state of this kind has used up the
    /// pool.
    pub fn hold(&self, account: &Account, bytes: u64) -> Option<Reservation> {
        self.room(&mut self.entries(), &account.of_its_client(), bytes)
    }

    /// Reserves memory, and evicts entries for it.
    fn room(
        &self,
        entries: &mut VecDeque<Entry>,
        account: &Account,
        bytes: u64,
    ) -> Option<Reservation> {
        loop {
            let makes_room = match self.0.memory.try_reserve_for(account, bytes) {
                Ok(memory) => return Some(memory),
                Err(Shortage::Never) => return None,
                // Only other state of the same client is evicted if its share is exceeded.
                Err(Shortage::Share) => account.clone(),
                Err(Shortage::Whole) => {
                    let held = |own: &Account| -> u64 {
                        entries.iter().filter(|it| it.account == *own).map(|it| it.bytes).sum()
                    };
                    entries.iter().max_by_key(|it| held(&it.account))?.account.clone()
                }
            };
            let before = entries.len();
            remove_oldest(entries, &makes_room);
            if entries.len() == before {
                return None;
            }
        }
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for StatePool {
    /// Creates a pool without a limit on memory.
    fn default() -> Self {
        Self::new(MemoryBudget::unlimited())
    }
}

impl fmt::Debug for StatePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatePool").field("memory", &self.0.memory).finish_non_exhaustive()
    }
}

/// The pool cannot hold more state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server has no memory left for state between requests")]
pub struct NoRoom;

fn remove_oldest(entries: &mut VecDeque<Entry>, account: &Account) {
    if let Some(at) = entries.iter().position(|entry| entry.account == *account) {
        entries.remove(at);
    }
}

#[cfg(test)]
mod tests {
    use kitbag_base::ByteSize;

    use super::*;

    const KIB: u64 = 1 << 10;

    fn pool(kib: u64) -> StatePool {
        StatePool::new(MemoryBudget::new(ByteSize::bytes(kib * KIB)))
    }

    fn client(name: &str) -> Account {
        Account::of_client(name)
    }

    #[test]
    fn entries_are_taken_once_and_with_their_type() {
        let pool = pool(64);
        pool.keep(&client("a"), "1", KIB, "state".to_owned()).unwrap();
        assert_eq!(pool.take::<String>("2"), None);
        assert_eq!(pool.take::<String>("1").as_deref(), Some("state"));
        assert_eq!(pool.take::<String>("1"), None);
        pool.keep(&client("a"), "1", KIB, 7_u8).unwrap();
        assert_eq!(pool.take::<String>("1"), None);
        pool.keep(&client("a"), "1", KIB, 1_u8).unwrap();
        pool.keep(&client("a"), "1", KIB, 2_u8).unwrap();
        assert_eq!(pool.take::<u8>("1"), Some(2));
        assert_eq!(pool.memory().reserved(), ByteSize::bytes(0));
    }

    #[test]
    fn a_client_beyond_its_share_loses_its_own_oldest_state() {
        let pool = pool(64);
        pool.keep(&client("other"), "other", 16 * KIB, ()).unwrap();
        for number in 0..100_u64 {
            let account = client("left").charged_to("relay");
            pool.keep(&account, &number.to_string(), 8 * KIB, number).unwrap();
        }
        assert_eq!(pool.take::<u64>("93"), None);
        assert_eq!(pool.take::<u64>("94"), Some(94));
        assert_eq!(pool.take::<()>("other"), Some(()));
    }

    #[test]
    fn abandoned_state_makes_room_for_other_clients() {
        let pool = pool(64);
        for number in 0..8 {
            let account = client(if number < 5 { "most" } else { "less" });
            pool.keep(&account, &number.to_string(), 8 * KIB, number).unwrap();
        }
        // A session, and the state of a third client.
        let session = pool.hold(&client("third"), 8 * KIB).unwrap();
        pool.keep(&client("third"), "third", 8 * KIB, ()).unwrap();
        let left = (0..8).filter(|number| pool.take::<i32>(&number.to_string()).is_some());
        assert_eq!(left.collect::<Vec<_>>(), [2, 3, 4, 5, 6, 7]);
        drop(session);
    }

    #[test]
    fn held_state_is_bounded_by_the_share_of_its_client() {
        let pool = pool(64);
        let held: Vec<_> = (0..6).map(|_| pool.hold(&client("a"), 8 * KIB).unwrap()).collect();
        assert!(pool.hold(&client("a"), KIB).is_none());
        assert_eq!(pool.keep(&client("a"), "1", KIB, ()), Err(NoRoom));
        let other = pool.hold(&client("b"), 16 * KIB).unwrap();
        assert_eq!(pool.keep(&client("c"), "1", KIB, ()), Err(NoRoom));
        drop((held, other));
        pool.keep(&client("c"), "1", 48 * KIB, ()).unwrap();
        assert_eq!(pool.keep(&client("c"), "1", 65 * KIB, ()), Err(NoRoom));
    }

    #[test]
    fn entries_are_bounded_per_client_and_in_total() {
        let pool = StatePool::default();
        let keep = |name: &str, number: usize| {
            pool.keep(&client(name), &format!("{name}{number}"), 0, ()).unwrap();
        };
        (0..100).for_each(|number| keep("honest", number));
        (0..1_000).for_each(|number| keep("a", number));
        (0..1_000).for_each(|number| keep("b", number));
        let left = |name: &str| {
            (0..1_000).filter(|n| pool.take::<()>(&format!("{name}{n}")).is_some()).count()
        };
        assert_eq!(left("honest"), 100);
        assert_eq!(left("a") + left("b"), ENTRIES - 100);
    }
}
