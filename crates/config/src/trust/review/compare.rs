//! The requests of an edited workspace beyond those that a person trusted.
//!
//! Every part of the configuration is named here, so that a new part needs a decision. A part is a
//! request, a restriction, or neither: text that only a person reads, or a setting that only the
//! user config has.

use std::collections::{BTreeMap, BTreeSet};

use kitbag_base::text::shown;
use kitbag_contract::{ToolName, UnknownArguments};
use kitbag_fs_guard::canonical;
use kitbag_policy::ApprovalRule;
use kitbag_state::trust::{TrustRecord, TrustedPlace};

use super::{TrustChange, TrustChanges, TrustSubject, server, tool};
use crate::config::{Config, ConfiguredTool, SecretFiles, ToolSource, Topic};
use crate::layers::limits::EffectiveLimits;
use crate::trust::destinations::{READ, READ_AND_WRITE, by_server, by_tool, by_topic};

/// Returns the difference between an edited configuration and the trusted one. Both were resolved
/// under the same user config.
pub(super) fn between(now: &Config, then: &Config) -> TrustChanges {
    // All fields are listed, so that a new field needs a decision.
    let Config {
        // Requests and restrictions of a workspace.
        limits,
        secret_files,
        server_memory,
        unknown_arguments,
        servers,
        tools,
        topics,
        // The effects are visible in the tools that it turns on.
        toolsets: _,
        // Settings of the user config, the environment, or the caller.
        trust: _,
        state: _,
        ceiling: _,
        grant_ceiling: _,
        deny: _,
        network: _,
        audit: _,
        approve_default: _,
        approve_classes: _,
        output: _,
        secrets: _,
        secret_store: _,
        allowed_leaks: _,
        session_idle: _,
        // Gives no access.
        discovery: _,
        people: _,
        own_file: _,
        private: _,
        protected: _,
        home: _,
        // The path of the workspace, and the files that were read.
        root: _,
        has_workspace: _,
        ignored: _,
        workspace_trust: _,
        content: _,
        review: _,
        files: _,
        tool_links: _,
        through_links: _,
        // A tool that may lose a restriction because of a mistake is off.
        broken: _,
        // Warnings for a person.
        warnings: _,
        unmatched: _,
        absent: _,
        registries: _,
        state_path: _,
    } = now;
    let mut changes = TrustChanges::default();
    for name in servers.keys().chain(then.servers.keys()).collect::<BTreeSet<_>>() {
        server::between(name, servers.get(name), then.servers.get(name), &mut changes);
    }
    for name in tools.keys().chain(then.tools.keys()).collect::<BTreeSet<_>>() {
        of_tool(name, (tools.get(name), now), (then.tools.get(name), then), &mut changes);
    }
    for id in topics.keys().chain(then.topics.keys()).collect::<BTreeSet<_>>() {
        of_topic(id, topics.get(id), then.topics.get(id), &mut changes);
    }
    let SecretFiles { names, except: _ } = secret_files;
    for name in &then.secret_files.names.value {
        if !names.value.contains(name) {
            let text = format!("`[secret_files]` no longer has `{}`", shown(name));
            changes.loosened.push(of_workspace(text));
        }
    }
    let (memory, trusted) = (server_memory.value, then.server_memory.value);
    if memory > trusted {
        let text = format!("`[serve] memory` is {memory} and was {trusted}");
        changes.loosened.push(of_workspace(text));
    }
    if unknown_arguments.value != then.unknown_arguments.value
        && then.unknown_arguments.value == UnknownArguments::Refuse
    {
        let text = "`[serve] unknown_arguments` is no longer `error`".to_owned();
        changes.loosened.push(of_workspace(text));
    }
    of_limits(limits, now, then, &mut changes);
    changes
}

/// Returns the tools and topics with paths that lead elsewhere than at the time of trust: the text
/// of a file can be unchanged while a link on the way has changed.
pub(super) fn moved(now: &Config, then: &Config, record: &TrustRecord) -> Vec<TrustChange> {
    let is_trusted = |place: &TrustedPlace| {
        record.places.iter().any(|trusted| {
            let holds = trusted.access == place.access
                || (trusted.access == READ_AND_WRITE && place.access == READ);
            trusted.by == place.by && trusted.path == place.path && holds
        })
    };
    let (places, again) = (now.named_places(), then.named_places());
    let tools = now.tools.values().filter(|tool| tool.is_enabled());
    let tools = tools.map(|tool| (by_tool(&tool.name), TrustSubject::Tool(tool.name.clone())));
    let topics = now.topics.values().filter(|topic| topic.enable.value);
    let topics = topics.map(|topic| (by_topic(&topic.id), TrustSubject::Topic(topic.id.clone())));
    let servers = now.servers.values().filter(|server| server.address.is_some());
    let servers =
        servers.map(|server| (by_server(&server.name), TrustSubject::Server(server.name.clone())));
    let mut moved = Vec::new();
    for (by, subject) in servers.chain(tools).chain(topics) {
        let of_subject = |place: &&TrustedPlace| place.by == by;
        let other = places.iter().filter(of_subject).find(|place| !is_trusted(place));
        // The trusted paths would now lead elsewhere, possibly to a place without any link.
        let is_same = record.places.iter().filter(of_subject).eq(again.iter().filter(of_subject));
        let text = match other {
            Some(place) => format!("it leads to `{}` ({})", shown(&place.path), place.access),
            None if is_same => continue,
            None => "one of its paths leads elsewhere".to_owned(),
        };
        moved.push(TrustChange { subject, text });
    }
    moved
}

fn of_workspace(text: String) -> TrustChange {
    TrustChange { subject: TrustSubject::Workspace, text }
}

fn of_tool(
    name: &ToolName,
    (now, now_config): (Option<&ConfiguredTool>, &Config),
    (then, then_config): (Option<&ConfiguredTool>, &Config),
    changes: &mut TrustChanges,
) {
    let change = |text: String| {
        let subject = TrustSubject::Tool(name.clone());
        TrustChange { subject, text }
    };
    let is_on = |tool: &&ConfiguredTool| tool.is_enabled();
    match (now.filter(is_on), then.filter(is_on)) {
        (None, None) => {}
        (None, Some(_)) => changes.removed.push(change("it is off or was removed".to_owned())),
        (Some(now), None) if then.is_some() => {
            let brief = brief(now);
            changes.loosened.push(change(format!("it was off, is now on, and {brief}")));
        }
        (Some(now), None) => {
            let brief = brief(now);
            changes.added.push(change(format!("it is new and {brief}")));
        }
        (Some(now), Some(then)) => {
            let has_conditions =
                has_conditions(now, &now_config.tools) || has_conditions(then, &then_config.tools);
            let tool::ToolChanges { added, removed, loosened } =
                tool::between(now, then, has_conditions, &then_config.secret_files.secret_names());
            changes.added.extend(added.into_iter().map(change));
            changes.removed.extend(removed.into_iter().map(change));
            changes.loosened.extend(loosened.into_iter().map(change));
        }
    }
}

/// Describes the access of a tool in a few words.
fn brief(tool: &ConfiguredTool) -> String {
    match &tool.source.value {
        ToolSource::Server(tool) => {
            format!("calls `{}` of the server `{}`", shown(&tool.tool), tool.server)
        }
        _ => tool.grants.value.brief(&[]),
    }
}

/// Returns whether a rule compares the arguments of a tool with patterns: an approval rule, or an
/// alias by which another tool calls it. Such a pattern can name a path as the tool sees it.
fn has_conditions(tool: &ConfiguredTool, tools: &BTreeMap<ToolName, ConfiguredTool>) -> bool {
    let is_conditional = |rule: &ApprovalRule| matches!(rule, ApprovalRule::When(_));
    tool.approve.rules.iter().any(|rule| is_conditional(&rule.value))
        || tools
            .values()
            .flat_map(|other| other.grants.value.tools.iter())
            .any(|(_, grant)| grant.tool == tool.name && !grant.conditions.is_empty())
}

fn of_topic(id: &str, now: Option<&Topic>, then: Option<&Topic>, changes: &mut TrustChanges) {
    let change = |text: String| {
        let subject = TrustSubject::Topic(id.to_owned());
        TrustChange { subject, text }
    };
    let is_on = |topic: &&Topic| topic.enable.value;
    let (now, then) = match (now.filter(is_on), then.filter(is_on)) {
        (None, None) => return,
        (None, Some(_)) => {
            return changes.removed.push(change("it is off or was removed".to_owned()));
        }
        (Some(_), None) if then.is_some() => {
            return changes.loosened.push(change("it was off and is now on".to_owned()));
        }
        (Some(now), None) => {
            let path = now.subjects.value.to_string_lossy();
            return changes.added.push(change(format!("it is new and reads `{path}`")));
        }
        (Some(now), Some(then)) => (now, then),
    };
    let Topic {
        id: _,
        subjects,
        // This follows from the directory and the record.
        within: _,
        enable: _,
        // Text, which a workspace may also set before it is trusted.
        title: _,
        introduction: _,
        description: _,
        skills: _,
        learned,
        include,
        disabled,
        entries: _,
    } = now;
    if canonical(&subjects.value) != canonical(&then.subjects.value) {
        let path = subjects.value.to_string_lossy();
        changes.added.push(change(format!("it reads `{path}`")));
    }
    for glob in learned.value.iter().filter(|glob| !then.learned.value.contains(glob)) {
        changes.added.push(change(format!("`learned` has `{glob}`")));
    }
    for glob in include.value.iter().filter(|glob| !then.include.value.contains(glob)) {
        changes.added.push(change(format!("`include` has `{glob}`")));
    }
    for glob in then.include.value.iter().filter(|glob| !include.value.contains(glob)) {
        changes.removed.push(change(format!("`include` had `{glob}`")));
    }
    for glob in then.disabled.value.iter().filter(|glob| !disabled.value.contains(glob)) {
        changes.loosened.push(change(format!("`disabled` no longer has `{glob}`")));
    }
}

/// Adds the limits that are higher: those of all tools first, then those of single tools.
fn of_limits(limits: &EffectiveLimits, now: &Config, then: &Config, changes: &mut TrustChanges) {
    let mut of_all = Vec::new();
    let _ = limits.clone().at_most(&then.limits, &mut of_all);
    for raised in &of_all {
        changes.loosened.push(of_workspace(format!("limit {raised}")));
    }
    for (name, tool) in now.tools.iter().filter(|(_, tool)| tool.is_enabled()) {
        let Some(then) = then.tools.get(name).filter(|then| then.is_enabled()) else { continue };
        let mut raised = Vec::new();
        let _ = tool.limits.clone().at_most(&then.limits, &mut raised);
        for raised in raised.iter().filter(|raised| !of_all.contains(raised)) {
            changes.loosened.push(of_workspace(format!("limit {raised}, for tool `{name}`")));
        }
    }
}
