//! The requests of a workspace, one line for each, for a person to read.

use std::path::PathBuf;

use kitbag_config::{
    Config, ConfiguredServer, ConfiguredTool, DiagnosticKind, Layer, OFF_BY_DEFAULT, ToolSource,
    secret_destinations,
};
use kitbag_fs_guard::canonical;
use kitbag_policy::server::ServerName;
use kitbag_policy::{KINDS, SecretGrant};
use kitbag_toolbox::consent::{
    Ability, RequestItem, Requester, Risk, Surroundings, definition_items, imitated, kind_items,
    place, quoted, server_items, surroundings,
};

/// Returns all requests in the files of the workspace: for each tool its definition and its
/// grants, then the others.
pub(crate) fn request_items(config: &Config) -> Vec<RequestItem> {
    let root = canonical(&config.root.value);
    let home = config.home().map(canonical);
    let asker = Asker { config, root, home };
    let mut items = Vec::new();
    // A server comes first: its command line is the worst that a workspace can request.
    for server in config.servers.values().filter(|server| server.layer == Layer::Workspace) {
        items.extend(asker.server(server));
    }
    for tool in config.tools.values() {
        items.extend(asker.tool_itself(tool));
        for kind in KINDS.iter().map(|kind| kind.key) {
            let is_asked = config.is_of_workspace(tool.grants.origin_of(kind));
            if is_own(config, tool) || is_asked {
                items.extend(asker.kind(tool, kind));
            }
        }
    }
    for topic in config.topics.values() {
        if config.is_of_workspace(&topic.subjects.origin) {
            let path = canonical(&topic.subjects.value);
            let name = quoted(&topic.id);
            let mut line = format!("topic {name} reads {}", place(&path, &asker.root));
            let ability = match path.starts_with(&asker.root) {
                true => Ability::ReadInside,
                false => Ability::ReadOutside,
            };
            let mut item =
                RequestItem::new(Requester::Topic(topic.id.clone()), "").with_ability(ability);
            item.risks = asker.surroundings().read_risks(&path, &topic.include.value);
            if !topic.include.value.is_empty() {
                let globs: Vec<_> = topic.include.value.iter().map(|glob| quoted(glob)).collect();
                line.push_str(&format!(
                    ", including files that look like secrets: {}",
                    globs.join(", ")
                ));
            }
            if !topic.learned.value.is_empty() {
                let globs: Vec<_> = topic.learned.value.iter().map(|glob| quoted(glob)).collect();
                line.push_str(&format!(", and adds {} to the prompt", globs.join(", ")));
            }
            items.push(RequestItem { line, ..item });
        }
    }
    let toolsets = &config.toolsets;
    if toolsets.write.value && config.is_of_workspace(&toolsets.write.origin) {
        let line = "built-in tools change the files of the workspace";
        items.push(RequestItem::new(Requester::Workspace, line).with_ability(Ability::WriteInside));
    }
    for (name, switch) in &toolsets.switches {
        let is_asked = switch.value && config.is_of_workspace(&switch.origin);
        if is_asked && OFF_BY_DEFAULT.contains(name) {
            let line = format!("the tools of `{name}` store text that later sessions read");
            items.push(RequestItem::new(Requester::Workspace, line).with_risk(Risk::Memory));
        }
    }
    items
}

fn is_own(config: &Config, tool: &ConfiguredTool) -> bool {
    match &tool.source.value {
        ToolSource::Local(local) => config.is_of_workspace(&local.wasm.origin),
        ToolSource::Script(script) => config.is_of_workspace(&script.path.origin),
        ToolSource::Server(tool) => tool.layer == Layer::Workspace,
        ToolSource::Builtin { .. } | ToolSource::Bytes(_) | ToolSource::Native => false,
    }
}

/// Returns whether a tool belongs to a server.
fn of_server(tool: &ConfiguredTool, server: &ServerName) -> bool {
    matches!(&tool.source.value, ToolSource::Server(tool) if tool.server == *server)
}

/// The workspace, for describing its requests.
struct Asker<'a> {
    config: &'a Config,
    /// The root of the workspace; canonical.
    root: PathBuf,
    /// The home directory; canonical.
    home: Option<PathBuf>,
}

impl Asker<'_> {
    fn kind(&self, tool: &ConfiguredTool, key: &str) -> Vec<RequestItem> {
        let name = &tool.name;
        let mut items = kind_items(name.as_str(), &tool.grants.value, key, &self.surroundings());
        if key == SecretGrant::KEY {
            // The tool would get a secret of this name once it exists.
            let missing = tool.grants.warnings.iter().filter_map(|warning| match &warning.kind {
                DiagnosticKind::NoSecret(name) => Some(name),
                _ => None,
            });
            let to = secret_destinations(&tool.grants.value).join(", ");
            let to = if to.is_empty() { "nowhere".to_owned() } else { quoted(&to) };
            items.extend(missing.map(|secret| {
                let (secret, to) = (quoted(secret), to.trim_matches('`'));
                let secret = secret.trim_matches('`');
                let line = format!("uses your secret {secret} → {to}, which you do not have yet");
                of_tool(tool, &line).with_ability(Ability::Secrets).with_risk(Risk::Secret)
            }));
        }
        items
    }

    /// Returns the requests of a server: its address, its access, and the text of its tools.
    fn server(&self, server: &ConfiguredServer) -> Vec<RequestItem> {
        let name = &server.name;
        let Some(address) = server.address.as_ref().filter(|_| server.enable.value) else {
            return Vec::new();
        };
        let mut items = server_items(name, &address.value, &self.surroundings());
        let tools = || self.config.tools.values().filter(|tool| of_server(tool, name));
        let definitions = tools().filter_map(|tool| match &tool.source.value {
            ToolSource::Server(tool) => Some(&*tool.definition),
            _ => None,
        });
        items.extend(definition_items(name, definitions));
        items
    }

    fn surroundings(&self) -> Surroundings<'_> {
        surroundings(&self.root, self.home.as_deref(), &self.config.network)
    }

    /// Returns all requests of a tool except its grants.
    fn tool_itself(&self, tool: &ConfiguredTool) -> Vec<RequestItem> {
        let Self { config, root, .. } = self;
        let source = &tool.source.value;
        let is_own = is_own(config, tool);
        let item = |line: String| of_tool(tool, &line);
        let mut items = Vec::new();
        let mut is_named_here = is_own;
        match source {
            ToolSource::Local(local) if is_own => {
                let line = format!("runs {}", place(&canonical(&local.wasm.value), root));
                items.push(match local.dev.value {
                    true => {
                        let by = &local.dev.origin;
                        item(format!("{line}, and each later build of it (`dev = true`, {by})"))
                            .with_risk(Risk::LaterBuilds)
                    }
                    false => item(line),
                });
            }
            ToolSource::Script(script) if is_own => {
                items.push(item(format!("runs {}", place(&script.path.value, root))));
            }
            ToolSource::Builtin { name: own }
                if own.value != tool.name.as_str() && config.is_of_workspace(&own.origin) =>
            {
                is_named_here = true;
                items.push(item(format!("is the built-in {}", quoted(&own.value))));
            }
            _ => {}
        }
        if is_named_here {
            let others = config.tools.values().filter(|other| !self::is_own(config, other));
            let others = others.map(|other| other.name.as_str());
            if let Some(other) = imitated(tool.name.as_str(), others) {
                let line = format!("has a name that resembles `{other}`");
                items.push(item(line).with_risk(Risk::Imitation));
            }
        }
        if let Some(replaced) = source.replaces().filter(|own| config.is_of_workspace(&own.origin))
        {
            let line = format!("replaces the built-in {}", quoted(&replaced.value));
            items.push(item(line).with_risk(Risk::ReplacesBuiltin));
        }
        if let (ToolSource::Builtin { .. }, Some(description)) = (source, &tool.description)
            && config.is_of_workspace(&description.origin)
        {
            let line = "is described to models in the words of this workspace".to_owned();
            items.push(item(line).with_risk(Risk::OtherWords));
        }
        // An answer in the user config applies to any workspace tool of that name.
        for (id, answer) in &tool.answers {
            let value = quoted(&answer.value.to_string());
            let (id, value) = (quoted(id), value.trim_matches('`').to_owned());
            let line = format!("has its question {id} answered with {value} without asking you");
            match (config.is_of_workspace(&answer.origin), is_own) {
                (true, _) => items.push(item(line).with_risk(Risk::PresetAnswer)),
                (false, true) => {
                    let line = format!("{line} ({})", answer.origin);
                    items.push(item(line).with_risk(Risk::PresetAnswer));
                }
                (false, false) => {}
            }
        }
        if let (true, Some(by)) = (is_own, &tool.approve.never) {
            let line = format!("is called without asking you (`approve = \"never\"`, {by})");
            items.push(item(line).with_risk(Risk::Unasked));
        }
        items
    }
}

fn of_tool(tool: &ConfiguredTool, line: &str) -> RequestItem {
    let name = tool.name.as_str();
    RequestItem::new(Requester::Tool(name.to_owned()), format!("tool `{name}` {line}"))
}
