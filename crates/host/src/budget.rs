//! Memory that is reserved before it is taken.
//!
//! A server gives out what its configuration lets it have, and no more: a call, a
//! component, a compilation and a message reserve what they may need. What does
//! not fit waits, or is refused and can be tried again. A process that is no
//! server has no budget, and a reservation costs nothing there.

use std::sync::Arc;

use kitbag_contract::{ByteSize, LEAST_SERVER_MEMORY};
use kitbag_http::Shares;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What is counted at once: smaller reservations are rounded up to it.
const UNIT_BYTES: u64 = 1 << 10;

/// What a server needs before it does anything: its code, its threads, its
/// engines, memory that is kept for the next calls, and what the allocator keeps.
const BASE: ByteSize = ByteSize::mib(128);

/// Memory that can be reserved. Clones are the same budget.
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
    /// `None` where nothing is counted, or nothing is reserved.
    permit: Option<OwnedSemaphorePermit>,
    /// What it takes of the share of one tool.
    _share: Option<OwnedSemaphorePermit>,
}

/// The budgets of a server. Each part has its own, so that none waits for what
/// another holds: a message that waits for its call never keeps that call from
/// running.
#[derive(Clone, Debug)]
pub struct ServerMemory {
    /// Calls that run, and compilations: what the others leave.
    pub work: MemoryBudget,
    /// The code of components that are loaded: an eighth of the whole.
    pub components: MemoryBudget,
    /// Requests until they are answered, and answers until they are written: a
    /// quarter of the whole.
    pub messages: MemoryBudget,
}

impl ServerMemory {
    /// Divides the memory of a server, at least [`LEAST_SERVER_MEMORY`].
    pub fn new(total: ByteSize) -> Self {
        let total = total.max(LEAST_SERVER_MEMORY).as_u64();
        let (messages, components) = (total / 4, total / 8);
        let work = total - messages - components - BASE.as_u64();
        Self {
            work: MemoryBudget::new(ByteSize::bytes(work)),
            components: MemoryBudget::new(ByteSize::bytes(components)),
            messages: MemoryBudget::new(ByteSize::bytes(messages)),
        }
    }
}

impl Default for ServerMemory {
    /// Without a bound, as for a single call on a command line.
    fn default() -> Self {
        let unlimited = MemoryBudget::unlimited;
        Self { work: unlimited(), components: unlimited(), messages: unlimited() }
    }
}

impl MemoryBudget {
    /// A budget of so many bytes.
    pub fn new(size: ByteSize) -> Self {
        let units = u32::try_from(size.as_u64() / UNIT_BYTES).unwrap_or(u32::MAX);
        let free = Semaphore::new((units as usize).min(Semaphore::MAX_PERMITS));
        let shares = Shares::of(units as usize);
        Self(Some(Arc::new(Limited { units, free: Arc::new(free), shares })))
    }

    /// No budget: everything fits.
    pub fn unlimited() -> Self {
        Self(None)
    }

    /// The whole of it; `None` where there is no bound.
    pub fn size(&self) -> Option<ByteSize> {
        let limited = self.0.as_deref()?;
        Some(ByteSize::bytes(u64::from(limited.units) * UNIT_BYTES))
    }

    /// What is reserved now.
    pub fn reserved(&self) -> ByteSize {
        let reserved = self.0.as_deref().map_or(0, |limited| {
            u64::from(limited.units).saturating_sub(limited.free.available_permits() as u64)
        });
        ByteSize::bytes(reserved * UNIT_BYTES)
    }

    /// Whether so much fits where nothing else is reserved.
    pub fn can_hold(&self, bytes: u64) -> bool {
        self.0.as_deref().is_none_or(|limited| units(bytes) <= u64::from(limited.units))
    }

    /// Reserves so many bytes, if they are free now.
    pub fn reserve(&self, bytes: u64) -> Option<Reservation> {
        let mut reservation = Reservation { budget: self.clone(), permit: None, _share: None };
        reservation.grow(bytes).then_some(reservation)
    }

    /// As [`reserve`](Self::reserve), within the share of a tool: all but an eighth, or one
    /// reservation that is more.
    pub fn reserve_for(&self, tool: &str, bytes: u64) -> Option<Reservation> {
        let share = match self.0.as_deref() {
            None => None,
            Some(limited) => {
                Some(limited.shares.try_take(tool, u32::try_from(units(bytes)).ok()?)?)
            }
        };
        Some(Reservation { _share: share, ..self.reserve(bytes)? })
    }

    /// As [`wait`](Self::wait), within the share of a tool.
    pub async fn wait_for(&self, tool: &str, bytes: u64) -> Option<Reservation> {
        let share = match self.0.as_deref() {
            Some(limited) if self.can_hold(bytes) => {
                Some(limited.shares.take(tool, u32::try_from(units(bytes)).ok()?).await?)
            }
            Some(_) | None => None,
        };
        Some(Reservation { _share: share, ..self.wait(bytes).await? })
    }

    /// Reserves so many bytes as soon as they are free; those who wait are served
    /// in their order. `None` where they never fit.
    pub async fn wait(&self, bytes: u64) -> Option<Reservation> {
        let permit = match self.0.as_deref() {
            None => None,
            Some(limited) => {
                let units = u32::try_from(units(bytes)).ok().filter(|n| *n <= limited.units)?;
                Some(Arc::clone(&limited.free).acquire_many_owned(units).await.ok()?)
            }
        };
        Some(Reservation { budget: self.clone(), permit, _share: None })
    }
}

impl Reservation {
    /// Reserves so many bytes more, if they are free now. Where they are not,
    /// what was reserved before stays.
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

    /// Gives back all but so many bytes.
    pub fn shrink(&mut self, bytes: u64) {
        let keep = usize::try_from(units(bytes)).unwrap_or(usize::MAX);
        if let Some(permit) = &mut self.permit {
            drop(permit.split(permit.num_permits().saturating_sub(keep)));
        }
    }
}

fn units(bytes: u64) -> u64 {
    bytes.div_ceil(UNIT_BYTES)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    const KIB: u64 = 1 << 10;

    fn budget(kib: u64) -> MemoryBudget {
        MemoryBudget::new(ByteSize::bytes(kib * KIB))
    }

    #[test]
    fn what_does_not_fit_is_refused_until_something_is_given_back() {
        let budget = budget(10);
        let first = budget.reserve(6 * KIB).unwrap();
        assert!(budget.reserve(5 * KIB).is_none());
        // Less than a unit counts as one.
        let _second = budget.reserve(3 * KIB + 1).unwrap();
        assert_eq!(budget.reserved(), ByteSize::bytes(10 * KIB));
        assert!(budget.reserve(1).is_none());
        drop(first);
        assert_eq!(budget.reserved(), ByteSize::bytes(4 * KIB));
        assert!(budget.reserve(6 * KIB).is_some());
    }

    #[test]
    fn a_reservation_grows_and_shrinks() {
        let budget = budget(10);
        let mut reservation = budget.reserve(0).unwrap();
        assert!(reservation.grow(8 * KIB));
        assert!(!reservation.grow(3 * KIB));
        assert_eq!(budget.reserved(), ByteSize::bytes(8 * KIB));
        reservation.shrink(KIB);
        assert_eq!(budget.reserved(), ByteSize::bytes(KIB));
        reservation.shrink(20 * KIB);
        assert_eq!(budget.reserved(), ByteSize::bytes(KIB));
        drop(reservation);
        assert_eq!(budget.reserved(), ByteSize::bytes(0));
    }

    #[test]
    fn those_who_wait_are_served_in_their_order() {
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
        let held = budget.reserve_for("hangs", 14 * KIB).unwrap();
        assert!(budget.reserve_for("hangs", KIB).is_none());
        let mut next = Box::pin(budget.wait_for("hangs", KIB));
        assert!(next.as_mut().poll(&mut context).is_pending());
        assert!(budget.reserve_for("other", 2 * KIB).is_some());
        drop(held);
        assert!(matches!(next.as_mut().poll(&mut context), Poll::Ready(Some(_))));
        drop(next);
        // One that is larger than a share has it when nothing else of the tool is there.
        let mut large = Box::pin(budget.wait_for("hangs", 16 * KIB));
        assert!(matches!(large.as_mut().poll(&mut context), Poll::Ready(Some(_))));
        let mut never = Box::pin(budget.wait_for("hangs", 17 * KIB));
        assert!(matches!(never.as_mut().poll(&mut context), Poll::Ready(None)));
    }

    #[test]
    fn what_never_fits_does_not_wait() {
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
        assert_eq!(memory.messages.size(), Some(ByteSize::mib(512)));
        assert!(ServerMemory::new(LEAST_SERVER_MEMORY).work.can_hold(84 << 20));
    }
}
