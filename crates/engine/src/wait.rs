//! Waits for the compilation of a component, in this process or another.
//!
//! A wait has a time limit, can be cancelled, and reports its progress.

use std::cell::Cell;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use kitbag_base::ByteSize;
use kitbag_base::text::shown;

/// Delay before the first report; later reports follow every second. Most components are compiled
/// before that.
const QUIET: Duration = Duration::from_millis(500);

/// Maximum delay until a cancelled wait ends.
const LOOK: Duration = Duration::from_millis(20);

/// The first and the last polling interval.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

/// The call that waits for a component: it can end the wait and receives reports.
pub trait Waiter {
    /// Returns true if the call was cancelled or its deadline has passed.
    fn is_over(&self) -> bool;

    /// Returns true if no call waits, so that the compiling process has a low priority.
    fn is_background(&self) -> bool {
        false
    }

    /// Returns true if the waiter receives reports.
    fn listens(&self) -> bool {
        false
    }

    /// Receives a report: half a second after the start, and then once a second.
    fn compiling(&self, compiling: &Compiling<'_>) {
        let _ = compiling;
    }
}

/// A waiter without deadline and reports, such as a build script.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patient;

impl Waiter for Patient {
    fn is_over(&self) -> bool {
        false
    }
}

/// A component that a call waits for. Displayed for people: `compiling plot.wasm (18 MiB) 3 s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compiling<'a> {
    /// The path of the file.
    pub path: &'a Path,
    /// The size of the file.
    pub size: ByteSize,
    /// The time that the call has waited.
    pub elapsed: Duration,
}

impl fmt::Display for Compiling<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy();
        // The size of a file is seldom a whole number of a larger unit.
        let (bytes, seconds) = (self.size.as_u64(), self.elapsed.as_secs());
        let (size, unit) = match bytes >> 20 {
            0 => (bytes.div_ceil(1 << 10), "KiB"),
            _ => ((bytes + (1 << 19)) >> 20, "MiB"),
        };
        write!(f, "compiling {} ({size} {unit})", shown(&name))?;
        match seconds {
            0 => Ok(()),
            seconds => write!(f, " {seconds} s"),
        }
    }
}

/// The time since the start of a wait.
enum Clock {
    Since(Instant),
    /// Set by tests.
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

/// A wait in progress.
pub struct Wait<'a> {
    path: &'a Path,
    size: ByteSize,
    waiter: &'a dyn Waiter,
    limit: Duration,
    clock: Clock,
    /// The time of the next report, from the start.
    due: Cell<Duration>,
}

impl<'a> Wait<'a> {
    /// Starts to wait for the component with this path and size. `limit` is the time limit of its
    /// compilation.
    pub fn new(path: &'a Path, size: u64, waiter: &'a dyn Waiter, limit: Duration) -> Self {
        let (size, due) = (ByteSize::bytes(size), Cell::new(QUIET));
        let clock = Clock::Since(Instant::now());
        Self { path, size, waiter, limit, clock, due }
    }

    /// Returns true if the wait was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.waiter.is_over()
    }

    /// Returns true if no call waits for the compilation.
    #[cfg(feature = "compiler")]
    pub(crate) fn is_background(&self) -> bool {
        self.waiter.is_background()
    }

    /// Returns the time limit of the compilation, and of waiting for other processes.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns the path of the file, for errors.
    pub fn path(&self) -> &Path {
        self.path
    }

    /// Calls `step` until it returns a value, at most for `time` or until the wait is cancelled. A
    /// step must not take longer than its argument. It is called at least once.
    pub fn until<T>(
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

    /// Like [`until`](Self::until), for a condition that must be polled: often at first, then less
    /// often.
    pub fn poll<T>(&self, time: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
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

    /// Returns the time until the next report.
    fn quiet(&self) -> Duration {
        match self.waiter.listens() {
            false => Duration::MAX,
            true => self.due.get().saturating_sub(self.clock.elapsed()),
        }
    }

    fn tell(&self) {
        if self.quiet().is_zero() {
            let elapsed = self.clock.elapsed();
            self.due.set(Duration::from_secs(elapsed.as_secs() + 1));
            let compiling = Compiling { path: self.path, size: self.size, elapsed };
            self.waiter.compiling(&compiling);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Records its reports.
    #[derive(Default)]
    struct Notes(Mutex<Vec<(String, Duration)>>);

    impl Waiter for Notes {
        fn is_over(&self) -> bool {
            false
        }

        fn listens(&self) -> bool {
            true
        }

        fn compiling(&self, compiling: &Compiling<'_>) {
            self.0.lock().unwrap().push((compiling.to_string(), compiling.elapsed));
        }
    }

    /// Ends a wait when it is set.
    #[derive(Default)]
    struct Cancellation(AtomicBool);

    impl Waiter for Cancellation {
        fn is_over(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn reports_are_single_lines_without_control_characters() {
        let check = |path: &str, bytes: u64, seconds: u64, expected: &str| {
            let (size, elapsed) = (ByteSize::bytes(bytes), Duration::from_secs(seconds));
            let compiling = Compiling { path: Path::new(path), size, elapsed };
            assert_eq!(compiling.to_string(), expected);
        };
        check("/a/plot.wasm", 18_874_369, 3, "compiling plot.wasm (18 MiB) 3 s");
        check("/a/plot.wasm", 1 << 20, 61, "compiling plot.wasm (1 MiB) 61 s");
        check("b", 240_001, 0, "compiling b (235 KiB)");
        check("/", 0, 0, "compiling / (0 KiB)");
        check("a\n\u{1b}[2J.wasm", 1, 0, "compiling a\\n\\u{1b}[2J.wasm (1 KiB)");
    }

    #[test]
    fn waits_are_reported_after_half_a_second_and_each_second() {
        let notes = Notes::default();
        let clock = Rc::<Cell<Duration>>::default();
        let wait = Wait {
            clock: Clock::Set(Rc::clone(&clock)),
            ..Wait::new(Path::new("/a/plot.wasm"), 18 << 20, &notes, Duration::MAX)
        };
        let sleep = |slice: Duration| -> Option<()> {
            clock.set(clock.get() + slice);
            None
        };
        // Consecutive waits are one wait for the listener.
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
    fn waits_end_with_their_result_or_time() {
        let cancellation = Cancellation::default();
        let clock = Rc::<Cell<Duration>>::default();
        let wait = Wait {
            clock: Clock::Set(Rc::clone(&clock)),
            ..Wait::new(Path::new("a"), 0, &cancellation, Duration::MAX)
        };
        assert_eq!(wait.until(Duration::ZERO, |_| Some(1)), Some(1), "step is always called");
        let mut slices = Vec::new();
        let time = Duration::from_millis(5);
        let never = wait.until(time, |slice| {
            slices.push(slice);
            clock.set(clock.get() + slice);
            None::<()>
        });
        assert_eq!(never, None);
        // Without a listener, nothing interrupts the wait, and the last step has no time.
        assert_eq!(slices, [time, Duration::ZERO]);
        // The wait ends when it is cancelled.
        let mut steps = 0;
        let never = wait.until(Duration::MAX, |slice| {
            steps += 1;
            assert!(slice <= LOOK);
            cancellation.0.store(true, Ordering::Relaxed);
            None::<()>
        });
        assert_eq!((never, steps), (None, 1));
    }
}
