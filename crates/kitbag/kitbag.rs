//! The tools of a workspace for an embedding program.

use std::sync::Arc;

use kitbag_contract::Outcome;
use kitbag_host::{Completion, EventSink, Listener};
use kitbag_toolbox::{Arguments, CallContext, Invocation, NativeTool, Toolbox, ToolboxError};

use crate::builder::Builder;
use crate::builtins;
use crate::callback::{Callback, OnQuestion};

/// The tools of one workspace, ready to be called.
///
/// Cheap to create: no tool is read and no engine is started before the first call. Cheap to
/// clone: clones share everything. Several threads may call at once.
#[derive(Clone)]
pub struct Kitbag {
    pub(crate) toolbox: Toolbox,
    pub(crate) on_question: Option<OnQuestion>,
    pub(crate) listener: Option<Arc<dyn Listener>>,
}

impl Kitbag {
    /// Creates a builder.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns the names of the tools in this library.
    pub fn builtin_names() -> Vec<&'static str> {
        builtins::BUILTINS.iter().map(|builtin| builtin.declaration.name).collect()
    }

    /// Returns the names of the toolsets in this library.
    pub fn toolset_names() -> Vec<&'static str> {
        let toolsets = builtins::BUILTINS.iter().map(|builtin| builtin.declaration.toolset);
        let mut toolsets: Vec<_> = toolsets.collect();
        toolsets.sort_unstable();
        toolsets.dedup();
        toolsets
    }

    /// Calls a tool and returns its outcome.
    ///
    /// `arguments` is a JSON object; defaults of the tool's schema are filled in. The configured
    /// answers are tried first for a question, then the callback of [`Builder::on_question`];
    /// without an answer, the question is the outcome.
    ///
    /// The call runs on its own thread, so any executor works, and the future may be sent to
    /// another thread. Dropping the future ends the call.
    ///
    /// # Errors
    ///
    /// [`ToolboxError`] for an unknown tool, invalid arguments, an exceeded limit or a trap. An
    /// error that the tool itself returns is an [`Outcome::Error`].
    pub async fn call(
        &self,
        tool: &str,
        arguments: impl Into<Arguments>,
    ) -> Result<Outcome, ToolboxError> {
        Ok(self.complete(tool, arguments).await?.result?)
    }

    /// Like [`call`](Self::call), but also returns the tool's emitted content, its output and its
    /// resource usage.
    ///
    /// # Errors
    ///
    /// [`ToolboxError`] if the call was not made. Any later failure is in the completion.
    pub async fn complete(
        &self,
        tool: &str,
        arguments: impl Into<Arguments>,
    ) -> Result<Completion, ToolboxError> {
        self.invoke(Invocation::tool(tool, arguments)).await
    }

    /// Like [`complete`](Self::complete), for an invocation, which may have its own grants and
    /// limits.
    ///
    /// # Errors
    ///
    /// See [`complete`](Self::complete).
    pub async fn invoke(&self, invocation: Invocation) -> Result<Completion, ToolboxError> {
        let events = self.listener.clone().map(EventSink::new).unwrap_or_default();
        let context = CallContext::default().with_events(events);
        let mut front_end = Callback(self.on_question.clone());
        let Ok(completion) =
            self.toolbox.call(invocation, context, &mut front_end).await?.completion();
        Ok(completion)
    }

    /// Adds a tool that is code of this program. Existing clones and running calls are unchanged;
    /// a server gets the new toolbox with
    #[cfg_attr(
        feature = "serve",
        doc = "[`mcp::Server::set_toolbox`](kitbag_mcp::Server::set_toolbox)."
    )]
    #[cfg_attr(not(feature = "serve"), doc = "its `set_toolbox`.")]
    ///
    /// # Errors
    ///
    /// See [`Toolbox::with_tool`].
    pub fn add_tool(&mut self, tool: impl NativeTool + 'static) -> Result<(), ToolboxError> {
        self.toolbox = self.toolbox.with_tool(Arc::new(tool))?;
        Ok(())
    }

    /// Adds a tool whose component is given as bytes. [`add_tool`](Self::add_tool) adds a tool
    /// that is code.
    ///
    /// # Errors
    ///
    /// See [`Toolbox::with_component`].
    pub fn add_component(
        &mut self,
        name: &str,
        bytes: impl Into<Arc<[u8]>>,
    ) -> Result<(), ToolboxError> {
        self.toolbox = self.toolbox.with_component(name, bytes)?;
        Ok(())
    }

    /// Removes a tool that this program added, here or with the builder.
    ///
    /// # Errors
    ///
    /// See [`Toolbox::without_tool`].
    pub fn remove_tool(&mut self, name: &str) -> Result<(), ToolboxError> {
        self.toolbox = self.toolbox.without_tool(name)?;
        Ok(())
    }

    /// Returns the toolbox, for listing the tools and for all other operations.
    pub fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }
}
