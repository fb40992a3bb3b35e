//! Clock readings and random numbers of a call, replayed to its later runs.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rand::SeedableRng;
use rand::rngs::StdRng;
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock};

/// Number of readings kept of each clock. Readings beyond them are not replayed.
const READINGS: usize = 1 << 14;

/// Clocks, random numbers and logged message count of a call. Each run reads the same values up to
/// the end of the run before it. Clones belong to the same call.
#[derive(Clone)]
pub struct Replay(Arc<ReplayLog>);

struct ReplayLog {
    seed: [u8; 32],
    /// Start of the monotonic clock, which is paused between runs.
    begun: Mutex<Instant>,
    wall: Mutex<Vec<Duration>>,
    monotonic: Mutex<Vec<u64>>,
    logged: AtomicUsize,
}

impl Replay {
    /// Creates an empty replay.
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

    /// Records the number of messages that a run has logged.
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
    /// Omits the seed of the guest's random numbers.
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
    fn the_clocks_are_replayed_and_paused_between_runs() {
        let replay = Replay::new();
        let clock = || {
            replay.begin(&mut WasiCtxBuilder::new());
            Clock { recorded: Arc::clone(&replay.0), next: Cell::new(0) }
        };
        let (wall, monotonic) = (clock(), clock());
        let walls = [HostWallClock::now(&wall), HostWallClock::now(&wall)];
        let readings = [HostMonotonicClock::now(&monotonic), HostMonotonicClock::now(&monotonic)];
        // Simulates an hour between the runs.
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
