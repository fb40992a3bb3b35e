//! MCP servers that an embedding program adds in code.

use std::sync::Arc;

use kitbag_contract::ToolName;
use kitbag_host::CallError;
use kitbag_policy::server::{ServerAddress, ServerName};
use kitbag_toolbox::ToolboxError;

use crate::{Builder, Kitbag};

/// Why the tools of a server were not added.
#[derive(Debug, thiserror::Error)]
pub enum AddServerError {
    /// The server did not start.
    #[error(transparent)]
    Server(#[from] kitbag_servers::ServerError),
    /// A tool cannot have its name.
    #[error(transparent)]
    Tool(#[from] ToolboxError),
    /// The system has no thread for the server.
    #[error(transparent)]
    Call(#[from] CallError),
}

impl Builder {
    /// Adds the tools of an MCP server, each as `NAME_TOOL`. [`build`](Self::build) starts the
    /// server and waits until it has listed its tools. It then runs until it is idle for ten
    /// minutes, and starts again for the next call. A tool whose definition differs then is refused.
    ///
    /// Tools of servers that a person may choose belong into the configuration, which records what
    /// the person agreed to.
    #[must_use]
    pub fn server(mut self, name: ServerName, address: impl Into<ServerAddress>) -> Self {
        self.servers.push((name, address.into()));
        self
    }
}

impl Kitbag {
    /// Starts an MCP server and adds its tools, as [`Builder::server`] does before the program
    /// starts. Returns their names. The server runs with the given address until it is idle for ten
    /// minutes, and starts again for the next call. A tool whose definition differs then is refused.
    ///
    /// Tools of servers that a person may choose belong into the configuration, which records what
    /// the person agreed to.
    ///
    /// # Errors
    ///
    /// [`AddServerError`] if the server does not start, or a tool cannot have its name.
    pub async fn add_server(
        &mut self,
        name: ServerName,
        address: impl Into<ServerAddress>,
    ) -> Result<Vec<ToolName>, AddServerError> {
        let target = self.toolbox.target_of(&name, Arc::new(address.into()));
        let listing = self.toolbox.list_server(&target).await?;
        let (toolbox, names) = self.toolbox.with_server_tools(&target, &listing)?;
        self.toolbox = toolbox;
        Ok(names)
    }
}
