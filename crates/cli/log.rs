//! Server log on standard error.
//!
//! A queue passes lines to a thread that writes them, so that the rest of the server does not wait
//! for the reader of standard error. Lines are dropped when the queue is full, and one line reports
//! how many.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

use crate::console::output;

/// Maximum size of the queue in bytes. The longest line of a tool is about 1 MiB.
const QUEUE_BYTES: usize = 4 << 20;

/// Overhead of a queued line in bytes.
const LINE_BYTES: usize = 64;

/// Maximum time that the process waits for the remaining lines at its end.
const FLUSH_TIME: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(crate) struct Log(Arc<Shared>);

struct Shared {
    is_json: bool,
    queue: Mutex<Queue>,
    added: Condvar,
    written: Condvar,
    writer: OnceLock<ThreadId>,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<String>,
    bytes: usize,
    dropped: u64,
    has_writer: bool,
    is_writing: bool,
}

/// On drop, writes the remaining lines for at most [`FLUSH_TIME`].
pub(crate) struct FlushOnDrop(Log);

impl Log {
    /// Creates a log. The thread starts with the first line. With `is_json` each line is a JSON
    /// value.
    pub(crate) fn new(is_json: bool) -> Self {
        Self(Arc::new(Shared {
            is_json,
            queue: Mutex::default(),
            added: Condvar::new(),
            written: Condvar::new(),
            writer: OnceLock::new(),
        }))
    }

    pub(crate) fn flush_on_drop(&self) -> FlushOnDrop {
        FlushOnDrop(self.clone())
    }

    fn add(&self, line: String) {
        let mut queue = self.queue();
        let bytes = line.len() + LINE_BYTES;
        if queue.bytes + bytes > QUEUE_BYTES {
            queue.dropped += 1;
            return;
        }
        queue.bytes += bytes;
        queue.lines.push_back(line);
        if !queue.has_writer {
            let log = self.clone();
            let thread = thread::Builder::new().name("log".into());
            // If no thread can be started, the next line tries again.
            queue.has_writer = thread.spawn(move || log.write_lines()).is_ok();
        }
        drop(queue);
        self.0.added.notify_one();
    }

    /// Writes lines until the process ends.
    fn write_lines(&self) {
        let _ = self.0.writer.set(thread::current().id());
        loop {
            let mut queue = self.queue();
            while queue.lines.is_empty() && queue.dropped == 0 {
                queue.is_writing = false;
                self.0.written.notify_all();
                queue = self.0.added.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            queue.is_writing = true;
            // The text being written counts towards the limit until it is written.
            let lines = std::mem::take(&mut queue.lines);
            let dropped = std::mem::take(&mut queue.dropped);
            drop(queue);
            for line in lines {
                output::log(&line);
                self.queue().bytes -= line.len() + LINE_BYTES;
            }
            if dropped > 0 {
                tracing::error!(
                    "{dropped} lines of the log were dropped, because they were not read"
                );
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = output::log_line(&String::from_utf8_lossy(bytes), self.0.is_json);
        match self.0.writer.get() {
            // The thread's own log lines bypass the queue, which may be full.
            Some(writer) if *writer == thread::current().id() => output::log(&line),
            _ => self.add(line),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

impl Drop for FlushOnDrop {
    fn drop(&mut self) {
        let queue = self.0.queue();
        let is_left =
            |queue: &mut Queue| queue.has_writer && (queue.is_writing || !queue.lines.is_empty());
        let waited = self.0.0.written.wait_timeout_while(queue, FLUSH_TIME, is_left);
        if waited.is_ok_and(|(_, waited)| waited.timed_out()) {
            output::stop_notes();
        }
    }
}
