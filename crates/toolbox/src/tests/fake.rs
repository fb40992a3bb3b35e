//! A toolbox whose tools are closures, and a person who answers as the test specifies.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;

use kitbag_config::{Config, Origin, Sourced, Sources, ToolApproval, TrustSource, load};
use kitbag_contract::{Answer, AnswerError, AnswerType, Outcome, Question, ToolDescription};
use kitbag_host::{Host, HostOptions};
use kitbag_policy::ApprovalRule;
use kitbag_secrets::Secrets;
use kitbag_state::audit::{AuditEvent, AuditLog, AuditSize, Auditor, Syncing, Writing};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    CallContext, CallOutcome, Caller, FrontEnd, Invocation, NativeCall, NativeTool, Reply, Toolbox,
    ToolboxError,
};

type Work = Box<dyn for<'a> Fn(NativeCall<'a>) -> BoxedWork<'a> + Send + Sync>;
pub(super) type BoxedWork<'a> = Pin<Box<dyn Future<Output = Outcome> + 'a>>;

struct FakeTool {
    name: &'static str,
    schema: Value,
    work: Work,
}

impl NativeTool for FakeTool {
    fn description(&self) -> ToolDescription {
        ToolDescription {
            name: self.name.into(),
            input_schema: Some(self.schema.clone()),
            ..ToolDescription::default()
        }
    }

    fn call<'a>(&'a self, call: NativeCall<'a>) -> BoxedWork<'a> {
        (self.work)(call)
    }
}

pub(super) struct Fake {
    directory: TempDir,
    pub(super) toolbox: Toolbox,
}

impl Fake {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("w/.kitbag")).unwrap();
        let trusted = Sourced { value: true, origin: Origin::Caller };
        let config = load(&Sources {
            start: root.join("w"),
            trust: TrustSource::Said(trusted),
            ..Sources::default()
        });
        let config = config.unwrap_or_else(|errors| panic!("{errors}"));
        let log = AuditLog::new(&root.join("state"), AuditSize { file: 1 << 20, files: 4 });
        let auditor = Arc::new(Auditor::new(log, Syncing::None, Writing::Direct));
        let host = Host::new(HostOptions::default());
        let secrets = Arc::new(Secrets::default());
        let toolbox = Toolbox::new(host, config, &[], secrets, Some(auditor));
        Self { directory, toolbox }
    }

    /// Adds a tool that accepts any object.
    pub(super) fn tool(
        self,
        name: &'static str,
        work: impl for<'a> Fn(NativeCall<'a>) -> BoxedWork<'a> + Send + Sync + 'static,
    ) -> Self {
        self.tool_with(name, json!({ "type": "object" }), work)
    }

    pub(super) fn tool_with(
        mut self,
        name: &'static str,
        schema: Value,
        work: impl for<'a> Fn(NativeCall<'a>) -> BoxedWork<'a> + Send + Sync + 'static,
    ) -> Self {
        let tool = FakeTool { name, schema, work: Box::new(work) };
        self.toolbox = self.toolbox.with_tool(Arc::new(tool)).unwrap();
        self
    }

    /// Changes the configuration in the way that a file would.
    pub(super) fn configured(mut self, change: impl FnOnce(&mut Config)) -> Self {
        let (mut config, program) = self.toolbox.parts();
        change(&mut config);
        self.toolbox = self.toolbox.with_parts(config, program);
        self
    }

    /// Requires approval before each call of a tool.
    pub(super) fn approved_always(self, name: &str) -> Self {
        self.configured(|config| {
            let rule = Sourced { value: ApprovalRule::Always, origin: Origin::Default };
            let tool = config.tools.values_mut().find(|tool| tool.name.as_str() == name).unwrap();
            tool.approve = ToolApproval { rules: vec![rule], never: None };
        })
    }

    pub(super) fn call(
        &self,
        invocation: Invocation,
        person: &mut Person,
    ) -> Result<CallOutcome<String>, ToolboxError> {
        self.call_as(this_program(), invocation, person)
    }

    fn call_as(
        &self,
        caller: Caller,
        invocation: Invocation,
        person: &mut Person,
    ) -> Result<CallOutcome<String>, ToolboxError> {
        self.toolbox.call_blocking(invocation, CallContext::new(caller), person)
    }

    /// Calls a tool, and returns its outcome as one line.
    pub(super) fn say(&self, tool: &str, arguments: Value, person: &mut Person) -> String {
        self.say_as(this_program(), tool, arguments, person)
    }

    /// Like [`say`](Self::say), for another caller.
    pub(super) fn say_as(
        &self,
        caller: Caller,
        tool: &str,
        arguments: Value,
        person: &mut Person,
    ) -> String {
        match self.call_as(caller, Invocation::tool(tool, arguments), person) {
            Err(error) => format!("{:?}: {error}", error.kind()),
            Ok(CallOutcome::Refused(refusal)) => format!("refused: {refusal}"),
            Ok(CallOutcome::Suspended(open)) => format!("asks {}", open.question.id),
            Ok(CallOutcome::Completed(call)) => match call.completion.result {
                Ok(Outcome::Success(content)) => content,
                Ok(Outcome::Error(error)) => format!("error: {}", error.message),
                Ok(Outcome::NeedsInput(question)) => format!("asks {}", question.id),
                Err(error) => format!("{:?}: {error}", error.kind()),
            },
        }
    }

    /// Returns the lines of the audit log: the event, the tool, and the words of its end.
    pub(super) fn audit(&self) -> Vec<String> {
        let size = AuditSize { file: 1 << 20, files: 4 };
        let state = self.directory.path().canonicalize().unwrap().join("state");
        let log = AuditLog::new(&state, size);
        let Some(mut entries) = log.entries().unwrap() else { return Vec::new() };
        let mut lines = Vec::new();
        while let Some(entry) = entries.next_entry().unwrap() {
            lines.push(match entry.event {
                AuditEvent::Start(start) => format!("start {}", start.head.tool),
                AuditEvent::Call(call) => {
                    let reason = call.reason.map(|reason| format!(" {reason}"));
                    let by = &call.head.caller;
                    let reason = reason.unwrap_or_default();
                    format!("call {} by {by}: {}{reason}", call.head.tool, call.outcome)
                }
                AuditEvent::Approval(approval) => {
                    format!("approval {}: {}", approval.tool, approval.answer)
                }
                AuditEvent::Refusal(refusal) => {
                    format!("refusal {} {}", refusal.target, refusal.reason)
                }
                other => format!("{other:?}"),
            });
        }
        lines
    }
}

fn this_program() -> Caller {
    Caller::Program("test".into())
}

/// A person who gives replies in turn, and does not reply after the last.
#[derive(Default)]
pub(super) struct Person {
    replies: VecDeque<Reply>,
    /// The questions, each with the reason why the previous answer did not fit.
    pub(super) asked: Vec<(Question, Option<AnswerError>)>,
}

impl Person {
    /// Creates a person who types these answers.
    pub(super) fn typing(answers: &[&str]) -> Self {
        Self::replying(answers.iter().map(|text| typed(text, Origin::Caller)))
    }

    pub(super) fn replying(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self { replies: replies.into_iter().collect(), asked: Vec::new() }
    }
}

pub(super) fn typed(text: &str, origin: Origin) -> Reply {
    Reply::Answer(Sourced { value: Answer::Text(text.to_owned()), origin })
}

impl FrontEnd for Person {
    type Abort = String;

    const ATTEMPTS: usize = 2;

    async fn ask(
        &mut self,
        question: &Question,
        rejected: Option<&AnswerError>,
    ) -> Result<Reply, String> {
        self.asked.push((question.clone(), rejected.cloned()));
        Ok(self.replies.pop_front().unwrap_or(Reply::NobodyToAsk))
    }
}

/// Returns a question with the answers yes and no.
pub(super) fn question(id: &str) -> Question {
    Question {
        id: id.to_owned(),
        text: "Really?".to_owned(),
        answer_type: AnswerType::Boolean,
        default: None,
        is_consent: false,
        class: None,
        asker: None,
        approval: None,
    }
}
