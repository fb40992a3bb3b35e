//! Deadlines and cancellation.
//!
//! One thread per engine sleeps to the nearest deadline; there is no ticker,
//! and nothing runs while no call does. When a call has to end, the reason is
//! noted in the call's own [`Watch`] and the engine's epoch is bumped. A bump
//! reaches every running guest, and each looks at its own watch, so a bump for
//! one never ends another.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use wasmtime::Engine;

/// How soon a guest is bumped again when it has missed the first bump: it may
/// just then have been about to set its next epoch deadline.
const AGAIN: Duration = Duration::from_millis(1);

/// Cancels the calls it was given to.
///
/// Clones share one state. Cancelling is final: a call that is started with a
/// cancelled handle ends at once.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<CancellationState>);

#[derive(Debug, Default)]
struct CancellationState {
    cancelled: AtomicBool,
    calls: Mutex<Vec<(Weak<Shared>, u64)>>,
}

/// The thread that watches over the calls of one engine.
#[derive(Debug)]
pub(crate) struct Timer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// A call under watch, until this is dropped.
pub(crate) struct Watched<'a> {
    watch: Arc<Watch>,
    number: u64,
    shared: &'a Arc<Shared>,
    cancellation: &'a Cancellation,
}

/// What one call looks at to learn that it has to end.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    reason: AtomicU8,
    notify: Notify,
}

/// Why a call has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Its time is up.
    Deadline = 1,
    /// Somebody cancelled it.
    Cancelled = 2,
}

#[derive(Debug)]
struct Shared {
    engine: Engine,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// When calls are due, by time; the number keeps equal times apart.
    due: BTreeSet<(Instant, u64)>,
    /// The calls under watch, by number.
    calls: HashMap<u64, (Instant, Arc<Watch>)>,
    next_number: u64,
    stopped: bool,
}

impl Cancellation {
    /// Ends every call that was, or will be, given this handle.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        for (shared, number) in lock(&self.0.calls).drain(..) {
            if let Some(shared) = shared.upgrade() {
                shared.interrupt(number, Reason::Cancelled);
            }
        }
    }

    /// Whether [`cancel`](Self::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }
}

impl Timer {
    /// Starts the thread.
    pub(crate) fn start(engine: &Engine) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            engine: engine.clone(),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let thread = std::thread::Builder::new()
            .name("kitbag-timer".into())
            .stack_size(64 << 10)
            .spawn({
            let shared = Arc::clone(&shared);
            move || shared.run()
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// The engine whose calls this watches over.
    pub(crate) fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// Watches over a call until the result is dropped.
    pub(crate) fn watch<'a>(
        &'a self,
        time: Duration,
        cancellation: &'a Cancellation,
    ) -> Watched<'a> {
        let shared = &self.shared;
        let watch = Arc::new(Watch::default());
        // A limit beyond what the clock can express is no limit.
        let due = Instant::now().checked_add(time).unwrap_or_else(far_future);
        let number = shared.add(due, Arc::clone(&watch));
        lock(&cancellation.0.calls).push((Arc::downgrade(shared), number));
        // Looked at after the call is on the list: whoever cancels in between
        // finds it there, and whoever cancelled before is seen here.
        if cancellation.is_cancelled() {
            shared.interrupt(number, Reason::Cancelled);
        }
        Watched { watch, number, shared, cancellation }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        lock(&self.shared.state).stopped = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // The thread holds nothing and cannot panic; joining it here means
            // that no thread outlives the host that started it.
            let _ = thread.join();
        }
    }
}

impl Watched<'_> {
    /// What the guest's epoch callback looks at.
    pub(crate) fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        if let Some((due, _)) = state.calls.remove(&self.number) {
            state.due.remove(&(due, self.number));
        }
        drop(state);
        let mut calls = lock(&self.cancellation.0.calls);
        if let Some(index) = calls.iter().position(|(_, number)| *number == self.number) {
            calls.swap_remove(index);
        }
    }
}

impl Watch {
    /// Why the call has to end, if it has to.
    pub(crate) fn reason(&self) -> Option<Reason> {
        match self.reason.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Reason::Deadline),
            _ => Some(Reason::Cancelled),
        }
    }

    /// Waits until the call has to end.
    pub(crate) async fn ended(&self) -> Reason {
        loop {
            let notified = self.notify.notified();
            if let Some(reason) = self.reason() {
                return reason;
            }
            notified.await;
        }
    }

    fn end(&self, reason: Reason) {
        // The first reason stays.
        let _ = self.reason.compare_exchange(0, reason as u8, Ordering::AcqRel, Ordering::Acquire);
        self.notify.notify_one();
    }
}

impl Shared {
    fn add(&self, due: Instant, watch: Arc<Watch>) -> u64 {
        let mut state = lock(&self.state);
        let number = state.next_number;
        state.next_number += 1;
        let is_first = state.due.first().is_none_or(|(first, _)| due < *first);
        state.due.insert((due, number));
        state.calls.insert(number, (due, watch));
        if is_first {
            self.changed.notify_one();
        }
        number
    }

    /// Ends one call now.
    fn interrupt(&self, number: u64, reason: Reason) {
        let mut state = lock(&self.state);
        state.end(number, reason);
        drop(state);
        self.engine.increment_epoch();
        self.changed.notify_one();
    }

    /// What the thread does until the timer is dropped.
    fn run(&self) {
        let mut state = lock(&self.state);
        while !state.stopped {
            let now = Instant::now();
            match state.due.first().copied() {
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some((due, _)) if due > now => {
                    state = self
                        .changed
                        .wait_timeout(state, due - now)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0;
                }
                Some((_, number)) => {
                    state.end(number, Reason::Deadline);
                    self.engine.increment_epoch();
                }
            }
        }
    }
}

impl State {
    /// Tells one call to end, and comes back to it until it has.
    fn end(&mut self, number: u64, reason: Reason) {
        let Some((due, watch)) = self.calls.get_mut(&number) else { return };
        watch.end(reason);
        self.due.remove(&(*due, number));
        *due = Instant::now() + AGAIN;
        self.due.insert((*due, number));
    }
}

/// A panic while one of these locks is held leaves nothing half-done behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn far_future() -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    Instant::now() + YEAR
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timer() -> Timer {
        Timer::start(&Engine::default()).unwrap()
    }

    fn wait(watch: &Watch) -> Reason {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(watch.ended())
    }

    #[test]
    fn a_deadline_ends_its_own_call_and_no_other() {
        let timer = timer();
        let cancellation = Cancellation::default();
        let long = timer.watch(Duration::from_secs(60), &cancellation);
        let short = timer.watch(Duration::from_millis(1), &cancellation);
        assert_eq!(wait(short.watch()), Reason::Deadline);
        assert_eq!(long.watch().reason(), None);
    }

    #[test]
    fn cancelling_ends_the_calls_that_run_and_those_that_start_later() {
        let timer = timer();
        let cancellation = Cancellation::default();
        let other = Cancellation::default();
        let running = timer.watch(Duration::from_secs(60), &cancellation);
        let bystander = timer.watch(Duration::from_secs(60), &other);
        cancellation.cancel();
        let later = timer.watch(Duration::from_secs(60), &cancellation);
        assert_eq!(wait(running.watch()), Reason::Cancelled);
        assert_eq!(wait(later.watch()), Reason::Cancelled);
        assert_eq!(bystander.watch().reason(), None);
    }

    #[test]
    fn a_call_that_ended_leaves_nothing_behind() {
        let timer = timer();
        let cancellation = Cancellation::default();
        for _ in 0..100 {
            drop(timer.watch(Duration::from_secs(60), &cancellation));
        }
        let state = lock(&timer.shared.state);
        assert_eq!((state.due.len(), state.calls.len()), (0, 0));
        assert!(lock(&cancellation.0.calls).is_empty());
    }

    #[test]
    fn the_first_reason_stays() {
        let watch = Watch::default();
        watch.end(Reason::Cancelled);
        watch.end(Reason::Deadline);
        assert_eq!(watch.reason(), Some(Reason::Cancelled));
    }
}
