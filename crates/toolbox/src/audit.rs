//! The entries of a call in the audit log.
//!
//! An entry is collected as the call goes through its steps, and is written when the call has ended
//! or its future was dropped.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use kitbag_base::text::{escape, is_hidden, shown};
use kitbag_config::{Audit, Config, ServerTool};
use kitbag_contract::ToolName;
use kitbag_fs_guard::canonical;
use kitbag_host::{Completion, Component, FileActivity, LOOKUP, PathList, Refusal, Refusals};
use kitbag_policy::{DirectoryGrant, Grants, RefusalWords, ToolGrants};
use kitbag_state::audit::{
    ApprovalEvent, AuditError, AuditEvent, Auditor, CallEvent, CallHead, ClientEvent, PathsEvent,
    RefusalEvent, RequestEvent, StartEvent, SummaryEvent,
};
use serde_json::{Map, Value};

use crate::call::caller::Caller;
use crate::call::outcome::PreparedCall;
use crate::pipeline::temporary::Temporary;
use crate::registry::tool::Tool;

/// The maximum size of arguments that are logged unchanged, in bytes.
const ARGUMENTS_BYTES: usize = 64 << 10;

/// The number of names of other tools that are logged for one call.
const ALIASES: usize = 50;

/// The number of refusals with their own lines, for a call with all its inner calls. The bound
/// keeps a tool from evicting earlier lines of the log by causing refusals.
const REFUSALS: usize = 500;

/// The number of inner calls with their own lines, for one call. A summary covers the others.
const INNER_CALLS: usize = 100;

/// The number of paths of each kind, and of requests, in a summary of inner calls.
const SUMMARY_PATHS: usize = 50;
const SUMMARY_REQUESTS: usize = 100;

/// The maximum length of the name and of the version of a client in the log, in characters.
const CLIENT_CHARS: usize = 64;

pub(crate) type GrantDigests = Mutex<HashMap<ToolName, Arc<str>>>;

pub(crate) struct Audited {
    id: String,
    parent: Option<String>,
    known: Mutex<CallEvent>,
    refusals: Mutex<Refusals>,
    /// The reason for a refusal that the answer of the call does not contain.
    refused_for: Mutex<Option<&'static str>>,
    is_started: AtomicBool,
    outermost: Arc<Outermost>,
}

/// State that the outermost call shares with all its inner calls.
struct Outermost {
    id: String,
    refusals_left: AtomicUsize,
    calls_left: AtomicUsize,
    /// The summary of the remaining inner calls. `None` if the outermost call has ended: each inner
    /// call then has a line.
    summary: Mutex<Option<SummaryEvent>>,
}

/// The program behind a client, by the name that it declares when it connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientName {
    name: String,
    version: String,
}

impl ClientName {
    /// Creates a client name from a name and a version. Keeps 64 characters of each and escapes
    /// control characters. Both are unverified.
    pub fn new(name: &str, version: &str) -> Self {
        Self { name: client_text(name), version: client_text(version) }
    }

    fn event(&self) -> ClientEvent {
        ClientEvent { name: self.name.clone(), version: self.version.clone() }
    }
}

fn client_text(text: &str) -> String {
    let mut escaped = String::new();
    for (index, char) in text.chars().enumerate() {
        match char {
            _ if index == CLIENT_CHARS => {
                escaped.push('…');
                break;
            }
            char if is_hidden(char) => escaped.push_str(&escape(char)),
            char => escaped.push(char),
        }
    }
    escaped
}

impl Audited {
    /// Begins the entry of a call that is made inside `outer`. `None` if calls are not logged.
    pub(crate) fn begin(
        auditor: Option<&Auditor>,
        outer: Option<&Self>,
        serves: Option<String>,
    ) -> Option<Arc<Self>> {
        auditor?;
        // The number differs between processes and between calls of one process.
        static PROCESS: OnceLock<u64> = OnceLock::new();
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let process = PROCESS.get_or_init(|| RandomState::new().hash_one(std::process::id()));
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let parent = outer.map(|outer| outer.id.clone());
        let id = format!("{process:016x}-{number}");
        let outermost = match outer {
            Some(outer) => Arc::clone(&outer.outermost),
            None => Arc::new(Outermost::new(&id)),
        };
        Some(Arc::new(Self {
            id,
            parent,
            known: Mutex::new(CallEvent {
                head: CallHead { serves, ..CallHead::default() },
                ..CallEvent::default()
            }),
            refusals: Mutex::default(),
            refused_for: Mutex::default(),
            is_started: AtomicBool::new(false),
            outermost,
        }))
    }

    /// Logs once that the call starts to run, before it can change or send anything. Returns true
    /// if this was the first time.
    pub(crate) fn started(
        &self,
        auditor: &Auditor,
        config: &Config,
        (caller, client): (&Caller, Option<&ClientName>),
        tool: &str,
    ) -> bool {
        if self.is_started.swap(true, Ordering::Relaxed) {
            return false;
        }
        let outermost = Some(&self.outermost.id);
        let is_named = self.parent.is_none() || self.parent.as_ref() == outermost;
        let event = StartEvent {
            head: self.head(self.known().head.clone(), config, (caller, client), tool),
            outermost: outermost.filter(|_| !is_named).cloned(),
        };
        auditor.record_now(AuditEvent::Start(Box::new(event)));
        true
    }

    /// Returns `known` with the ids of the call, its workspace, caller, client and tool.
    fn head(
        &self,
        known: CallHead,
        config: &Config,
        (caller, client): (&Caller, Option<&ClientName>),
        tool: &str,
    ) -> CallHead {
        CallHead {
            id: self.id.clone(),
            parent: self.parent.clone(),
            workspace: config.root.value.to_string_lossy().into_owned(),
            caller: caller.to_string(),
            // Only the entry of the outermost call names the client.
            client: client.filter(|_| self.parent.is_none()).map(ClientName::event),
            tool: tool.to_owned(),
            ..known
        }
    }

    pub(crate) fn prepared(&self, digests: &GrantDigests, tool: &Tool, grants: &Arc<Grants>) {
        let digest = || -> Arc<str> {
            let lines = grants.lines(&[]).join("\n");
            blake3::hash(lines.as_bytes()).to_hex().as_str().into()
        };
        // The grants of a call usually are those of the tool, which do not change.
        let digest = match *grants == tool.grants.value {
            true => {
                let mut digests = digests.lock().unwrap_or_else(PoisonError::into_inner);
                Arc::clone(digests.entry(tool.name.clone()).or_insert_with(digest))
            }
            false => digest(),
        };
        self.known().head.grants = Some(digest.to_string());
    }

    /// Records the arguments in the form that the tool receives.
    pub(crate) fn arguments(&self, config: &Audit, arguments: &str) {
        let digest = blake3::hash(arguments.as_bytes()).to_hex().to_string();
        let is_whole = config.arguments.value && arguments.len() <= ARGUMENTS_BYTES;
        let whole = is_whole.then(|| serde_json::from_str(arguments).ok()).flatten();
        let mut known = self.known();
        (known.head.arguments_digest, known.arguments) = (Some(digest), whole);
    }

    pub(crate) fn component(&self, component: &Component, toolset: Option<&str>) {
        let own = || format!("{} of kitbag {}", toolset?, env!("CARGO_PKG_VERSION")).into();
        self.known().head.component = component.digest().or_else(own);
    }

    /// Records the server that is called.
    pub(crate) fn server(&self, tool: &ServerTool) {
        self.known().head.component = Some(format!("server {}", tool.source()));
    }

    /// Records the effects of a run. `has_tool` returns true if a tool of that name exists.
    pub(crate) fn ran(
        &self,
        config: &Config,
        completion: &mut Completion,
        temporary: Option<&Temporary>,
        has_tool: impl Fn(&str) -> bool,
    ) {
        let requests = mem::take(&mut completion.requests);
        let names = Names::new(config, temporary);
        let mut refusals = mem::take(&mut completion.refusals);
        refusals.kept.retain_mut(|refusal| match refusal.key {
            DirectoryGrant::KEY => {
                refusal.target = names.of(&refusal.target);
                true
            }
            ToolGrants::KEY => {
                let is_refusal = refusal.reason != LOOKUP || has_tool(&refusal.target);
                if refusal.reason == LOOKUP {
                    refusal.reason = "grant";
                }
                refusal.target = shown(&refusal.target).to_string();
                is_refusal
            }
            _ => true,
        });
        self.refusals().append(refusals);
        let mut known = self.known();
        let paths = &mut known.paths;
        let FileActivity { read, written, removed, looked_at, temporary, .. } =
            mem::take(&mut completion.touched);
        for (touched, paths, more) in [
            (read, &mut paths.read, &mut paths.more_read),
            (written, &mut paths.written, &mut paths.more_written),
            (removed, &mut paths.removed, &mut paths.more_removed),
        ] {
            let PathList { paths: touched, more: others } = touched;
            names.add(touched, paths);
            *more += others;
        }
        names.add(looked_at, &mut paths.looked_at);
        paths.temporary += temporary;
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

    /// Records a call of another tool by this name.
    pub(crate) fn called(&self, alias: &str) {
        let mut known = self.known();
        if known.aliases.iter().any(|known| known == alias) {
            return;
        }
        match known.aliases.len() < ALIASES {
            true => known.aliases.push(shown(alias).to_string()),
            false => known.more_aliases += 1,
        }
    }

    /// Records that a call of another tool was refused.
    pub(crate) fn refused_call(&self, alias: &str, reason: &'static str) {
        self.refusals().note(ToolGrants::KEY, &shown(alias).to_string(), reason);
    }

    /// Records that the call itself was refused although it has an answer.
    pub(crate) fn refused(&self, reason: &'static str) {
        *self.refused_for.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }

    /// Records the questions that were answered.
    pub(crate) fn answered(&self, answers: &Map<String, Value>) {
        self.known().answers = answers.keys().cloned().collect();
    }

    pub(crate) fn log(
        &self,
        auditor: &Auditor,
        config: &Config,
        (caller, client): (&Caller, Option<&ClientName>),
        tool: &str,
        (outcome, reason): (&str, Option<String>),
        elapsed: Duration,
    ) {
        let refused_for = *self.refused_for.lock().unwrap_or_else(PoisonError::into_inner);
        let (outcome, reason) = match refused_for {
            Some(refused_for) if outcome == "error" => ("refused", Some(refused_for.to_owned())),
            _ => (outcome, reason),
        };
        let known = mem::take(&mut *self.known());
        let mut event = CallEvent {
            head: self.head(known.head, config, (caller, client), tool),
            outcome: outcome.to_owned(),
            reason,
            micros: u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
            ..known
        };
        let PathsEvent { read, written, removed, looked_at, .. } = &mut event.paths;
        if !(read.is_empty() && written.is_empty() && removed.is_empty()) {
            looked_at.clear();
        }
        let Refusals { kept, more } = mem::take(&mut *self.refusals());
        let of_kept: u64 = kept.iter().map(|refusal| refusal.times).sum();
        (event.refusals, event.more_refusals) = (of_kept + more, more);
        for refusal in kept {
            if !take_one(&self.outermost.refusals_left) {
                event.more_refusals += refusal.times;
                continue;
            }
            auditor.record(AuditEvent::Refusal(Box::new(refusal_event(&event.head, refusal))));
        }
        match self.parent {
            Some(_) if !take_one(&self.outermost.calls_left) => {
                if let Some(event) = self.outermost.add(event) {
                    auditor.record(AuditEvent::Call(Box::new(event)));
                }
            }
            Some(_) => auditor.record(AuditEvent::Call(Box::new(event))),
            None => {
                let summary = self.outermost.summary().take().unwrap_or_default();
                event.more_calls = summary.calls.values().sum();
                if event.more_calls > 0 {
                    let CallHead { workspace, caller, client, tool, .. } = event.head.clone();
                    let call = self.id.clone();
                    let summary = SummaryEvent { call, workspace, caller, client, tool, ..summary };
                    auditor.record(AuditEvent::Summary(Box::new(summary)));
                }
                auditor.record(AuditEvent::Call(Box::new(event)));
            }
        }
    }

    /// Logs the answer to the question whether the call may be made.
    pub(crate) fn approval(
        &self,
        auditor: &Auditor,
        config: &Config,
        caller: &Caller,
        call: &PreparedCall,
        answer: &str,
        by: Option<String>,
    ) {
        // A script may repeat a call that was approved before.
        let is_repeated = self.parent.is_some() && answer == "remembered";
        if is_repeated && self.outermost.calls_left.load(Ordering::Relaxed) == 0 {
            return;
        }
        let known = self.known();
        let digest = || blake3::hash(call.call.arguments.as_bytes()).to_hex().to_string();
        let event = ApprovalEvent {
            call: self.id.clone(),
            workspace: config.root.value.to_string_lossy().into_owned(),
            caller: caller.to_string(),
            tool: call.tool.name.to_string(),
            grants: known.head.grants.clone(),
            arguments_digest: known.head.arguments_digest.clone().unwrap_or_else(digest),
            answer: answer.to_owned(),
            by,
        };
        drop(known);
        auditor.record(AuditEvent::Approval(Box::new(event)));
    }

    fn refusals(&self) -> MutexGuard<'_, Refusals> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, CallEvent> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outermost {
    fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            refusals_left: AtomicUsize::new(REFUSALS),
            calls_left: AtomicUsize::new(INNER_CALLS),
            summary: Mutex::new(Some(SummaryEvent::default())),
        }
    }

    fn summary(&self) -> MutexGuard<'_, Option<SummaryEvent>> {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an inner call to the summary. Returns the inner call if it needs its own line because
    /// the outermost call has ended.
    fn add(&self, call: CallEvent) -> Option<CallEvent> {
        let mut summary = self.summary();
        let Some(summary) = &mut *summary else { return Some(call) };
        *summary.calls.entry(format!("{} {}", call.head.tool, call.outcome)).or_default() += 1;
        let (from, to) = (call.paths, &mut summary.paths);
        for (paths, more, kept, kept_more) in [
            (from.read, from.more_read, &mut to.read, &mut to.more_read),
            (from.written, from.more_written, &mut to.written, &mut to.more_written),
            (from.removed, from.more_removed, &mut to.removed, &mut to.more_removed),
        ] {
            *kept_more += more;
            for path in paths {
                match kept.len() < SUMMARY_PATHS {
                    _ if kept.contains(&path) => {}
                    true => kept.push(path),
                    false => *kept_more += 1,
                }
            }
        }
        to.temporary += from.temporary;
        summary.more_requests += call.more_requests;
        for request in call.requests {
            let is_same = |it: &RequestEvent| {
                (&it.method, &it.origin, it.status, &it.rule, &it.refused)
                    == (
                        &request.method,
                        &request.origin,
                        request.status,
                        &request.rule,
                        &request.refused,
                    )
            };
            match summary.requests.iter().position(is_same) {
                Some(at) => {
                    let [sent, received] = &mut summary.requests[at].bytes;
                    *sent += request.bytes[0];
                    *received += request.bytes[1];
                }
                None if summary.requests.len() < SUMMARY_REQUESTS => summary.requests.push(request),
                None => summary.more_requests += 1,
            }
        }
        None
    }
}

/// Takes one from a count. Returns false if the count is zero.
fn take_one(left: &AtomicUsize) -> bool {
    let take = |left: usize| left.checked_sub(1);
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
}

fn refusal_event(call: &CallHead, refusal: Refusal) -> RefusalEvent {
    RefusalEvent {
        call: call.id.clone(),
        workspace: call.workspace.clone(),
        caller: call.caller.clone(),
        client: call.client.clone(),
        tool: call.tool.clone(),
        kind: RefusalWords::kind_of(refusal.key).to_owned(),
        target: refusal.target,
        reason: refusal.reason.to_owned(),
        by: refusal.by,
        times: refusal.times,
    }
}

struct Names<'a> {
    root: &'a Path,
    /// The canonical root, computed for the first path that is not below `root` as written.
    canonical: OnceCell<PathBuf>,
    temporary: Option<&'a Temporary>,
}

impl<'a> Names<'a> {
    fn new(config: &'a Config, temporary: Option<&'a Temporary>) -> Self {
        Self { root: &config.root.value, canonical: OnceCell::new(), temporary }
    }

    /// Returns a path in the form that is logged: relative to the workspace if it is inside,
    /// without control characters, and truncated if it is long.
    fn of(&self, path: &str) -> String {
        let text = path.trim_end_matches('/');
        let within = |root: &Path| Path::new(text).strip_prefix(root).ok();
        let without_links = || within(self.canonical.get_or_init(|| canonical(self.root)));
        let Some(inside) = within(self.root).or_else(without_links) else {
            return shown(path).to_string();
        };
        let end = if path.ends_with('/') { "/" } else { "" };
        match inside.as_os_str().is_empty() {
            true => "./".to_owned(),
            false => format!("{}{end}", shown(&inside.to_string_lossy())),
        }
    }

    /// Adds paths, except those in the private directories of the run.
    fn add(&self, paths: Vec<String>, to: &mut Vec<String>) {
        let is_own = |path: &str| self.temporary.is_some_and(|it| it.holds(Path::new(path)));
        let names = paths.iter().filter(|path| !is_own(path)).map(|path| self.of(path));
        for name in names {
            if !to.contains(&name) {
                to.push(name);
            }
        }
    }
}

/// Checks that calls can be logged, if the settings refuse calls that cannot be logged.
///
/// # Errors
///
/// The problem with the log.
pub(crate) fn check(auditor: Option<&Auditor>, config: &Audit) -> Result<(), AuditError> {
    match auditor {
        Some(auditor) if config.required.value => auditor.check(),
        _ => Ok(()),
    }
}
