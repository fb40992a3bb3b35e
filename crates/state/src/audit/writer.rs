//! Appends lines in the background, so that calls do not wait.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::audit::error::AuditError;
use crate::audit::log::{AuditLog, Pending};
use crate::audit::record::AuditEvent;

/// The time that a line waits for others to be written together.
const WAIT: Duration = Duration::from_millis(100);

/// Maximum number of lines that wait if they cannot be written. Further lines are only counted.
const MOST_WAITING: usize = 10_000;

/// The number of waiting lines that are written without further delay.
const BATCH: usize = 1_000;

/// The time at which lines are synced to disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Syncing {
    /// Left to the system.
    None,
    /// After each batch of the writer.
    #[default]
    Batch,
    /// Before the call of the line is answered.
    Each,
}

/// The thread that writes lines that need not be synced immediately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writing {
    /// The recording thread: suitable for a process that makes one call.
    Direct,
    /// A background thread, within 100 ms. The first line starts it.
    #[default]
    Background,
}

/// Records events in a log.
pub struct Auditor {
    shared: Arc<Shared>,
    sync: Syncing,
    writing: Writing,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// True if the log was checked.
    is_checked: AtomicBool,
}

struct Shared {
    log: AuditLog,
    /// Locked by the writing thread, so that lines keep their order.
    turn: Mutex<()>,
    waiting: Mutex<Waiting>,
    /// Signals new lines or the end.
    changed: Condvar,
    is_synced: bool,
}

#[derive(Default)]
struct Waiting {
    records: Vec<Pending>,
    /// The number of lines beyond [`MOST_WAITING`].
    lost: u64,
    /// Why the last lines could not be written.
    problem: Option<AuditError>,
    /// True if a thread was notified of the lines.
    is_noticed: bool,
    has_ended: bool,
}

impl Auditor {
    /// Creates an auditor. The log is not accessed before the first event.
    pub fn new(log: AuditLog, sync: Syncing, writing: Writing) -> Self {
        let is_synced = sync != Syncing::None && writing == Writing::Background;
        let shared = Shared {
            log,
            turn: Mutex::default(),
            waiting: Mutex::default(),
            changed: Condvar::new(),
            is_synced,
        };
        Self {
            shared: Arc::new(shared),
            sync,
            writing,
            thread: Mutex::default(),
            is_checked: AtomicBool::new(false),
        }
    }

    /// Returns the log.
    pub fn log(&self) -> &AuditLog {
        &self.shared.log
    }

    /// Records an event. If it cannot be written, it waits for the next one, and
    /// [`problem`](Self::problem) returns the reason.
    pub fn record(&self, event: AuditEvent) {
        let record = Pending::new(event);
        let mut waiting = self.shared.waiting();
        waiting.push(record);
        if self.sync == Syncing::Each || self.writing == Writing::Direct {
            drop(waiting);
            self.flush();
            return;
        }
        if !mem::replace(&mut waiting.is_noticed, true) {
            drop(waiting);
            self.start();
            self.shared.changed.notify_one();
        }
    }

    /// Records an event and writes it together with all waiting lines before this returns, so that
    /// it survives the end of the process. Does not wait for the disk.
    pub fn record_now(&self, event: AuditEvent) {
        self.shared.waiting().push(Pending::new(event));
        self.shared.write(false);
    }

    /// Returns why the last lines could not be written, after another attempt.
    pub fn problem(&self) -> Option<AuditError> {
        self.shared.waiting().problem.as_ref()?;
        self.flush();
        self.shared.waiting().problem.clone()
    }

    /// Checks that lines can be written: writes waiting lines if that failed before, and checks the
    /// log without a line if none was recorded.
    ///
    /// # Errors
    ///
    /// Why lines cannot be written.
    pub fn check(&self) -> Result<(), AuditError> {
        if let Some(problem) = self.problem() {
            return Err(problem);
        }
        if !self.is_checked.load(Ordering::Acquire) {
            self.shared.log.append(&mut Vec::new())?;
            self.is_checked.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Writes waiting lines.
    pub fn flush(&self) {
        self.shared.write(self.sync == Syncing::Each);
    }

    /// Records an event without writing it.
    #[cfg(test)]
    pub(crate) fn queue(&self, event: AuditEvent) {
        self.shared.waiting().push(Pending::new(event));
    }

    /// Starts the thread if it does not run.
    fn start(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let started = thread::Builder::new().name("audit".into()).spawn(move || shared.run());
            match started {
                Ok(handle) => *thread = Some(handle),
                // Without a thread, the recording thread writes.
                Err(_) => {
                    drop(thread);
                    self.shared.waiting().is_noticed = false;
                    self.flush();
                }
            }
        }
    }
}

impl Drop for Auditor {
    fn drop(&mut self) {
        self.shared.waiting().has_ended = true;
        self.shared.changed.notify_one();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        self.flush();
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes waiting lines in batches until the end.
    fn run(&self) {
        let mut waiting = self.waiting();
        loop {
            while !waiting.is_noticed && !waiting.has_ended {
                waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            if waiting.has_ended {
                return;
            }
            // Further lines do not wake this thread.
            let is_full =
                |waiting: &mut Waiting| waiting.records.len() < BATCH && !waiting.has_ended;
            let waited = self.changed.wait_timeout_while(waiting, WAIT, is_full);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
            waiting.is_noticed = false;
            drop(waiting);
            self.write(self.is_synced);
            waiting = self.waiting();
        }
    }

    /// Writes waiting lines, and waits for the disk if `is_synced`. Other threads can record
    /// meanwhile.
    fn write(&self, is_synced: bool) {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut waiting = self.waiting();
        let mut records = mem::take(&mut waiting.records);
        let (lost, problem) = (waiting.lost, waiting.problem.clone());
        drop(waiting);
        if records.is_empty() && lost == 0 {
            return;
        }
        if let (1.., Some(problem)) = (lost, problem) {
            let reason = problem.to_string();
            records.push(Pending::new(AuditEvent::Lost { lines: lost, reason }));
        }
        let written = self.log.append(&mut records);
        let left = records.len();
        records.retain(|record| !matches!(record.event, AuditEvent::Lost { .. }));
        let mut waiting = self.waiting();
        if left == records.len() {
            waiting.lost -= lost;
        }
        let later = mem::replace(&mut waiting.records, records);
        for record in later {
            waiting.push(record);
        }
        waiting.problem = written.as_ref().err().cloned();
        drop(waiting);
        drop(turn);
        if let (true, Ok(unsynced)) = (is_synced, written)
            && let Err(error) = unsynced.sync()
        {
            self.waiting().problem = Some(error);
        }
    }
}

impl Waiting {
    fn push(&mut self, record: Pending) {
        match self.records.len() < MOST_WAITING {
            true => self.records.push(record),
            false => self.lost += 1,
        }
    }
}
