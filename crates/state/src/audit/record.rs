//! The events of the log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::audit::part::Part;

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
#[non_exhaustive]
pub enum AuditEvent {
    /// The start of a call that can change or send something.
    Start(Box<StartEvent>),
    /// The end or refusal of a call.
    Call(Box<CallEvent>),
    /// Nested calls without lines of their own.
    Summary(Box<SummaryEvent>),
    /// A change of the trust in a workspace.
    Trust(TrustEvent),
    /// The result of an approval.
    Approval(Box<ApprovalEvent>),
    /// A refused action of a tool.
    Refusal(Box<RefusalEvent>),
    /// The previous line is incomplete, since a process was stopped while it wrote.
    Torn {
        /// The length of the incomplete line.
        bytes: u64,
    },
    /// The previous lines were not in `head.json`: a process was stopped before it could record
    /// them there, or another program appended them.
    Unrecorded {
        /// The number of lines.
        lines: u64,
    },
    /// Lines that could not be written, for example on a full disk.
    Lost {
        /// The number of lines.
        lines: u64,
        /// The reason.
        reason: String,
    },
    /// The oldest files were removed to limit the size of the log. This is the first line of a new
    /// file.
    Removed(RemovedEvent),
}

impl AuditEvent {
    /// Returns the chain for the event. A call controls the number of its details, so details must
    /// not push calls, approvals and trust out of the log.
    pub(crate) fn part(&self) -> Part {
        match self {
            Self::Start(start) if start.head.parent.is_some() => Part::Details,
            Self::Call(call) if call.head.parent.is_some() => Part::Details,
            // No person was asked, and a nested call may repeat it a thousand times.
            Self::Approval(it) if it.answer == "remembered" && it.caller.starts_with("tool ") => {
                Part::Details
            }
            Self::Summary(_) | Self::Refusal(_) => Part::Details,
            Self::Start(_)
            | Self::Call(_)
            | Self::Trust(_)
            | Self::Approval(_)
            | Self::Torn { .. }
            | Self::Unrecorded { .. }
            | Self::Lost { .. }
            | Self::Removed(_) => Part::Calls,
        }
    }
}

/// The files that were removed to limit the size of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedEvent {
    /// The number of files.
    pub files: u64,
    /// The number of their lines.
    pub lines: u64,
    /// The time of the first of these lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The time of the last of these lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// True if the files had been modified.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
}

/// The start of a call. The line is in the log before the call changes or sends anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartEvent {
    /// The call.
    #[serde(flatten)]
    pub head: CallHead,
    /// The outermost call around it, unless that is its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outermost: Option<String>,
}

/// Nested calls of a call, beyond those that have lines of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryEvent {
    /// The id of the outermost call.
    pub call: String,
    /// The workspace.
    pub workspace: String,
    /// The caller of the outermost call, as in [`CallHead`].
    pub caller: String,
    /// The program behind a client of the server, as in [`CallHead`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientEvent>,
    /// The tool of the outermost call.
    pub tool: String,
    /// The number of calls by tool and outcome, such as `read_file success`.
    pub calls: BTreeMap<String, u64>,
    /// Their requests, grouped by method, origin, status and rule; the first hundred groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestEvent>,
    /// The number of further requests.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_requests: u64,
    /// The files and directories that they used.
    #[serde(default, skip_serializing_if = "PathsEvent::is_empty")]
    pub paths: PathsEvent,
}

/// A change of the trust in a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustEvent {
    /// The canonical path of the workspace.
    pub workspace: String,
    /// The person: `user NAME`.
    pub caller: String,
    /// The digest of the trusted content. `None` if the workspace is no longer trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// The part of a call that is known before it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallHead {
    /// The id of the call, which is the `parent` of its nested calls.
    pub id: String,
    /// The id of the calling call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The workspace.
    pub workspace: String,
    /// The caller: `user NAME`, `client NAME`, `program NAME`, `tool NAME`.
    pub caller: String,
    /// The program behind a client of the server. Absent for a nested call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientEvent>,
    /// The name of the tool.
    pub tool: String,
    /// The requested item if it is not a call of the tool: `prompt NAME`, `resource URI`,
    /// `command NAME` or `knowledge VIEW`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serves: Option<String>,
    /// The digest of the component. `None` for code of the embedding program, or if the component
    /// was not loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// The digest of the effective grants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grants: Option<String>,
    /// The digest of the arguments, including defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_digest: Option<String>,
}

/// A call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallEvent {
    /// The call.
    #[serde(flatten)]
    pub head: CallHead,
    /// The arguments, if the settings include them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The first hundred HTTP requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestEvent>,
    /// The number of further requests.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_requests: u64,
    /// The files and directories that the call used.
    #[serde(default, skip_serializing_if = "PathsEvent::is_empty")]
    pub paths: PathsEvent,
    /// The first fifty aliases of nested calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The number of further nested calls.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_aliases: u64,
    /// The number of nested calls without lines of their own, which are in a `summary`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_calls: u64,
    /// The number of refused actions. Each has a line of its own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refusals: u64,
    /// The number of refusals without a line, since there were too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_refusals: u64,
    /// The ids of the answered questions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<String>,
    /// The outcome: `success`, `error`, `suspended`, `refused`, `limit`, `trap`, `cancelled` or
    /// `failed`.
    pub outcome: String,
    /// The exceeded limit or the reason of a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The duration in microseconds, including questions.
    pub micros: u64,
    /// The number of executed instructions, if counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fuel: Option<u64>,
}

/// The program behind a client, as it declares itself when it connects. The name is not verified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientEvent {
    /// The name, such as `claude-code`.
    pub name: String,
    /// The version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}

/// The files and directories that a call used: relative to the workspace if they are in it,
/// otherwise absolute. A directory ends in `/`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathsEvent {
    /// The first fifty files that were opened for reading and directories that were listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// The number of further reads.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_read: u64,
    /// The first fifty files and directories that were created, changed or replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<String>,
    /// The number of further writes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_written: u64,
    /// The first fifty files and directories that were removed or moved away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// The number of further removals.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_removed: u64,
    /// The first twenty files and directories whose metadata was read, for a call that did nothing
    /// else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looked_at: Vec<String>,
    /// The number of files and directories that the call created and removed again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub temporary: u64,
}

/// An action of a tool that was refused and did not happen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalEvent {
    /// The id of the call.
    pub call: String,
    /// The workspace.
    pub workspace: String,
    /// The caller, as in [`CallHead`].
    pub caller: String,
    /// The program behind a client of the server, as in [`CallHead`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientEvent>,
    /// The tool.
    pub tool: String,
    /// The kind of action: `http`, `file`, `tool` or `storage`.
    pub kind: String,
    /// The method and origin of a request, the path of a file, or the alias of a tool. Empty for
    /// storage.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// The reason, in a word.
    pub reason: String,
    /// The rule of a leak, the pattern of a `deny`, or the secret that caused the refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The number of equal refusals.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: u64,
}

/// The result of an approval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalEvent {
    /// The id of the call.
    pub call: String,
    /// The workspace.
    pub workspace: String,
    /// The caller, as in [`CallHead`].
    pub caller: String,
    /// The tool.
    pub tool: String,
    /// The digest of the effective grants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grants: Option<String>,
    /// The digest of the arguments, including defaults.
    pub arguments_digest: String,
    /// `asked`: the question was sent. `yes`, `always` and `no` are a person's answers, `nobody`
    /// means that no person could be asked, and `remembered` means that a person had approved such
    /// calls until the process ends.
    pub answer: String,
    /// The person and the way of answering.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// An HTTP request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestEvent {
    /// The method.
    pub method: String,
    /// Scheme, host and port. Paths may contain secrets and are omitted.
    pub origin: String,
    /// The status of the response, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The bytes of the request body and of the response body. The first is zero if the request was
    /// refused before anything was sent.
    pub bytes: [u64; 2],
    /// The grant that allowed the request. Absent if nothing was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The reason of a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl PathsEvent {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn once() -> u64 {
    1
}

fn is_once(number: &u64) -> bool {
    *number == 1
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
