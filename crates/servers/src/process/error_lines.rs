//! Standard error of servers: the last lines, and the log.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kitbag_base::text::printable;
use kitbag_secrets::Redactor;
use tokio::io::AsyncReadExt;

use super::sys::pipe;

/// Lines that are kept for error messages.
const LINES: usize = 20;
/// Bytes of a line; the rest is omitted.
const LINE_BYTES: usize = 1024;
/// Lines that are logged per [`PERIOD`]; the others are counted.
const LOGGED: u32 = 200;
const PERIOD: Duration = Duration::from_secs(60);

/// The last lines that a server wrote to its standard error.
pub(super) struct ErrorLines {
    name: String,
    redactor: Redactor,
    last: Mutex<VecDeque<String>>,
}

/// The lines that were logged since a moment.
struct LogBudget {
    since: Instant,
    logged: u32,
    omitted: u64,
}

impl ErrorLines {
    pub(super) fn new(name: String, redactor: Redactor) -> Self {
        Self { name, redactor, last: Mutex::default() }
    }

    /// Returns the last lines.
    pub(super) fn last(&self) -> String {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// Reads until the end.
    pub(super) async fn read(self: Arc<Self>, mut from: pipe::Receiver) {
        let mut budget = LogBudget { since: Instant::now(), logged: 0, omitted: 0 };
        let mut buffer = vec![0; 8192];
        let mut line = Vec::new();
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            for piece in buffer[..count].split_inclusive(|byte| *byte == b'\n') {
                let room = LINE_BYTES.saturating_sub(line.len());
                line.extend_from_slice(&piece[..piece.len().min(room)]);
                if piece.ends_with(b"\n") {
                    self.add(&line, &mut budget);
                    line.clear();
                }
            }
            // A flood does not starve the other tasks of this thread.
            tokio::task::yield_now().await;
        }
        if !line.is_empty() {
            self.add(&line, &mut budget);
        }
        budget.report(&self.name);
    }

    fn add(&self, line: &[u8], budget: &mut LogBudget) {
        let mut text = String::from_utf8_lossy(line).into_owned();
        self.redactor.redact_text(&mut text);
        let text = printable(text.trim_end()).to_string();
        if budget.allows(&self.name) {
            tracing::info!(server = self.name, "{text}");
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() == LINES {
            last.pop_front();
        }
        last.push_back(text);
    }
}

impl fmt::Debug for ErrorLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ErrorLines").field("name", &self.name).finish_non_exhaustive()
    }
}

impl LogBudget {
    fn allows(&mut self, name: &str) -> bool {
        if self.since.elapsed() >= PERIOD {
            self.report(name);
            *self = Self { since: Instant::now(), logged: 0, omitted: 0 };
        }
        let allows = self.logged < LOGGED;
        if allows {
            self.logged += 1;
        } else {
            self.omitted += 1;
        }
        allows
    }

    fn report(&self, name: &str) {
        if self.omitted > 0 {
            tracing::warn!(server = name, "omitted {} lines of its error output", self.omitted);
        }
    }
}
