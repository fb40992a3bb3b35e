//! Tools of MCP servers. Their definitions are those that a person agreed to.

use kitbag_config::ServerTool;
use kitbag_contract::{Annotations, ToolDescription};
use kitbag_policy::Effects;
use kitbag_policy::server::{Confinement, ServerAddress, ServerProcess};

/// The connections to servers. `None`: the program starts no servers.
#[cfg(feature = "servers")]
pub(crate) type ServerPool = Option<kitbag_servers::Servers>;
/// This build has no servers.
#[cfg(not(feature = "servers"))]
#[derive(Clone, Default)]
pub(crate) struct ServerPool;

/// A call of a server's tool, with all of its questions.
#[cfg(feature = "servers")]
pub(crate) type OpenCall = Box<kitbag_servers::ServerCall>;
/// This build has no servers.
#[cfg(not(feature = "servers"))]
pub(crate) type OpenCall = std::convert::Infallible;

/// Returns the recorded description of a tool.
pub(crate) fn description(tool: &ServerTool) -> ToolDescription {
    let own = &tool.definition;
    let annotations = own.annotations.clone();
    let title = annotations.as_ref().and_then(|own| own["title"].as_str()).map(str::to_owned);
    let annotations = annotations.and_then(|own| serde_json::from_value::<Annotations>(own).ok());
    ToolDescription {
        name: own.name.clone(),
        title: own.title.clone().or(title),
        description: own.description.clone(),
        input_schema: Some(own.input_schema.clone()),
        output_schema: own.output_schema.clone(),
        annotations,
        ..ToolDescription::default()
    }
}

/// Returns the possible effects of a tool. Only the confinement of its server limits them, since
/// its annotations are claims.
pub(crate) fn effects(tool: &ServerTool) -> Effects {
    match &*tool.address {
        ServerAddress::Process(ServerProcess { confine: Some(confine), .. }) => Effects {
            changes: confine.network || !confine.write.is_empty(),
            open_world: confine.network,
        },
        ServerAddress::Process(_) | ServerAddress::Remote(_) => {
            Effects { changes: true, open_world: true }
        }
    }
}

/// Returns the access of a server's tool in a few words.
pub fn reach(tool: &ServerTool) -> String {
    match &*tool.address {
        ServerAddress::Remote(remote) => format!("sends its arguments to {}", remote.url),
        ServerAddress::Process(ServerProcess { confine: None, .. }) => {
            "runs with all of your rights".to_owned()
        }
        ServerAddress::Process(ServerProcess { confine: Some(confine), .. }) => confined(confine),
    }
}

fn confined(confine: &Confinement) -> String {
    let paths = |does: &str, paths: &[std::path::PathBuf]| {
        let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        (!paths.is_empty()).then(|| format!("{does} {}", paths.join(", ")))
    };
    let parts = [
        paths("reads", &confine.read),
        paths("writes", &confine.write),
        confine.network.then(|| "uses the network".to_owned()),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => "confined: no files, no network".to_owned(),
        false => format!("confined: {}", parts.join("; ")),
    }
}

impl crate::Toolbox {
    /// Ends the servers that no enabled tool uses.
    pub fn retain_servers(&self) {
        #[cfg(feature = "servers")]
        if let Some(servers) = &self.0.servers {
            self.retain_used(servers);
        }
    }
}

#[cfg(feature = "servers")]
mod targets {
    use std::sync::Arc;

    use kitbag_config::{ConfiguredTool, Layer, Origin, ServerTool, Sourced, ToolSource};
    use kitbag_contract::ToolName;
    use kitbag_policy::server::{Era, ServerAddress, ServerName};
    use kitbag_servers::{Listing, ServerError, ServerTarget, Servers, TargetSecrets};

    use crate::error::ToolboxError;
    use crate::registry::{Toolbox, ToolboxState};

    impl Toolbox {
        /// Returns this toolbox with connections to servers. Without this, tools of servers cannot
        /// be called.
        #[must_use]
        pub fn with_servers(&self, servers: Servers) -> Self {
            let (config, program) = self.parts();
            self.with_parts_and(config, program, Some(servers), self.0.remote.clone())
        }

        /// Returns the connections to servers.
        pub fn servers(&self) -> Option<&Servers> {
            self.0.servers.as_ref()
        }

        pub(super) fn retain_used(&self, servers: &Servers) {
            let tools: Vec<_> = self.enabled().map(|(_, tool)| &tool.source.value).collect();
            servers.retain(|name, address| {
                tools.iter().any(|source| match source {
                    ToolSource::Server(tool) => tool.server == *name && *tool.address == *address,
                    _ => false,
                })
            });
        }

        /// Returns the way to reach a server, also if it is disabled or was not added yet. `None` if
        /// there is no server of this name with an address.
        pub fn server_target(&self, name: &ServerName) -> Option<ServerTarget> {
            let server = self.0.config.servers.get(name)?;
            let address = server.address.as_ref()?;
            let recorded = server.recorded.as_ref();
            let era = recorded.and_then(|recorded| recorded.server.era);
            Some(target(&self.0, name, &address.value, era))
        }

        /// Returns the way to reach a server of the embedding program.
        pub fn target_of(&self, name: &ServerName, address: Arc<ServerAddress>) -> ServerTarget {
            target(&self.0, name, &address, None)
        }

        /// Adds the tools of a server of the embedding program, each as `NAME_TOOL`, and returns
        /// the new toolbox and the names.
        ///
        /// # Errors
        ///
        /// [`ToolboxError::Register`] for a name that another tool has or that is not valid.
        pub fn with_server_tools(
            &self,
            target: &ServerTarget,
            listing: &Listing,
        ) -> Result<(Self, Vec<ToolName>), ToolboxError> {
            let (mut config, program) = self.parts();
            let mut names = Vec::new();
            for definition in &listing.tools {
                let own = &definition.name;
                let refused = |reason: &str| ToolboxError::Register {
                    tool: format!("{}/{own}", target.name),
                    reason: reason.to_owned(),
                };
                let name = kitbag_config::server_tool_name(target.name.as_str(), own);
                let name = name.ok_or_else(|| refused("its name is empty"))?;
                if config.tools.contains_key(&name) {
                    return Err(refused(&format!("another tool has the name `{name}`")));
                }
                let tool = ServerTool {
                    server: target.name.clone(),
                    tool: own.clone(),
                    address: Arc::clone(&target.address),
                    era: Some(listing.era),
                    definition: Arc::new(definition.clone()),
                    layer: Layer::User,
                };
                let source = Sourced { value: ToolSource::Server(tool), origin: Origin::Caller };
                let limits = config.limits.clone();
                let mut tool = ConfiguredTool::of_caller(name.clone(), source, limits);
                tool.approve = config.default_approval();
                config.tools.insert(name.clone(), tool);
                names.push(name);
            }
            Ok((self.with_parts(config, program), names))
        }

        /// Starts a server, and returns what it offers.
        ///
        /// # Errors
        ///
        /// [`ServerError`] if it does not start.
        pub async fn list_server(&self, target: &ServerTarget) -> Result<Listing, ServerError> {
            match &self.0.servers {
                Some(servers) => servers.list(target).await,
                None => Err(unavailable(&target.name)),
            }
        }
    }

    pub(crate) fn unavailable(server: &ServerName) -> ServerError {
        let reason = "this program starts no servers".to_owned();
        ServerError::Start { server: server.clone(), reason }
    }

    /// Returns the way to reach a server.
    pub(crate) fn target(
        state: &ToolboxState,
        name: &ServerName,
        address: &Arc<ServerAddress>,
        era: Option<Era>,
    ) -> ServerTarget {
        let server = state.config.servers.get(name);
        let secret = server.and_then(|server| server.secret.clone());
        ServerTarget {
            name: name.clone(),
            address: Arc::clone(address),
            era,
            idle: server.map_or(ServerTarget::IDLE, |server| server.idle.value),
            secrets: TargetSecrets {
                source: Arc::clone(&state.secrets),
                grants: secret.into_iter().collect(),
            },
            deny: Arc::clone(&state.config.deny.value),
        }
    }
}

#[cfg(feature = "servers")]
pub(crate) use targets::{target, unavailable};

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn confinement_is_named_in_few_words() {
        let check = |confine: Confinement, expected: &str| assert_eq!(confined(&confine), expected);
        check(Confinement::default(), "confined: no files, no network");
        let read = vec![PathBuf::from("/w"), PathBuf::from("/x")];
        let confine = Confinement { read, network: true, ..Confinement::default() };
        check(confine, "confined: reads /w, /x; uses the network");
    }
}
