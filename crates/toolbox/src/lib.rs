//! The registry: a name becomes a component with its grants and limits.
//!
//! It checks arguments against a tool's schema before the guest sees them,
//! prepares what a built-in needs, and takes a tool's questions to whoever can
//! answer them. Running a component is left to `kitbag-host`, reading files of
//! configuration to `kitbag-config`.

mod deadline;
pub mod definitions;
mod error;
mod knowledge;
mod served;
mod session;
mod tool;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use kitbag_config::{BuiltinTool, Config, Tool as ConfiguredTool, ToolSource, Topic};
use kitbag_contract::{Action, ErrorInfo, Limits, Outcome, Question, ToolName};
use kitbag_files::{Guard, Owners, locate};
use kitbag_host::{
    Audience, Cancellation, Completion, Component, ComponentFile, ComponentSource,
    EmbeddedArtifact, Host, Listener, LoadError, Metering,
};
use kitbag_policy::Grants;

use crate::deadline::Deadline;

pub use error::ToolboxError;
pub use kitbag_schema::{ArgumentProblem, Arguments, Schema};
pub use knowledge::{KnowledgePrompt, Subjects, TOPIC_GUEST_PATH};
pub use served::{
    KNOWLEDGE_PROMPT, KNOWLEDGE_SCHEME, PROMPT_PREFIX, RESOURCE_NAME, Served, ServedItem,
};
pub use session::{Answered, Session};
pub use tool::{KnownTool, Summary, Tool};

/// A tool that is part of the binary.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// Its own name.
    pub name: &'static str,
    /// Its component, which may have other tools, too.
    pub artifact: EmbeddedArtifact,
    /// What the component says of itself, as the JSON of
    /// [`kitbag_contract::Description`].
    pub description: &'static str,
    /// What the tool asks to be granted, as the JSON of
    /// [`kitbag_policy::RequestedGrants`]. Of the workspace it gets what it asks to read
    /// where configuration says nothing.
    pub grants: &'static str,
}

impl Builtin {
    /// The tool as configuration has to know it.
    pub fn declaration(&self) -> BuiltinTool<'static> {
        let requested = serde_json::from_str(self.grants).unwrap_or_default();
        BuiltinTool { name: self.name, requested }
    }
}

/// The tools of one configuration, ready to be called.
///
/// Cheap to clone; clones share everything. Nothing of a tool is read before it
/// is asked for by name.
#[derive(Clone)]
pub struct Toolbox(Arc<Inner>);

struct Inner {
    host: Host,
    config: Config,
    builtins: &'static [Builtin],
    resolved: tool::Resolved,
    /// What no tool changes, made at the first call that needs it.
    guard: OnceLock<Arc<Guard>>,
    owners: OnceLock<Arc<Owners>>,
    /// Paths of components on which no link was found. The host follows none.
    plain: Mutex<HashSet<PathBuf>>,
}

impl Toolbox {
    /// Puts together what configuration says and what the binary holds.
    ///
    /// `config` was loaded with the names of `builtins`.
    pub fn new(host: Host, config: Config, builtins: &'static [Builtin]) -> Self {
        let (resolved, guard) = (tool::Resolved::default(), OnceLock::new());
        let plain = Mutex::default();
        let owners = OnceLock::new();
        Self(Arc::new(Inner { host, config, builtins, resolved, guard, owners, plain }))
    }

    /// The configuration in effect.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// What runs the calls.
    pub fn host(&self) -> &Host {
        &self.0.host
    }

    /// Every enabled tool, by name, in one line each. Nothing is compiled and
    /// nothing runs.
    pub fn summaries(&self) -> impl Iterator<Item = Summary> {
        self.enabled().map(|(_, tool)| tool::summary(&self.0, tool))
    }

    /// A tool with all that is known of it.
    ///
    /// A local tool whose configuration does not say everything is loaded, since
    /// it may say the rest itself.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::UnknownTool`] and [`ToolboxError::Disabled`] for a name,
    /// [`ToolboxError::Call`] for a component that cannot be loaded.
    pub fn tool(&self, name: &str) -> Result<Tool, ToolboxError> {
        self.tool_with_audience(name, &Audience::default())
    }

    /// As [`tool`](Self::tool), and lets somebody hear how long it takes where the tool
    /// has to be compiled for that.
    ///
    /// # Errors
    ///
    /// As for [`tool`](Self::tool).
    pub fn tool_with_audience(
        &self,
        name: &str,
        audience: &Audience,
    ) -> Result<Tool, ToolboxError> {
        let configured = self.find(name)?;
        let cancellation = Cancellation::default();
        let tool = tool::resolve(&self.0, configured, audience, &cancellation)?;
        Ok(self.for_model(configured, Arc::unwrap_or_clone(tool)))
    }

    /// Drops the components of tools that are not enabled here, which another toolbox
    /// of this host has loaded; calls that run keep theirs.
    pub fn retain_components(&self) {
        let tools = self.0.config.tools.values().filter(|tool| tool.enable.value);
        let sources = tools.filter_map(|tool| self.0.component_source(tool).ok()).collect();
        self.host().retain_components(&sources);
    }

    /// Every enabled tool, by name, with what is known of it without loading it.
    /// Nothing is compiled and nothing runs; where [`KnownTool::may_say_more`]
    /// holds, [`tool`](Self::tool) would tell more.
    ///
    /// # Errors
    ///
    /// [`ToolboxError`] where configuration names a built-in that is not in this
    /// binary.
    pub fn known_tools(&self) -> impl Iterator<Item = Result<KnownTool, ToolboxError>> {
        let mut known = tool::Known::default();
        self.enabled().map(move |(_, configured)| {
            let (tool, may_say_more) = tool::resolve_known(&self.0, configured, &mut known)?;
            Ok(KnownTool { tool: self.for_model(configured, tool), may_say_more })
        })
    }

    /// Adds what a model reads and the tool does not, which a call can do
    /// without.
    fn for_model(&self, configured: &ConfiguredTool, mut tool: Tool) -> Tool {
        if knowledge::is_learn(configured)
            && let Some(description) = &mut tool.description
        {
            description.value.push_str(&knowledge::topics_for_model(&self.0.config));
        }
        tool
    }

    /// Whether there is an enabled tool of that name.
    pub fn has_tool(&self, name: &str) -> bool {
        self.find(name).is_ok()
    }

    /// Loads a tool, compiling it where that has to be, and runs nothing.
    ///
    /// # Errors
    ///
    /// As for [`tool`](Self::tool).
    pub fn load(&self, name: &str) -> Result<Component, ToolboxError> {
        self.load_with_audience(name, &Audience::default())
    }

    /// As [`load`](Self::load), and lets somebody hear how long it takes where the tool
    /// has to be compiled for that.
    ///
    /// # Errors
    ///
    /// As for [`tool`](Self::tool).
    pub fn load_with_audience(
        &self,
        name: &str,
        audience: &Audience,
    ) -> Result<Component, ToolboxError> {
        let tool = self.find(name)?;
        let metering = metering(tool.limits.limits());
        let source = self.0.component_source(tool)?;
        let cancellation = Cancellation::default();
        Ok(self.0.host.component_with_audience(&source, metering, audience, &cancellation)?)
    }

    /// Prepares a call: finds the tool, checks the arguments, takes its grants
    /// and limits.
    ///
    /// # Errors
    ///
    /// As for [`tool`](Self::tool), and [`ToolboxError::Arguments`] with
    /// everything that is wrong with the arguments.
    pub fn prepare(
        &self,
        name: &str,
        arguments: Arguments,
        action: Action,
    ) -> Result<Session, ToolboxError> {
        let (audience, cancellation) = (Audience::default(), Cancellation::default());
        self.prepare_with_audience(name, arguments, action, audience, &cancellation)
    }

    /// As [`prepare`](Self::prepare), and lets somebody hear how long it takes where
    /// the tool has to be compiled for that, and then what the tool tells in all its
    /// runs. Cancelling ends it.
    ///
    /// # Errors
    ///
    /// As for [`prepare`](Self::prepare).
    pub fn prepare_with_audience(
        &self,
        name: &str,
        arguments: Arguments,
        action: Action,
        audience: Audience,
        cancellation: &Cancellation,
    ) -> Result<Session, ToolboxError> {
        let configured = self.find(name)?;
        let tool = tool::resolve(&self.0, configured, &audience, cancellation)?;
        let (start, time) = (Instant::now(), tool.limits.time.value);
        let deadline = Deadline::new(cancellation, time, time);
        let is_learn = knowledge::is_learn(configured);
        let schema = &tool.input_schema.value;
        let may_go_on = || deadline.check();
        let mut arguments = schema
            .check_arguments(arguments, &may_go_on, |key| {
                // The host's own word is put in its place below.
                is_learn && key == knowledge::TOPIC_KEY
            })
            .map_err(|error| ToolboxError::arguments(name, error))?;
        let mut grants = tool.grants.value.clone();
        let mut refusal = None;
        if is_learn && action == Action::Run {
            let limit = tool.limits.output.value;
            match knowledge::prepare(&self.0, &mut arguments, limit) {
                Ok(grant) => grants.directories.push(grant),
                Err(error) => refusal = Some(error),
            }
        }
        let spent = start.elapsed();
        let session = Session::new(&self.0, configured, tool, arguments, action, grants, refusal)?;
        Ok(session.after(spent).heard_by(audience))
    }

    /// Runs a call on this thread, and asks `ask` what the configuration does
    /// not answer; `None` leaves the question unanswered.
    ///
    /// # Errors
    ///
    /// As for [`prepare`](Self::prepare), and what running the call can meet.
    pub fn call_blocking(
        &self,
        name: &str,
        arguments: Arguments,
        cancellation: &Cancellation,
        mut ask: impl FnMut(&Question) -> Result<Answered, ToolboxError>,
    ) -> Result<Completion, ToolboxError> {
        let (action, audience) = (Action::Run, Audience::default());
        let mut session =
            self.prepare_with_audience(name, arguments, action, audience, cancellation)?;
        loop {
            let completion = session.run(cancellation)?;
            let Some(question) = session::question(&completion) else { return Ok(completion) };
            match ask(&question)? {
                Answered::With(answer) => session.answer(&question, answer)?,
                Answered::Nobody => return Ok(completion),
            }
        }
    }

    /// Runs a call on threads kept for that, and asks `ask` what the
    /// configuration does not answer. Any executor will do. Dropping the future
    /// ends the call.
    ///
    /// # Errors
    ///
    /// As for [`call_blocking`](Self::call_blocking).
    pub async fn call<F>(
        &self,
        name: &str,
        arguments: Arguments,
        ask: impl Fn(Question) -> F,
    ) -> Result<Completion, ToolboxError>
    where
        F: Future<Output = Result<Answered, ToolboxError>>,
    {
        self.call_with_listener(name, arguments, None, ask).await
    }

    /// As [`call`](Self::call), and lets somebody hear what the tool tells while
    /// it runs, on the thread that runs it.
    ///
    /// # Errors
    ///
    /// As for [`call_blocking`](Self::call_blocking).
    pub async fn call_with_listener<F>(
        &self,
        name: &str,
        arguments: Arguments,
        listener: Option<Arc<dyn Listener>>,
        ask: impl Fn(Question) -> F,
    ) -> Result<Completion, ToolboxError>
    where
        F: Future<Output = Result<Answered, ToolboxError>>,
    {
        let cancellation = Cancellation::default();
        let _on_drop = CancelOnDrop(cancellation.clone());
        let (toolbox, name, first) = (self.clone(), name.to_owned(), cancellation.clone());
        // Everything up to the first answer in one go: each hop to another thread
        // takes as long as a small call.
        let start = move || {
            let audience = listener.map(Audience::new).unwrap_or_default();
            let action = Action::Run;
            let session =
                toolbox.prepare_with_audience(&name, arguments, action, audience, &first)?;
            Ok::<_, ToolboxError>(session.run_owned(&first))
        };
        let (mut session, mut completion) = self.0.host.offload(start).await??;
        loop {
            let ended = completion?;
            let Some(question) = session::question(&ended) else { return Ok(ended) };
            match ask(question.clone()).await? {
                Answered::With(answer) => session.answer(&question, answer)?,
                Answered::Nobody => return Ok(ended),
            }
            let again = cancellation.clone();
            let run = move || session.run_owned(&again);
            (session, completion) = self.0.host.offload(run).await?;
        }
    }

    /// The block of knowledge for a system prompt; empty where there is none.
    ///
    /// # Errors
    ///
    /// [`ToolboxError`] where a topic cannot be read at all.
    pub fn knowledge_prompt(
        &self,
        cancellation: &Cancellation,
    ) -> Result<KnowledgePrompt, ToolboxError> {
        knowledge::prompt(&self.0, cancellation)
    }

    /// The subjects of a topic, by its id or title, or why they cannot be had.
    ///
    /// # Errors
    ///
    /// [`ToolboxError`] where they could not be asked for at all.
    pub fn subjects(
        &self,
        topic: &str,
        cancellation: &Cancellation,
    ) -> Result<Result<Subjects, ErrorInfo>, ToolboxError> {
        knowledge::subjects(&self.0, topic, cancellation)
    }

    /// Loads one subject of a topic by its exact slug, as `learn` delivers it.
    ///
    /// # Errors
    ///
    /// [`ToolboxError`] where it could not be asked for at all.
    pub fn subject(
        &self,
        topic: &str,
        slug: &str,
        cancellation: &Cancellation,
    ) -> Result<Outcome, ToolboxError> {
        knowledge::subject(&self.0, topic, slug, cancellation)
    }

    /// Every enabled topic, with what is wrong where its documents cannot be had.
    pub fn topics(&self) -> impl Iterator<Item = Result<&Topic, ErrorInfo>> {
        knowledge::topics(&self.0)
    }

    fn enabled(&self) -> impl Iterator<Item = (&ToolName, &ConfiguredTool)> {
        self.0.config.tools.iter().filter(|(_, tool)| tool.enable.value)
    }

    fn find(&self, name: &str) -> Result<&ConfiguredTool, ToolboxError> {
        let tools: &BTreeMap<ToolName, ConfiguredTool> = &self.0.config.tools;
        match tools.get(name) {
            Some(tool) if tool.enable.value => Ok(tool),
            Some(tool) => Err(ToolboxError::Disabled {
                name: name.to_owned(),
                origin: tool.enable.origin.clone(),
            }),
            None => {
                Err(ToolboxError::unknown_tool(name, self.enabled().map(|(name, _)| name.as_str())))
            }
        }
    }
}

/// Whether these limits have a call's instructions counted.
fn metering(limits: Limits) -> Metering {
    if limits.fuel.is_some() { Metering::Fuel } else { Metering::Off }
}

/// Ends a call whose future nobody waits for any longer.
struct CancelOnDrop(Cancellation);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Inner {
    fn builtin(&self, name: &str) -> Result<&'static Builtin, ToolboxError> {
        self.builtins
            .iter()
            .find(|builtin| builtin.name == name)
            .ok_or_else(|| ToolboxError::unknown_tool(name, self.builtins.iter().map(|b| b.name)))
    }

    fn component_source(&self, tool: &ConfiguredTool) -> Result<ComponentSource, ToolboxError> {
        match &tool.source.value {
            ToolSource::Builtin { name } => {
                Ok(ComponentSource::Embedded(self.builtin(&name.value)?.artifact))
            }
            ToolSource::Local(local) => self.component_file(&local.wasm.value),
        }
    }

    /// Where the component of a file lies, without links on the way.
    fn component_file(&self, path: &Path) -> Result<ComponentSource, ToolboxError> {
        let file = |path| {
            let owners = Some(Arc::clone(self.owners()));
            ComponentSource::File(ComponentFile { path, owners })
        };
        let plain = || self.plain.lock().unwrap_or_else(PoisonError::into_inner);
        if plain().contains(path) {
            return Ok(file(path.to_owned()));
        }
        match locate(path) {
            Ok(located) if located.links.is_empty() && located.path == path => {
                plain().insert(located.path.clone());
                Ok(file(located.path))
            }
            Ok(located) => {
                if let Some(link) = self.guard().writable_link(&located.links) {
                    return Err(LoadError::Link { path: link.path.clone() }.into());
                }
                let checked = self.owners().check_links(&located);
                checked.map_err(|error| LoadError::from_owner(path, error))?;
                Ok(file(located.path))
            }
            Err(error) => Err(LoadError::from_open(path, error).into()),
        }
    }

    /// Where no other user may have written a component.
    fn owners(&self) -> &Arc<Owners> {
        self.owners.get_or_init(|| Arc::new(self.config.owners()))
    }

    /// What none of the tools changes, whatever it is granted.
    fn guard(&self) -> &Arc<Guard> {
        self.guard.get_or_init(|| Arc::new(self.config.guard()))
    }

    /// The same for a call with these grants, where that can matter.
    fn guard_for(&self, grants: &Grants) -> Arc<Guard> {
        if grants.effects().changes { Arc::clone(self.guard()) } else { Arc::default() }
    }
}
