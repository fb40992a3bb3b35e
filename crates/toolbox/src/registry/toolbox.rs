//! The tools of one configuration: their known data, and calls of them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use kitbag_config::{
    Audience, Config, ConfiguredTool, Diagnostic, Disabled, Sourced, ToolSource, Topic,
};
use kitbag_contract::{ErrorInfo, ErrorKind, ToolName};
use kitbag_host::{Cancellation, Component, ComponentSource, Host, Metering, Omission};
use kitbag_schema::Arguments;
use serde_json::{Map, Value};

use crate::builtins::adapter::Adapter;
use crate::builtins::knowledge::{self, KnowledgePrompt, Subjects};
use crate::builtins::learn;
use crate::builtins::skills::{self, Skills};
use crate::call::context::{CallContext, FrontEnd};
use crate::call::invocation::Invocation;
use crate::call::outcome::CallOutcome;
use crate::error::ToolboxError;
use crate::pipeline;
use crate::pipeline::edge::{Edge, Inline, Offloaded};
use crate::registry::Toolbox;
use crate::registry::resolve;
use crate::registry::tool::{KnownTool, Summary, Tool};
use crate::screening::annotations;

impl Toolbox {
    /// Returns the summaries of every enabled tool, by name. Nothing is compiled or run.
    pub fn summaries(&self) -> impl Iterator<Item = Summary> {
        let mut known = resolve::KnownDescriptions::default();
        self.enabled().map(move |(_, tool)| resolve::summary(&self.0, tool, &mut known))
    }

    /// Returns the summaries of all tools, including disabled ones, as
    /// [`summaries`](Self::summaries) does.
    pub fn all_summaries(&self) -> impl Iterator<Item = Summary> {
        let mut known = resolve::KnownDescriptions::default();
        self.0.config.tools.values().map(move |tool| resolve::summary(&self.0, tool, &mut known))
    }

    /// Returns the toolsets in this binary, without duplicates.
    pub fn toolsets(&self) -> Vec<&'static str> {
        let mut toolsets: Vec<_> =
            self.0.builtins.iter().map(|builtin| builtin.declaration.toolset).collect();
        toolsets.dedup();
        toolsets
    }

    /// Returns a tool with all known data.
    ///
    /// A local tool may declare the values that its configuration does not set. If they are not
    /// known from an earlier load, the tool is loaded.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::UnknownTool`] and [`ToolboxError::Disabled`] for a name,
    /// [`ToolboxError::Call`] for a component that cannot be loaded.
    pub fn tool(&self, name: &str) -> Result<Tool, ToolboxError> {
        let configured = self.0.find(name)?;
        let tool = match resolve::resolve_known(
            &self.0,
            configured,
            &mut resolve::KnownDescriptions::default(),
        )? {
            (tool, false) => tool,
            (_, true) => {
                let (tool, _) = resolve::resolve(&self.0, configured, &self.loading())?;
                Arc::unwrap_or_clone(tool)
            }
        };
        Ok(self.for_model(configured, tool))
    }

    /// Returns a tool like [`tool`](Self::tool), also if it is switched off, with the reason. A tool
    /// that is switched off is not loaded.
    ///
    /// # Errors
    ///
    /// As for [`tool`](Self::tool), except for a tool that is switched off and whose arguments are
    /// known without loading it.
    pub fn tool_or_disabled(&self, name: &str) -> Result<(Tool, Option<Disabled>), ToolboxError> {
        let error = match self.tool(name) {
            Ok(tool) => return Ok((tool, None)),
            Err(error) => error,
        };
        // The requests of an untrusted or broken tool are not shown as if they were valid.
        let Some(configured) = self.0.config.tools.get(name) else { return Err(error) };
        let is_switch = matches!(configured.disabled, Some(Disabled::UntrustedSwitch { .. }));
        if error.kind() != ErrorKind::Disabled && !is_switch {
            return Err(error);
        }
        let mut known = resolve::KnownDescriptions::default();
        match resolve::resolve_known(&self.0, configured, &mut known) {
            Ok((tool, false)) if tool.refused.is_none() => Ok((tool, configured.disabled.clone())),
            Ok(_) | Err(_) => Err(error),
        }
    }

    /// Drops the components that another toolbox of this host has loaded for tools that are not
    /// enabled here. Running calls keep theirs.
    pub fn retain_components(&self) {
        self.host().retain_components(&self.component_sources());
    }

    /// Returns the sources of the components of the enabled tools that exist.
    pub fn component_sources(&self) -> HashSet<ComponentSource> {
        let tools = self.enabled().map(|(_, tool)| &tool.source.value);
        tools.filter_map(|source| self.0.component_source(source).ok()).collect()
    }

    /// Returns every enabled tool, by name, with the data that is known without loading it. Nothing
    /// is compiled or run. If [`KnownTool::may_say_more`] is true, [`tool`](Self::tool) may return
    /// more data.
    ///
    /// # Errors
    ///
    /// [`ToolboxError`] if the configuration names a built-in that is not in this binary.
    pub fn known_tools(&self) -> impl Iterator<Item = Result<KnownTool, ToolboxError>> {
        let mut known = resolve::KnownDescriptions::default();
        self.enabled().map(move |(_, configured)| {
            let (tool, may_say_more) = resolve::resolve_known(&self.0, configured, &mut known)?;
            Ok(KnownTool { tool: self.for_model(configured, tool), may_say_more })
        })
    }

    /// Returns a tool with the grants of its calls: a component that was made for another host has
    /// no default grants. Compiles nothing.
    pub fn settled<'a>(&self, tool: &'a ConfiguredTool) -> Cow<'a, ConfiguredTool> {
        resolve::settled_now(&self.0, tool)
    }

    /// Returns the exported functions of a tool's component that are not tools. Reads the component,
    /// and compiles nothing.
    pub fn omissions(&self, name: &ToolName) -> Vec<Omission> {
        let tool = self.0.config.tools.get(name);
        let source = tool.and_then(|tool| self.0.component_source(&tool.source.value).ok());
        source.map(|source| self.0.host.omissions(&source)).unwrap_or_default()
    }

    /// Returns the configuration with the grants of calls, as [`settled`](Self::settled) does for one
    /// tool. Reads the components of the tools with default grants.
    pub fn settled_config(&self) -> Config {
        let mut config = self.0.config.clone();
        for tool in config.tools.values_mut() {
            if let Cow::Owned(settled) = resolve::settled_now(&self.0, tool) {
                *tool = settled;
            }
        }
        config
    }

    /// Adds the text that only a model reads, which a call does not need.
    fn for_model(&self, configured: &ConfiguredTool, mut tool: Tool) -> Tool {
        let adapter = resolve::adapter(&configured.source.value);
        if let Some(adapter) = adapter
            && let Some(description) = &mut tool.description
        {
            adapter.describe(&self.0, configured, &mut description.value);
        }
        if let ToolSource::Builtin { name } = &configured.source.value
            && self
                .0
                .builtin(&name.value)
                .is_ok_and(|builtin| builtin.declaration.workspace.is_some())
            && let Some(description) = &mut tool.description
        {
            description.value.push_str(&resolve::directories_line(&tool.grants.value));
        }
        let unavailable = tool.unavailable_for(&self.0.config, Audience::Model);
        let unavailable = unavailable.map(|reason| format!("Unavailable: {reason}"));
        let grants = &tool.grants.value;
        // The header of a script describes the script, regardless of the tools that it calls.
        let names_tools = adapter.is_some_and(Adapter::names_tools)
            || matches!(configured.source.value, ToolSource::Script(_));
        let tools = grants.tools_line().filter(|_| !names_tools);
        let lines = grants.network_line().into_iter().chain(tools);
        for line in lines.chain(unavailable) {
            let description = tool.description.get_or_insert(Sourced::default(String::new()));
            let end = if description.value.is_empty() { "" } else { "\n" };
            description.value.push_str(&format!("{end}{line}"));
        }
        tool
    }

    /// Returns the names that the component of a tool declares for its tools. Empty if the
    /// component declares no tools, and for a tool without a file. The component is loaded if the
    /// names are not known from an earlier load.
    ///
    /// # Errors
    ///
    /// As for [`tool`](Self::tool).
    pub fn names_in_component(&self, name: &str) -> Result<Vec<String>, ToolboxError> {
        let tool = self.0.find(name)?;
        if !tool.source.value.is_component() {
            return Ok(Vec::new());
        }
        let source = self.0.component_source(&tool.source.value)?;
        let limits = tool.limits.limits();
        let described = match self.0.host.known_description(&source, Metering::of(&limits))? {
            Some(described) => described,
            None => self.0.host.component(&source, &limits, &self.loading())?.described().clone(),
        };
        let tools = described.description().map(|description| &description.tools[..]);
        Ok(tools.unwrap_or_default().iter().map(|tool| tool.name.clone()).collect())
    }

    /// Loads a tool without running it. Compiles the tool if necessary.
    ///
    /// # Errors
    ///
    /// As for [`tool`](Self::tool).
    pub fn load(&self, name: &str) -> Result<Component, ToolboxError> {
        let tool = self.0.find(name)?;
        let source = self.0.component_source(&tool.source.value)?;
        Ok(self.0.host.component(&source, &tool.limits.limits(), &self.loading())?)
    }

    /// Makes a call from any executor. The tool runs on threads that are reserved for calls, and
    /// `front_end` answers the questions that the configuration does not answer. Dropping the
    /// future ends the call.
    ///
    /// # Errors
    ///
    /// As for [`tool`](Self::tool); [`ToolboxError::Arguments`] with all problems of the arguments,
    /// and any other error that prevents the call. The end of the call itself is in the completion.
    pub async fn call<F: FrontEnd>(
        &self,
        invocation: Invocation,
        context: CallContext,
        front_end: &mut F,
    ) -> Result<CallOutcome<F::Abort>, ToolboxError> {
        let dropped = CancelOnDrop::new(&context);
        let ended = self.drive(&Offloaded, invocation, context, front_end).await;
        dropped.defuse();
        ended
    }

    /// Makes a call on this thread, as [`call`](Self::call) does.
    ///
    /// May be called inside an asynchronous runtime, but blocks it.
    ///
    /// # Errors
    ///
    /// As for [`call`](Self::call).
    pub fn call_blocking<F: FrontEnd>(
        &self,
        invocation: Invocation,
        context: CallContext,
        front_end: &mut F,
    ) -> Result<CallOutcome<F::Abort>, ToolboxError> {
        Host::block_on(|| self.drive(&Inline, invocation, context, front_end))?
    }

    /// Checks the arguments of a call without making it. Returns the arguments that the tool would
    /// receive.
    ///
    /// # Errors
    ///
    /// As for [`call`](Self::call).
    pub fn check(
        &self,
        name: &str,
        arguments: Arguments,
    ) -> Result<Map<String, Value>, ToolboxError> {
        pipeline::check_arguments(self, name, arguments)
    }

    /// Returns the block of knowledge for a system prompt. Empty if there is no knowledge. Works
    /// with any executor.
    ///
    /// # Errors
    ///
    /// [`ToolboxError`] if a topic cannot be read at all.
    pub async fn knowledge_prompt(
        &self,
        context: CallContext,
    ) -> Result<KnowledgePrompt, ToolboxError> {
        if !self.has_knowledge() {
            return Ok(KnowledgePrompt::default());
        }
        self.offload(context, async |toolbox, context| knowledge::prompt(&toolbox, &context).await)
            .await
    }

    /// Returns the subjects of a topic, by its id or title, or the reason why they are unavailable.
    /// Works with any executor.
    ///
    /// # Errors
    ///
    /// [`ToolboxError`] if the subjects could not be requested.
    pub async fn subjects(
        &self,
        topic: &str,
        context: CallContext,
    ) -> Result<Result<Subjects, ErrorInfo>, ToolboxError> {
        let topic = topic.to_owned();
        self.offload(context, async move |toolbox, context| {
            knowledge::subjects(&toolbox, &topic, &context).await
        })
        .await
    }

    /// Returns the skills of every topic of skills, with the digests of their files, and the
    /// reasons why others are missing. Works with any executor.
    ///
    /// # Errors
    ///
    /// [`ToolboxError`] if the topics could not be requested.
    pub async fn skills(&self, context: CallContext) -> Result<Skills, ToolboxError> {
        if !skills::has_skills(self) {
            return Ok(Skills::default());
        }
        self.offload(context, async |toolbox, context| skills::all(&toolbox, &context).await).await
    }

    /// Returns the skills of every topic of skills as [`skills`](Self::skills) does, without files,
    /// and with those that the server does not serve.
    ///
    /// # Errors
    ///
    /// As for [`skills`](Self::skills).
    pub async fn listed_skills(&self, context: CallContext) -> Result<Skills, ToolboxError> {
        if !skills::has_skills(self) {
            return Ok(Skills::default());
        }
        let read = async |toolbox: Self, context| skills::all_listed(&toolbox, &context).await;
        self.offload(context, read).await
    }

    /// Returns the content of a file of a skill, by its path in the directory of the topic, or the
    /// reason why it is unavailable. Works with any executor.
    ///
    /// # Errors
    ///
    /// [`ToolboxError`] if the topic could not be requested.
    pub async fn skill_file(
        &self,
        topic: &str,
        path: &str,
        context: CallContext,
    ) -> Result<Result<Vec<u8>, ErrorInfo>, ToolboxError> {
        let (topic, path) = (topic.to_owned(), path.to_owned());
        self.offload(context, async move |toolbox, context| {
            skills::file(&toolbox, &topic, &path, &context).await
        })
        .await
    }

    /// Returns the likely mistakes in `learned` and `disabled` of the topics: each name and glob
    /// that matches no subject. Works with any executor.
    ///
    /// # Errors
    ///
    /// [`ToolboxError`] if the subjects could not be requested.
    pub async fn unmatched_subjects(
        &self,
        context: CallContext,
    ) -> Result<Vec<Diagnostic>, ToolboxError> {
        self.offload(context, async move |toolbox, context| {
            let mut unmatched = Vec::new();
            for topic in toolbox.topics().flatten() {
                unmatched.extend(knowledge::unmatched(&toolbox, topic, &context).await?);
            }
            Ok(unmatched)
        })
        .await
    }

    /// Returns the name of the tool `learn`, and the call of it that reads one subject of a topic
    /// by its exact slug. The call obeys all rules of the tool.
    ///
    /// # Errors
    ///
    /// The reason why the call does not exist: the topic is unknown, or the tool is off.
    pub fn subject(&self, topic: &str, slug: &str) -> Result<(ToolName, Invocation), ErrorInfo> {
        knowledge::subject(self, topic, slug)
    }

    /// Returns true if there is knowledge: an enabled topic, and the tool `learn`, whose rules
    /// apply to all reading of topics.
    pub fn has_knowledge(&self) -> bool {
        self.has_learn() && learn::enabled(&self.0).next().is_some()
    }

    /// Returns true if the tool `learn`, which reads topics, is enabled.
    pub fn has_learn(&self) -> bool {
        knowledge::learn(&self.0.config).is_some()
    }

    /// Makes several calls of one kind with one permit.
    async fn offload<T: Send + 'static>(
        &self,
        mut context: CallContext,
        work: impl AsyncFnOnce(Self, CallContext) -> Result<T, ToolboxError> + Send + 'static,
    ) -> Result<T, ToolboxError> {
        let dropped = CancelOnDrop::new(&context);
        context.charge_to(learn::LEARN);
        let (account, cancellation) =
            (context.run.account.clone(), context.run.cancellation.clone());
        let toolbox = self.clone();
        let work = move || work(toolbox, context);
        let ready = std::future::ready(());
        let done = Offloaded.perform(&self.0.host, &account, &cancellation, ready, work).await;
        dropped.defuse();
        done?
    }

    /// Returns true if `[output.screen]` withholds this name of a topic or a subject from a model.
    pub fn leaves_out(&self, name: &str) -> bool {
        annotations::leaves_out(&self.0, name)
    }

    /// Returns every enabled topic, or the problem if its documents are unavailable.
    pub fn topics(&self) -> impl Iterator<Item = Result<&Topic, ErrorInfo>> {
        learn::topics(&self.0)
    }
}

/// Ends a call whose future is dropped before it is ready.
struct CancelOnDrop(Option<Cancellation>);

impl CancelOnDrop {
    fn new(context: &CallContext) -> Self {
        Self(Some(context.run.cancellation.clone()))
    }

    fn defuse(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(cancellation) = &self.0 {
            cancellation.cancel();
        }
    }
}
