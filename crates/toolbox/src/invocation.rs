//! What is called, and what comes back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kitbag_config::{LimitFlags, Sourced};
use kitbag_contract::{
    Action, Answer, AnswerError, ByteSize, Outcome, PromptDescription, Question, ToolName,
};
use kitbag_host::{CacheProblem, Call, Completion, Component};
use kitbag_policy::{DirectoryGrant, Grants};
use kitbag_schema::Arguments;
use serde_json::{Map, Value};

use crate::approval::Approval;
use crate::error::ToolboxError;
use crate::inner::InnerCalls;
use crate::marks::{Fencing, Marks};
use crate::scope::{Callable, Via};
use crate::served::ServedItem;
use crate::tool::Tool;

/// What is asked of a tool.
pub struct Invocation {
    pub(crate) target: Target,
    pub(crate) arguments: Arguments,
    pub(crate) action: Action,
    pub(crate) answers: Vec<(String, Sourced<Answer>)>,
    pub(crate) resume: Option<OpenState>,
    pub(crate) is_structured: bool,
    pub(crate) grants: Option<Grants>,
    pub(crate) limits: LimitFlags,
    /// The grant by which a tool makes this call of another.
    pub(crate) via: Option<Via>,
}

/// What is called.
pub(crate) enum Target {
    /// A tool, by its name.
    Tool(String),
    /// A prompt that a tool's component serves.
    Prompt(ServedItem<PromptDescription>),
    /// A resource that a tool's component serves, which the arguments name.
    Resource(ToolName),
    /// What the component of a tool serves for a person, by its name there, with these
    /// directories besides the grants of the tool.
    Command { tool: ToolName, name: &'static str, directories: Vec<DirectoryGrant> },
    /// A built-in by its own name, whether or not it is enabled, with nothing but what
    /// its adapter grants: for kitbag itself.
    Builtin(&'static str),
}

impl Target {
    /// What the call is granted besides.
    pub(crate) fn directories(&self) -> Vec<DirectoryGrant> {
        match self {
            Self::Command { directories, .. } => directories.clone(),
            Self::Tool(_) | Self::Prompt(_) | Self::Resource(_) | Self::Builtin(_) => Vec::new(),
        }
    }

    /// The name of the tool that it takes a place of.
    pub(crate) fn tool(&self) -> &str {
        match self {
            Self::Tool(name) => name,
            Self::Prompt(served) => served.tool.as_str(),
            Self::Command { tool, .. } => tool.as_str(),
            Self::Resource(name) => name.as_str(),
            Self::Builtin(name) => name,
        }
    }
}

/// Opens what was made of a suspended call: what it goes on with, or why that is not of this
/// call. It gets the name that is called and the arguments as text.
pub type OpenState = Box<dyn FnOnce(&str, &str) -> Result<Resumed, String> + Send>;

/// What a suspended call goes on with.
#[derive(Default)]
pub struct Resumed {
    /// The answers that it had ([`Suspended::answers`]).
    pub answers: Map<String, Value>,
    /// The calls of other tools that it had made ([`Suspended::take_inner`]). With `None` they
    /// are made again.
    pub inner: Option<InnerCalls>,
}

/// How a call ended, or where it stopped.
pub enum Ended<R> {
    /// It has ended.
    Completed(Box<Completed>),
    /// A question is open.
    Suspended(Box<Suspended>),
    /// The front end broke it off over a question.
    Refused(R),
}

/// A call that has ended.
pub struct Completed {
    /// How it ended and what it took.
    pub completion: Completion,
    /// The content as the JSON that the tool's output schema promises, where the
    /// invocation asks for it, the tool has one and succeeded.
    pub structured: Result<Option<Value>, ToolboxError>,
    /// What the output limit has cut of the content, where the tool succeeded.
    pub cut: Option<Cut>,
    /// What is known of the answer besides what it says, of a call that is inside no other.
    pub marks: Marks,
    /// What was wrong with the tool and did not keep it from running.
    pub problems: Problems,
}

/// An answer that was longer than the output limit.
///
/// Reads as ``it had 3000000 bytes, and the limit `output` is 1 MiB (default)``.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it had {bytes} bytes, and the limit `output` is {} ({})", limit.value, limit.origin)]
pub struct Cut {
    /// The size of the whole answer.
    pub bytes: u64,
    /// The limit, and who set it.
    pub limit: Sourced<ByteSize>,
}

/// A call that waits for an answer: to be made again with all answers so far.
pub struct Suspended {
    /// What the tool wants to know.
    pub question: Question,
    /// Why the last answer did not fit.
    pub rejected: Option<AnswerError>,
    /// How its last run ended, which is with the question.
    pub completion: Completion,
    /// What is known of the question besides what it says.
    pub marks: Marks,
    pub(crate) call: Box<Prepared>,
}

/// What was wrong with a tool and did not keep it from running.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    /// With the disk cache.
    pub cache: Vec<CacheProblem>,
    /// With what the tool says of itself.
    pub description: Option<String>,
}

/// A call that may run: its tool is known, its arguments fit, its grants are settled.
pub(crate) struct Prepared {
    /// Its time is what the checks have left of the tool's.
    pub(crate) call: Call,
    /// The time of a whole run, checks included.
    pub(crate) time: Duration,
    pub(crate) tool: Arc<Tool>,
    /// The component, where resolving the tool has loaded it.
    pub(crate) component: Option<Component>,
    pub(crate) presets: BTreeMap<String, Sourced<Answer>>,
    pub(crate) answers: Map<String, Value>,
    /// The content has to fit the tool's output schema.
    pub(crate) is_structured: bool,
    /// How what a model reads of it is marked. `None`: no model reads it, since the call is
    /// inside another one, or kitbag's own.
    pub(crate) fencing: Option<Fencing>,
    pub(crate) problems: Problems,
    /// How far it is with the approval of a person.
    pub(crate) approval: Approval,
    /// The tools that it may call. `None`: it calls none.
    pub(crate) callable: Option<Arc<Callable>>,
    /// Its calls of them in the runs so far.
    pub(crate) inner: Option<InnerCalls>,
}

impl Invocation {
    /// A call of a tool.
    pub fn tool(name: impl Into<String>, arguments: impl Into<Arguments>) -> Self {
        Self::new(Target::Tool(name.into()), arguments.into())
    }

    /// The run that makes a prompt.
    pub fn prompt(prompt: ServedItem<PromptDescription>, arguments: Map<String, Value>) -> Self {
        Self::new(Target::Prompt(prompt), Arguments::json(Value::Object(arguments)))
    }

    /// The run that reads a resource which a tool's component serves.
    pub fn resource(tool: ToolName, uri: &str) -> Self {
        let arguments = Map::from_iter([("uri".to_owned(), Value::from(uri))]);
        Self::new(Target::Resource(tool), Arguments::json(Value::Object(arguments)))
    }

    /// A run of what the component of a built-in tool serves for a person and no model calls,
    /// such as `memory/export` and `memory/import`, with the grants of that tool and these
    /// directories.
    pub fn command(
        tool: ToolName,
        name: &'static str,
        arguments: Map<String, Value>,
        directories: Vec<DirectoryGrant>,
    ) -> Self {
        let target = Target::Command { tool, name, directories };
        Self::new(target, Arguments::json(Value::Object(arguments)))
    }

    pub(crate) fn builtin(name: &'static str, arguments: Value) -> Self {
        Self::new(Target::Builtin(name), Arguments::json(arguments))
    }

    fn new(target: Target, arguments: Arguments) -> Self {
        Self {
            target,
            arguments,
            action: Action::Run,
            answers: Vec::new(),
            resume: None,
            is_structured: false,
            grants: None,
            limits: LimitFlags::default(),
            via: None,
        }
    }

    /// Asks for this instead of [`Action::Run`].
    #[must_use]
    pub fn with_action(mut self, action: Action) -> Self {
        self.action = action;
        self
    }

    /// Brings answers for questions that may come, by the question's id. What the
    /// configuration answers it goes on answering. An answer whose origin is
    /// [`Origin::Model`](kitbag_config::Origin::Model) counts except where a person's
    /// consent is asked for.
    #[must_use]
    pub fn with_answers(
        mut self,
        answers: impl IntoIterator<Item = (String, Sourced<Answer>)>,
    ) -> Self {
        self.answers.extend(answers);
        self
    }

    /// Gives the call these grants instead of its tool's, which have to hold all of them:
    /// the same directories or some in them, with no more access, under the same guest
    /// path or one below. Names with a dot in front are granted by configuration only.
    /// What an adapter gives to a call, such as the topic of `learn`, it gets all the same.
    #[must_use]
    pub fn with_grants(mut self, grants: Grants) -> Self {
        self.grants = Some(grants);
        self
    }

    /// Gives the call these limits, none of which is higher than the tool's. What is
    /// `None` stays as it is.
    #[must_use]
    pub fn with_limits(mut self, limits: LimitFlags) -> Self {
        self.limits = limits;
        self
    }

    /// Goes on where the same call was suspended, with the answers that it had.
    #[must_use]
    pub fn resume(mut self, open: OpenState) -> Self {
        self.resume = Some(open);
        self
    }

    pub(crate) fn via(mut self, via: Via) -> Self {
        self.via = Some(via);
        self
    }

    /// Reads the content as the tool's output schema has it.
    #[must_use]
    pub fn structured(mut self) -> Self {
        self.is_structured = true;
        self
    }
}

impl<R> Ended<R> {
    /// How the last run ended, which may be with a question.
    ///
    /// # Errors
    ///
    /// The refusal of the front end.
    pub fn completion(self) -> Result<Completion, R> {
        match self {
            Self::Completed(call) => Ok(call.completion),
            Self::Suspended(call) => Ok(call.completion),
            Self::Refused(refusal) => Err(refusal),
        }
    }
}

impl Completed {
    /// A call that was answered without running anything.
    pub(crate) fn answered(outcome: Outcome) -> Self {
        let completion = Completion::answered(outcome);
        let (marks, problems) = (Marks::default(), Problems::default());
        Self { completion, structured: Ok(None), cut: None, marks, problems }
    }
}

impl Suspended {
    /// The answers so far, in the form in which the tool gets them: the state with
    /// which the call is resumed. Of a call that needs approval it holds how far that is, for
    /// an hour and one resumption of the same call in this process.
    pub fn answers(&self) -> Map<String, Value> {
        let mut answers = self.call.answers.clone();
        self.call.approval.add_ticket(&mut answers);
        answers
    }

    /// The name that is called, and the JSON object that the tool gets as its
    /// arguments: the same for the same call.
    pub fn call(&self) -> (&str, &str) {
        (&self.call.call.name, &self.call.call.arguments)
    }

    /// Takes what the call has made of calls of other tools, to go on with
    /// ([`Resumed::inner`]). `None` where it made none.
    pub fn take_inner(&mut self) -> Option<InnerCalls> {
        self.call.inner.take().filter(|inner| !inner.is_empty())
    }

    /// What was wrong with the tool and did not keep it from running.
    pub fn problems(&self) -> &Problems {
        &self.call.problems
    }
}
