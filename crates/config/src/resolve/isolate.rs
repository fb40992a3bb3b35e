//! Isolation of mistakes: turns off the tools and topics that a mistake affects, and describes each
//! mistake.
//!
//! A mistake disables the smallest safe piece: a tool, a topic, a table. If a value that restricts
//! tools cannot be read, the tools that it may restrict are off. A mistake in an untrusted
//! workspace turns no tool off: the broken piece is omitted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use kitbag_base::ByteSize;
use kitbag_contract::{LEAST_SERVER_MEMORY, ToolName};
use kitbag_policy::Access;
use kitbag_policy::server::{ServerAddress, ServerName};

use super::context::Context;
use crate::config::{
    ConfiguredServer, ConfiguredTool, DIRECTORY, LocalTool, TOOLS, ToolSource, Topic,
};
use crate::layers::limits::EffectiveLimits;
use crate::layers::origin::Sourced;
use crate::layers::toolsets::Disabled;
use crate::read::file::Layer;
use crate::read::sources::BuiltinTool;
use crate::report::{Broken, DiagnosticKind, Found, Piece, Report, Restricts, consequence};
use crate::resolve::tools::aliases;

/// The maximum number of broken pieces that are listed separately.
const MOST: usize = 20;

/// Turns off tools that are broken or that may be less restricted than intended. A broken tool
/// without a valid definition is still listed.
pub(super) fn tools(
    context: &Context<'_>,
    tools: &mut BTreeMap<ToolName, ConfiguredTool>,
    limits: &EffectiveLimits,
    report: &mut Report,
) {
    let is_trusted = context.trust.is_trusted();
    let (mut lost, mut own_broken) = (Lost::default(), Vec::new());
    let found = report.found().iter();
    let found = found.filter(|found| takes_effect(found, is_trusted) && !is_above_ceiling(found));
    for found in found {
        let reason: Arc<str> = found.diagnostic.line().into();
        if let Piece::Tool(name) = &found.scope.piece
            && let Ok(name) = ToolName::new(name)
        {
            let tool = tools
                .entry(name.clone())
                .or_insert_with(|| stub(context.bases.root, name.clone(), found, limits));
            if !matches!(tool.disabled, Some(Disabled::Broken { .. })) {
                tool.disabled = Some(Disabled::Broken { reason: Arc::clone(&reason) });
            }
            if found.scope.layer == Some(Layer::User) {
                own_broken.push((name, Arc::clone(&reason)));
            }
        }
        lost.add(found, &reason);
    }
    for tool in tools.values_mut().filter(|tool| tool.is_enabled()) {
        if let Some(reason) = lost.restriction_of(tool, context) {
            tool.disabled = Some(Disabled::Unrestricted { reason });
        }
    }
    // The settings of the user config for a tool apply to all names of the tool.
    for (name, reason) in own_broken {
        for alias in aliases::names_of_same(context, &name, tools) {
            if let Some(tool) = tools.get_mut(&alias).filter(|tool| tool.is_enabled()) {
                tool.disabled = Some(Disabled::Unrestricted { reason: Arc::clone(&reason) });
            }
        }
    }
}

/// Turns off servers that are broken. A broken server without a valid definition is still listed.
pub(super) fn servers(context: &mut Context<'_>, report: &mut Report) {
    let is_trusted = context.trust.is_trusted();
    for found in report.found().iter().filter(|found| takes_effect(found, is_trusted)) {
        let Piece::Server(name) = &found.scope.piece else { continue };
        let Ok(name) = ServerName::new(name.as_str()) else { continue };
        let reason = Disabled::Broken { reason: found.diagnostic.line().into() };
        let layer = found.scope.layer.unwrap_or(Layer::User);
        let server = context.servers.entry(name.clone());
        let server = server.or_insert_with(|| ConfiguredServer::off(name, layer, reason.clone()));
        if !matches!(server.disabled, Some(Disabled::Broken { .. })) {
            server.disabled = Some(reason);
        }
    }
}

/// Removes broken topics, or all topics if their table cannot be read.
pub(super) fn topics(
    context: &Context<'_>,
    topics: &mut BTreeMap<String, Topic>,
    report: &mut Report,
) {
    if is_lost(context, Restricts::Topics, report) {
        topics.clear();
    }
    for found in report.found() {
        if let Piece::Topic(id) = &found.scope.piece {
            topics.remove(id);
        }
    }
}

/// Sets the minimum memory for a server if its memory setting cannot be read.
pub(super) fn memory(context: &Context<'_>, memory: &mut Sourced<ByteSize>, report: &mut Report) {
    if is_lost(context, Restricts::ServerMemory, report) {
        *memory = Sourced::default(LEAST_SERVER_MEMORY);
    }
}

fn is_lost(context: &Context<'_>, restriction: Restricts<'_>, report: &mut Report) -> bool {
    let is_trusted = context.trust.is_trusted();
    let found = report.found().iter();
    let mut found = found.filter(|found| takes_effect(found, is_trusted));
    found.any(|found| restricts(found).contains(&restriction))
}

/// Returns the omitted pieces, with the mistakes in each and their consequences.
pub(super) fn broken(
    context: &Context<'_>,
    tools: &BTreeMap<ToolName, ConfiguredTool>,
    report: &mut Report,
) -> Vec<Broken> {
    let is_trusted = context.trust.is_trusted();
    let mut broken: Vec<Broken> = Vec::new();
    let mut known = HashMap::new();
    for found in report.found().iter().filter(|found| !found.is_consequence) {
        let Some(layer) = found.scope.layer else { continue };
        // For an untrusted workspace, one line per file is enough.
        let takes_effect = takes_effect(found, is_trusted);
        let piece = takes_effect.then(|| found.scope.piece.label());
        let next = broken.len();
        let index = *known.entry((found.path(), piece)).or_insert(next);
        if let Some(broken) = broken.get_mut(index.min(MOST - 1)) {
            broken.more += 1;
            continue;
        }
        let line = found.diagnostic.line();
        let off = tools.values().filter(|tool| {
                matches!(&tool.disabled, Some(Disabled::Unrestricted { reason }) if **reason == *line)
            });
        let off: BTreeSet<_> = off.map(|tool| tool.name.as_str()).collect();
        broken.push(Broken {
            diagnostic: found.diagnostic.clone(),
            more: 0,
            is_own: layer == Layer::User,
            consequence: match is_above_ceiling(found) && takes_effect {
                true => "the ceiling applies instead".to_owned(),
                false => consequence(&found.scope.piece, &off, takes_effect),
            },
        });
    }
    broken
}

/// Returns whether a mistake turns tools off.
fn takes_effect(found: &Found, is_trusted: bool) -> bool {
    match found.scope.layer {
        None => false,
        Some(Layer::User) => true,
        Some(Layer::Workspace | Layer::Manifest) => is_trusted,
    }
}

/// Returns whether a mistake is a limit above its ceiling: the ceiling applies instead.
fn is_above_ceiling(found: &Found) -> bool {
    found.diagnostic.kind == DiagnosticKind::AboveCeiling
}

/// Returns the restrictions that cannot be read because of a mistake.
fn restricts(found: &Found) -> Vec<Restricts<'_>> {
    let layer = found.scope.layer.unwrap_or(Layer::User);
    match &found.scope.piece {
        // The value can be read, but is not granted.
        Piece::Key(_)
            if matches!(
                found.diagnostic.kind,
                DiagnosticKind::AboveCeiling | DiagnosticKind::UserOnly
            ) =>
        {
            Vec::new()
        }
        Piece::Key(key) => vec![Restricts::of_key(key, layer)],
        Piece::File(None) => {
            vec![Restricts::All, Restricts::Served, Restricts::ServerMemory, Restricts::Topics]
        }
        Piece::File(Some(words)) => {
            let keys = Restricts::KEYS.into_iter().filter(|key| words.contains(*key));
            let mut restricts: Vec<_> = keys.map(|key| Restricts::of_key(key, layer)).collect();
            if words.contains("write") {
                restricts.push(Restricts::Writing);
            }
            if restricts.contains(&Restricts::Served) && words.contains("memory") {
                restricts.push(Restricts::ServerMemory);
            }
            // Its tables are those of the workspace's own tools.
            if layer == Layer::Workspace || words.contains("wasm") || words.contains("script") {
                restricts.push(Restricts::Code(Layer::Workspace));
            }
            restricts
        }
        Piece::Lock => vec![Restricts::Recorded(layer)],
        Piece::Everything
        | Piece::Component
        | Piece::Tool(_)
        | Piece::Server(_)
        | Piece::Topic(_)
        | Piece::Person(_) => Vec::new(),
    }
}

/// Unreadable settings that may restrict tools, each with the first mistake.
#[derive(Default)]
struct Lost<'a> {
    restricts: Vec<(Restricts<'a>, Arc<str>)>,
    /// Names of tools and toolsets in unknown keys.
    names: HashMap<&'a str, Arc<str>>,
    /// The words of files that are not valid TOML.
    files: Vec<(&'a BTreeSet<String>, Arc<str>)>,
}

impl<'a> Lost<'a> {
    fn add(&mut self, found: &'a Found, reason: &Arc<str>) {
        for restricts in restricts(found) {
            if self.restricts.iter().all(|(known, _)| *known != restricts) {
                self.restricts.push((restricts, Arc::clone(reason)));
            }
        }
        for name in &found.scope.names {
            self.names.entry(name).or_insert_with(|| Arc::clone(reason));
        }
        if let Piece::File(Some(words)) = &found.scope.piece
            && self.files.iter().all(|(known, _)| !std::ptr::eq(*known, &**words))
        {
            self.files.push((words, Arc::clone(reason)));
        }
    }

    /// Returns the mistake that may leave a tool less restricted than intended.
    fn restriction_of(&self, tool: &ConfiguredTool, context: &Context<'_>) -> Option<Arc<str>> {
        let builtin = match &tool.source.value {
            ToolSource::Builtin { name } => context.named(&name.value),
            _ => None,
        };
        let is_server = context.sources.is_server;
        let server = match &tool.source.value {
            ToolSource::Server(tool) => Some(tool.server.as_str()),
            _ => None,
        };
        let own = [tool.name.as_str()].into_iter().chain(server);
        let mut names = own.chain(builtin.into_iter().flat_map(|it| [it.name, it.toolset]));
        let mut restricts = self.restricts.iter();
        let restricting =
            restricts.find(|(restricts, _)| restricts.applies_to(tool, builtin, is_server));
        let reason = restricting.map(|(_, reason)| reason).or_else(|| {
            names.find_map(|name| {
                let mut files = self.files.iter();
                let file = files.find(|(words, _)| words.contains(name)).map(|(_, reason)| reason);
                self.names.get(name).or(file)
            })
        });
        reason.cloned()
    }
}

impl Restricts<'_> {
    fn applies_to(
        self,
        tool: &ConfiguredTool,
        builtin: Option<&BuiltinTool<'_>>,
        is_server: bool,
    ) -> bool {
        let (grants, source) = (&tool.grants.value, &tool.source.value);
        match self {
            Self::All => true,
            Self::Files => {
                let is_given = builtin.is_some_and(|it| !it.given_by_call.is_empty());
                is_given || !grants.directories.is_empty()
            }
            Self::Network => !grants.http.grants.is_empty() || is_remote(source),
            Self::Servers => matches!(source, ToolSource::Server(_)),
            Self::Writing => builtin.is_some_and(|it| it.workspace == Some(Access::ReadWrite)),
            Self::Builtins => builtin.is_some(),
            Self::Toolset(name) => builtin.is_some_and(|it| it.toolset == name),
            Self::Served => is_server,
            Self::Code(layer) => match source {
                ToolSource::Local(local) => local.layer == layer,
                ToolSource::Script(_) => layer == Layer::Workspace,
                ToolSource::Builtin { .. }
                | ToolSource::Bytes(_)
                | ToolSource::Native
                | ToolSource::Server(_) => false,
            },
            Self::Recorded(layer) => {
                matches!(source, ToolSource::Local(local) if local.layer == layer)
            }
            Self::Nothing | Self::ServerMemory | Self::Topics => false,
        }
    }
}

/// Returns whether a tool belongs to a remote server, which requests are sent to.
fn is_remote(source: &ToolSource) -> bool {
    matches!(source, ToolSource::Server(tool) if matches!(*tool.address, ServerAddress::Remote(_)))
}

/// Returns a tool with only a name.
fn stub(root: &Path, name: ToolName, found: &Found, limits: &EffectiveLimits) -> ConfiguredTool {
    let wasm = root.join(DIRECTORY).join(TOOLS).join(format!("{name}.wasm"));
    let local = ToolSource::Local(LocalTool::new(Sourced::default(wasm), None, None));
    let source = Sourced { value: local, origin: found.diagnostic.place.clone() };
    ConfiguredTool::of_caller(name, source, limits.clone())
}
