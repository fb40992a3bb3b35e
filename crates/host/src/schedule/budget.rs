//! Memory reservations.
//!
//! A server never exceeds its configured memory: a call, a component, a compilation and a message
//! reserve in advance the memory that they may need. A reservation that does not fit waits, or is
//! refused and can be retried. Processes other than servers have no budget, and their reservations
//! cost nothing.

use std::sync::Arc;

use kitbag_base::ByteSize;
use kitbag_http::{Account, Share, Shares};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Unit of counting: reservations are rounded up to a multiple.
const UNIT_BYTES: u64 = 1 << 10;

/// The fraction of a budget that a client leaves for others: 288 MiB of the default for all calls,
/// enough for a call of a tool that calls others.
const OTHER_CLIENTS: usize = 4;

/// Slightly more than a call of the default size. Calls leave this much to others if possible.
pub(super) const ONE_CALL: ByteSize = ByteSize::mib(96);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// The account has used up its share.
    Share,
    Whole,
    Never,
}

/// Memory that can be reserved. Clones share one budget.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Option<Arc<Limited>>);

#[derive(Debug)]
struct Limited {
    units: u32,
    free: Arc<Semaphore>,
    shares: Shares,
}

/// Memory that is reserved until this is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: MemoryBudget,
    /// `None` if memory is not counted, or nothing is reserved.
    permit: Option<OwnedSemaphorePermit>,
    share: Option<Share>,
}

impl MemoryBudget {
    /// Creates a budget of `size`.
    pub fn new(size: ByteSize) -> Self {
        Self::with_shares(size, |units| Shares::fixed(units, OTHER_CLIENTS))
    }

    /// Creates a budget of `size`, with shares: clients and tools leave at least `least` to
    /// others, and clients also leave a fraction of the memory that others have left to them.
    pub(super) fn with_least(size: ByteSize, least: ByteSize) -> Self {
        let least = whole_units(least) as usize;
        Self::with_shares(size, |units| Shares::with_least(units, OTHER_CLIENTS, least))
    }

    fn with_shares(size: ByteSize, shares: impl FnOnce(usize) -> Shares) -> Self {
        let units = whole_units(size);
        let free = Semaphore::new((units as usize).min(Semaphore::MAX_PERMITS));
        let shares = shares(units as usize);
        Self(Some(Arc::new(Limited { units, free: Arc::new(free), shares })))
    }

    /// Creates a budget without a limit.
    pub fn unlimited() -> Self {
        Self(None)
    }

    /// Returns the size of the budget. `None` without a limit.
    pub fn size(&self) -> Option<ByteSize> {
        let limited = self.0.as_deref()?;
        Some(ByteSize::bytes(u64::from(limited.units) * UNIT_BYTES))
    }

    /// Returns the reserved memory.
    pub fn reserved(&self) -> ByteSize {
        let reserved = self.0.as_deref().map_or(0, |limited| {
            u64::from(limited.units).saturating_sub(limited.free.available_permits() as u64)
        });
        ByteSize::bytes(reserved * UNIT_BYTES)
    }

    /// Returns true if `bytes` fit into an unused budget.
    pub fn can_hold(&self, bytes: u64) -> bool {
        self.0.as_deref().is_none_or(|limited| units(bytes) <= u64::from(limited.units))
    }

    /// Reserves `bytes` if they are free now.
    pub fn reserve(&self, bytes: u64) -> Option<Reservation> {
        let mut reservation = Reservation { budget: self.clone(), permit: None, share: None };
        reservation.grow(bytes).then_some(reservation)
    }

    /// Like [`reserve`](Self::reserve), within the shares of an account. A single reservation may
    /// exceed the share if the account holds no other reservation.
    pub fn reserve_for(&self, account: &Account, bytes: u64) -> Option<Reservation> {
        self.try_reserve_for(account, bytes).ok()
    }

    /// See [`reserve_for`](Self::reserve_for).
    pub(crate) fn try_reserve_for(
        &self,
        account: &Account,
        bytes: u64,
    ) -> Result<Reservation, Shortage> {
        if !self.can_hold(bytes) {
            return Err(Shortage::Never);
        }
        let share = match (self.0.as_deref(), u32::try_from(units(bytes))) {
            (Some(limited), Ok(units)) => {
                Some(limited.shares.try_take(account, units).ok_or(Shortage::Share)?)
            }
            _ => None,
        };
        let reserved = self.reserve(bytes).ok_or(Shortage::Whole)?;
        Ok(Reservation { share, ..reserved })
    }

    /// Like [`wait`](Self::wait), within the shares of an account.
    pub async fn wait_for(&self, account: &Account, bytes: u64) -> Option<Reservation> {
        let share = match self.0.as_deref() {
            Some(limited) if self.can_hold(bytes) => {
                Some(limited.shares.take(account, u32::try_from(units(bytes)).ok()?).await?)
            }
            Some(_) | None => None,
        };
        Some(Reservation { share, ..self.wait(bytes).await? })
    }

    /// Reserves `bytes` as soon as they are free; waiters are served in order. Returns `None` if
    /// they can never fit.
    pub async fn wait(&self, bytes: u64) -> Option<Reservation> {
        let permit = match self.0.as_deref() {
            None => None,
            Some(limited) => {
                let units = u32::try_from(units(bytes)).ok().filter(|n| *n <= limited.units)?;
                Some(Arc::clone(&limited.free).acquire_many_owned(units).await.ok()?)
            }
        };
        Some(Reservation { budget: self.clone(), permit, share: None })
    }
}

impl Reservation {
    /// Reserves additional `bytes` if they are free now. Otherwise the existing reservation is
    /// unchanged.
    pub fn grow(&mut self, bytes: u64) -> bool {
        let Some(limited) = self.budget.0.as_deref() else { return true };
        let Ok(units) = u32::try_from(units(bytes)) else { return false };
        let Ok(more) = Arc::clone(&limited.free).try_acquire_many_owned(units) else {
            return false;
        };
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            none => *none = Some(more),
        }
        true
    }

    /// Like [`grow`](Self::grow), within the shares of an account, which must be the same each
    /// time.
    pub fn grow_for(&mut self, account: &Account, bytes: u64) -> bool {
        let Ok(more) = self.budget.try_reserve_for(account, bytes) else { return false };
        match (&mut self.permit, more.permit) {
            (Some(permit), Some(more)) => permit.merge(more),
            (permit @ None, more) => *permit = more,
            (Some(_), None) => {}
        }
        match (&mut self.share, more.share) {
            (Some(share), Some(more)) => share.merge(more),
            (share @ None, more) => *share = more,
            (Some(_), None) => {}
        }
        true
    }

    /// Returns the reserved size in bytes, rounded up. 0 if memory is not counted.
    pub fn bytes(&self) -> u64 {
        self.permit.as_ref().map_or(0, |permit| permit.num_permits() as u64 * UNIT_BYTES)
    }
}

fn whole_units(size: ByteSize) -> u32 {
    u32::try_from(size.as_u64() / UNIT_BYTES).unwrap_or(u32::MAX)
}

fn units(bytes: u64) -> u64 {
    bytes.div_ceil(UNIT_BYTES)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use kitbag_contract::LEAST_SERVER_MEMORY;

    use super::*;
    use crate::schedule::server_memory::ServerMemory;

    const KIB: u64 = 1 << 10;

    fn budget(kib: u64) -> MemoryBudget {
        MemoryBudget::new(ByteSize::bytes(kib * KIB))
    }

    #[test]
    fn an_oversized_reservation_is_refused_until_a_release() {
        let budget = budget(10);
        let first = budget.reserve(6 * KIB).unwrap();
        assert!(budget.reserve(5 * KIB).is_none());
        // Less than a unit is rounded up to one.
        let _second = budget.reserve(3 * KIB + 1).unwrap();
        assert_eq!(budget.reserved(), ByteSize::bytes(10 * KIB));
        assert!(budget.reserve(1).is_none());
        drop(first);
        assert_eq!(budget.reserved(), ByteSize::bytes(4 * KIB));
        assert!(budget.reserve(6 * KIB).is_some());
    }

    #[test]
    fn a_reservation_grows() {
        let budget = budget(10);
        let mut reservation = budget.reserve(0).unwrap();
        assert!(reservation.grow(8 * KIB));
        assert!(!reservation.grow(3 * KIB));
        assert_eq!(budget.reserved(), ByteSize::bytes(8 * KIB));
        drop(reservation);
        assert_eq!(budget.reserved(), ByteSize::bytes(0));
    }

    #[test]
    fn waiters_are_served_in_order() {
        let budget = budget(10);
        let mut context = Context::from_waker(Waker::noop());
        let held = budget.reserve(8 * KIB).unwrap();
        let mut large = Box::pin(budget.wait(9 * KIB));
        assert!(large.as_mut().poll(&mut context).is_pending());
        let mut small = Box::pin(budget.wait(2 * KIB));
        assert!(small.as_mut().poll(&mut context).is_pending(), "the large one comes first");
        drop(held);
        let Poll::Ready(Some(large)) = large.as_mut().poll(&mut context) else { panic!("waits") };
        assert!(small.as_mut().poll(&mut context).is_pending());
        drop(large);
        assert!(matches!(small.as_mut().poll(&mut context), Poll::Ready(Some(_))));
    }

    #[test]
    fn calls_of_one_tool_leave_memory_for_others() {
        let budget = budget(16);
        let mut context = Context::from_waker(Waker::noop());
        let [hangs, other] = ["hangs", "other"].map(Account::of_tool);
        let held = budget.reserve_for(&hangs, 14 * KIB).unwrap();
        assert!(budget.reserve_for(&hangs, KIB).is_none());
        let mut next = Box::pin(budget.wait_for(&hangs, KIB));
        assert!(next.as_mut().poll(&mut context).is_pending());
        assert!(budget.reserve_for(&other, 2 * KIB).is_some());
        drop(held);
        assert!(matches!(next.as_mut().poll(&mut context), Poll::Ready(Some(_))));
        drop(next);
        // A reservation larger than the share succeeds if the tool holds no other reservation.
        let mut large = Box::pin(budget.wait_for(&hangs, 16 * KIB));
        assert!(matches!(large.as_mut().poll(&mut context), Poll::Ready(Some(_))));
        let mut never = Box::pin(budget.wait_for(&hangs, 17 * KIB));
        assert!(matches!(never.as_mut().poll(&mut context), Poll::Ready(None)));
    }

    #[test]
    fn a_reservation_grows_within_the_share_of_its_account() {
        let budget = budget(16);
        let large = Account::of_tool("large");
        let mut reservation = budget.reserve(KIB).unwrap();
        assert!(reservation.grow_for(&large, 6 * KIB));
        assert!(reservation.grow_for(&large, 6 * KIB));
        assert!(!reservation.grow_for(&large, 3 * KIB));
        assert_eq!(reservation.bytes(), 13 * KIB);
        assert!(budget.reserve(3 * KIB).is_some());
        drop(reservation);
        assert!(budget.reserve_for(&large, 14 * KIB).is_some());
        assert_eq!(budget.reserved(), ByteSize::bytes(0));
    }

    #[test]
    fn calls_of_one_client_leave_memory_for_others() {
        let budget = budget(16);
        let greedy = |tool: &str| Account::of_client("greedy").charged_to(tool);
        let held = [("python", 9), ("query_data", 3)]
            .map(|(tool, kib)| budget.reserve_for(&greedy(tool), kib * KIB).unwrap());
        assert!(budget.reserve_for(&greedy("now"), KIB).is_none());
        let honest = Account::of_client("honest").charged_to("now");
        assert!(budget.reserve_for(&honest, 4 * KIB).is_some());
        drop(held);
    }

    #[test]
    fn two_greedy_clients_leave_memory_for_a_third() {
        const CALL: u64 = 84 << 20;
        let work = ServerMemory::new(kitbag_contract::SERVER_MEMORY).work;
        let [one, other, third] = ["one", "other", "third"].map(Account::of_client);
        let all = |account| std::iter::from_fn(|| work.reserve_for(account, CALL)).collect();
        let held: [Vec<_>; 2] = [all(&one), all(&other)];
        assert_eq!(held.each_ref().map(Vec::len), [10, 2]);
        assert!(work.reserve_for(&third, CALL).is_some());
    }

    #[test]
    fn an_impossible_reservation_does_not_wait() {
        let budget = budget(10);
        assert!(!budget.can_hold(11 * KIB));
        let wait = pin!(budget.wait(11 * KIB));
        let polled = wait.poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Ready(None)));
        assert!(budget.reserve(u64::MAX).is_none());
    }

    #[test]
    fn without_a_bound_everything_fits() {
        let budget = MemoryBudget::unlimited();
        let _all = budget.reserve(u64::MAX).unwrap();
        assert!(budget.reserve(u64::MAX).is_some());
        assert_eq!((budget.size(), budget.reserved()), (None, ByteSize::bytes(0)));
    }

    #[test]
    fn the_default_holds_sixteen_calls_of_the_default_size() {
        let memory = ServerMemory::new(kitbag_contract::SERVER_MEMORY);
        let calls: Vec<_> = (0..16).map(|_| memory.work.reserve(64 << 20).unwrap()).collect();
        assert_eq!(memory.work.reserved(), ByteSize::mib(1024));
        drop(calls);
        assert_eq!(memory.work.size(), Some(ByteSize::mib(1152)));
        assert_eq!(memory.components.size(), Some(ByteSize::mib(256)));
        assert_eq!(memory.messages.size(), Some(ByteSize::mib(384)));
        assert_eq!(memory.state.memory().size(), Some(ByteSize::mib(128)));
        assert!(ServerMemory::new(LEAST_SERVER_MEMORY).work.can_hold(84 << 20));
    }
}
