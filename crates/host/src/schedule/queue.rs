//! Limits on running and waiting calls. Each account has a share of both.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kitbag_http::{Account, Share, Shares};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::error::CallError;

/// Limits on the number of running and waiting calls. One client may use all but an eighth of
/// each, and one tool all but an eighth of its client's share, so that a tool whose server hangs
/// does not block others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    /// Number of calls that run at once, each on its own thread. Default: eight per processor.
    pub calls: NonZeroUsize,
    /// Number of calls that wait. Further calls are refused as busy. Default: 1,024.
    pub waiting: usize,
}

/// Maximum nesting depth of calls: a call inside a call inside a call has a depth of three.
pub const CALL_DEPTH: u32 = 4;

/// Number of depths for nested calls.
pub(crate) const INNER_DEPTHS: usize = CALL_DEPTH as usize - 1;

/// Returns the number of nested calls that run at once at each depth. Each depth has its own
/// places: a call waits only for deeper calls, and the deepest calls wait for none.
pub(crate) fn inner_calls(concurrency: Concurrency) -> usize {
    const LEAST: usize = 4;
    concurrency.calls.get().clamp(LEAST, Semaphore::MAX_PERMITS)
}

pub(crate) struct Queue {
    concurrency: Concurrency,
    permits: Arc<Semaphore>,
    shares: Shares,
    waiting_shares: Shares,
    inner: [InnerPlaces; INNER_DEPTHS],
    waiting: AtomicUsize,
    /// Duration of a call in microseconds, averaged over the last few.
    usual: AtomicU64,
}

/// Places for nested calls at one depth.
struct InnerPlaces {
    free: Semaphore,
    shares: Shares,
}

/// The right to run a nested call, until dropped.
pub(crate) struct InnerPlace<'a> {
    _permit: SemaphorePermit<'a>,
    _share: Share,
}

/// The right to run one call. Dropping it lets the next call run.
pub struct Permit {
    queue: Arc<Queue>,
    since: Instant,
    _permit: OwnedSemaphorePermit,
    _share: Share,
}

/// Returns the number of processors available to this process. Takes a dozen system calls, so it
/// is deferred until needed.
pub(crate) fn processors() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Default number of calls that wait.
const WAITING: usize = 1024;

/// A client leaves one in this many places for others.
const OTHER_CLIENTS: usize = 8;

impl Concurrency {
    /// Runs one call at a time.
    pub const ONE: Self = Self { calls: NonZeroUsize::MIN, waiting: WAITING };
}

impl Default for Concurrency {
    fn default() -> Self {
        const PER_PROCESSOR: NonZeroUsize = NonZeroUsize::new(8).expect("not zero");
        Self { calls: processors().saturating_mul(PER_PROCESSOR), waiting: WAITING }
    }
}

fn permits(concurrency: Concurrency) -> u32 {
    let permits = concurrency.calls.get().min(Semaphore::MAX_PERMITS);
    u32::try_from(permits).unwrap_or(u32::MAX)
}

impl Queue {
    pub(crate) fn new(concurrency: Concurrency) -> Arc<Self> {
        let inner = inner_calls(concurrency);
        let inner_places = |_| InnerPlaces {
            free: Semaphore::new(inner),
            shares: Shares::of(inner, OTHER_CLIENTS),
        };
        Arc::new(Self {
            concurrency,
            permits: Arc::new(Semaphore::new(permits(concurrency) as usize)),
            shares: Shares::of(concurrency.calls.get(), OTHER_CLIENTS),
            waiting_shares: Shares::of(concurrency.waiting, OTHER_CLIENTS),
            inner: std::array::from_fn(inner_places),
            waiting: AtomicUsize::new(0),
            usual: AtomicU64::new(0),
        })
    }

    /// Waits for a permit for a call that is charged to an account.
    ///
    /// # Errors
    ///
    /// [`CallError::Busy`] if the maximum number of calls is waiting.
    pub(crate) async fn enter(self: &Arc<Self>, account: &Account) -> Result<Permit, CallError> {
        if let Some(permit) = self.try_enter(account) {
            return Ok(permit);
        }
        let _waiting = self.wait(account)?;
        let closed = || CallError::internal("no calls are accepted any more");
        let share = self.shares.take(account, 1).await.ok_or_else(closed)?;
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        Ok(self.permit_of(permit.map_err(CallError::internal)?, share))
    }

    /// Waits until no call runs.
    pub(crate) async fn idle(&self) {
        let _ = self.permits.acquire_many(permits(self.concurrency)).await;
    }

    /// Waits for a place at this depth, where 1 is a call directly inside an outermost call.
    /// Returns `None` beyond the maximum depth.
    pub(crate) async fn enter_inner(
        &self,
        depth: u32,
        account: &Account,
    ) -> Option<InnerPlace<'_>> {
        let places = self.inner.get((depth as usize).checked_sub(1)?)?;
        let share = places.shares.take(account, 1).await?;
        Some(InnerPlace { _permit: places.free.acquire().await.ok()?, _share: share })
    }

    pub(crate) fn try_enter(self: &Arc<Self>, account: &Account) -> Option<Permit> {
        let share = self.shares.try_take(account, 1)?;
        Some(self.permit_of(Arc::clone(&self.permits).try_acquire_owned().ok()?, share))
    }

    fn permit_of(self: &Arc<Self>, permit: OwnedSemaphorePermit, share: Share) -> Permit {
        Permit { queue: Arc::clone(self), since: Instant::now(), _permit: permit, _share: share }
    }

    fn wait(&self, account: &Account) -> Result<Waiting<'_>, CallError> {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let guard = Waiting { queue: self, share: self.waiting_shares.try_take(account, 1) };
        if waiting < self.concurrency.waiting && guard.share.is_some() {
            return Ok(guard);
        }
        let calls = self.concurrency.calls.get();
        Err(CallError::Busy { running: calls, waiting, retry_after: self.retry_after(waiting) })
    }

    /// Estimates when a place is free: the usual duration of the waiting calls, with a minimum.
    fn retry_after(&self, waiting: usize) -> Duration {
        const MOMENT: Duration = Duration::from_millis(100);
        let usual = Duration::from_micros(self.usual.load(Ordering::Relaxed));
        let rounds = waiting / self.concurrency.calls.get() + 1;
        usual.saturating_mul(u32::try_from(rounds).unwrap_or(u32::MAX)).max(MOMENT)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let took = u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX);
        let usual = self.queue.usual.load(Ordering::Relaxed);
        // Two calls that end at the same time may lose one measurement, which does not matter for
        // an estimate.
        self.queue.usual.store(usual - usual / 8 + took / 8, Ordering::Relaxed);
    }
}

struct Waiting<'a> {
    queue: &'a Queue,
    /// `None` if the maximum number of the account's calls is waiting.
    share: Option<Share>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.queue.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn a_full_queue_is_busy_with_a_retry_time() {
        let one = NonZeroUsize::MIN;
        let queue = Queue::new(Concurrency { calls: one, waiting: 1 });
        let mut context = Context::from_waker(Waker::noop());
        let account = Account::of_tool("tool");
        let enter = || Box::pin(queue.enter(&account));
        let mut first = enter();
        let Poll::Ready(Ok(permit)) = first.as_mut().poll(&mut context) else { panic!("no place") };
        let mut second = enter();
        assert!(second.as_mut().poll(&mut context).is_pending());
        match enter().as_mut().poll(&mut context) {
            Poll::Ready(Err(CallError::Busy { running: 1, waiting: 1, retry_after })) => {
                assert!(retry_after >= Duration::from_millis(100));
            }
            _ => panic!("not refused"),
        }
        // A waiter that gives up leaves its place to another.
        drop(second);
        let mut second = enter();
        assert!(second.as_mut().poll(&mut context).is_pending());
        drop(permit);
        assert!(matches!(second.as_mut().poll(&mut context), Poll::Ready(Ok(_))));
        assert_eq!(queue.waiting.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn calls_of_one_tool_leave_places_for_others() {
        let calls = NonZeroUsize::new(16).unwrap();
        let queue = Queue::new(Concurrency { calls, waiting: 16 });
        let mut context = Context::from_waker(Waker::noop());
        let [hangs, other, another, third] =
            ["hangs", "other", "another", "third"].map(Account::of_tool);
        let mut held: Vec<_> = (0..14).map(|_| queue.try_enter(&hangs).unwrap()).collect();
        let mut waiting: Vec<_> = (0..14).map(|_| Box::pin(queue.enter(&hangs))).collect();
        for call in &mut waiting {
            assert!(call.as_mut().poll(&mut context).is_pending());
        }
        let mut next = Box::pin(queue.enter(&hangs));
        assert!(matches!(
            next.as_mut().poll(&mut context),
            Poll::Ready(Err(CallError::Busy { .. }))
        ));
        let others = [queue.try_enter(&other).unwrap(), queue.try_enter(&another).unwrap()];
        // A call that waits for a place gets the next free one, ahead of calls that wait for their
        // share.
        let mut third = Box::pin(queue.enter(&third));
        assert!(third.as_mut().poll(&mut context).is_pending());
        drop(others);
        assert!(matches!(third.as_mut().poll(&mut context), Poll::Ready(Ok(_))));
        drop(held.pop());
        assert!(matches!(waiting[0].as_mut().poll(&mut context), Poll::Ready(Ok(_))));
    }

    #[test]
    fn calls_of_one_client_leave_places_for_others_at_each_depth() {
        let calls = NonZeroUsize::new(16).unwrap();
        let queue = Queue::new(Concurrency { calls, waiting: 16 });
        let mut context = Context::from_waker(Waker::noop());
        let greedy = |number: usize| {
            Account::of_client("greedy").charged_to(["one", "two", "three"][number % 3])
        };
        let honest = Account::of_client("honest").charged_to("one");
        let held: Vec<_> = (0..14).map(|n| queue.try_enter(&greedy(n)).unwrap()).collect();
        assert!(queue.try_enter(&greedy(0)).is_none());
        assert!(queue.try_enter(&honest).is_some());
        for depth in 1..=CALL_DEPTH - 1 {
            let accounts: Vec<_> = (0..30).map(greedy).collect();
            let mut places: Vec<_> =
                accounts.iter().map(|it| Box::pin(queue.enter_inner(depth, it))).collect();
            let mut entered = Vec::new();
            for place in &mut places {
                if let Poll::Ready(place) = place.as_mut().poll(&mut context) {
                    entered.push(place);
                }
            }
            assert_eq!(entered.len(), 14);
            let mut place = Box::pin(queue.enter_inner(depth, &honest));
            assert!(matches!(place.as_mut().poll(&mut context), Poll::Ready(Some(_))));
        }
        drop(held);
    }
}
