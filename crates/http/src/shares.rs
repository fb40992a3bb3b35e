//! Fair shares of resources that all calls use: no client can take everything, and no tool can take
//! everything of its client.
//!
//! A client leaves a part of what the other clients have left, so that a third client gets
//! something besides two that take all they can. If others release their holdings, the part is one
//! of the whole.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The part that a tool leaves for the other tools of its client.
const OTHER_TOOLS: usize = 8;

/// The account of a call: the client and the called tool.
///
/// Nested calls are charged to the account of the outermost call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    client: Option<Arc<str>>,
    /// Unique among the sessions of all clients. `None`: the client has no sessions.
    session: Option<Arc<str>>,
    /// Unique among the tools of all clients. `None`: no tool was called yet.
    tool: Option<Arc<str>>,
}

impl Account {
    /// Returns the account of a client of a server with several clients. The default is the account
    /// of the only client.
    pub fn of_client(client: impl Into<Arc<str>>) -> Self {
        Self { client: Some(client.into()), ..Self::default() }
    }

    /// Returns the account of a tool without a client.
    pub fn of_tool(tool: &str) -> Self {
        Self::default().charged_to(tool)
    }

    /// Charges the account to a tool, unless an outer call has charged it already.
    #[must_use]
    pub fn charged_to(mut self, tool: &str) -> Self {
        if self.tool.is_none() {
            // Tool names do not contain this character.
            self.tool = Some(format!("{tool}\0{}", self.owner().unwrap_or_default()).into());
        }
        self
    }

    /// Returns the account for one session of the client. Its calls have the shares of a client.
    #[must_use]
    pub fn in_session(mut self, session: &str) -> Self {
        let client = self.client.as_deref().unwrap_or_default();
        self.session = Some(format!("{client}\0{session}").into());
        self
    }

    /// Returns the account of the client, without session and tool.
    #[must_use]
    pub fn of_its_client(&self) -> Self {
        Self { client: self.client.clone(), ..Self::default() }
    }

    fn owner(&self) -> Option<&str> {
        self.session.as_deref().or(self.client.as_deref())
    }
}

/// Limits the amount of a resource that each client and each tool may hold.
#[derive(Debug)]
pub struct Shares {
    clients: Arc<Clients>,
    tools_of_clients: Level,
    tools: Level,
}

/// An amount that an account holds. It is released when this is dropped.
#[derive(Debug)]
pub struct Share {
    tool: Option<OwnedSemaphorePermit>,
    client: Option<ClientShare>,
}

impl Share {
    /// Adds an amount that the same account holds of the same shares.
    pub fn merge(&mut self, other: Self) {
        match (&mut self.tool, other.tool) {
            (Some(tool), Some(other)) => tool.merge(other),
            (tool @ None, other) => *tool = other,
            (Some(_), None) => {}
        }
        match (&mut self.client, other.client) {
            (Some(client), Some(mut other)) => client.count += mem::take(&mut other.count),
            (client @ None, other) => *client = other,
            (Some(_), None) => {}
        }
    }
}

impl Shares {
    /// Creates shares of `total`. A client leaves one part in `parts` of what other clients have
    /// left, and at least one if others hold any; a client that holds nothing can always take one.
    pub fn of(total: usize, parts: usize) -> Self {
        Self::with_least(total, parts, 0)
    }

    /// As [`of`](Self::of), but clients and tools leave at least `least` for others or, if less
    /// than twice as much exists, half of it.
    pub fn with_least(total: usize, parts: usize, least: usize) -> Self {
        Self::of_clients(Clients::new(total, parts, least))
    }

    /// As [`of`](Self::of), but the part that a client leaves does not depend on others' holdings.
    pub fn fixed(total: usize, parts: usize) -> Self {
        Self::of_clients(Clients { is_fixed: true, ..Clients::new(total, parts, 0) })
    }

    fn of_clients(clients: Clients) -> Self {
        let Clients { total, least, .. } = clients;
        let tools_of_clients = share(clients.most(0), OTHER_TOOLS, least);
        Self {
            clients: Arc::new(clients),
            tools_of_clients: Level::of(tools_of_clients),
            tools: Level::of(share(total, OTHER_TOOLS, least)),
        }
    }

    /// Takes `count` as soon as the shares of the account have that much left. A `count` above a
    /// share takes the whole share. Returns `None` if the account can never get it.
    pub async fn take(&self, account: &Account, count: u32) -> Option<Share> {
        // The narrower share first: a call that waits for it does not block other tools.
        let tool = match self.tool(account) {
            Some((level, tool)) => Some(level.take(tool, count).await?),
            None => None,
        };
        let client = match account.owner() {
            Some(client) => Some(self.clients.take(client, count).await),
            None => None,
        };
        Some(Share { tool, client })
    }

    /// As [`take`](Self::take), but returns `None` if a share does not have that much left now.
    pub fn try_take(&self, account: &Account, count: u32) -> Option<Share> {
        let tool = match self.tool(account) {
            Some((level, tool)) => Some(level.try_take(tool, count)?),
            None => None,
        };
        let client = match account.owner() {
            Some(client) => Some(self.clients.try_take(client, count)?),
            None => None,
        };
        Some(Share { tool, client })
    }

    fn tool<'a>(&self, account: &'a Account) -> Option<(&Level, &'a str)> {
        let level = if account.owner().is_some() { &self.tools_of_clients } else { &self.tools };
        account.tool.as_deref().map(|tool| (level, tool))
    }
}

/// Returns the share of a whole that leaves one part in `parts` and at least `least`.
fn share(whole: usize, parts: usize, least: usize) -> usize {
    whole - (whole / parts).max(least.min(whole / 2))
}

/// The holdings of clients.
#[derive(Debug)]
struct Clients {
    total: usize,
    parts: usize,
    least: usize,
    /// True if the holdings of others are ignored.
    is_fixed: bool,
    /// Holdings by client.
    holdings: Mutex<HashMap<Arc<str>, usize>>,
    /// Wakes waiting clients after a release.
    released: Notify,
}

/// A holding of a client, which is released when this is dropped.
#[derive(Debug)]
struct ClientShare {
    clients: Arc<Clients>,
    client: Arc<str>,
    count: usize,
}

impl Clients {
    fn new(total: usize, parts: usize, least: usize) -> Self {
        let total = total.min(Semaphore::MAX_PERMITS);
        let (holdings, released) = (Mutex::default(), Notify::new());
        Self { total, parts, least, is_fixed: false, holdings, released }
    }

    /// Returns the most that a client may hold while others hold this amount.
    fn most(&self, others: usize) -> usize {
        let others = if self.is_fixed { 0 } else { others };
        let least = if others == 0 { self.least } else { self.least.max(1) };
        share(self.total.saturating_sub(others), self.parts, least)
    }

    async fn take(self: &Arc<Self>, client: &str, count: u32) -> ClientShare {
        loop {
            // Created before the attempt, so that no release in between is missed.
            let released = self.released.notified();
            if let Some(share) = self.try_take(client, count) {
                return share;
            }
            released.await;
        }
    }

    fn try_take(self: &Arc<Self>, client: &str, count: u32) -> Option<ClientShare> {
        let count = (count as usize).min(self.most(0));
        let mut holdings = self.holdings();
        let own = holdings.get(client).copied().unwrap_or_default();
        let others = holdings.values().sum::<usize>() - own;
        // The first holding of a client may exceed its share.
        if own > 0 && own + count > self.most(others) {
            return None;
        }
        let client: Arc<str> = match holdings.get_key_value(client) {
            Some((client, _)) => Arc::clone(client),
            None => client.into(),
        };
        holdings.insert(Arc::clone(&client), own + count);
        Some(ClientShare { clients: Arc::clone(self), client, count })
    }

    fn holdings(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        self.holdings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ClientShare {
    fn drop(&mut self) {
        let mut holdings = self.clients.holdings();
        if let Some(own) = holdings.get_mut(&self.client) {
            *own -= self.count;
            if *own == 0 {
                holdings.remove(&self.client);
            }
        }
        drop(holdings);
        self.clients.released.notify_waiters();
    }
}

/// Shares of equal size.
#[derive(Debug)]
struct Level {
    most: usize,
    /// The rest of each owner's share, while the owner holds or waits for any.
    left: Mutex<HashMap<Arc<str>, Weak<Semaphore>>>,
}

impl Level {
    fn of(most: usize) -> Self {
        Self { most, left: Mutex::default() }
    }

    async fn take(&self, owner: &str, count: u32) -> Option<OwnedSemaphorePermit> {
        self.left(owner).acquire_many_owned(self.within(count)).await.ok()
    }

    fn try_take(&self, owner: &str, count: u32) -> Option<OwnedSemaphorePermit> {
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
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Returns how many single units an account can take. Releases them again.
    fn most(shares: &Shares, account: &Account) -> usize {
        std::iter::from_fn(|| shares.try_take(account, 1)).take(1_000).collect::<Vec<_>>().len()
    }

    #[test]
    fn clients_leave_a_part_for_other_clients() {
        let shares = Shares::of(64, 4);
        let [one, other] = ["one", "other"].map(Account::of_client);
        let holdings: Vec<_> = (0..48)
            .map(|number| {
                let tool = format!("tool{}", number % 5);
                shares.try_take(&one.clone().charged_to(&tool), 1).unwrap()
            })
            .collect();
        assert!(shares.try_take(&one.clone().charged_to("new"), 1).is_none());
        assert_eq!(most(&shares, &other.clone().charged_to("new")), 12);
        assert_eq!(most(&shares, &other), 12);
        drop(holdings);
        assert_eq!(most(&shares, &one), 48);
    }

    #[test]
    fn tools_leave_a_part_for_other_tools() {
        let shares = Shares::of(64, 4);
        let [hangs, other] = ["hangs", "other"].map(Account::of_tool);
        // The only client may take everything.
        assert_eq!(most(&shares, &Account::default()), 1_000);
        let holdings: Vec<_> = (0..56).map(|_| shares.try_take(&hangs, 1).unwrap()).collect();
        assert!(shares.try_take(&hangs, 1).is_none());
        assert!(shares.try_take(&other, 8).is_some());
        drop(holdings);
        // Without competition it may take more than its share.
        let all = shares.try_take(&hangs, 64).unwrap();
        assert!(shares.try_take(&hangs, 1).is_none());
        drop(all);
        assert!(Shares::of(7, 8).try_take(&hangs, 7).is_some());
        // The same tool of another client has its own share.
        let [one, two] = ["1", "2"].map(|client| Account::of_client(client).charged_to("hangs"));
        let holdings: Vec<_> = (0..42).map(|_| shares.try_take(&one, 1).unwrap()).collect();
        assert!(shares.try_take(&one, 1).is_none());
        // A quarter of the remaining 22 is for a third client.
        assert_eq!(most(&shares, &two), 17);
        drop(holdings);
        assert_eq!(most(&shares, &two), 42);
    }

    #[test]
    fn greedy_clients_leave_something_for_others() {
        let clients: Vec<_> = (0..4).map(|n| Account::of_client(n.to_string())).collect();
        let taken = |shares: &Shares| {
            let take = |client| std::iter::from_fn(|| shares.try_take(client, 1)).collect();
            let holdings: Vec<Vec<_>> = clients.iter().map(take).collect();
            holdings.iter().map(Vec::len).collect::<Vec<_>>()
        };
        // The slots of two processors, of eight, and memory for a client in units of one call.
        assert_eq!(taken(&Shares::of(16, 8))[..3], [14, 1, 1]);
        assert_eq!(taken(&Shares::of(64, 8)), [56, 7, 1, 1]);
        assert_eq!(taken(&Shares::of(13, 4)), [10, 2, 1, 1]);
        // The first call of a client may exceed its share.
        let shares = Shares::with_least(1152, 4, 96);
        let holdings: Vec<_> = (0..10).map(|_| shares.try_take(&clients[0], 84).unwrap()).collect();
        assert!(shares.try_take(&clients[0], 84).is_none());
        let second: Vec<_> = (0..2).map(|_| shares.try_take(&clients[1], 84).unwrap()).collect();
        assert!(shares.try_take(&clients[1], 84).is_none());
        assert!(shares.try_take(&clients[2], 84).is_some());
        drop((holdings, second));
        assert!(shares.try_take(&clients[2], 1_000).is_some());
    }

    #[test]
    fn waiting_clients_get_released_shares() {
        let shares = Shares::of(16, 4);
        let [one, other] = ["one", "other"].map(Account::of_client);
        let mut holdings: Vec<_> = (0..12).map(|_| shares.try_take(&one, 1).unwrap()).collect();
        let _other: Vec<_> = (0..3).map(|_| shares.try_take(&other, 1).unwrap()).collect();
        let mut waits = Box::pin(shares.take(&other, 1));
        let mut context = Context::from_waker(Waker::noop());
        assert!(waits.as_mut().poll(&mut context).is_pending());
        drop(holdings.pop());
        assert!(matches!(waits.as_mut().poll(&mut context), Poll::Ready(Some(_))));
    }

    #[test]
    fn the_minimum_for_others_is_kept() {
        let sizes = |total, least| {
            let shares = Shares::with_least(total, 4, least);
            [shares.clients.most(0), shares.tools_of_clients.most, shares.tools.most]
        };
        assert_eq!(sizes(1152, 96), [864, 756, 1008]);
        assert_eq!(sizes(512, 96), [384, 288, 416]);
        assert_eq!(sizes(112, 96), [56, 28, 56]);
        assert_eq!(sizes(64, 0), [48, 42, 56]);
    }

    #[test]
    fn nested_calls_are_charged_to_the_outermost_tool() {
        let outer = Account::of_client("one").charged_to("python");
        assert_eq!(outer.clone().charged_to("query_data"), outer);
    }

    #[test]
    fn waiting_tools_do_not_block_their_client() {
        let shares = Shares::of(16, 8);
        let client = Account::of_client("one");
        let [hangs, other] = ["hangs", "other"].map(|tool| client.clone().charged_to(tool));
        let holdings: Vec<_> = (0..13).map(|_| shares.try_take(&hangs, 1).unwrap()).collect();
        let mut waits = Box::pin(shares.take(&hangs, 1));
        let mut context = Context::from_waker(Waker::noop());
        assert!(waits.as_mut().poll(&mut context).is_pending());
        assert!(shares.try_take(&other, 1).is_some());
        drop(holdings);
        assert!(matches!(waits.as_mut().poll(&mut context), Poll::Ready(Some(_))));
    }

    #[test]
    fn owners_without_holdings_are_removed() {
        let shares = Shares::of(16, 8);
        for number in 0..1_000 {
            drop(shares.try_take(&Account::of_client(number.to_string()).charged_to("a"), 1));
        }
        assert!(shares.clients.holdings().is_empty());
        assert!(shares.tools_of_clients.left.lock().unwrap().len() <= 1);
    }
}
