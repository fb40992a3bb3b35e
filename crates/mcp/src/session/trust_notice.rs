//! Notices about a workspace that is untrusted, or was edited since it was trusted.
#![expect(deprecated, reason = "logging is deprecated since 2026-07-28; older clients use it")]

use kitbag_config::Config;
use kitbag_contract::LogLevel;
use rmcp::model::LoggingMessageNotificationParam;
use rmcp::service::Peer;
use rmcp::{RoleServer, ServiceError};
use serde_json::Value;

use crate::session::notifications::written;

pub(crate) fn notice(config: &Config) -> Option<String> {
    let notice = config.trust_notice()?;
    Some(match config.workspace_trust.is_trusted() {
        true => format!("Note: {notice}.\n"),
        false => {
            format!("Note: {notice}. A person can run that command to review and trust them.\n")
        }
    })
}

/// Sends the workspace's current trust notice to a client with this minimum level.
pub(crate) async fn tell(
    peer: &Peer<RoleServer>,
    least: LogLevel,
    config: &Config,
) -> Result<(), ServiceError> {
    let (level, text) = match config.trust_notice() {
        Some(notice) => (LogLevel::Warning, notice),
        None => (LogLevel::Info, "the configuration of the workspace now takes effect".to_owned()),
    };
    if level < least {
        return Ok(());
    }
    let param = LoggingMessageNotificationParam::new(written(level), Value::String(text));
    peer.notify_logging_message(param.with_logger("kitbag")).await
}
