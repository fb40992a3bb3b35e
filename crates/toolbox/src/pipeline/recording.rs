//! The record of a call: for who wants to know, and for the audit log.

use std::sync::Arc;
use std::time::Instant;

use kitbag_contract::Outcome;
use kitbag_host::{CallError, LoadError};

use crate::audit::Audited;
use crate::context::{CallContext, CallEnd, CallRecord};
use crate::ended::{Completed, Ended};
use crate::error::ToolboxError;
use crate::invocation::InvocationKind;
use crate::registry::Toolbox;

/// The record of a call, which is made when this is dropped: a call whose future is
/// dropped is recorded too.
pub(super) struct Recording<'a> {
    toolbox: &'a Toolbox,
    /// The tool, if it exists and there is who wants to know.
    tool: Option<String>,
    kind: InvocationKind,
    context: &'a CallContext,
    audited: Option<Arc<Audited>>,
    start: Instant,
    pub(super) end: CallEnd,
    /// For the audit log.
    pub(super) outcome: (&'static str, Option<String>),
}

impl<'a> Recording<'a> {
    /// Begins the record of a call that asks a tool for something of this kind.
    pub(super) fn begin(
        toolbox: &'a Toolbox,
        tool: &str,
        kind: InvocationKind,
        context: &'a CallContext,
    ) -> Self {
        // A name that is not a tool is not recorded: the metrics would keep every one.
        let is_wanted = context.recorder.is_some() || context.audited.is_some();
        let is_known = is_wanted && toolbox.config().tools.contains_key(tool);
        let audited = context.audited.clone();
        Self {
            toolbox,
            tool: is_known.then(|| tool.to_owned()),
            kind,
            context,
            audited,
            start: Instant::now(),
            end: CallEnd::Error,
            outcome: ("cancelled", None),
        }
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        record(self);
    }
}

/// Passes on that a call has ended, and how.
fn record(recording: &mut Recording<'_>) {
    let Some(tool) = &recording.tool else { return };
    let elapsed = recording.start.elapsed();
    if let (InvocationKind::Tool, Some(recorder)) = (recording.kind, &recording.context.recorder) {
        recorder.record(&CallRecord {
            tool,
            caller: &recording.context.caller,
            depth: recording.context.depth,
            end: recording.end,
            elapsed,
        });
    }
    if let (Some(audited), Some(auditor)) = (&recording.audited, recording.toolbox.auditor()) {
        let outcome = std::mem::take(&mut recording.outcome);
        let CallContext { caller, client, .. } = recording.context;
        let by = (caller, client.as_deref());
        audited.log(auditor, recording.toolbox.config(), by, tool, outcome, elapsed);
    }
}

pub(super) fn end_of<R>(ended: &Result<Ended<R>, ToolboxError>) -> CallEnd {
    match ended {
        Ok(Ended::Completed(call)) => match (&call.completion.result, &call.structured) {
            (Ok(Outcome::Success(_)), Ok(_)) => CallEnd::Success,
            (Err(CallError::Internal(_)), _) => CallEnd::Refused,
            _ => CallEnd::Error,
        },
        Ok(Ended::Suspended(_)) => CallEnd::Suspended,
        Ok(Ended::Refused(_))
        | Err(
            ToolboxError::State(_)
            | ToolboxError::Rate { .. }
            | ToolboxError::AliasRate { .. }
            | ToolboxError::NotGranted { .. }
            | ToolboxError::NoSecret { .. }
            | ToolboxError::NotApproved { .. }
            | ToolboxError::Counts(_)
            | ToolboxError::Audit(_)
            | ToolboxError::Call(CallError::Internal(_)),
        ) => CallEnd::Refused,
        Err(_) => CallEnd::Error,
    }
}

/// How a call ended, in a word, and what tells more of it: never what a tool or a caller wrote.
pub(super) fn outcome<R>(ended: &Result<Ended<R>, ToolboxError>) -> (&'static str, Option<String>) {
    match ended {
        Ok(Ended::Completed(call)) => completed(call),
        Ok(Ended::Suspended(_)) => ("suspended", None),
        Ok(Ended::Refused(_)) => ("refused", None),
        Err(error) => refusal(error),
    }
}

fn completed(call: &Completed) -> (&'static str, Option<String>) {
    match (&call.completion.result, &call.structured) {
        (Ok(Outcome::Success(_)), Ok(_)) => ("success", None),
        (Ok(Outcome::Success(_)), Err(_)) => ("error", Some("output".into())),
        (Ok(Outcome::Error(_)), _) => ("error", None),
        (Ok(Outcome::NeedsInput(_)), _) => ("suspended", None),
        (Err(error), _) => failure(error),
    }
}

fn failure(error: &CallError) -> (&'static str, Option<String>) {
    match error {
        CallError::Limit { kind, .. } => ("limit", Some(kind.to_string())),
        CallError::Trap { .. } => ("trap", None),
        CallError::Cancelled => ("cancelled", None),
        CallError::Denied(_) => ("refused", Some("grant".into())),
        CallError::Load(LoadError::Pinned { .. }) => ("refused", Some("recorded".into())),
        CallError::Load(LoadError::Distrusted { .. }) => ("refused", Some("trust".into())),
        CallError::Busy { .. } | CallError::MemoryBusy { .. } => ("refused", Some("busy".into())),
        _ => ("failed", None),
    }
}

fn refusal(error: &ToolboxError) -> (&'static str, Option<String>) {
    let refused = |reason: &str| ("refused", Some(reason.to_owned()));
    match error {
        ToolboxError::Call(error) => failure(error),
        ToolboxError::Disabled { reason, .. } if reason.is_trust() => refused("trust"),
        ToolboxError::Disabled { .. } => refused("disabled"),
        ToolboxError::NotAsRecorded { .. } => refused("recorded"),
        ToolboxError::MoreGranted { .. } => refused("grant"),
        ToolboxError::HigherLimit { .. } => refused("limit"),
        ToolboxError::Rate { .. } | ToolboxError::AliasRate { .. } => refused("rate"),
        ToolboxError::NotGranted { .. } => refused("grant"),
        ToolboxError::NoSecret { .. } => refused("secret"),
        ToolboxError::NotApproved { .. } => refused("approval"),
        ToolboxError::Arguments { .. } | ToolboxError::Masked { .. } => refused("arguments"),
        ToolboxError::Declined { .. } => refused("declined"),
        ToolboxError::TooDeep { .. } => refused("depth"),
        ToolboxError::State(_) => refused("state"),
        ToolboxError::Counts(_) => refused("counts"),
        ToolboxError::Audit(_) => refused("audit"),
        _ => ("failed", None),
    }
}
