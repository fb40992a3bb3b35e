//! The JSON of calls, events and ends. Unknown members are ignored, so that a later version can add
//! some.
//!
//! These types are separate from those of the pipeline: a change there does not change what another
//! version of kitbag reads.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kitbag_base::ByteSize;
use kitbag_config::LimitFlags;
use kitbag_contract::{
    ApprovalRequest, Content, ErrorInfo, ErrorKind, LimitKind, LogLevel, Media, Outcome, Question,
    Resource, ResourceBody, ResourceLink, ToolName,
};
use kitbag_toolbox::{Caller, RemoteCall, RemoteCompletion, RemoteEnd, RemoteFailure, RemoteUsage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::envelope::WireError;
use crate::names::{CallId, Priority};
use crate::record::Cause;

/// One run of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct WireCall {
    pub(crate) id: CallId,
    pub(crate) round: u32,
    /// The digest of the snapshot that the front end has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot: Option<String>,
    pub(crate) tool: ToolName,
    pub(crate) arguments: String,
    /// The SHA-256 of the arguments in hexadecimal, for logs.
    pub(crate) arguments_digest: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) answers: Map<String, Value>,
    pub(crate) caller: String,
    pub(crate) owner: String,
    /// Milliseconds since 1970. After it, no worker begins the call.
    pub(crate) deadline: u64,
    /// The tool's time limit at the front end, in milliseconds.
    pub(crate) time: u64,
    pub(crate) priority: Priority,
    #[serde(default)]
    pub(crate) depth: u32,
    #[serde(default)]
    pub(crate) limits: WireLimits,
    /// The part of the subject of replies that names the front end's process.
    pub(crate) front_end: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct WireLimits {
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fuel: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compile_ms: Option<u64>,
}

/// An event of a run, which can get lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub(crate) enum WireEvent {
    Started,
    Progress {
        done: f64,
        total: Option<f64>,
        message: Option<String>,
    },
    Log {
        level: LogLevel,
        message: String,
    },
    #[serde(other)]
    Unknown,
}

/// The end of a run, as its record contains it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "end")]
pub(crate) enum WireEnd {
    Completed(Box<WireCompletion>),
    Asks {
        question: Box<WireQuestion>,
        answers: Map<String, Value>,
    },
    Refused {
        kind: Value,
        message: String,
    },
    /// The run ended without its tool.
    Without {
        cause: Cause,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct WireCompletion {
    result: WireResult,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    emitted: Vec<WireContent>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    stdout: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    stderr: String,
    #[serde(default)]
    usage: WireUsage,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    advice: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WireResult {
    Success(String),
    Error(ErrorInfo),
    Limit(LimitKind, String),
    Denied(String),
    Trap(String),
    Cancelled,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct WireUsage {
    elapsed_us: u64,
    memory: u64,
    output_bytes: u64,
    emitted_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fuel: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WireContent {
    Image { mime_type: String, data: String },
    Audio { mime_type: String, data: String },
    Text { uri: String, mime_type: Option<String>, text: String },
    Blob { uri: String, mime_type: Option<String>, data: String },
    Link(WireLink),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct WireLink {
    uri: String,
    name: String,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
    size: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct WireQuestion {
    id: String,
    text: String,
    answer_type: String,
    default: Option<String>,
    #[serde(default)]
    consent: bool,
    class: Option<String>,
    asker: Option<String>,
    #[serde(default)]
    approval: Option<WireApproval>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct WireApproval {
    tool: String,
    line: String,
    advice: String,
    inner: bool,
}

impl WireCall {
    pub(crate) fn new(
        call: RemoteCall,
        deadline: u64,
        priority: Priority,
        front_end: &str,
    ) -> Result<Self, WireError> {
        let id = CallId::new(call.id).map_err(|error| WireError::Form(error.to_string()))?;
        Ok(Self {
            id,
            round: call.round,
            snapshot: None,
            tool: call.tool,
            arguments_digest: digest(call.arguments.as_bytes()),
            arguments: call.arguments,
            answers: call.answers,
            caller: call.caller.storage_name(),
            owner: call.owner.storage_name(),
            deadline,
            time: millis(call.time),
            priority,
            depth: 0,
            limits: WireLimits::from(call.limits),
            front_end: front_end.to_owned(),
        })
    }

    /// Returns the call for the pipeline.
    ///
    /// # Errors
    ///
    /// [`WireError::Form`] if a member contradicts another, or the caller is not one of a front end.
    pub(crate) fn into_call(self) -> Result<RemoteCall, WireError> {
        let form = |reason: &str| WireError::Form(reason.to_owned());
        if self.arguments_digest != digest(self.arguments.as_bytes()) {
            return Err(form("the digest of the arguments differs"));
        }
        if self.depth != 0 {
            return Err(form("only outermost calls are sent to workers"));
        }
        let caller = |name: &str| {
            Caller::from_storage_name(name).ok_or_else(|| form("the caller is not known"))
        };
        Ok(RemoteCall {
            caller: caller(&self.caller)?,
            owner: caller(&self.owner)?,
            id: self.id.into(),
            round: self.round,
            tool: self.tool,
            arguments: self.arguments,
            answers: self.answers,
            time: Duration::from_millis(self.time),
            limits: self.limits.into(),
        })
    }
}

impl From<LimitFlags> for WireLimits {
    fn from(limits: LimitFlags) -> Self {
        Self {
            memory: limits.memory.map(ByteSize::as_u64),
            time_ms: limits.time.map(millis),
            output: limits.output.map(ByteSize::as_u64),
            written: limits.written.map(ByteSize::as_u64),
            requests: limits.requests,
            tool_calls: limits.tool_calls,
            fuel: limits.fuel,
            compile_ms: limits.compile.map(millis),
        }
    }
}

impl From<WireLimits> for LimitFlags {
    fn from(limits: WireLimits) -> Self {
        Self {
            memory: limits.memory.map(ByteSize::bytes),
            time: limits.time_ms.map(Duration::from_millis),
            output: limits.output.map(ByteSize::bytes),
            written: limits.written.map(ByteSize::bytes),
            requests: limits.requests,
            tool_calls: limits.tool_calls,
            fuel: limits.fuel,
            compile: limits.compile_ms.map(Duration::from_millis),
        }
    }
}

impl From<RemoteEnd> for WireEnd {
    fn from(end: RemoteEnd) -> Self {
        match end {
            RemoteEnd::Completed(completed) => Self::Completed(Box::new((*completed).into())),
            RemoteEnd::Asks { question, answers } => {
                Self::Asks { question: Box::new((*question).into()), answers }
            }
            RemoteEnd::Refused { kind, message } => {
                let kind = serde_json::to_value(kind).unwrap_or_default();
                Self::Refused { kind, message }
            }
        }
    }
}

impl WireEnd {
    /// Returns the end for the pipeline.
    ///
    /// # Errors
    ///
    /// [`WireError::Form`].
    pub(crate) fn into_end(self) -> Result<RemoteEnd, WireError> {
        Ok(match self {
            Self::Completed(completed) => RemoteEnd::Completed(Box::new((*completed).try_into()?)),
            Self::Asks { question, answers } => {
                RemoteEnd::Asks { question: Box::new((*question).try_into()?), answers }
            }
            Self::Refused { kind, message } => {
                // A later version can have more kinds.
                let kind = serde_json::from_value(kind).unwrap_or(ErrorKind::Internal);
                RemoteEnd::Refused { kind, message }
            }
            Self::Without { cause } => {
                let (kind, message) = refusal(&cause);
                RemoteEnd::Refused { kind, message }
            }
        })
    }
}

/// Returns the error of a call that ended without its tool.
fn refusal(cause: &Cause) -> (ErrorKind, String) {
    match cause {
        Cause::Expired => {
            let message = "busy: no worker took the call before its deadline; it had no effect, \
                           try again";
            (ErrorKind::Busy, message.to_owned())
        }
        Cause::Cancelled => (ErrorKind::Cancelled, "cancelled".to_owned()),
        Cause::MayHaveActed(acting) => {
            let message = format!(
                "the worker of the call is gone, and `{}` may have changed or sent something; \
                 check that before you call again, because kitbag does not repeat the call",
                acting.tool
            );
            (ErrorKind::MayHaveActed, message)
        }
        Cause::Lost => {
            let message = "the call was given up: several workers ended while they ran it";
            (ErrorKind::System, message.to_owned())
        }
    }
}

impl From<RemoteCompletion> for WireCompletion {
    fn from(completion: RemoteCompletion) -> Self {
        let result = match completion.result {
            Ok(Outcome::Success(text)) => WireResult::Success(text),
            Ok(Outcome::Error(error)) => WireResult::Error(error),
            // The pipeline suspends a call that asks.
            Ok(Outcome::NeedsInput(question)) => WireResult::Trap(question.text),
            Err(RemoteFailure::Limit(kind, limit)) => WireResult::Limit(kind, limit),
            Err(RemoteFailure::Denied(reason)) => WireResult::Denied(reason),
            Err(RemoteFailure::Trap(message)) => WireResult::Trap(message),
            Err(RemoteFailure::Cancelled) => WireResult::Cancelled,
        };
        let RemoteUsage { elapsed, memory, output_bytes, emitted_bytes, fuel } = completion.usage;
        let elapsed_us = elapsed.as_micros().try_into().unwrap_or(u64::MAX);
        Self {
            result,
            emitted: completion.emitted.into_iter().map(Into::into).collect(),
            stdout: completion.stdout,
            stderr: completion.stderr,
            usage: WireUsage { elapsed_us, memory, output_bytes, emitted_bytes, fuel },
            advice: completion.advice,
        }
    }
}

impl TryFrom<WireCompletion> for RemoteCompletion {
    type Error = WireError;

    fn try_from(completion: WireCompletion) -> Result<Self, WireError> {
        let result = match completion.result {
            WireResult::Success(text) => Ok(Outcome::Success(text)),
            WireResult::Error(error) => Ok(Outcome::Error(error)),
            WireResult::Limit(kind, limit) => Err(RemoteFailure::Limit(kind, limit)),
            WireResult::Denied(reason) => Err(RemoteFailure::Denied(reason)),
            WireResult::Trap(message) => Err(RemoteFailure::Trap(message)),
            WireResult::Cancelled => Err(RemoteFailure::Cancelled),
        };
        let WireUsage { elapsed_us, memory, output_bytes, emitted_bytes, fuel } = completion.usage;
        let elapsed = Duration::from_micros(elapsed_us);
        let emitted = completion.emitted.into_iter().map(TryInto::try_into);
        Ok(Self {
            result,
            emitted: emitted.collect::<Result<_, _>>()?,
            stdout: completion.stdout,
            stderr: completion.stderr,
            usage: RemoteUsage { elapsed, memory, output_bytes, emitted_bytes, fuel },
            advice: completion.advice,
        })
    }
}

impl From<Content> for WireContent {
    fn from(content: Content) -> Self {
        let text = |data: &[u8]| STANDARD.encode(data);
        match content {
            Content::Image(Media { data, mime_type }) => {
                Self::Image { mime_type, data: text(&data) }
            }
            Content::Audio(Media { data, mime_type }) => {
                Self::Audio { mime_type, data: text(&data) }
            }
            Content::Resource(Resource { uri, mime_type, body: ResourceBody::Text(text) }) => {
                Self::Text { uri, mime_type, text }
            }
            Content::Resource(Resource { uri, mime_type, body: ResourceBody::Blob(data) }) => {
                Self::Blob { uri, mime_type, data: text(&data) }
            }
            Content::Link(ResourceLink { uri, name, title, description, mime_type, size }) => {
                Self::Link(WireLink { uri, name, title, description, mime_type, size })
            }
        }
    }
}

impl TryFrom<WireContent> for Content {
    type Error = WireError;

    fn try_from(content: WireContent) -> Result<Self, WireError> {
        let bytes = |data: String| {
            let data = STANDARD.decode(data);
            data.map_err(|_| WireError::Form("its binary data is not base64".to_owned()))
        };
        Ok(match content {
            WireContent::Image { mime_type, data } => {
                Self::Image(Media { mime_type, data: bytes(data)? })
            }
            WireContent::Audio { mime_type, data } => {
                Self::Audio(Media { mime_type, data: bytes(data)? })
            }
            WireContent::Text { uri, mime_type, text } => {
                Self::Resource(Resource { uri, mime_type, body: ResourceBody::Text(text) })
            }
            WireContent::Blob { uri, mime_type, data } => {
                Self::Resource(Resource { uri, mime_type, body: ResourceBody::Blob(bytes(data)?) })
            }
            WireContent::Link(WireLink { uri, name, title, description, mime_type, size }) => {
                Self::Link(ResourceLink { uri, name, title, description, mime_type, size })
            }
        })
    }
}

impl From<Question> for WireQuestion {
    fn from(question: Question) -> Self {
        let approval = question.approval.map(|approval| {
            let ApprovalRequest { tool, line, advice, is_inner } = *approval;
            WireApproval { tool, line, advice, inner: is_inner }
        });
        Self {
            id: question.id,
            text: question.text,
            answer_type: question.answer_type.to_string(),
            default: question.default,
            consent: question.is_consent,
            class: question.class,
            asker: question.asker,
            approval,
        }
    }
}

impl TryFrom<WireQuestion> for Question {
    type Error = WireError;

    fn try_from(question: WireQuestion) -> Result<Self, WireError> {
        let approval = question.approval.map(|approval| {
            let WireApproval { tool, line, advice, inner } = approval;
            Box::new(ApprovalRequest { tool, line, advice, is_inner: inner })
        });
        let answer_type = question.answer_type.parse();
        Ok(Self {
            id: question.id,
            text: question.text,
            answer_type: answer_type.map_err(|_| {
                WireError::Form("this kitbag does not know the type of the answer".to_owned())
            })?,
            default: question.default,
            is_consent: question.consent,
            class: question.class,
            asker: question.asker,
            approval,
        })
    }
}

/// Reads JSON of a message whose signature is valid.
///
/// # Errors
///
/// [`WireError::Form`].
pub(crate) fn read<T: for<'a> Deserialize<'a>>(body: &[u8]) -> Result<T, WireError> {
    serde_json::from_slice(body).map_err(|error| WireError::Form(error.to_string()))
}

pub(crate) fn write<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("every key is a string")
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn millis(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap_or(u64::MAX)
}
