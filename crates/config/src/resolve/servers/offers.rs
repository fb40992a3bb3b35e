//! The tools that servers offer, by their names for models.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kitbag_contract::ToolName;
use kitbag_glob::Glob;
use kitbag_policy::server::ServerName;

use crate::config::{ConfiguredServer, ServerTool};
use crate::read::file::Layer;

/// The tools of all servers. Those of the user's servers come first, so that a server of a
/// workspace takes no name from them.
#[derive(Default)]
pub(in crate::resolve) struct Offers {
    list: Vec<Offer>,
    /// The first offer of each name, by index.
    names: HashMap<ToolName, usize>,
}

/// A recorded tool that the settings of its server let through.
pub(in crate::resolve) struct Offer {
    /// The name for models. `None`: the server's name of the tool is empty.
    pub(in crate::resolve) name: Option<ToolName>,
    pub(in crate::resolve) tool: ServerTool,
}

impl Offers {
    pub(in crate::resolve) fn new(servers: &BTreeMap<ServerName, ConfiguredServer>) -> Self {
        let mut offers = Self::default();
        for layer in [Layer::User, Layer::Workspace] {
            for server in servers.values().filter(|server| server.layer == layer) {
                offers.add(server);
            }
        }
        offers
    }

    fn add(&mut self, server: &ConfiguredServer) {
        let (Some(recorded), Some(address)) = (&server.recorded, &server.address) else { return };
        let lists: Vec<Vec<Glob>> = server
            .tools
            .iter()
            .map(|list| list.value.iter().filter_map(|text| Glob::new(text).ok()).collect())
            .collect();
        for (own, definition) in &recorded.server.tools {
            if !lists.iter().all(|globs| globs.iter().any(|glob| glob.matches(own))) {
                continue;
            }
            let tool = ServerTool {
                server: server.name.clone(),
                tool: own.clone(),
                address: Arc::clone(&address.value),
                era: recorded.server.era,
                definition: Arc::clone(definition),
                layer: server.layer,
            };
            let name = server.tool_name(own);
            if let Some(name) = &name {
                self.names.entry(name.clone()).or_insert(self.list.len());
            }
            self.list.push(Offer { name, tool });
        }
    }

    pub(in crate::resolve) fn iter(&self) -> impl Iterator<Item = &Offer> {
        self.list.iter()
    }

    /// Returns the tool that has a name by default.
    pub(in crate::resolve) fn named(&self, name: &str) -> Option<&ServerTool> {
        self.names.get(name).map(|at| &self.list[*at].tool)
    }

    /// Returns the tool of `source = "SERVER/TOOL"`.
    pub(in crate::resolve) fn of_source(&self, server: &str, tool: &str) -> Option<&ServerTool> {
        let mut tools = self.list.iter().map(|offer| &offer.tool);
        tools.find(|it| it.server.as_str() == server && it.tool == tool)
    }
}
