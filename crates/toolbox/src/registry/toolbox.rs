//! The tools of one configuration: what is known of them, and calls of them.

use std::collections::HashSet;
use std::sync::Arc;

use kitbag_config::{Audience, ConfiguredTool, Diagnostic, Sourced, ToolSource, Topic};
use kitbag_contract::{ErrorInfo, ToolName};
use kitbag_host::{Cancellation, Component, ComponentSource, Host, Metering};
use kitbag_schema::Arguments;
use serde_json::{Map, Value};

use crate::builtins::adapter::Adapter;
use crate::builtins::knowledge::{self, KnowledgePrompt, Subjects};
use crate::builtins::learn;
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
    /// Every enabled tool, by name, in one line each. Nothing is compiled and
    /// nothing runs.
    pub fn summaries(&self) -> impl Iterator<Item = Summary> {
        let mut known = resolve::KnownDescriptions::default();
        self.enabled().map(move |(_, tool)| resolve::summary(&self.0, tool, &mut known))
    }

    /// As [`summaries`](Self::summaries), with the tools that are not enabled.
    pub fn all_summaries(&self) -> impl Iterator<Item = Summary> {
        let mut known = resolve::KnownDescriptions::default();
        self.0.config.tools.values().map(move |tool| resolve::summary(&self.0, tool, &mut known))
    }

    /// The toolsets that this binary holds, each once.
    pub fn toolsets(&self) -> Vec<&'static str> {
        let mut toolsets: Vec<_> =
            self.0.builtins.iter().map(|builtin| builtin.declaration.toolset).collect();
        toolsets.dedup();
        toolsets
    }

    /// A tool with all that is known of it.
    ///
    /// A local tool whose configuration does not say everything may say the rest itself:
    /// where that is not known from an earlier time, it is loaded.
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

    /// Drops the components of tools that are not enabled here, which another toolbox
    /// of this host has loaded; calls that run keep theirs.
    pub fn retain_components(&self) {
        self.host().retain_components(&self.component_sources());
    }

    /// Where the components of the enabled tools come from, as far as they are there.
    pub fn component_sources(&self) -> HashSet<ComponentSource> {
        let tools = self.enabled().map(|(_, tool)| &tool.source.value);
        tools.filter_map(|source| self.0.component_source(source).ok()).collect()
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
        let mut known = resolve::KnownDescriptions::default();
        self.enabled().map(move |(_, configured)| {
            let (tool, may_say_more) = resolve::resolve_known(&self.0, configured, &mut known)?;
            Ok(KnownTool { tool: self.for_model(configured, tool), may_say_more })
        })
    }

    /// Adds what a model reads and the tool does not, which a call can do
    /// without.
    fn for_model(&self, configured: &ConfiguredTool, mut tool: Tool) -> Tool {
        let adapter = resolve::adapter(&configured.source.value);
        if let Some(adapter) = adapter
            && let Some(description) = &mut tool.description
        {
            adapter.describe(&self.0.config, configured, &mut description.value);
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
        // What a script does stands in its header, whichever tools do it.
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

    /// What the component of a tool says that its tools are called; nothing where it
    /// describes none, and for a tool without a file. It is loaded where that is not known
    /// from an earlier time.
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

    /// Loads a tool, compiling it where that has to be, and runs nothing.
    ///
    /// # Errors
    ///
    /// As for [`tool`](Self::tool).
    pub fn load(&self, name: &str) -> Result<Component, ToolboxError> {
        let tool = self.0.find(name)?;
        let source = self.0.component_source(&tool.source.value)?;
        Ok(self.0.host.component(&source, &tool.limits.limits(), &self.loading())?)
    }

    /// Makes a call from any executor: the tool runs on threads kept for that, and
    /// `front_end` answers what the configuration does not. Dropping the future ends
    /// the call.
    ///
    /// # Errors
    ///
    /// As for [`tool`](Self::tool), [`ToolboxError::Arguments`] with everything that is
    /// wrong with the arguments, and what keeps a call from running. How the call itself
    /// ended is in the completion.
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

    /// As [`call`](Self::call), on this thread.
    ///
    /// May be called inside an asynchronous runtime too, which it blocks.
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

    /// Checks the arguments of a call without making it: what the tool would get.
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

    /// The block of knowledge for a system prompt; empty where there is none. Any
    /// executor will do.
    ///
    /// # Errors
    ///
    /// [`ToolboxError`] where a topic cannot be read at all.
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

    /// The subjects of a topic, by its id or title, or why they cannot be had. Any
    /// executor will do.
    ///
    /// # Errors
    ///
    /// [`ToolboxError`] where they could not be asked for at all.
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

    /// What is most likely a mistake in `learned` and `disabled` of the topics: each name and
    /// glob that matches no subject. Any executor will do.
    ///
    /// # Errors
    ///
    /// [`ToolboxError`] where the subjects could not be asked for at all.
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

    /// The call that reads one subject of a topic by its exact slug: a call of the tool `learn`,
    /// whose name comes first, with all of its rules.
    ///
    /// # Errors
    ///
    /// The reason for which the call does not exist: an unknown topic, or the tool is off.
    pub fn subject(&self, topic: &str, slug: &str) -> Result<(ToolName, Invocation), ErrorInfo> {
        knowledge::subject(self, topic, slug)
    }

    /// Whether there is knowledge: an enabled topic, and the tool `learn`, whose rules decide on
    /// all reading of topics.
    pub fn has_knowledge(&self) -> bool {
        self.has_learn() && learn::enabled(&self.0.config).next().is_some()
    }

    /// Whether the tool that reads topics is enabled.
    pub fn has_learn(&self) -> bool {
        knowledge::learn(&self.0.config).is_some()
    }

    /// Has several calls of one kind made with one permit.
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

    /// Whether `[output.screen]` withholds this name of a topic or a subject from a model.
    pub fn leaves_out(&self, name: &str) -> bool {
        annotations::leaves_out(&self.0, name)
    }

    /// Every enabled topic, with what is wrong where its documents cannot be had.
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
