//! Forwards the events of a call to the client as notifications.
#![expect(deprecated, reason = "logging is deprecated since 2026-07-28; older clients use it")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use kitbag_base::text::printable;
use kitbag_contract::{LogLevel, Progress};
use kitbag_host::{Compiling, Listener};
use rmcp::RoleServer;
use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::Peer;
use serde_json::Value;
use tokio::sync::Notify;

/// Smallest increase of progress, for reports without more work done. It is less than a tool's
/// unit.
const A_LITTLE: f64 = 1e-6;

/// Maximum number of a call's progress reports that wait to be forwarded.
const WAITING_PROGRESS: usize = 16;

/// Queue of a call's events until they are forwarded. Clones share the queue.
///
/// A tool may report more than a client reads. Up to 16 progress reports wait; after that each new
/// report replaces the newest. The host limits the log.
#[derive(Clone)]
pub(crate) struct ClientListener(Arc<ListenerState>);

struct ListenerState {
    token: Option<ProgressToken>,
    /// Minimum level of the log messages that the client requested.
    level: Option<LogLevel>,
    waiting: Mutex<Waiting>,
    news: Notify,
}

#[derive(Default)]
struct Waiting {
    messages: Vec<(LogLevel, String)>,
    progress: VecDeque<Progress>,
    /// The progress that was last sent to the client.
    done: Option<f64>,
}

impl ClientListener {
    pub(crate) fn new(token: Option<ProgressToken>, level: Option<LogLevel>) -> Self {
        Self(Arc::new(ListenerState {
            token,
            level,
            waiting: Mutex::default(),
            news: Notify::new(),
        }))
    }

    /// Waits until there are events to forward.
    pub(crate) async fn news(&self) {
        self.0.news.notified().await;
    }

    /// Forwards the events of the tool.
    pub(crate) async fn pass_on(&self, tool: &str, peer: &Peer<RoleServer>) {
        let (messages, progress) = {
            let mut waiting = self.waiting();
            let progress: Vec<_> = std::iter::from_fn(|| waiting.take_progress()).collect();
            (std::mem::take(&mut waiting.messages), progress)
        };
        for (level, message) in messages {
            let param =
                LoggingMessageNotificationParam::new(written(level), Value::String(message));
            // The client has disconnected.
            if peer.notify_logging_message(param.with_logger(tool)).await.is_err() {
                return;
            }
        }
        let Some(token) = &self.0.token else { return };
        for progress in progress {
            let mut param = ProgressNotificationParam::new(token.clone(), progress.done);
            param.total = progress.total;
            param.message = progress.message;
            if peer.notify_progress(param).await.is_err() {
                return;
            }
        }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn add_progress(&mut self, progress: Progress) {
        if self.progress.len() == WAITING_PROGRESS {
            self.progress.pop_back();
        }
        self.progress.push_back(progress);
    }

    /// Returns the next progress to forward. It always rises, as the protocol requires, even if the
    /// host reported progress before the tool did.
    fn take_progress(&mut self) -> Option<Progress> {
        let mut progress = self.progress.pop_front()?;
        if let Some(before) = self.done
            && progress.done <= before
        {
            progress.done = (before + A_LITTLE).max(before.next_up());
        }
        self.done = Some(progress.done);
        Some(progress)
    }
}

impl Listener for ClientListener {
    fn log(&self, level: LogLevel, message: &str) {
        tracing::debug!(%level, "reported: {}", printable(message));
        if self.0.level.is_some_and(|least| level >= least) {
            self.waiting().messages.push((level, message.to_owned()));
            self.0.news.notify_one();
        }
    }

    fn progress(&self, progress: &Progress) {
        if self.0.token.is_some() {
            self.waiting().add_progress(progress.clone());
            self.0.news.notify_one();
        }
    }

    fn compiling(&self, compiling: &Compiling<'_>) {
        // The tool has not done any work yet.
        self.progress(&Progress { done: 0.0, total: None, message: Some(compiling.to_string()) });
    }
}

pub(crate) fn written(level: LogLevel) -> LoggingLevel {
    match level {
        LogLevel::Debug => LoggingLevel::Debug,
        LogLevel::Info => LoggingLevel::Info,
        LogLevel::Notice => LoggingLevel::Notice,
        LogLevel::Warning => LoggingLevel::Warning,
        LogLevel::Error => LoggingLevel::Error,
        LogLevel::Critical => LoggingLevel::Critical,
        LogLevel::Alert => LoggingLevel::Alert,
        LogLevel::Emergency => LoggingLevel::Emergency,
    }
}

pub(crate) fn read(level: LoggingLevel) -> LogLevel {
    match level {
        LoggingLevel::Debug => LogLevel::Debug,
        LoggingLevel::Info => LogLevel::Info,
        LoggingLevel::Notice => LogLevel::Notice,
        LoggingLevel::Warning => LogLevel::Warning,
        LoggingLevel::Error => LogLevel::Error,
        LoggingLevel::Critical => LogLevel::Critical,
        LoggingLevel::Alert => LogLevel::Alert,
        LoggingLevel::Emergency => LogLevel::Emergency,
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::NumberOrString;

    use super::*;

    #[test]
    fn progress_rises_across_host_and_tool_reports() {
        let mut waiting = Waiting::default();
        let mut passed_on = |done| {
            waiting.add_progress(Progress { done, total: None, message: None });
            waiting.take_progress().unwrap().done
        };
        assert_eq!([0.0; 3].map(&mut passed_on), [0.0, 1e-6, 2e-6]);
        // The tool starts at zero, and that report is forwarded.
        assert_eq!([0.0, 0.5, 7.0].map(&mut passed_on), [3e-6, 0.5, 7.0]);
        // Compiled again between two runs, because its file has changed.
        assert_eq!([0.0, 8.0, 1e300, 0.0].map(&mut passed_on)[..3], [7.000001, 8.0, 1e300]);
        assert!(passed_on(0.0) > 1e300);
        assert_eq!(waiting.take_progress(), None);
    }

    #[test]
    fn full_progress_queue_replaces_its_newest_entry() {
        let listener = ClientListener::new(Some(ProgressToken(NumberOrString::Number(1))), None);
        let passed_on = |reports: u32| {
            for done in 1..=reports {
                let done = f64::from(done) + listener.waiting().done.unwrap_or(0.0);
                listener.progress(&Progress { done, total: None, message: None });
            }
            let mut waiting = listener.waiting();
            let passed_on = std::iter::from_fn(|| waiting.take_progress().map(|it| it.done));
            passed_on.collect::<Vec<_>>()
        };
        assert_eq!(passed_on(3), [1.0, 2.0, 3.0]);
        let many = passed_on(1_000);
        let expected: Vec<_> = (4..19).map(f64::from).chain([1_003.0]).collect();
        assert_eq!(many, expected);
        assert_eq!(passed_on(0), [0.0; 0]);
    }
}
