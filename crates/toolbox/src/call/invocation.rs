//! The target of a call.

use kitbag_base::text::shown;
use kitbag_config::{LimitFlags, Sourced};
use kitbag_contract::{Action, Answer, PromptDescription, ToolName};
use kitbag_policy::{DirectoryGrant, Grants};
use kitbag_schema::Arguments;
use serde_json::{Map, Value};

use crate::call::outcome::InnerCalls;
use crate::call::scope::Via;
use crate::registry::catalog::ServedItem;
use crate::sources::server_items::{OwnItem, ServerItem};

/// A request to a tool.
pub struct Invocation {
    pub(crate) target: Target,
    pub(crate) arguments: Arguments,
    pub(crate) action: Action,
    pub(crate) answers: Vec<(String, Sourced<Answer>)>,
    pub(crate) resume: Option<OpenState>,
    pub(crate) is_structured: bool,
    pub(crate) grants: Option<Grants>,
    pub(crate) limits: LimitFlags,
    /// The grant by which a tool makes this call of another tool.
    pub(crate) via: Option<Via>,
    /// True if a front end makes the call here: it has the person's approval, and prepares the
    /// answer for its reader.
    pub(crate) is_for_front_end: bool,
}

pub(crate) enum Target {
    Tool(String),
    /// A prompt that a tool's component serves.
    Prompt(ServedItem<PromptDescription>),
    /// A resource that a tool's component serves. The arguments name the resource.
    Resource(ToolName),
    /// A prompt or resource of a server.
    Server(ServerItem),
    /// A command for a person that the component of a tool serves, by its name in the component. It
    /// has these directories in addition to the grants of the tool.
    Command {
        tool: ToolName,
        name: &'static str,
        directories: Vec<DirectoryGrant>,
    },
    /// One of the views of knowledge that the tool `learn` has for prompts and lists, by the name
    /// of that tool. The view obeys the rules of the tool.
    Knowledge {
        tool: ToolName,
        view: &'static str,
    },
}

/// The kinds of requests that an [`Invocation`] makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvocationKind {
    /// A call of the tool.
    Tool,
    /// A prompt of its component or server.
    Prompt,
    /// A resource of its component or server.
    Resource,
    /// A command for a person, such as the export of memories.
    Command,
    /// A part of the knowledge prompt, or a list of subjects.
    Knowledge,
}

impl Target {
    pub(crate) fn directories(&self) -> Vec<DirectoryGrant> {
        match self {
            Self::Command { directories, .. } => directories.clone(),
            Self::Tool(_)
            | Self::Prompt(_)
            | Self::Resource(_)
            | Self::Server(_)
            | Self::Knowledge { .. } => Vec::new(),
        }
    }

    /// Returns the name of the tool that runs the request.
    pub(crate) fn tool(&self) -> &str {
        match self {
            Self::Tool(name) => name,
            Self::Prompt(served) => served.tool.as_str(),
            Self::Command { tool, .. } | Self::Knowledge { tool, .. } => tool.as_str(),
            Self::Resource(name) => name.as_str(),
            Self::Server(item) => item.tool.as_str(),
        }
    }

    pub(crate) fn kind(&self) -> InvocationKind {
        match self {
            Self::Tool(_) => InvocationKind::Tool,
            Self::Prompt(_) => InvocationKind::Prompt,
            Self::Resource(_) => InvocationKind::Resource,
            Self::Server(ServerItem { own: OwnItem::Prompt(_), .. }) => InvocationKind::Prompt,
            Self::Server(ServerItem { own: OwnItem::Resource(_), .. }) => InvocationKind::Resource,
            Self::Command { .. } => InvocationKind::Command,
            Self::Knowledge { .. } => InvocationKind::Knowledge,
        }
    }
}

/// Opens the state of a suspended call. Returns the state, or the reason why it does not belong to
/// this call. The function receives the called name and the arguments as text.
pub type OpenState = Box<dyn FnOnce(&str, &str) -> Result<Resumed, String> + Send>;

/// The state with which a suspended call continues.
#[derive(Default)]
pub struct Resumed {
    /// The answers that the call had ([`Suspended::answers`](crate::Suspended::answers)).
    pub answers: Map<String, Value>,
    /// The inner calls that the call had made
    /// ([`Suspended::take_inner`](crate::Suspended::take_inner)). With `None`, they are made again.
    pub inner: Option<InnerCalls>,
}

impl Invocation {
    /// Returns a call of a tool.
    pub fn tool(name: impl Into<String>, arguments: impl Into<Arguments>) -> Self {
        Self::new(Target::Tool(name.into()), arguments.into())
    }

    /// Returns the run that renders a prompt.
    pub fn prompt(prompt: ServedItem<PromptDescription>, arguments: Map<String, Value>) -> Self {
        Self::new(Target::Prompt(prompt), Arguments::json(Value::Object(arguments)))
    }

    /// Returns the run that reads a resource of a tool's component.
    pub fn resource(tool: ToolName, uri: &str) -> Self {
        let arguments = Map::from_iter([("uri".to_owned(), Value::from(uri))]);
        Self::new(Target::Resource(tool), Arguments::json(Value::Object(arguments)))
    }

    /// Returns the request for a prompt or resource of a server. Only a prompt has arguments.
    pub fn server_item(item: ServerItem, arguments: Map<String, Value>) -> Self {
        let arguments = match &item.own {
            OwnItem::Prompt(_) => arguments,
            OwnItem::Resource(_) => Map::from_iter([("uri".to_owned(), (&*item.name).into())]),
        };
        Self::new(Target::Server(item), Arguments::json(Value::Object(arguments)))
    }

    /// Returns the run of a command that the component of a built-in tool serves for a person, such
    /// as `memory/export` and `memory/import`. Models cannot call it. It has the grants of that
    /// tool and these directories.
    pub fn command(
        tool: ToolName,
        name: &'static str,
        arguments: Map<String, Value>,
        directories: Vec<DirectoryGrant>,
    ) -> Self {
        let target = Target::Command { tool, name, directories };
        Self::new(target, Arguments::json(Value::Object(arguments)))
    }

    pub(crate) fn knowledge(tool: ToolName, view: &'static str, arguments: Value) -> Self {
        Self::new(Target::Knowledge { tool, view }, Arguments::json(arguments))
    }

    /// Returns the kind of the request.
    pub fn kind(&self) -> InvocationKind {
        self.target.kind()
    }

    /// Returns the request in the form that the audit log names it. `None` for a call of a tool.
    pub(crate) fn serves(&self) -> Option<String> {
        match &self.target {
            Target::Tool(_) => None,
            Target::Prompt(served) => Some(format!("prompt {}", shown(&served.description.name))),
            Target::Server(ServerItem { own: OwnItem::Prompt(_), name, .. }) => {
                Some(format!("prompt {}", shown(name)))
            }
            Target::Resource(_) | Target::Server(_) => {
                let uri =
                    self.arguments.json.as_ref().and_then(|arguments| arguments["uri"].as_str());
                // The rest of a URI may contain a secret.
                let uri = uri.unwrap_or_default().split(['?', '#']).next().unwrap_or_default();
                Some(format!("resource {}", shown(uri)))
            }
            Target::Command { name, .. } => Some(format!("command {name}")),
            Target::Knowledge { view, .. } => Some(format!("knowledge {view}")),
        }
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
            is_for_front_end: false,
        }
    }

    /// Requests this action instead of [`Action::Run`].
    #[must_use]
    pub fn with_action(mut self, action: Action) -> Self {
        self.action = action;
        self
    }

    /// Adds answers for questions that the tool may ask, by the question's id. Answers in the
    /// configuration take precedence. An answer whose origin is
    /// [`Origin::Model`](kitbag_config::Origin::Model) is valid unless the question asks for a
    /// person's consent.
    #[must_use]
    pub fn with_answers(
        mut self,
        answers: impl IntoIterator<Item = (String, Sourced<Answer>)>,
    ) -> Self {
        self.answers.extend(answers);
        self
    }

    /// Replaces the tool's grants with these for this call. The tool's grants must include all of
    /// them: the same directories or subdirectories, with no more access, under the same guest path
    /// or one below. Only configuration grants names that begin with a dot. The call also receives
    /// the additions of an adapter, such as the topic of `learn`.
    #[must_use]
    pub fn with_grants(mut self, grants: Grants) -> Self {
        self.grants = Some(grants);
        self
    }

    /// Sets limits for this call. None may be higher than the tool's. A limit that is `None` is
    /// unchanged.
    #[must_use]
    pub fn with_limits(mut self, limits: LimitFlags) -> Self {
        self.limits = limits;
        self
    }

    /// Continues the same call after its suspension, with the answers that it had.
    #[must_use]
    pub fn resume(mut self, open: OpenState) -> Self {
        self.resume = Some(open);
        self
    }

    pub(crate) fn via(mut self, via: Option<Via>) -> Self {
        self.via = via;
        self
    }

    /// Reads the content as the tool's output schema defines it.
    #[must_use]
    pub fn structured(mut self) -> Self {
        self.is_structured = true;
        self
    }
}
