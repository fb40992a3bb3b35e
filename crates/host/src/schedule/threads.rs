//! Threads that run calls.
//!
//! A call runs on its own thread because a guest in an endless loop, or in a file operation that
//! does not return, would block an executor's thread. Waking a thread takes longer than a small
//! call, so an idle thread looks for work a little longer before it sleeps: in a sequence of
//! calls, no thread has to be woken.
//!
//! Long-running guests would keep the processors from short calls and from the protocol thread.
//! When a job arrives while every processor has one, the threads of long-running guests get a low
//! priority. A thread cannot raise its priority again, so it ends with its job.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::sys::lower_thread_priority;

/// How long a thread looks for work before it sleeps. It yields the processor meanwhile.
const LOOKING: Duration = Duration::from_micros(200);

/// How long a job waits for a running thread if each processor has one: most calls end within this
/// time, and more threads would only compete.
const PATIENCE: Duration = Duration::from_micros(200);

/// How long a thread sleeps before it ends.
const IDLE: Duration = Duration::from_secs(10);

/// How long a job runs before it yields: several times the duration of most calls.
const LONG: Duration = Duration::from_millis(50);

thread_local! {
    /// When the job of this thread began. `None` if it has yielded, or on other threads.
    static BEGUN: Cell<Option<Instant>> = const { Cell::new(None) };

    static HAS_GIVEN_WAY: Cell<bool> = const { Cell::new(false) };
}

/// Lowers the priority of this thread if its job has run for long. Has no effect on threads
/// outside [`Threads`].
pub(crate) fn give_way() {
    give_way_after(LONG);
}

fn give_way_after(long: Duration) {
    if BEGUN.get().is_some_and(|begun| begun.elapsed() >= long) {
        BEGUN.set(None);
        HAS_GIVEN_WAY.set(lower_thread_priority());
    }
}

type Job = Box<dyn FnOnce() + Send>;

pub(crate) struct Threads(Arc<Shared>);

struct Shared {
    processors: usize,
    state: Mutex<State>,
    calls: Condvar,
    /// Number of waiting jobs, for reading without the lock.
    waiting: AtomicUsize,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    taken: u64,
    running: usize,
    /// True if a thread is ready to take the next job, or about to be: one at a time.
    has_next: bool,
    sleeping: usize,
    called: usize,
    is_over: bool,
}

impl Threads {
    /// Creates threads for a machine with this many processors.
    pub(crate) fn new(processors: NonZeroUsize) -> Self {
        let shared = Shared {
            processors: processors.get(),
            state: Mutex::default(),
            calls: Condvar::new(),
            waiting: AtomicUsize::new(0),
        };
        Self(Arc::new(shared))
    }

    /// Runs a job on its own thread.
    ///
    /// # Errors
    ///
    /// Fails if the system has no threads left. The job is dropped.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut state = self.0.lock();
        self.0.have_next(&mut state)?;
        state.jobs.push_back(Box::new(job));
        self.0.waiting.store(state.jobs.len(), Ordering::Release);
        Ok(())
    }

    pub(crate) fn are_busy(&self) -> bool {
        self.0.lock().running >= self.0.processors
    }
}

impl Drop for Threads {
    /// Running threads end with their calls; dropping does not wait for them.
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.calls.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ensures that a thread takes the next job.
    fn have_next(self: &Arc<Self>, state: &mut State) -> io::Result<()> {
        if state.has_next {
            return Ok(());
        }
        if state.sleeping > state.called {
            state.called += 1;
            self.calls.notify_one();
        } else {
            let shared = Arc::clone(self);
            let thread = std::thread::Builder::new().name("kitbag-call".into());
            thread.spawn(move || shared.work())?;
        }
        state.has_next = true;
        Ok(())
    }

    fn work(self: Arc<Self>) {
        let mut state = self.lock();
        loop {
            let found;
            (state, found) = self.find(state);
            state.has_next = false;
            if let Some(mut job) = found {
                state.running += 1;
                loop {
                    if !state.jobs.is_empty() {
                        // If no thread can be created, the existing threads continue one job at a
                        // time.
                        let _ = self.have_next(&mut state);
                    }
                    drop(state);
                    BEGUN.set(Some(Instant::now()));
                    // The job's caller is notified, since the job's captures are dropped.
                    let _ = catch_unwind(AssertUnwindSafe(job));
                    state = self.lock();
                    // Another thread takes the waiting jobs, unless the system had none left.
                    if HAS_GIVEN_WAY.get() && (state.has_next || state.jobs.is_empty()) {
                        state.running -= 1;
                        return;
                    }
                    match self.take(&mut state) {
                        Some(next) => job = next,
                        None => break,
                    }
                }
                state.running -= 1;
                if !state.has_next {
                    state.has_next = true;
                    continue;
                }
            }
            let is_called;
            (state, is_called) = self.sleep(state);
            if !is_called {
                return;
            }
        }
    }

    /// Waits for a job as the next thread. Returns `None` if no job arrives for some time.
    fn find<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
    ) -> (MutexGuard<'a, State>, Option<Job>) {
        let until = Instant::now() + LOOKING;
        let mut taken_before = None;
        loop {
            let is_busy = state.running >= self.processors;
            // The running threads took no job meanwhile, so they are busy with longer jobs.
            let is_stuck = taken_before == Some(state.taken);
            if !state.jobs.is_empty() && (!is_busy || is_stuck) {
                let job = self.take(&mut state);
                return (state, job);
            }
            if state.jobs.is_empty() && Instant::now() >= until || state.is_over {
                return (state, None);
            }
            taken_before = is_busy.then_some(state.taken);
            drop(state);
            if is_busy {
                std::thread::sleep(PATIENCE);
            } else {
                while self.waiting.load(Ordering::Acquire) == 0 && Instant::now() < until {
                    std::thread::yield_now();
                }
            }
            state = self.lock();
        }
    }

    fn take(&self, state: &mut State) -> Option<Job> {
        let job = state.jobs.pop_front()?;
        state.taken += 1;
        self.waiting.store(state.jobs.len(), Ordering::Release);
        Some(job)
    }

    /// Sleeps until this thread is called as the next one. Returns false after a timeout.
    fn sleep<'a>(&'a self, mut state: MutexGuard<'a, State>) -> (MutexGuard<'a, State>, bool) {
        state.sleeping += 1;
        let is_idle = |state: &mut State| state.called == 0 && !state.is_over;
        let slept = self.calls.wait_timeout_while(state, IDLE, is_idle);
        (state, _) = slept.unwrap_or_else(PoisonError::into_inner);
        state.sleeping -= 1;
        let is_called = state.called > 0;
        state.called -= usize::from(is_called);
        (state, is_called)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::mpsc;
    use std::thread::ThreadId;

    use super::*;
    use crate::sys::thread_niceness;

    fn threads() -> Threads {
        Threads::new(NonZeroUsize::new(2).unwrap())
    }

    fn id(threads: &Threads) -> ThreadId {
        let (sender, ids) = mpsc::channel();
        threads.run(move || sender.send(std::thread::current().id()).unwrap()).unwrap();
        ids.recv().unwrap()
    }

    /// Waits until the threads are in the wanted state.
    fn wait(threads: &Threads, is_wanted: impl Fn(&State) -> bool) {
        while !is_wanted(&threads.0.lock()) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn concurrent_jobs_get_own_threads_and_later_jobs_reuse_them() {
        let threads = threads();
        let (sender, started) = mpsc::channel();
        let ends: Vec<_> = (0..8)
            .map(|_| {
                let (end, ended) = mpsc::channel::<()>();
                let sender = sender.clone();
                let job = move || {
                    sender.send(std::thread::current().id()).unwrap();
                    let _ = ended.recv();
                };
                threads.run(job).unwrap();
                end
            })
            .collect();
        let ids: HashSet<_> = (0..8).map(|_| started.recv().unwrap()).collect();
        assert_eq!(ids.len(), 8);
        drop(ends);
        wait(&threads, |state| state.running == 0);
        // With a thread that looks for work, and with all threads asleep.
        for has_next in [true, false, true, false] {
            if !has_next {
                wait(&threads, |state| !state.has_next && state.sleeping >= 8);
            }
            assert!(ids.contains(&id(&threads)));
        }
    }

    #[test]
    fn all_of_many_jobs_run() {
        let threads = threads();
        let (sender, done) = mpsc::channel();
        for round in 0..200 {
            for number in 0..20 {
                let sender = sender.clone();
                threads.run(move || sender.send(number).unwrap()).unwrap();
            }
            let mut numbers: Vec<_> = (0..20).map(|_| done.recv().unwrap()).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..20).collect::<Vec<_>>());
            if round % 20 == 0 {
                wait(&threads, |state| !state.has_next);
            }
        }
    }

    #[test]
    fn a_panic_in_a_job_does_not_end_its_thread() {
        let threads = threads();
        let is_free = |state: &State| state.jobs.is_empty() && state.running == 0;
        let first = id(&threads);
        wait(&threads, is_free);
        threads.run(|| panic!("on purpose")).unwrap();
        wait(&threads, is_free);
        assert_eq!(id(&threads), first);
    }

    /// Returns the id and niceness of the thread that runs the next job. The thread yields at once
    /// if `gives_way`.
    fn niceness(threads: &Threads, gives_way: bool) -> (ThreadId, i32) {
        let (sender, found) = mpsc::channel();
        let job = move || {
            if gives_way {
                give_way_after(Duration::ZERO);
            }
            sender.send((std::thread::current().id(), thread_niceness())).unwrap();
        };
        threads.run(job).unwrap();
        found.recv().unwrap()
    }

    #[test]
    fn a_long_job_lowers_its_priority_and_ends_its_thread() {
        let threads = threads();
        let usual = thread_niceness();
        let (first, niceness_of_first) = niceness(&threads, false);
        assert_eq!(niceness_of_first, usual);
        wait(&threads, |state| state.running == 0);
        let (lowered, niceness_of_lowered) = niceness(&threads, true);
        assert_eq!(lowered, first);
        assert!(niceness_of_lowered > usual);
        wait(&threads, |state| state.running == 0);
        let (next, niceness_of_next) = niceness(&threads, false);
        assert_ne!(next, lowered);
        assert_eq!(niceness_of_next, usual);
    }

    #[test]
    fn short_jobs_and_other_threads_keep_their_priority() {
        let usual = thread_niceness();
        give_way_after(Duration::ZERO);
        assert_eq!(thread_niceness(), usual);
        let threads = threads();
        let (sender, found) = mpsc::channel();
        let job = move || {
            give_way_after(Duration::MAX);
            sender.send(thread_niceness()).unwrap();
        };
        threads.run(job).unwrap();
        assert_eq!(found.recv().unwrap(), usual);
    }

    #[test]
    fn waiting_jobs_run_after_a_thread_has_yielded() {
        let threads = threads();
        let (sender, done) = mpsc::channel();
        for number in 0..50 {
            let sender = sender.clone();
            let job = move || {
                give_way_after(Duration::ZERO);
                sender.send(number).unwrap();
            };
            threads.run(job).unwrap();
        }
        let mut numbers: Vec<_> = (0..50).map(|_| done.recv().unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..50).collect::<Vec<_>>());
        wait(&threads, |state| state.running == 0);
    }

    #[test]
    fn threads_end_with_their_owner() {
        let threads = threads();
        id(&threads);
        let shared = Arc::downgrade(&threads.0);
        drop(threads);
        while shared.strong_count() > 0 {
            std::thread::yield_now();
        }
    }
}
