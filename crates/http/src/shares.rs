//! Shares of what all tools use: no tool takes all of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Of how many parts of the whole one is left for others.
const PARTS: usize = 8;

/// What one owner may hold of something that is counted: all but an eighth. So one that waits
/// for a server which never answers, with all that it is given, keeps no other waiting.
#[derive(Debug)]
pub struct Shares {
    most: usize,
    /// What each owner has left, as long as it holds or wants any.
    left: Mutex<HashMap<Arc<str>, Weak<Semaphore>>>,
}

impl Shares {
    /// Shares of so many. Of less than eight one owner may hold all.
    pub fn of(total: usize) -> Self {
        let total = total.min(Semaphore::MAX_PERMITS);
        Self { most: total - total / PARTS, left: Mutex::default() }
    }

    /// Takes so many for an owner once it has them left. What is more than a share takes all of
    /// the share.
    pub async fn take(&self, owner: &str, count: u32) -> Option<OwnedSemaphorePermit> {
        self.left(owner).acquire_many_owned(self.within(count)).await.ok()
    }

    /// As [`take`](Self::take). `None` where it does not have them left now.
    pub fn try_take(&self, owner: &str, count: u32) -> Option<OwnedSemaphorePermit> {
        self.left(owner).try_acquire_many_owned(self.within(count)).ok()
    }

    fn within(&self, count: u32) -> u32 {
        count.min(u32::try_from(self.most).unwrap_or(u32::MAX))
    }

    fn left(&self, owner: &str) -> Arc<Semaphore> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = left.get(owner).and_then(Weak::upgrade) {
            return own;
        }
        left.retain(|_, other| other.strong_count() > 0);
        let own = Arc::new(Semaphore::new(self.most));
        left.insert(owner.into(), Arc::downgrade(&own));
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_holds_all_but_an_eighth_and_others_what_is_theirs() {
        let shares = Shares::of(16);
        let held: Vec<_> = (0..14).map(|_| shares.try_take("one", 1).unwrap()).collect();
        assert!(shares.try_take("one", 1).is_none());
        assert!(shares.try_take("other", 14).is_some());
        drop(held);
        assert!(shares.try_take("one", 14).is_some());
        // Alone it may take more than its share.
        let all = shares.try_take("one", 16).unwrap();
        assert!(shares.try_take("one", 1).is_none());
        drop(all);
        assert!(Shares::of(7).try_take("one", 7).is_some());
    }

    #[test]
    fn an_owner_that_holds_nothing_is_forgotten() {
        let shares = Shares::of(16);
        for number in 0..1000 {
            drop(shares.try_take(&number.to_string(), 1));
        }
        assert!(shares.left.lock().unwrap().len() <= 1);
    }
}
