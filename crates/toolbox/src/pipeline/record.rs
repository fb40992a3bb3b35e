//! The record of a call, for its recorder and for the audit log.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use kitbag_contract::{ErrorKind, Outcome};

use crate::audit::Audited;
use crate::call::context::{CallContext, CallRecord, CallStatus};
use crate::call::invocation::InvocationKind;
use crate::call::outcome::CallOutcome;
use crate::error::ToolboxError;
use crate::registry::Toolbox;

/// The record of a call, which is made on drop, so that a call whose future is dropped is also
/// recorded.
pub(super) struct Recording<'a> {
    toolbox: &'a Toolbox,
    /// The name of the tool, if it exists and the call has a recorder or is logged.
    tool: Option<String>,
    kind: InvocationKind,
    context: &'a CallContext,
    audited: Option<Arc<Audited>>,
    start: Instant,
    pub(super) end: End,
}

impl<'a> Recording<'a> {
    /// Begins the record of a request of this kind to a tool.
    pub(super) fn begin(
        toolbox: &'a Toolbox,
        tool: &str,
        kind: InvocationKind,
        context: &'a CallContext,
    ) -> Self {
        // A name without a tool is not recorded, because the metrics would keep every such name.
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
            end: End::new(CallStatus::Error, "cancelled"),
        }
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        record(self);
    }
}

/// Reports that a call has ended, and how.
fn record(recording: &mut Recording<'_>) {
    let Some(tool) = &recording.tool else { return };
    let elapsed = recording.start.elapsed();
    if let (InvocationKind::Tool, Some(recorder)) = (recording.kind, &recording.context.recorder) {
        recorder.record(&CallRecord {
            tool,
            caller: &recording.context.caller,
            depth: recording.context.depth,
            end: recording.end.status,
            elapsed,
        });
    }
    if let (Some(audited), Some(auditor)) = (&recording.audited, recording.toolbox.auditor()) {
        let End { outcome, reason, .. } = &mut recording.end;
        let outcome = (*outcome, reason.take().map(Cow::into_owned));
        let CallContext { caller, client, .. } = recording.context;
        let by = (caller, client.as_deref());
        audited.log(auditor, recording.toolbox.config(), by, tool, outcome, elapsed);
    }
}

/// The end of a call, for its recorder and in the words of the audit log. The words contain no text
/// of a tool or a caller.
pub(super) struct End {
    pub(super) status: CallStatus,
    pub(super) outcome: &'static str,
    pub(super) reason: Option<Cow<'static, str>>,
}

impl End {
    pub(super) fn of<R>(ended: &Result<CallOutcome<R>, ToolboxError>) -> Self {
        match ended {
            Ok(CallOutcome::Completed(call)) => match (&call.completion.result, &call.structured) {
                (Ok(Outcome::Success(_)), Ok(_)) => Self::new(CallStatus::Success, "success"),
                (Ok(Outcome::Success(_)), Err(_)) => {
                    Self { reason: Some("output".into()), ..Self::new(CallStatus::Error, "error") }
                }
                (Ok(Outcome::Error(_)), _) => Self::new(CallStatus::Error, "error"),
                (Ok(Outcome::NeedsInput(_)), _) => Self::new(CallStatus::Error, "suspended"),
                (Err(error), _) => Self::of_kind(error.kind()),
            },
            Ok(CallOutcome::Suspended(_)) => Self::new(CallStatus::Suspended, "suspended"),
            Ok(CallOutcome::Refused(_)) => Self::new(CallStatus::Refused, "refused"),
            Err(error) => Self::of_kind(error.kind()),
        }
    }

    fn new(status: CallStatus, outcome: &'static str) -> Self {
        Self { status, outcome, reason: None }
    }

    fn of_kind(kind: ErrorKind) -> Self {
        let failed = |outcome| Self::new(CallStatus::Error, outcome);
        let refused = |reason: &'static str| Self {
            reason: Some(reason.into()),
            ..Self::new(CallStatus::Error, "refused")
        };
        let not_made = |reason| Self { status: CallStatus::Refused, ..refused(reason) };
        match kind {
            ErrorKind::Limit(limit) => {
                Self { reason: Some(limit.to_string().into()), ..failed("limit") }
            }
            ErrorKind::Trap => failed("trap"),
            ErrorKind::MayHaveActed => failed("may-have-acted"),
            ErrorKind::Cancelled => failed("cancelled"),
            ErrorKind::Arguments => refused("arguments"),
            ErrorKind::Busy => refused("busy"),
            ErrorKind::Changed => refused("recorded"),
            ErrorKind::Declined => refused("declined"),
            ErrorKind::Depth => refused("depth"),
            ErrorKind::Disabled | ErrorKind::Broken => refused("disabled"),
            ErrorKind::ExcessGrant | ErrorKind::GrantUnavailable => refused("grant"),
            ErrorKind::ExcessLimit => refused("limit"),
            ErrorKind::Untrusted | ErrorKind::Distrusted => refused("trust"),
            ErrorKind::Approval => not_made("approval"),
            ErrorKind::Audit => not_made("audit"),
            ErrorKind::Counts => not_made("counts"),
            ErrorKind::Grant => not_made("grant"),
            ErrorKind::Rate => not_made("rate"),
            ErrorKind::Secret => not_made("secret"),
            ErrorKind::State => not_made("state"),
            ErrorKind::Internal => Self::new(CallStatus::Refused, "failed"),
            ErrorKind::Answer
            | ErrorKind::Compiler
            | ErrorKind::Component
            | ErrorKind::Configuration
            | ErrorKind::Contract
            | ErrorKind::Inaccessible
            | ErrorKind::Link
            | ErrorKind::LoadBusy
            | ErrorKind::MissingFile
            | ErrorKind::NoConsent
            | ErrorKind::OpenFiles
            | ErrorKind::Output
            | ErrorKind::PresetAnswer
            | ErrorKind::Size
            | ErrorKind::System
            | ErrorKind::Unanswered
            | ErrorKind::UnknownTool
            | ErrorKind::Usage => failed("failed"),
        }
    }
}
