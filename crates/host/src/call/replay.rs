//! What a call reads of the clocks and of random numbers, so that a later run of it reads
//! the same.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rand::SeedableRng;
use rand::rngs::StdRng;
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock};

/// How many readings of each clock are kept. What a run reads beyond them, the next one reads
/// anew.
const READINGS: usize = 1 << 14;

/// The clocks and random numbers of a call, and how much it has logged: the same in each of
/// its runs, up to where the run before ended. Clones belong to the same call.
#[derive(Clone)]
pub struct Replay(Arc<ReplayLog>);

struct ReplayLog {
    seed: [u8; 32],
    /// When the monotonic clock was zero: it stands still between the runs.
    begun: Mutex<Instant>,
    wall: Mutex<Vec<Duration>>,
    monotonic: Mutex<Vec<u64>>,
    logged: AtomicUsize,
}

impl Replay {
    /// Nothing was read yet.
    pub fn new() -> Self {
        Self(Arc::new(ReplayLog {
            seed: rand::random(),
            begun: Mutex::new(Instant::now()),
            wall: Mutex::default(),
            monotonic: Mutex::default(),
            logged: AtomicUsize::new(0),
        }))
    }

    /// Gives a run its clocks and random numbers.
    pub(crate) fn begin(&self, wasi: &mut WasiCtxBuilder) {
        let last = lock(&self.0.monotonic).last().copied();
        let begun = last.and_then(|last| Instant::now().checked_sub(Duration::from_nanos(last)));
        if let Some(begun) = begun {
            *lock(&self.0.begun) = begun;
        }
        let secure = StdRng::from_seed(self.0.seed);
        let insecure = StdRng::from_seed(self.0.seed.map(|byte| !byte));
        let (seed, _) = self.0.seed.split_first_chunk().expect("there are more bytes");
        wasi.secure_random(secure)
            .insecure_random(insecure)
            .insecure_random_seed(u128::from_le_bytes(*seed))
            .wall_clock(Clock { recorded: Arc::clone(&self.0), next: Cell::new(0) })
            .monotonic_clock(Clock { recorded: Arc::clone(&self.0), next: Cell::new(0) });
    }

    pub(crate) fn logged(&self) -> usize {
        self.0.logged.load(Ordering::Relaxed)
    }

    /// Notes that a run has logged so many.
    pub(crate) fn log(&self, messages: usize) {
        self.0.logged.fetch_max(messages, Ordering::Relaxed);
    }
}

impl Default for Replay {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Replay {
    /// Without the seed, which random numbers of the guest are made of.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").finish_non_exhaustive()
    }
}

struct Clock {
    recorded: Arc<ReplayLog>,
    next: Cell<usize>,
}

impl Clock {
    fn read<T: Copy>(&self, readings: &Mutex<Vec<T>>, now: impl FnOnce() -> T) -> T {
        let number = self.next.replace(self.next.get() + 1);
        let mut readings = lock(readings);
        if let Some(reading) = readings.get(number) {
            return *reading;
        }
        let reading = now();
        if readings.len() < READINGS {
            readings.push(reading);
        }
        reading
    }
}

impl HostWallClock for Clock {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(1)
    }

    fn now(&self) -> Duration {
        let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.read(&self.recorded.wall, now)
    }
}

impl HostMonotonicClock for Clock {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        let begun = *lock(&self.recorded.begun);
        let now = || u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.read(&self.recorded.monotonic, now)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_run_reads_the_same_and_the_monotonic_clock_stood_still_meanwhile() {
        let replay = Replay::new();
        let clock = || {
            replay.begin(&mut WasiCtxBuilder::new());
            Clock { recorded: Arc::clone(&replay.0), next: Cell::new(0) }
        };
        let (wall, monotonic) = (clock(), clock());
        let walls = [HostWallClock::now(&wall), HostWallClock::now(&wall)];
        let readings = [HostMonotonicClock::now(&monotonic), HostMonotonicClock::now(&monotonic)];
        // As if a person had thought for an hour.
        let mut begun = lock(&replay.0.begun);
        *begun = begun.checked_sub(Duration::from_secs(3600)).unwrap();
        drop(begun);
        let (wall, monotonic) = (clock(), clock());
        assert_eq!([HostWallClock::now(&wall), HostWallClock::now(&wall)], walls);
        let again = [HostMonotonicClock::now(&monotonic), HostMonotonicClock::now(&monotonic)];
        assert_eq!(again, readings);
        let next = HostMonotonicClock::now(&monotonic);
        let hour = u64::try_from(Duration::from_secs(3600).as_nanos()).unwrap();
        assert!(next >= readings[1] && next < hour, "{next} {readings:?}");
    }
}
