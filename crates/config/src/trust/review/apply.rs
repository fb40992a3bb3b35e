//! Limits an edited workspace to the access that a person trusted.
//!
//! A tool or topic that requests more is off. Higher limits and weaker restrictions of the whole
//! workspace do not take effect: their trusted values stay.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kitbag_contract::UnknownArguments;
use kitbag_state::trust::{TrustRecord, WorkspaceEdit};

use super::{TrustChange, TrustReview, TrustSubject, compare};
use crate::config::{Config, ConfiguredTool, DIRECTORY, LOCK, TOOLS, ToolSource};
use crate::layers::origin::Sourced;
use crate::layers::toolsets::Disabled;

impl Config {
    /// Compares the configuration with the trusted one, and turns nothing off.
    ///
    /// Returns the additional requests that result only from paths that lead elsewhere.
    pub(crate) fn compare_with(
        &mut self,
        trusted: &Self,
        record: &TrustRecord,
    ) -> Vec<TrustChange> {
        let mut review = self.review.take().unwrap_or_default();
        review.changes = compare::between(self, trusted);
        let moved = compare::moved(self, trusted, record);
        let is_news = |change: &TrustChange| !review.changes.grows(&change.subject);
        let moved: Vec<_> = moved.into_iter().filter(is_news).collect();
        review.changes.added.extend(moved.iter().cloned());
        self.review = Some(review);
        moved
    }

    /// Turns off tools and topics that request more than was trusted. `record` has the targets of
    /// paths at the time of trust.
    pub(crate) fn keep_to(&mut self, trusted: &Self, record: &TrustRecord) {
        let moved = self.compare_with(trusted, record);
        let mut review = self.review.take().unwrap_or_default();
        let cause = |review: &TrustReview, subject: &TrustSubject, own: &[String]| {
            let is_moved = moved.iter().any(|change| change.subject == *subject);
            review.changes.grows(subject).then(|| match is_moved {
                true => WorkspaceEdit::Places.to_string(),
                false => review.cause(own),
            })
        };
        let root = self.root.value.clone();
        let (mut off, mut freed) = (Vec::new(), BTreeSet::new());
        let mut off_servers = BTreeMap::new();
        for (name, server) in &mut self.servers {
            let subject = TrustSubject::Server(name.clone());
            let Some(cause) = cause(&review, &subject, &[]) else { continue };
            let reason = Disabled::Edited { cause: cause.clone() };
            off_servers.insert(name.clone(), reason.clone());
            server.disabled = Some(reason);
            off.push((subject, cause));
        }
        for (name, tool) in &mut self.tools {
            if let ToolSource::Server(of) = &tool.source.value
                && let Some(reason) = off_servers.get(&of.server)
            {
                let (server, reason) = (of.server.clone(), Box::new(reason.clone()));
                tool.turn_off(Disabled::Server { server, reason });
                continue;
            }
            let subject = TrustSubject::Tool(name.clone());
            match cause(&review, &subject, &own_files(tool, &root)) {
                Some(cause) => {
                    freed.extend(taken_builtin(&tool.source.value));
                    tool.turn_off(Disabled::Edited { cause: cause.clone() });
                    off.push((subject, cause));
                }
                None => {
                    if let Some(trusted) = trusted.tools.get(name) {
                        let limits = tool.limits.clone();
                        tool.limits = limits.at_most(&trusted.limits, &mut Vec::new());
                    }
                }
            }
        }
        for (id, topic) in &mut self.topics {
            let subject = TrustSubject::Topic(id.clone());
            if let Some(cause) = cause(&review, &subject, &[]) {
                topic.enable = Sourced { value: false, origin: topic.subjects.origin.clone() };
                off.push((subject, cause));
            }
        }
        self.restore(trusted, &freed);
        self.limits = self.limits.clone().at_most(&trusted.limits, &mut Vec::new());
        if self.server_memory.value > trusted.server_memory.value {
            self.server_memory = trusted.server_memory.clone();
        }
        if trusted.unknown_arguments.value == UnknownArguments::Refuse {
            self.unknown_arguments = trusted.unknown_arguments.clone();
        }
        let names = &mut self.secret_files.names.value;
        for name in &trusted.secret_files.names.value {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        review.off = off;
        self.review = Some(review);
    }

    /// Restores built-ins that a tool replaced which is now off.
    fn restore(&mut self, trusted: &Self, freed: &BTreeSet<String>) {
        for (name, tool) in &trusted.tools {
            let ToolSource::Builtin { name: own } = &tool.source.value else { continue };
            let is_on = tool
                .toolset
                .as_deref()
                .is_none_or(|toolset| self.toolsets.disabled(toolset).is_none());
            if freed.contains(&own.value) && is_on && !self.tools.contains_key(name) {
                self.tools.insert(name.clone(), tool.clone());
            }
        }
    }
}

fn own_files(tool: &ConfiguredTool, root: &Path) -> Vec<String> {
    let path = match &tool.source.value {
        ToolSource::Local(local) => &local.wasm.value,
        ToolSource::Script(script) => &script.path.value,
        ToolSource::Server(_) => return vec![format!("{DIRECTORY}/{LOCK}")],
        ToolSource::Builtin { .. } | ToolSource::Bytes(_) | ToolSource::Native => {
            return Vec::new();
        }
    };
    let inside = path.strip_prefix(root).unwrap_or(path);
    let manifest = inside.starts_with(Path::new(DIRECTORY).join(TOOLS));
    let manifest = manifest.then(|| inside.with_extension("toml"));
    let paths = [Some(inside.to_owned()), manifest].into_iter().flatten();
    paths.map(|path| path.to_string_lossy().into_owned()).collect()
}

/// Returns the built-in that is missing under its own name because of a tool.
fn taken_builtin(source: &ToolSource) -> Option<String> {
    match source {
        ToolSource::Builtin { name } => Some(name.value.clone()),
        source => Some(source.replaces()?.value.clone()),
    }
}
