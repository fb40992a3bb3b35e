//! What a tool tells while it runs, on its way to the client.
#![expect(deprecated, reason = "logging is deprecated since 2026-07-28; older clients use it")]

use std::sync::{Arc, Mutex, PoisonError};

use kitbag_contract::{LogLevel, Progress};
use kitbag_host::Listener;
use rmcp::RoleServer;
use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::Peer;
use serde_json::Value;
use tokio::sync::Notify;

/// Hears a call. Clones are the same ear.
///
/// A tool may tell more than a client takes: of its progress only the last is
/// kept, and the log is bounded by the host.
#[derive(Clone)]
pub(crate) struct Ear(Arc<Inner>);

struct Inner {
    /// Where the client wants progress.
    token: Option<ProgressToken>,
    /// From which level up it wants messages.
    level: Option<LogLevel>,
    told: Mutex<Told>,
    news: Notify,
}

/// What waits to be passed on.
#[derive(Default)]
struct Told {
    messages: Vec<(LogLevel, String)>,
    progress: Option<Progress>,
}

impl Ear {
    pub(crate) fn new(token: Option<ProgressToken>, level: Option<LogLevel>) -> Self {
        Self(Arc::new(Inner { token, level, told: Mutex::default(), news: Notify::new() }))
    }

    /// Waits until there is something to pass on.
    pub(crate) async fn news(&self) {
        self.0.news.notified().await;
    }

    /// Passes on what was heard of `tool` so far.
    pub(crate) async fn pass_on(&self, tool: &str, peer: &Peer<RoleServer>) {
        let told = std::mem::take(&mut *self.told());
        for (level, message) in told.messages {
            let param =
                LoggingMessageNotificationParam::new(written(level), Value::String(message));
            // A client that is gone hears of nothing any more.
            if peer.notify_logging_message(param.with_logger(tool)).await.is_err() {
                return;
            }
        }
        if let (Some(progress), Some(token)) = (told.progress, &self.0.token) {
            let mut param = ProgressNotificationParam::new(token.clone(), progress.done);
            param.total = progress.total;
            param.message = progress.message;
            let _ = peer.notify_progress(param).await;
        }
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.0.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Ear {
    fn log(&self, level: LogLevel, message: &str) {
        if self.0.level.is_some_and(|least| level >= least) {
            self.told().messages.push((level, message.to_owned()));
            self.0.news.notify_one();
        }
    }

    fn progress(&self, progress: &Progress) {
        if self.0.token.is_some() {
            self.told().progress = Some(progress.clone());
            self.0.news.notify_one();
        }
    }
}

/// A level as the protocol has it.
fn written(level: LogLevel) -> LoggingLevel {
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

/// A level as the contract has it.
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
