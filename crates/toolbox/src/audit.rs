//! What the audit log says of a call.
//!
//! It is gathered as the call goes through its steps, and logged when it has ended, also where
//! its future was dropped.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use kitbag_audit::{ApprovalEvent, AuditError, AuditEvent, Auditor, CallEvent, RequestEvent};
use kitbag_config::{Audit, Config};
use kitbag_contract::ToolName;
use kitbag_host::{Completion, Component};
use kitbag_policy::Grants;
use serde_json::{Map, Value};

use crate::caller::Caller;
use crate::ended::Prepared;
use crate::tool::Tool;

/// The most bytes of arguments that are logged as they are.
const ARGUMENTS_BYTES: usize = 64 << 10;

/// The digests of grants, by the tool that has them.
pub(crate) type GrantDigests = Mutex<HashMap<ToolName, Arc<str>>>;

/// What is known of one call.
pub(crate) struct Audited {
    id: String,
    parent: Option<String>,
    known: Mutex<CallEvent>,
}

impl Audited {
    /// A call that begins, inside of `outer`. `None`: calls are not logged.
    pub(crate) fn begin(auditor: Option<&Auditor>, outer: Option<&Self>) -> Option<Arc<Self>> {
        auditor?;
        // Not the same in two processes, and not the same twice in one.
        static PROCESS: OnceLock<u64> = OnceLock::new();
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let process = PROCESS.get_or_init(|| RandomState::new().hash_one(std::process::id()));
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let parent = outer.map(|outer| outer.id.clone());
        let id = format!("{process:016x}-{number}");
        Some(Arc::new(Self { id, parent, known: Mutex::default() }))
    }

    /// Notes the grants in force.
    pub(crate) fn prepared(&self, digests: &GrantDigests, tool: &Tool, grants: &Arc<Grants>) {
        let digest = || -> Arc<str> {
            let lines = grants.lines(&[]).join("\n");
            blake3::hash(lines.as_bytes()).to_hex().as_str().into()
        };
        // Most often they are those of the tool, which stay the same.
        let digest = match *grants == tool.grants.value {
            true => {
                let mut digests = digests.lock().unwrap_or_else(PoisonError::into_inner);
                Arc::clone(digests.entry(tool.name.clone()).or_insert_with(digest))
            }
            false => digest(),
        };
        self.known().grants = Some(digest.to_string());
    }

    /// Notes the arguments, as the tool gets them.
    pub(crate) fn arguments(&self, config: &Audit, arguments: &str) {
        let digest = blake3::hash(arguments.as_bytes()).to_hex().to_string();
        let is_whole = config.arguments.value && arguments.len() <= ARGUMENTS_BYTES;
        let whole = is_whole.then(|| serde_json::from_str(arguments).ok()).flatten();
        let mut known = self.known();
        (known.arguments_digest, known.arguments) = (Some(digest), whole);
    }

    /// Notes which component runs.
    pub(crate) fn component(&self, component: &Component, toolset: Option<&str>) {
        let own = || format!("{} of kitbag {}", toolset?, env!("CARGO_PKG_VERSION")).into();
        self.known().component = component.digest().or_else(own);
    }

    /// Notes what a run has done.
    pub(crate) fn ran(&self, completion: &mut Completion) {
        let requests = mem::take(&mut completion.requests);
        let mut known = self.known();
        known.more_requests += completion.more_requests;
        if let Some(fuel) = completion.usage.fuel {
            *known.fuel.get_or_insert(0) += fuel;
        }
        known.requests.extend(requests.into_iter().map(|request| RequestEvent {
            method: request.method,
            origin: request.origin,
            status: request.status,
            bytes: [request.request_bytes, request.response_bytes],
            rule: Some(request.grant).filter(|grant| !grant.is_empty()),
            refused: request.refused.map(|kind| kind.as_str().to_owned()),
        }));
    }

    /// Notes the questions that were answered.
    pub(crate) fn answered(&self, answers: &Map<String, Value>) {
        self.known().answers = answers.keys().cloned().collect();
    }

    /// Logs the call.
    pub(crate) fn log(
        &self,
        auditor: &Auditor,
        config: &Config,
        caller: &Caller,
        tool: &str,
        (outcome, reason): (&str, Option<String>),
        elapsed: Duration,
    ) {
        let event = CallEvent {
            id: self.id.clone(),
            parent: self.parent.clone(),
            workspace: config.root.value.to_string_lossy().into_owned(),
            caller: caller.to_string(),
            tool: tool.to_owned(),
            outcome: outcome.to_owned(),
            reason,
            micros: u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
            ..mem::take(&mut *self.known())
        };
        auditor.record(AuditEvent::Call(Box::new(event)));
    }

    /// Logs what became of the question whether the call may be made.
    pub(crate) fn approval(
        &self,
        auditor: &Auditor,
        config: &Config,
        caller: &Caller,
        call: &Prepared,
        answer: &str,
        by: Option<String>,
    ) {
        let known = self.known();
        let digest = || blake3::hash(call.call.arguments.as_bytes()).to_hex().to_string();
        let event = ApprovalEvent {
            call: self.id.clone(),
            workspace: config.root.value.to_string_lossy().into_owned(),
            caller: caller.to_string(),
            tool: call.tool.name.to_string(),
            grants: known.grants.clone(),
            arguments_digest: known.arguments_digest.clone().unwrap_or_else(digest),
            answer: answer.to_owned(),
            by,
        };
        drop(known);
        auditor.record(AuditEvent::Approval(Box::new(event)));
    }

    fn known(&self) -> MutexGuard<'_, CallEvent> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks whether calls can be logged, where none may be made otherwise.
///
/// # Errors
///
/// What is wrong with the log.
pub(crate) fn check(auditor: Option<&Auditor>, config: &Audit) -> Result<(), AuditError> {
    match auditor {
        Some(auditor) if config.required.value => auditor.check(),
        _ => Ok(()),
    }
}
