//! Waiting for a component to compile, in this process or in another.
//!
//! A wait is bounded in time, can be cancelled, and reports its progress.

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

use kitbag_contract::ByteSize;

use crate::context::RunContext;
use crate::report::Compiling;

/// When a wait is reported first; from then on it is at each whole second. Most
/// components are compiled before that.
const QUIET: Duration = Duration::from_millis(500);

/// How soon a wait ends that is cancelled.
const LOOK: Duration = Duration::from_millis(20);

/// How often something is looked at, at first and in the end.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

/// How much time has passed since a wait began.
enum Clock {
    Since(Instant),
    /// For tests, which set it.
    #[cfg(test)]
    Set(std::rc::Rc<Cell<Duration>>),
}

impl Clock {
    fn elapsed(&self) -> Duration {
        match self {
            Self::Since(start) => start.elapsed(),
            #[cfg(test)]
            Self::Set(elapsed) => elapsed.get(),
        }
    }
}

/// A wait that has begun.
pub(crate) struct Wait<'a> {
    path: &'a Path,
    size: ByteSize,
    context: &'a RunContext,
    limit: Duration,
    clock: Clock,
    /// When it is reported next, from the start.
    due: Cell<Duration>,
}

impl<'a> Wait<'a> {
    /// Begins to wait for the component of this file and size, which may take so long to
    /// compile.
    pub(crate) fn new(path: &'a Path, size: u64, context: &'a RunContext, limit: Duration) -> Self {
        let (size, due) = (ByteSize::bytes(size), Cell::new(QUIET));
        let clock = Clock::Since(Instant::now());
        Self { path, size, context, limit, clock, due }
    }

    /// Whether the wait was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.context.is_over()
    }

    /// Whether it runs in the background, and no call waits for it.
    #[cfg(feature = "compiler")]
    pub(crate) fn is_background(&self) -> bool {
        self.context.is_background
    }

    /// How long the compilation may take, and how long one waits for that of others.
    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// The file, for errors.
    pub(crate) fn path(&self) -> &Path {
        self.path
    }

    /// Waits until `step` has what it waits for, and no longer than `time` or until it
    /// is cancelled. A step takes no longer than its argument says; there is
    /// always one.
    pub(crate) fn until<T>(
        &self,
        time: Duration,
        mut step: impl FnMut(Duration) -> Option<T>,
    ) -> Option<T> {
        let end = self.clock.elapsed().saturating_add(time);
        loop {
            let left = end.saturating_sub(self.clock.elapsed());
            let done = step(left.min(self.quiet()).min(LOOK));
            if done.is_some() || left.is_zero() || self.is_cancelled() {
                return done;
            }
            self.tell();
        }
    }

    /// As [`until`](Self::until), for a condition that has to be polled: often at first,
    /// and then less often.
    pub(crate) fn poll<T>(&self, time: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        let [mut pause, longest] = PAUSES;
        self.until(time, |slice| {
            let found = look();
            if found.is_none() {
                std::thread::sleep(slice.min(pause));
                pause = (pause * 2).min(longest);
            }
            found
        })
    }

    /// How long until the next report.
    fn quiet(&self) -> Duration {
        match self.context.events.is_empty() {
            true => Duration::MAX,
            false => self.due.get().saturating_sub(self.clock.elapsed()),
        }
    }

    fn tell(&self) {
        if self.quiet().is_zero() {
            let elapsed = self.clock.elapsed();
            self.due.set(Duration::from_secs(elapsed.as_secs() + 1));
            let compiling = Compiling { path: self.path, size: self.size, elapsed };
            self.context.events.compiling(&compiling);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::report::{EventSink, Listener};

    /// Records what it receives.
    #[derive(Default)]
    struct Notes(Mutex<Vec<(String, Duration)>>);

    impl Listener for Notes {
        fn compiling(&self, compiling: &Compiling<'_>) {
            self.0.lock().unwrap().push((compiling.to_string(), compiling.elapsed));
        }
    }

    #[test]
    fn a_wait_is_reported_after_half_a_second_and_then_at_each_second() {
        let notes = Arc::<Notes>::default();
        let events = EventSink::new(Arc::<Notes>::clone(&notes));
        let context = RunContext { events, ..RunContext::default() };
        let clock = Rc::<Cell<Duration>>::default();
        let wait = Wait {
            clock: Clock::Set(Rc::clone(&clock)),
            ..Wait::new(Path::new("/a/plot.wasm"), 18 << 20, &context, Duration::MAX)
        };
        let sleep = |slice: Duration| -> Option<()> {
            clock.set(clock.get() + slice);
            None
        };
        // Several waits in a row are one wait for the listener.
        assert_eq!(wait.until(Duration::from_millis(300), sleep), None);
        assert_eq!(*notes.0.lock().unwrap(), []);
        assert_eq!(wait.until(Duration::from_millis(800), sleep), None);
        let received = notes.0.lock().unwrap();
        let texts: Vec<_> = received.iter().map(|(text, time)| (&**text, *time)).collect();
        let [half, one] = [500, 1_000].map(Duration::from_millis);
        let text = "compiling plot.wasm (18 MiB)";
        assert_eq!(texts, [(text, half), (&format!("{text} 1 s"), one)]);
    }

    #[test]
    fn a_wait_ends_with_what_it_waits_for_or_its_time() {
        let context = RunContext::default();
        let clock = Rc::<Cell<Duration>>::default();
        let wait = Wait {
            clock: Clock::Set(Rc::clone(&clock)),
            ..Wait::new(Path::new("a"), 0, &context, Duration::MAX)
        };
        assert_eq!(wait.until(Duration::ZERO, |_| Some(1)), Some(1), "there is always a step");
        let mut slices = Vec::new();
        let time = Duration::from_millis(5);
        let never = wait.until(time, |slice| {
            slices.push(slice);
            clock.set(clock.get() + slice);
            None::<()>
        });
        assert_eq!(never, None);
        // Without a listener nothing interrupts it, and the last step has no time.
        assert_eq!(slices, [time, Duration::ZERO]);
        // Nor does it go on when it is cancelled.
        let mut steps = 0;
        let never = wait.until(Duration::MAX, |slice| {
            steps += 1;
            assert!(slice <= LOOK);
            context.cancellation.cancel();
            None::<()>
        });
        assert_eq!((never, steps), (None, 1));
    }
}
