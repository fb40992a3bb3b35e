//! What a line of the log says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::audit::log::Part;

/// What a line says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
#[non_exhaustive]
pub enum AuditEvent {
    /// A call begins that can change or send something.
    Start(Box<StartEvent>),
    /// A call has ended, or was refused.
    Call(Box<CallEvent>),
    /// Inner calls of a call that have no lines of their own.
    Summary(Box<SummaryEvent>),
    /// A person trusts what a workspace holds, or no longer does.
    Trust(TrustEvent),
    /// What became of the question whether a call may be made.
    Approval(Box<ApprovalEvent>),
    /// Something that a tool tried was refused.
    Refusal(Box<RefusalEvent>),
    /// The line before is one that a process was writing when it was stopped.
    Torn {
        /// How many bytes it has.
        bytes: u64,
    },
    /// The lines before, which `head.json` did not know: a process was stopped before it could
    /// record them there, or someone else has added them.
    Unrecorded {
        /// How many lines.
        lines: u64,
    },
    /// Lines that could not be written, such as on a full disk.
    Lost {
        /// How many.
        lines: u64,
        /// What was wrong.
        reason: String,
    },
    /// The oldest files were removed to keep the log within its size. It is the first line of a
    /// new file.
    Removed(RemovedEvent),
}

impl AuditEvent {
    /// The chain that holds its line. A call decides how many details it has, so these cannot
    /// push calls, approvals and trust out of the log.
    pub(crate) fn part(&self) -> Part {
        match self {
            Self::Start(start) if start.head.parent.is_some() => Part::Details,
            Self::Call(call) if call.head.parent.is_some() => Part::Details,
            // No person was asked, and an inner call may repeat it a thousand times.
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

/// The files that were removed to keep the log within its size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedEvent {
    /// How many files.
    pub files: u64,
    /// How many lines they had.
    pub lines: u64,
    /// The time of the first of these lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The time of the last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Whether they had been changed since they were written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
}

/// A call begins. The line is in the log before the call changes or sends anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartEvent {
    /// The call.
    #[serde(flatten)]
    pub head: CallHead,
    /// The outermost call that it is inside of, unless that is its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outermost: Option<String>,
}

/// Inner calls of one call, beyond those that have lines of their own.
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
    /// Their requests, those with the same method, origin, status and rule together, the first
    /// hundred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestEvent>,
    /// How many more requests there were.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_requests: u64,
    /// The files and directories that they touched.
    #[serde(default, skip_serializing_if = "PathsEvent::is_empty")]
    pub paths: PathsEvent,
}

/// A person trusts what a workspace holds, or no longer does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustEvent {
    /// The canonical path of the workspace.
    pub workspace: String,
    /// Who: `user NAME`.
    pub caller: String,
    /// The digest of all that is trusted. `None`: nothing is any longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// The part of a call that is known before it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallHead {
    /// The id of the call, which its inner calls have as their `parent`.
    pub id: String,
    /// The call that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The workspace.
    pub workspace: String,
    /// Who called: `user NAME`, `client NAME`, `program NAME`, `tool NAME`.
    pub caller: String,
    /// The program behind a client of the server. Absent for a call inside another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientEvent>,
    /// The tool.
    pub tool: String,
    /// The thing that was asked for, if it is not a call of the tool: `prompt NAME`,
    /// `resource URI`, `command NAME` or `knowledge VIEW`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serves: Option<String>,
    /// The digest of its component. `None`: it is code of the embedding program, or was not
    /// loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// The digest of the grants in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grants: Option<String>,
    /// The digest of the arguments, with defaults filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_digest: Option<String>,
}

/// A call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallEvent {
    /// The call.
    #[serde(flatten)]
    pub head: CallHead,
    /// The arguments themselves, where the settings ask for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// Requests over HTTP, the first hundred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestEvent>,
    /// How many more requests there were.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_requests: u64,
    /// The files and directories that the call touched.
    #[serde(default, skip_serializing_if = "PathsEvent::is_empty")]
    pub paths: PathsEvent,
    /// The names by which the call called other tools, the first fifty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// How many more calls of other tools there were.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_aliases: u64,
    /// How many inner calls have no line of their own: a `summary` has them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_calls: u64,
    /// How often the call was refused something. Each refusal has a line of its own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refusals: u64,
    /// How many of the refusals have no line, since there were too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_refusals: u64,
    /// The ids of the questions that were answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<String>,
    /// How it ended: `success`, `error`, `suspended`, `refused`, `limit`, `trap`, `cancelled` or
    /// `failed`.
    pub outcome: String,
    /// The limit that was hit, or the reason of a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long it took, in microseconds, questions included.
    pub micros: u64,
    /// The instructions that it ran, where they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fuel: Option<u64>,
}

/// The program behind a client, as it names itself when it connects. Nothing proves the name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientEvent {
    /// The name, such as `claude-code`.
    pub name: String,
    /// The version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}

/// The files and directories that a call touched: relative to the workspace if they are in it,
/// otherwise absolute. A directory ends in `/`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathsEvent {
    /// Files that were opened to be read and directories that were listed, the first fifty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// How often something else was read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_read: u64,
    /// What was made, changed or put in place, the first fifty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<String>,
    /// How often something else was written.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_written: u64,
    /// What was removed or moved away, the first fifty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// How often something else was removed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_removed: u64,
    /// What was looked at without being opened, the first twenty, in a call that did nothing else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looked_at: Vec<String>,
    /// How many files and directories the call made and removed again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub temporary: u64,
}

/// Something that a tool tried was refused, and was not done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalEvent {
    /// The id of the call.
    pub call: String,
    /// The workspace.
    pub workspace: String,
    /// Who called, as in [`CallHead`].
    pub caller: String,
    /// The program behind a client of the server, as in [`CallHead`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientEvent>,
    /// The tool.
    pub tool: String,
    /// The kind of thing that was refused: `http`, `file`, `tool` or `storage`.
    pub kind: String,
    /// Method and origin of a request, the path of a file, or the name by which a tool was called.
    /// Empty for storage.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// The reason, in a word.
    pub reason: String,
    /// The rule of a leak, the pattern of a `deny`, or the secret that it was refused for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// How often the same was refused.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: u64,
}

/// What became of the question whether a call may be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalEvent {
    /// The id of the call.
    pub call: String,
    /// The workspace.
    pub workspace: String,
    /// Who called, as in [`CallHead`].
    pub caller: String,
    /// The tool.
    pub tool: String,
    /// The digest of the grants in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grants: Option<String>,
    /// The digest of the arguments, with defaults filled in.
    pub arguments_digest: String,
    /// `asked`: a person is asked. `yes`, `always` and `no` are their answers, `nobody` where
    /// there is nobody to ask, and `remembered` where they allowed such calls until the process
    /// ends.
    pub answer: String,
    /// Who answered, and how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A request over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestEvent {
    /// The method.
    pub method: String,
    /// Scheme, host and port. Paths may hold secrets and are left out.
    pub origin: String,
    /// The status of the response, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The bytes of the bodies, out and in. Zero out where the request was refused before anything
    /// was sent.
    pub bytes: [u64; 2],
    /// The grant that allowed it. Absent where nothing was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why it was refused.
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
