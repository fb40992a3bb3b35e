//! Several names for one tool: the settings of the user config for the tool also apply to the names
//! that a workspace gives it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use kitbag_base::FileId;
use kitbag_contract::ToolName;
use kitbag_fs_guard::locate;

use crate::config::{ConfiguredTool, ToolSource};
use crate::format::span::{At, Written, merge};
use crate::format::{SourceConfig, ToolConfig};
use crate::layers::origin::Origin;
use crate::layers::toolsets::Disabled;
use crate::read::file::Layer;
use crate::resolve::context::{Context, tables};

/// The tool that a name refers to. A copy of a component is a different tool.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Identity {
    /// The built-in of this name.
    Builtin(String),
    /// The component in this file.
    Component(FileId),
    /// The script of this name in `.kitbag/scripts`.
    Script(OsString),
    /// The path of a component that does not exist yet.
    Missing(PathBuf),
    /// The tool of a server, by the names of both.
    Server(String, String),
}

struct OwnTool<'a> {
    at: At<'a, ToolConfig>,
    /// The tool that the name refers to in the user config alone. `None`: the user config does not
    /// define it.
    meant: Option<Identity>,
}

impl Identity {
    fn of_component(path: &Path) -> Self {
        match locate(path) {
            Ok(located) => Self::Component(located.id()),
            Err(_) => Self::Missing(path.to_owned()),
        }
    }

    fn of(tool: &ConfiguredTool) -> Option<Self> {
        match &tool.source.value {
            // A component that the caller names for this call.
            _ if tool.source.origin == Origin::Caller => None,
            ToolSource::Builtin { name } => Some(Self::Builtin(name.value.clone())),
            ToolSource::Local(local) => Some(Self::of_component(&local.wasm.value)),
            ToolSource::Script(script) => {
                Some(Self::Script(script.path.value.file_stem()?.to_owned()))
            }
            ToolSource::Server(tool) => {
                Some(Self::Server(tool.server.to_string(), tool.tool.clone()))
            }
            // No file gives these tools another name.
            ToolSource::Bytes(_) | ToolSource::Native => None,
        }
    }
}

/// Applies the user config to all names of a tool: its rates count the calls by all names together,
/// its approval rules apply to each name, and a workspace's name for a tool that it turns off is
/// off.
pub(crate) fn share(context: &Context<'_>, tools: &mut BTreeMap<ToolName, ConfiguredTool>) {
    let own = own_tools(context);
    let says = |own: &OwnTool<'_>| {
        let ToolConfig { rate, enable, approve, .. } = own.at.value;
        rate.is_some() || enable.is_some() || approve.is_some()
    };
    let switches = tables(context.configs, |config| config.toolsets.as_ref());
    let mut switches = switches.filter(|(file, _)| file.layer() == Layer::User);
    if !own.values().any(says) && switches.next().is_none() {
        return;
    }
    let identities: BTreeMap<_, _> =
        tools.iter().filter_map(|(name, tool)| Some((name.clone(), Identity::of(tool)?))).collect();
    // The tool that the user config means by a name, otherwise the tool that the name refers to.
    let meant = |name: &ToolName, own: &OwnTool<'_>| {
        own.meant.clone().or_else(|| identities.get(name).cloned())
    };
    let rates: Vec<_> = own
        .iter()
        .filter(|(_, own)| own.at.value.rate.is_some())
        .filter_map(|(name, own)| {
            let rate = tools.get(name)?.rates.first()?.clone();
            Some((meant(name, own)?, rate))
        })
        .collect();
    let approvals: Vec<_> = own
        .iter()
        .filter_map(|(name, own)| {
            let origin = own.at.inner(|tool| tool.approve.as_ref())?.origin();
            let mut rules = tools.get(name)?.approve.rules.iter();
            let rule = rules.find(|rule| rule.origin == origin)?.clone();
            Some((meant(name, own)?, rule))
        })
        .collect();
    let off: Vec<_> = own
        .iter()
        .filter_map(|(name, own)| {
            let at = own.at.inner(|tool| tool.enable.as_ref()).filter(|enable| !enable.value)?;
            let reason = tools.get(name)?.disabled.clone()?;
            let origin = at.origin();
            matches!(&reason, Disabled::Tool { origin: by } if *by == origin).then_some((
                meant(name, own)?,
                name.clone(),
                reason,
            ))
        })
        .chain(own_toolsets_off(context))
        .collect();
    for (name, identity) in &identities {
        let Some(tool) = tools.get_mut(name) else { continue };
        let own = own.get(name).filter(|own| own.meant.as_ref() == Some(identity));
        if own.is_none_or(|own| own.at.value.rate.is_none()) {
            let others =
                rates.iter().filter(|(of, rate)| of == identity && rate.counted_as != *name);
            tool.rates.extend(others.map(|(_, rate)| rate.clone()));
        }
        if own.is_none_or(|own| own.at.value.approve.is_none()) {
            let others = approvals.iter().filter(|(of, _)| of == identity);
            for (_, rule) in others {
                if !tool.approve.rules.contains(rule) {
                    tool.approve.rules.push(rule.clone());
                }
            }
        }
        let other = off.iter().find(|(of, other, _)| of == identity && other != name);
        if let (None, Some((_, other, reason))) = (own, other) {
            let (other, reason) = (other.clone(), Box::new(reason.clone()));
            tool.disabled = Some(Disabled::Alias { other, reason });
        }
    }
}

/// Returns all names of the tool that the user config means by a name, or that the name refers to.
pub(crate) fn names_of_same(
    context: &Context<'_>,
    name: &ToolName,
    tools: &BTreeMap<ToolName, ConfiguredTool>,
) -> Vec<ToolName> {
    let own = own_tools(context).remove(name).and_then(|own| own.meant);
    let identities = [own, tools.get(name).and_then(Identity::of)];
    let is_same = |(_, tool): &(&ToolName, &ConfiguredTool)| {
        Identity::of(tool).is_some_and(|it| identities.contains(&Some(it)))
    };
    tools.iter().filter(is_same).map(|(name, _)| name.clone()).collect()
}

/// Returns the tables of the user config.
fn own_tools<'a>(context: &Context<'a>) -> BTreeMap<ToolName, OwnTool<'a>> {
    let tables = tables(context.configs, |config| config.tools.as_ref());
    let own = merge(tables.filter(|(file, _)| file.layer() == Layer::User));
    let own = own.into_iter().filter_map(|parts| {
        let part = parts.first()?;
        let name = ToolName::new(part.key.value).ok()?;
        let meant = meant(context, &name, part.at.value);
        Some((name, OwnTool { at: part.at, meant }))
    });
    own.collect()
}

fn meant(context: &Context<'_>, name: &ToolName, table: &ToolConfig) -> Option<Identity> {
    if let Some(Written { value: SourceConfig::Server(text), .. }) = &table.source {
        let (server, tool) = text.split_once('/')?;
        return Some(Identity::Server(server.to_owned(), tool.to_owned()));
    }
    let is_local = table.source.as_ref().is_some_and(|source| source.value == SourceConfig::Local);
    if is_local || table.wasm.is_some() || table.replaces.is_some() {
        let path = context.bases.absolute(&table.wasm.as_ref()?.value).ok()?;
        return Some(Identity::of_component(&path));
    }
    let script = table.script.as_ref().map_or(name.as_str(), |written| &written.value);
    if table.script.is_some() || context.scripts.contains_key(script) {
        return Some(Identity::Script(script.into()));
    }
    let builtin = table.builtin.as_ref().map_or(name.as_str(), |written| &written.value);
    if let Some(builtin) = context.named(builtin) {
        return Some(Identity::Builtin(builtin.name.to_owned()));
    }
    let tool = context.offers.named(name.as_str())?;
    Some(Identity::Server(tool.server.to_string(), tool.tool.clone()))
}

/// Returns the built-ins whose toolsets the user config switches off and no other file switches on
/// again.
fn own_toolsets_off(context: &Context<'_>) -> Vec<(Identity, ToolName, Disabled)> {
    let toolsets = &context.switches.toolsets;
    let is_own = |toolset: &str| {
        let origin = toolsets.switches.get(toolset).map(|switch| &switch.origin);
        let tables = tables(context.configs, |config| config.toolsets.as_ref());
        tables.filter(|(file, _)| file.layer() == Layer::User).any(|(file, table)| {
            let mut places = table.switches().into_iter().filter(|(name, _)| *name == toolset);
            places.any(|(_, at)| at.as_ref().map(|at| at.at(file).origin()).as_ref() == origin)
        })
    };
    let off = context.builtins.iter().filter_map(|builtin| {
        let reason = toolsets.disabled(builtin.toolset).filter(|_| is_own(builtin.toolset))?;
        let name = ToolName::new(builtin.name).ok()?;
        Some((Identity::Builtin(builtin.name.to_owned()), name, reason))
    });
    off.collect()
}
