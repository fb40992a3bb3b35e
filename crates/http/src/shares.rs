//! Shares of what all calls use: no client takes all of it, and no tool all that a client may.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The part of a whole that a tool leaves for the other tools of its client.
const OTHER_TOOLS: usize = 8;

/// The account of a call: the client, and the tool that it called.
///
/// Calls that a tool makes of others are charged to the account of the outermost call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    client: Option<Arc<str>>,
    /// Unique among the sessions of all clients. `None`: the client has none.
    session: Option<Arc<str>>,
    /// Unique among the tools of all clients. `None`: no tool was called yet.
    tool: Option<Arc<str>>,
}

impl Account {
    /// The account of a client of a server that has several. The default is the account of the
    /// only client.
    pub fn of_client(client: impl Into<Arc<str>>) -> Self {
        Self { client: Some(client.into()), ..Self::default() }
    }

    /// The account of a tool, without a client.
    pub fn of_tool(tool: &str) -> Self {
        Self::default().charged_to(tool)
    }

    /// The same account, charged to a tool unless an outer call has charged it already.
    #[must_use]
    pub fn charged_to(mut self, tool: &str) -> Self {
        if self.tool.is_none() {
            // No name of a tool contains this character.
            self.tool = Some(format!("{tool}\0{}", self.owner().unwrap_or_default()).into());
        }
        self
    }

    /// The same account for one session of the client, which has the shares of a client for its
    /// calls.
    #[must_use]
    pub fn in_session(mut self, session: &str) -> Self {
        let client = self.client.as_deref().unwrap_or_default();
        self.session = Some(format!("{client}\0{session}").into());
        self
    }

    /// The account of the client, whatever its session and its tool.
    #[must_use]
    pub fn of_its_client(&self) -> Self {
        Self { client: self.client.clone(), ..Self::default() }
    }

    fn owner(&self) -> Option<&str> {
        self.session.as_deref().or(self.client.as_deref())
    }
}

/// How much of something that is counted each client and each tool may hold.
#[derive(Debug)]
pub struct Shares {
    clients: Level,
    tools_of_clients: Level,
    tools: Level,
}

/// A part of the shares of an account, which is free again when this is dropped.
#[derive(Debug)]
pub struct Share {
    tool: Option<OwnedSemaphorePermit>,
    client: Option<OwnedSemaphorePermit>,
}

impl Share {
    /// Adds what the same account has taken of the same shares.
    pub fn merge(&mut self, other: Self) {
        merge(&mut self.tool, other.tool);
        merge(&mut self.client, other.client);
    }
}

fn merge(permit: &mut Option<OwnedSemaphorePermit>, other: Option<OwnedSemaphorePermit>) {
    match (permit, other) {
        (Some(permit), Some(other)) => permit.merge(other),
        (permit @ None, other) => *permit = other,
        (Some(_), None) => {}
    }
}

impl Shares {
    /// Shares of `total`, of which a client leaves one part in `parts` for others. A share of
    /// less than one part is not left.
    pub fn of(total: usize, parts: usize) -> Self {
        Self::with_least(total, parts, 0)
    }

    /// As [`of`](Self::of), where clients and tools leave `least` for others or, of less than
    /// twice as much, a half.
    pub fn with_least(total: usize, parts: usize, least: usize) -> Self {
        let share = |whole: usize, parts: usize| whole - (whole / parts).max(least.min(whole / 2));
        let total = total.min(Semaphore::MAX_PERMITS);
        let client = share(total, parts);
        Self {
            clients: Level::of(client),
            tools_of_clients: Level::of(share(client, OTHER_TOOLS)),
            tools: Level::of(share(total, OTHER_TOOLS)),
        }
    }

    /// Takes `count` as soon as the shares of the account have that much left. More than a share
    /// takes the whole share. `None` if the account will never get it.
    pub async fn take(&self, account: &Account, count: u32) -> Option<Share> {
        // The narrower share first: a call that waits for it keeps nothing from other tools.
        let tool = match self.tool(account) {
            Some((level, tool)) => Some(level.take(tool, count).await?),
            None => None,
        };
        let client = match account.owner() {
            Some(client) => Some(self.clients.take(client, count).await?),
            None => None,
        };
        Some(Share { tool, client })
    }

    /// As [`take`](Self::take). `None` if a share does not have that much left now.
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

/// Shares of equal size.
#[derive(Debug)]
struct Level {
    most: usize,
    /// The rest of each owner's share, while it holds or waits for any.
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

    /// How many single ones an account can take, which are released again.
    fn most(shares: &Shares, account: &Account) -> usize {
        std::iter::from_fn(|| shares.try_take(account, 1)).take(1_000).collect::<Vec<_>>().len()
    }

    #[test]
    fn a_client_leaves_a_part_for_others_whichever_tools_it_mixes() {
        let shares = Shares::of(64, 4);
        let [one, other] = ["one", "other"].map(Account::of_client);
        let held: Vec<_> = (0..48)
            .map(|number| {
                let tool = format!("tool{}", number % 5);
                shares.try_take(&one.clone().charged_to(&tool), 1).unwrap()
            })
            .collect();
        assert!(shares.try_take(&one.clone().charged_to("new"), 1).is_none());
        assert_eq!(most(&shares, &other.clone().charged_to("new")), 42);
        assert_eq!(most(&shares, &other), 48);
        drop(held);
        assert_eq!(most(&shares, &one), 48);
    }

    #[test]
    fn a_tool_leaves_a_part_for_other_tools_of_its_client() {
        let shares = Shares::of(64, 4);
        let [hangs, other] = ["hangs", "other"].map(Account::of_tool);
        // The only client may take everything.
        assert_eq!(most(&shares, &Account::default()), 1_000);
        let held: Vec<_> = (0..56).map(|_| shares.try_take(&hangs, 1).unwrap()).collect();
        assert!(shares.try_take(&hangs, 1).is_none());
        assert!(shares.try_take(&other, 8).is_some());
        drop(held);
        // Alone it may take more than its share.
        let all = shares.try_take(&hangs, 64).unwrap();
        assert!(shares.try_take(&hangs, 1).is_none());
        drop(all);
        assert!(Shares::of(7, 8).try_take(&hangs, 7).is_some());
        // The same tool of another client has a share of its own.
        let [one, two] = ["1", "2"].map(|client| Account::of_client(client).charged_to("hangs"));
        let held: Vec<_> = (0..42).map(|_| shares.try_take(&one, 1).unwrap()).collect();
        assert!(shares.try_take(&one, 1).is_none());
        assert_eq!(most(&shares, &two), 42);
        drop(held);
    }

    #[test]
    fn at_least_so_much_is_left_for_others() {
        let sizes = |total, least| {
            let shares = Shares::with_least(total, 4, least);
            [&shares.clients, &shares.tools_of_clients, &shares.tools].map(|level| level.most)
        };
        assert_eq!(sizes(1152, 96), [864, 756, 1008]);
        assert_eq!(sizes(512, 96), [384, 288, 416]);
        assert_eq!(sizes(112, 96), [56, 28, 56]);
        assert_eq!(sizes(64, 0), [48, 42, 56]);
    }

    #[test]
    fn an_inner_call_is_charged_to_the_outermost_tool() {
        let outer = Account::of_client("one").charged_to("python");
        assert_eq!(outer.clone().charged_to("query_data"), outer);
    }

    #[test]
    fn waiting_for_a_tools_share_keeps_nothing_from_its_client() {
        let shares = Shares::of(16, 8);
        let client = Account::of_client("one");
        let [hangs, other] = ["hangs", "other"].map(|tool| client.clone().charged_to(tool));
        let held: Vec<_> = (0..13).map(|_| shares.try_take(&hangs, 1).unwrap()).collect();
        let mut waits = Box::pin(shares.take(&hangs, 1));
        let mut context = Context::from_waker(Waker::noop());
        assert!(waits.as_mut().poll(&mut context).is_pending());
        assert!(shares.try_take(&other, 1).is_some());
        drop(held);
        assert!(matches!(waits.as_mut().poll(&mut context), Poll::Ready(Some(_))));
    }

    #[test]
    fn an_owner_that_holds_nothing_is_forgotten() {
        let shares = Shares::of(16, 8);
        for number in 0..1_000 {
            drop(shares.try_take(&Account::of_client(number.to_string()).charged_to("a"), 1));
        }
        let known = |level: &Level| level.left.lock().unwrap().len();
        assert!(known(&shares.clients) <= 1 && known(&shares.tools_of_clients) <= 1);
    }
}
