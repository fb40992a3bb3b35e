//! Prompts and resources of MCP servers.
//!
//! The prompt `greet` of the server `db` is `db_greet`, and its resource `file:///a` is
//! `kitbag://server/db/file:///a`. Both begin with the name of the server, so no server can imitate
//! another or a component. They are not recorded in the lock file, so they are screened when they
//! are listed. The rules of one of the server's offered tools apply to them: the tool that asks for
//! approval most often.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kitbag_base::text::is_hidden;
use kitbag_config::{ConfiguredTool, ServerTool, ToolSource};
use kitbag_contract::{
    PromptDescription, ResourceDescription, ResourceTemplateDescription, ToolName,
};
use kitbag_policy::ApprovalRule;
use kitbag_policy::server::ServerName;

use crate::registry::Toolbox;
use crate::registry::catalog::{SERVER_SCHEME, ServedItem, ServedItems};

/// The longest name of a prompt, in bytes.
const NAME_BYTES: usize = 256;

/// The longest URI of a resource, in bytes.
const URI_BYTES: usize = 4 << 10;

/// The largest number of values of a completion, and the longest value in bytes.
const VALUES: usize = 100;
const VALUE_BYTES: usize = 1 << 10;

/// A prompt or resource of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerItem {
    /// The tool whose rules apply.
    pub tool: ToolName,
    /// The name or URI for clients.
    pub name: String,
    pub(crate) server: ServerName,
    pub(crate) own: OwnItem,
}

/// An item by the server's name for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OwnItem {
    Prompt(PromptDescription),
    Resource(String),
}

/// A change of what servers offer besides their tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemChange {
    /// The list of prompts.
    Prompts,
    /// The list of resources, or of their templates.
    Resources,
    /// A resource with a subscription, by its URI for clients.
    Resource(String),
}

/// A subscription to a resource of a server, which ends when it is dropped.
pub struct ItemSubscription {
    #[cfg(feature = "servers")]
    _own: kitbag_servers::ResourceSubscription,
}

/// The role of a message of a server's prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptRole {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// The subject of a completion, by its name for clients.
#[derive(Clone, Copy, Debug)]
pub enum ServerSubject<'a> {
    /// A prompt.
    Prompt(&'a str),
    /// A template of resources.
    Template(&'a str),
}

/// Returns the URI for clients of a resource of a server.
pub(crate) fn public_uri(server: &ServerName, uri: &str) -> String {
    format!("{SERVER_SCHEME}{server}/{uri}")
}

/// Returns how often a tool asks for approval, as a rank.
fn strictness(tool: &ConfiguredTool) -> u8 {
    let rank = |rule: &ApprovalRule| match rule {
        ApprovalRule::Never => 0,
        ApprovalRule::OnWrite => 1,
        ApprovalRule::When(_) => 2,
        ApprovalRule::Always => 3,
    };
    tool.approve.rules.iter().map(|rule| rank(&rule.value)).max().unwrap_or_default()
}

impl Toolbox {
    /// Returns the servers that offer a tool, each with the tool whose rules apply to its items.
    fn offering(&self) -> BTreeMap<&ServerName, (&ConfiguredTool, &ServerTool)> {
        let mut servers: BTreeMap<_, (&ConfiguredTool, &ServerTool)> = BTreeMap::new();
        for (_, tool) in self.enabled() {
            let ToolSource::Server(own) = &tool.source.value else { continue };
            let first = servers.entry(&own.server).or_insert((tool, own));
            if strictness(tool) > strictness(first.0) {
                *first = (tool, own);
            }
        }
        servers
    }

    /// Returns the prompts and resources that servers listed, by their names for clients. Starts
    /// nothing and waits for no server.
    pub fn server_items(&self) -> ServedItems {
        let mut served = ServedItems::default();
        let offering = self.offering();
        let mut names: BTreeSet<&str> =
            self.config().servers.keys().map(ServerName::as_str).collect();
        names.extend(offering.keys().map(|name| name.as_str()));
        let (mut prompts, mut resources, mut templates) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (server, (tool, own)) in offering {
            let tool = &tool.name;
            let (own_prompts, own_resources, own_templates) = self.known_items(own);
            for prompt in own_prompts {
                if let Some(prompt) = self.listed_prompt(server, prompt, &names) {
                    let item = ServedItem { tool: tool.clone(), description: prompt };
                    prompts.insert(item.description.name.clone(), item);
                }
            }
            for resource in own_resources {
                if !self.is_plain(&resource.uri, URI_BYTES) {
                    continue;
                }
                let description = ResourceDescription {
                    uri: public_uri(server, &resource.uri),
                    name: self.clean(Some(resource.name)).unwrap_or_default(),
                    title: self.clean(resource.title),
                    description: self.clean(resource.description),
                    mime_type: self.clean(resource.mime_type),
                };
                let item = ServedItem { tool: tool.clone(), description };
                resources.insert(item.description.uri.clone(), item);
            }
            for template in own_templates {
                if !self.is_plain(&template.uri_template, URI_BYTES) {
                    continue;
                }
                let description = ResourceTemplateDescription {
                    uri_template: public_uri(server, &template.uri_template),
                    name: self.clean(Some(template.name)).unwrap_or_default(),
                    title: self.clean(template.title),
                    description: self.clean(template.description),
                    mime_type: self.clean(template.mime_type),
                };
                let item = ServedItem { tool: tool.clone(), description };
                templates.insert(item.description.uri_template.clone(), item);
            }
        }
        served.prompts = prompts.into_values().collect();
        served.resources = resources.into_values().collect();
        served.templates = templates.into_values().collect();
        served
    }

    /// Returns a prompt as clients see it. `None` if its name could be one of another server.
    fn listed_prompt(
        &self,
        server: &ServerName,
        prompt: PromptDescription,
        servers: &BTreeSet<&str>,
    ) -> Option<PromptDescription> {
        if !self.is_plain(&prompt.name, NAME_BYTES) {
            return None;
        }
        let name = format!("{server}_{}", prompt.name);
        let is_of = |other: &&str| {
            let rest = name.strip_prefix(*other);
            other.len() > server.as_str().len() && rest.is_some_and(|rest| rest.starts_with('_'))
        };
        if servers.iter().any(is_of) {
            return None;
        }
        let mut arguments = prompt.arguments;
        for argument in &mut arguments {
            if !self.is_plain(&argument.name, NAME_BYTES) {
                return None;
            }
            argument.title = self.clean(argument.title.take());
            argument.description = self.clean(argument.description.take());
        }
        let (title, description) = (self.clean(prompt.title), self.clean(prompt.description));
        Some(PromptDescription { name, title, description, arguments })
    }

    /// Finds a listed prompt of a server by its name for clients.
    pub fn server_prompt(&self, name: &str) -> Option<ServerItem> {
        let listed = self.server_items().prompts.into_iter();
        let mut found = listed.filter(|prompt| prompt.description.name == name);
        let ServedItem { tool, mut description } = found.next()?;
        let ToolSource::Server(own) = &self.config().tools.get(&tool)?.source.value else {
            return None;
        };
        let own_name = name.strip_prefix(own.server.as_str())?.strip_prefix('_')?;
        own_name.clone_into(&mut description.name);
        let (server, own) = (own.server.clone(), OwnItem::Prompt(description));
        Some(ServerItem { tool, name: name.to_owned(), server, own })
    }

    /// Finds the server of a URI that begins with [`SERVER_SCHEME`].
    pub fn server_resource(&self, uri: &str) -> Option<ServerItem> {
        let (server, own) = uri.strip_prefix(SERVER_SCHEME)?.split_once('/')?;
        if own.is_empty() || own.len() > URI_BYTES {
            return None;
        }
        let offering = self.offering();
        let (server, (tool, _)) = offering.iter().find(|(name, _)| name.as_str() == server)?;
        Some(ServerItem {
            tool: tool.name.clone(),
            name: uri.to_owned(),
            server: (*server).clone(),
            own: OwnItem::Resource(own.to_owned()),
        })
    }

    /// Returns text of a server without keys and tokens. `None` if it is withheld from clients.
    fn clean(&self, text: Option<String>) -> Option<String> {
        let mut text = text?;
        drop(self.0.secrets.leaks().redact(&mut text));
        (!self.leaves_out(&text)).then_some(text)
    }

    /// Returns true if a name can be listed as it is.
    fn is_plain(&self, name: &str, longest: usize) -> bool {
        let is_visible = !name.is_empty() && !name.chars().any(|c| is_hidden(c) || c == '\n');
        is_visible
            && name.len() <= longest
            && self.0.secrets.leaks().find(name.as_bytes()).next().is_none()
            && !self.leaves_out(name)
    }
}

#[cfg(not(feature = "servers"))]
impl Toolbox {
    fn known_items(&self, _: &ServerTool) -> OwnItems {
        OwnItems::default()
    }

    /// Returns no values: this build has no servers.
    pub async fn complete_server(
        &self,
        _: ServerSubject<'_>,
        _: (&str, &str),
        _: Option<HashMap<String, String>>,
    ) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }

    /// Calls no function: this build has no servers.
    pub fn on_server_change(&self, _: impl Fn(ItemChange) + Send + Sync + 'static) {}

    /// Refuses: this build has no servers.
    ///
    /// # Errors
    ///
    /// Always.
    pub async fn subscribe_to_server(&self, _: &str) -> Result<ItemSubscription, String> {
        Err("this kitbag was built without servers".to_owned())
    }

    /// Returns no names: this build has no servers.
    pub fn servers_to_check(&self) -> Vec<ServerName> {
        Vec::new()
    }

    /// Returns no problems: this build has no servers.
    pub fn check_server(&self, _: &ServerName) -> Vec<String> {
        Vec::new()
    }

    /// Does nothing: this build has no servers.
    pub fn end_servers(&self, _: std::time::Duration) {}
}

/// The prompts, resources and templates of one server.
type OwnItems =
    (Vec<PromptDescription>, Vec<ResourceDescription>, Vec<ResourceTemplateDescription>);

#[cfg(feature = "servers")]
mod connected {
    use std::time::Duration;

    use kitbag_host::Host;
    use kitbag_servers::{Completed, ServerChange, ServerTarget};

    use super::*;
    use crate::sources::server::target;

    impl Toolbox {
        fn target_of_tool(&self, own: &ServerTool) -> ServerTarget {
            target(&self.0, &own.server, &own.address, own.era)
        }

        pub(super) fn known_items(&self, own: &ServerTool) -> OwnItems {
            let Some(servers) = &self.0.servers else { return OwnItems::default() };
            let items = servers.items(&self.target_of_tool(own));
            (items.prompts.clone(), items.resources.clone(), items.templates.clone())
        }

        /// Asks a server that runs for values of an argument. Returns those that can be shown.
        ///
        /// # Errors
        ///
        /// The reason why the server did not answer.
        pub async fn complete_server(
            &self,
            subject: ServerSubject<'_>,
            argument: (&str, &str),
            known: Option<HashMap<String, String>>,
        ) -> Result<Vec<String>, String> {
            let item = match subject {
                ServerSubject::Prompt(name) => self.server_prompt(name),
                ServerSubject::Template(uri) => self.server_resource(uri),
            };
            let Some(item) = item else { return Ok(Vec::new()) };
            let subject = match item.own {
                OwnItem::Prompt(prompt) => Completed::Prompt(prompt.name),
                OwnItem::Resource(template) => Completed::Template(template),
            };
            let tool = self.config().tools.get(&item.tool).map(|tool| &tool.source.value);
            let (Some(ToolSource::Server(own)), Some(servers)) = (tool, &self.0.servers) else {
                return Ok(Vec::new());
            };
            let target = self.target_of_tool(own);
            let values = servers.complete(&target, subject, argument, known).await;
            let values = values.map_err(|error| error.to_string())?.into_iter().take(VALUES);
            Ok(values.filter(|value| self.is_plain(value, VALUE_BYTES)).collect())
        }

        /// Calls a function when the prompts or resources of a server changed, instead of the
        /// function that was set before.
        pub fn on_server_change(&self, changed: impl Fn(ItemChange) + Send + Sync + 'static) {
            if let Some(servers) = &self.0.servers {
                servers.on_change(move |change| {
                    changed(match change {
                        ServerChange::Prompts => ItemChange::Prompts,
                        ServerChange::Resources => ItemChange::Resources,
                        ServerChange::Resource { server, uri } => {
                            ItemChange::Resource(public_uri(&server, &uri))
                        }
                    });
                });
            }
        }

        /// Subscribes to changes of a resource of a server, by its URI for clients. Starts the
        /// server if necessary, and keeps it running.
        ///
        /// # Errors
        ///
        /// The reason why there is no subscription.
        pub async fn subscribe_to_server(&self, uri: &str) -> Result<ItemSubscription, String> {
            let item = self.server_resource(uri);
            let tool = item.as_ref().and_then(|item| self.config().tools.get(&item.tool));
            let (Some(ServerItem { own: OwnItem::Resource(own_uri), .. }), Some(tool)) =
                (&item, tool)
            else {
                return Err("no listed resource has this URI".to_owned());
            };
            let (ToolSource::Server(own), Some(servers)) = (&tool.source.value, &self.0.servers)
            else {
                return Err("this program starts no servers".to_owned());
            };
            let held = servers.subscribe(&self.target_of_tool(own), own_uri).await;
            held.map(|own| ItemSubscription { _own: own }).map_err(|error| error.to_string())
        }

        /// Returns the servers that offer tools and need no secret. Reading a secret may ask a
        /// person, so a server with a secret starts only for a call.
        pub fn servers_to_check(&self) -> Vec<ServerName> {
            let offering = self.offering().into_iter();
            let needs_no_secret = |(_, (_, own)): &(&ServerName, (_, &ServerTool))| {
                let target = self.target_of_tool(own);
                own.address.secrets().next().is_none() && target.secrets.grants.is_empty()
            };
            offering.filter(needs_no_secret).map(|(name, _)| name.clone()).collect()
        }

        /// Starts a server if necessary, and returns a message for each of its offered tools that
        /// changed. Blocks until the server has listed its tools.
        pub fn check_server(&self, name: &ServerName) -> Vec<String> {
            let Some(servers) = &self.0.servers else { return Vec::new() };
            let own = |tool: &'_ ConfiguredTool| match &tool.source.value {
                ToolSource::Server(own) if own.server == *name => Some(own.clone()),
                _ => None,
            };
            let tools: Vec<_> = self.enabled().filter_map(|(_, tool)| own(tool)).collect();
            let Some(first) = tools.first() else { return Vec::new() };
            let target = self.target_of_tool(first);
            let check =
                || servers.check(&target, tools.iter().map(|tool| tool.definition.as_ref()));
            match Host::block_on(check) {
                Ok(Ok(changed)) => changed.iter().map(ToString::to_string).collect(),
                Ok(Err(error)) => vec![error.to_string()],
                Err(error) => vec![format!("the server `{name}` is not checked: {error}")],
            }
        }

        /// Ends all servers, and waits until they have ended, at most for `time`. No server starts
        /// again.
        pub fn end_servers(&self, time: Duration) {
            if let Some(servers) = &self.0.servers {
                servers.end(time);
            }
        }
    }
}
