//! Deadlines and cancellation.
//!
//! One thread per host sleeps until the nearest deadline; there is no ticker, and nothing runs
//! while no call does. The first call starts it, and calls that end in time do not wake it: they
//! do not move its alarm, which at most rings once without need. When a call has to end, the
//! reason is recorded in the call's own [`Watch`] and its engine's epoch is incremented. An
//! increment reaches every running guest, and each checks its own watch, so that it never ends
//! another call.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use wasmtime::Engine;

use crate::sys::{Handle, Wake};

/// Time until the epoch is incremented again for a guest that missed the first increment: the
/// guest may have been about to set its next epoch deadline.
const AGAIN: Duration = Duration::from_millis(1);

/// Cancels the calls that it was passed to.
///
/// Clones share one state. Cancellation is final: a call that starts with a cancelled handle ends
/// at once.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<CancellationState>);

#[derive(Debug, Default)]
struct CancellationState {
    cancelled: AtomicBool,
    cancelling: Notify,
    signal: Option<Handle>,
    calls: Mutex<Vec<(Weak<Shared>, u64)>>,
}

/// The thread that watches the calls of one host.
#[derive(Debug)]
pub(crate) struct Timer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Watches a call until dropped.
pub(crate) struct WatchGuard<'a> {
    watch: Arc<Watch>,
    number: u64,
    shared: &'a Arc<Shared>,
    cancellation: &'a Cancellation,
}

/// The state that a call checks to learn that it must end.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    reason: AtomicU8,
    notify: Notify,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Deadline = 1,
    Cancelled = 2,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    wake: Wake,
}

#[derive(Debug, Default)]
struct State {
    /// Deadlines of calls, by time; the number distinguishes equal times.
    due: BTreeSet<(Instant, u64)>,
    /// Watched calls, by number.
    calls: BTreeMap<u64, Entry>,
    next_number: u64,
    /// When the thread wakes up on its own. `None` if it sleeps until woken.
    alarm: Option<Instant>,
    /// True if the thread was woken and has not handled it yet.
    woken: bool,
    stopped: bool,
}

#[derive(Debug)]
struct Entry {
    due: Instant,
    engine: Option<Engine>,
    watch: Arc<Watch>,
    /// The call's handle, if a descriptor can cancel it.
    signalled: Option<Cancellation>,
}

impl Cancellation {
    /// Creates a handle that is also cancelled once `signal` is readable: for example the reading
    /// end of a pipe into which a signal handler writes. It is polled while a call runs, and never
    /// read.
    pub fn on_readable(signal: Handle) -> Self {
        Self(Arc::new(CancellationState { signal: Some(signal), ..CancellationState::default() }))
    }

    /// Ends all current and future calls with this handle.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        self.0.cancelling.notify_waiters();
        for (shared, number) in lock(&self.0.calls).drain(..) {
            if let Some(shared) = shared.upgrade() {
                shared.interrupt(number, Reason::Cancelled);
            }
        }
    }

    /// Waits until the handle is cancelled.
    pub async fn cancelled(&self) {
        loop {
            // Created before the flag is checked, so that no cancellation in between is missed.
            let cancelling = self.0.cancelling.notified();
            if self.is_cancelled() {
                return;
            }
            cancelling.await;
        }
    }

    /// Returns true after [`cancel`](Self::cancel), or once the descriptor was found readable.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }
}

impl Timer {
    /// Creates a timer. Its thread starts with the first call.
    pub(crate) fn new() -> io::Result<Self> {
        let shared = Shared { state: Mutex::default(), wake: Wake::new()? };
        Ok(Self { shared: Arc::new(shared), thread: Mutex::default() })
    }

    /// Watches a call until the result is dropped. `engine` is the engine of a call that runs a
    /// guest.
    ///
    /// # Errors
    ///
    /// Fails if no thread can be created; without one, the call would have no deadline.
    pub(crate) fn watch<'a>(
        &'a self,
        engine: Option<&Engine>,
        time: Duration,
        cancellation: &'a Cancellation,
    ) -> io::Result<WatchGuard<'a>> {
        let shared = &self.shared;
        let watch = Arc::new(Watch::default());
        // A limit beyond the range of the clock does not apply.
        let due = Instant::now().checked_add(time).unwrap_or_else(far_future);
        let signalled = cancellation.0.signal.is_some().then(|| cancellation.clone());
        let number = shared.add(Entry {
            due,
            engine: engine.cloned(),
            watch: Arc::clone(&watch),
            signalled,
        });
        let watched = WatchGuard { watch, number, shared, cancellation };
        self.start()?;
        lock(&cancellation.0.calls).push((Arc::downgrade(shared), number));
        // Checked after the call is in the list: a later cancellation finds it there, and an
        // earlier one is found here.
        if cancellation.is_cancelled() {
            shared.interrupt(number, Reason::Cancelled);
        }
        Ok(watched)
    }

    fn start(&self) -> io::Result<()> {
        let mut thread = lock(&self.thread);
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let builder = std::thread::Builder::new().name("kitbag-timer".into());
            *thread = Some(builder.stack_size(64 << 10).spawn(move || shared.run())?);
        }
        Ok(())
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.stopped = true;
        self.shared.wake(&mut state);
        drop(state);
        if let Some(thread) = lock(&self.thread).take() {
            // The thread holds no lock and cannot panic; joining it ensures that no thread
            // outlives its host.
            let _ = thread.join();
        }
    }
}

impl WatchGuard<'_> {
    pub(crate) fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }
}

impl Drop for WatchGuard<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        if let Some(entry) = state.calls.remove(&self.number) {
            state.due.remove(&(entry.due, self.number));
        }
        drop(state);
        let mut calls = lock(&self.cancellation.0.calls);
        // Numbers are unique per host, and a handle may be used by several hosts.
        let is_ours = |(shared, number): &(Weak<Shared>, u64)| {
            *number == self.number && Weak::as_ptr(shared) == Arc::as_ptr(self.shared)
        };
        if let Some(index) = calls.iter().position(is_ours) {
            calls.swap_remove(index);
        }
    }
}

impl Watch {
    pub(crate) fn reason(&self) -> Option<Reason> {
        match self.reason.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Reason::Deadline),
            _ => Some(Reason::Cancelled),
        }
    }

    /// Waits until the call must end.
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
        // The first reason is kept.
        let _ = self.reason.compare_exchange(0, reason as u8, Ordering::AcqRel, Ordering::Acquire);
        self.notify.notify_one();
    }
}

impl Shared {
    fn add(&self, entry: Entry) -> u64 {
        let mut state = lock(&self.state);
        let number = state.next_number;
        state.next_number += 1;
        let is_news = entry.signalled.is_some() || state.alarm.is_none_or(|at| entry.due < at);
        state.due.insert((entry.due, number));
        state.calls.insert(number, entry);
        if is_news {
            self.wake(&mut state);
        }
        number
    }

    fn interrupt(&self, number: u64, reason: Reason) {
        let mut state = lock(&self.state);
        state.end(number, reason);
        self.wake(&mut state);
    }

    /// Makes the thread check again.
    fn wake(&self, state: &mut State) {
        if !std::mem::replace(&mut state.woken, true) {
            self.wake.wake();
        }
    }

    fn run(&self) {
        loop {
            let mut state = lock(&self.state);
            if state.stopped {
                return;
            }
            if std::mem::take(&mut state.woken) {
                self.wake.take();
            }
            let now = Instant::now();
            while let Some(&(due, number)) = state.due.first()
                && due <= now
            {
                state.end(number, Reason::Deadline);
            }
            state.alarm = state.due.first().map(|(due, _)| *due);
            let signalled = state.signalled();
            let timeout = state.alarm.map(|alarm| alarm - now);
            drop(state);
            self.sleep(timeout, &signalled);
        }
    }

    /// Waits for the timeout, a wake-up or a signal. Waking too early does no harm.
    fn sleep(&self, timeout: Option<Duration>, signalled: &[Cancellation]) {
        let signals = signalled.iter().filter_map(|cancellation| cancellation.0.signal.as_ref());
        let are_readable = self.wake.sleep(timeout, signals);
        for (is_readable, cancellation) in are_readable.into_iter().zip(signalled) {
            if is_readable {
                cancellation.cancel();
            }
        }
    }
}

impl State {
    /// Tells one call to end, and repeats this until the call has ended.
    fn end(&mut self, number: u64, reason: Reason) {
        let Some(entry) = self.calls.get_mut(&number) else { return };
        entry.watch.end(reason);
        self.due.remove(&(entry.due, number));
        let Some(engine) = &entry.engine else { return };
        engine.increment_epoch();
        entry.due = Instant::now() + AGAIN;
        self.due.insert((entry.due, number));
    }

    /// Returns the distinct handles that a descriptor may still cancel.
    fn signalled(&self) -> Vec<Cancellation> {
        let mut handles: Vec<Cancellation> = Vec::new();
        for handle in self.calls.values().filter_map(|entry| entry.signalled.as_ref()) {
            let is_new = !handles.iter().any(|known| Arc::ptr_eq(&known.0, &handle.0));
            if is_new && !handle.is_cancelled() {
                handles.push(handle.clone());
            }
        }
        handles
    }
}

/// A panic while one of these locks is held leaves consistent state behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn far_future() -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    Instant::now() + YEAR
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn timer() -> Timer {
        Timer::new().unwrap()
    }

    fn wait(watch: &Watch) -> Reason {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(watch.ended())
    }

    #[test]
    fn a_deadline_ends_only_its_own_call() {
        let timer = timer();
        let cancellation = Cancellation::default();
        let long =
            timer.watch(Some(&Engine::default()), Duration::from_secs(60), &cancellation).unwrap();
        let short =
            timer.watch(Some(&Engine::default()), Duration::from_millis(1), &cancellation).unwrap();
        assert_eq!(wait(short.watch()), Reason::Deadline);
        assert_eq!(long.watch().reason(), None);
    }

    #[test]
    fn cancelling_ends_running_and_later_calls() {
        let timer = timer();
        let cancellation = Cancellation::default();
        let other = Cancellation::default();
        let running =
            timer.watch(Some(&Engine::default()), Duration::from_secs(60), &cancellation).unwrap();
        let bystander =
            timer.watch(Some(&Engine::default()), Duration::from_secs(60), &other).unwrap();
        cancellation.cancel();
        let later =
            timer.watch(Some(&Engine::default()), Duration::from_secs(60), &cancellation).unwrap();
        assert_eq!(wait(running.watch()), Reason::Cancelled);
        assert_eq!(wait(later.watch()), Reason::Cancelled);
        assert_eq!(bystander.watch().reason(), None);
    }

    #[test]
    fn a_readable_descriptor_cancels_its_own_calls() {
        let timer = timer();
        let (reader, mut writer) = io::pipe().unwrap();
        let cancellation = Cancellation::on_readable(reader.into());
        let other = Cancellation::default();
        let bystander =
            timer.watch(Some(&Engine::default()), Duration::from_secs(60), &other).unwrap();
        let first =
            timer.watch(Some(&Engine::default()), Duration::from_secs(60), &cancellation).unwrap();
        assert_eq!((first.watch().reason(), cancellation.is_cancelled()), (None, false));
        writer.write_all(&[0]).unwrap();
        assert_eq!(wait(first.watch()), Reason::Cancelled);
        let later =
            timer.watch(Some(&Engine::default()), Duration::from_secs(60), &cancellation).unwrap();
        assert_eq!(wait(later.watch()), Reason::Cancelled);
        assert_eq!(bystander.watch().reason(), None);
    }

    #[test]
    fn only_a_sooner_deadline_moves_the_alarm() {
        let timer = timer();
        let cancellation = Cancellation::default();
        let slow =
            timer.watch(Some(&Engine::default()), Duration::from_secs(60), &cancellation).unwrap();
        let long =
            timer.watch(Some(&Engine::default()), Duration::from_secs(120), &cancellation).unwrap();
        drop(slow);
        let short =
            timer.watch(Some(&Engine::default()), Duration::from_millis(1), &cancellation).unwrap();
        assert_eq!(wait(short.watch()), Reason::Deadline);
        assert_eq!(long.watch().reason(), None);
    }

    #[test]
    fn one_handle_cancels_calls_of_two_hosts() {
        let (one, other) = (timer(), timer());
        let cancellation = Cancellation::default();
        let hour = Duration::from_secs(60 * 60);
        let ended = one.watch(Some(&Engine::default()), hour, &cancellation).unwrap();
        let running = other.watch(Some(&Engine::default()), hour, &cancellation).unwrap();
        // Both calls have the number 0.
        drop(ended);
        cancellation.cancel();
        assert_eq!(wait(running.watch()), Reason::Cancelled);
    }

    #[test]
    fn an_ended_call_leaves_nothing_behind() {
        let timer = timer();
        let cancellation = Cancellation::default();
        for _ in 0..100 {
            drop(
                timer
                    .watch(Some(&Engine::default()), Duration::from_secs(60), &cancellation)
                    .unwrap(),
            );
        }
        let state = lock(&timer.shared.state);
        assert_eq!((state.due.len(), state.calls.len()), (0, 0));
        assert!(lock(&cancellation.0.calls).is_empty());
    }

    #[test]
    fn the_first_reason_is_kept() {
        let watch = Watch::default();
        watch.end(Reason::Cancelled);
        watch.end(Reason::Deadline);
        assert_eq!(watch.reason(), Some(Reason::Cancelled));
    }
}
