//! A tool before it is resolved: the files that describe it, and the tool that its name refers to.

use std::collections::BTreeMap;

use kitbag_base::text::nearest;
use kitbag_contract::ToolName;
use kitbag_policy::Rates;
use serde_json::Value;

use super::names::{shadows_builtin, two_tools};
use super::scripts::{self, Script};
use super::{builtins, local, toolsets, untrusted_tools};
use crate::config::{ConfiguredTool, ToolRate, ToolSource};
use crate::format::key::KeyPath;
use crate::format::span::{At, Part, all, copied, last, merge};
use crate::format::{SourceConfig, ToolConfig};
use crate::layers::limits::EffectiveLimits;
use crate::layers::origin::{Origin, Sourced};
use crate::layers::toolsets::Disabled;
use crate::read::file::Layer;
use crate::read::sources::PYTHON;
use crate::read::{FoundScript, FoundTool};
use crate::report::text::{did_you_mean, user_only};
use crate::report::{Problem, Report, Span};
use crate::resolve::context::Context;
use crate::resolve::grants::beyond::{Code, Grantee};
use crate::resolve::parameters::value::json;
use crate::resolve::user::approve;
use crate::resolve::{grants, limits};

pub(super) struct Candidate<'a> {
    pub(super) name: &'a ToolName,
    pub(super) found: Option<&'a FoundTool>,
    pub(super) script: Script<'a>,
    manifest: Option<Part<'a, ToolConfig>>,
    /// The tables with its name, the weakest first.
    pub(super) tables: Vec<Part<'a, ToolConfig>>,
    /// The same tables, after the manifest or the header of a script.
    pub(super) parts: Vec<Part<'a, ToolConfig>>,
}

impl<'a> Candidate<'a> {
    pub(super) fn new(
        context: &Context<'a>,
        name: &'a ToolName,
        found: Option<&'a FoundTool>,
        script: Script<'a>,
        tables: Vec<Part<'a, ToolConfig>>,
    ) -> Self {
        let part = |(file, config): &'a (usize, ToolConfig)| {
            let (file, span) = (&context.files[*file], Span::default());
            Part {
                key: At { file, span, value: name.as_str() },
                at: At { file, span, value: config },
            }
        };
        let manifest = found.and_then(|found| found.manifest.as_ref()).map(part);
        let said = match script {
            Script::Found(script) => &script.says[..],
            Script::None | Script::Unknown => &[],
        };
        let own = manifest.into_iter().chain(said.iter().map(part));
        let parts = own.chain(tables.iter().copied()).collect();
        Self { name, found, script, manifest, tables, parts }
    }

    /// Returns the tool. `None`: its source is invalid, which was reported. `limits` are those of a
    /// tool without limits of its own.
    pub(super) fn resolve(
        &self,
        context: &Context<'_>,
        limits: &EffectiveLimits,
        report: &mut Report,
    ) -> Option<ConfiguredTool> {
        let Self { name, parts, .. } = self;
        let tools = KeyPath::ROOT.key("tools");
        let path = tools.key(name.as_str());
        check_manifest(self, report);
        check_own_keys(context, self, report);
        let source = self.source(context, &path, report);
        let builtin = match source.as_ref().map(|source| &source.value) {
            Some(ToolSource::Builtin { name }) => context.named(&name.value),
            _ => None,
        };
        // By default a script has the access of `python`.
        let is_script = matches!(&source, Some(Sourced { value: ToolSource::Script(_), .. }));
        let python = context.named(PYTHON).filter(|_| is_script);
        let enable = copied(parts, |tool| tool.enable.as_ref());
        let mut layers: Vec<_> = all(parts, |tool| tool.grants.as_ref()).collect();
        let disabled = match (builtin, &enable) {
            (Some(builtin), enable) => {
                let is_untrusted = context.is_untrusted();
                let counts = |at: &&At<'_, _>| !is_untrusted || at.file.layer() == Layer::User;
                let counting: Vec<_> = layers.iter().filter(counts).copied().collect();
                toolsets::disabled(context, builtin, enable.as_ref(), &counting)
            }
            (None, Some(Sourced { value: false, origin })) => {
                Some(Disabled::Tool { origin: origin.clone() })
            }
            (None, _) => (is_script && python.is_none()).then_some(Disabled::NoPython),
        };
        let code = self.code(source.as_ref());
        let is_untrusted = context.is_untrusted() && code == Code::Workspace && builtin.is_none();
        if is_untrusted {
            layers.clear();
        }
        let asks = builtin.or(python);
        let grantee = Grantee { name, builtin: asks, code, is_enabled: disabled.is_none() };
        let grants = grants::of_tool(context, grantee, &layers, report);
        let layers = parts.iter().map(|part| part.at);
        let layers = layers.filter_map(|at| Some((at.file, at.value.limits.as_ref()?)));
        let limits = limits::under(context, limits, asks);
        let limits = limits::merged(context, &path.key("limits"), layers, &limits, report);
        let rate = rate(parts, report);
        let counted = |rates| ToolRate { rates, counted_as: (*name).clone() };
        let approve = approve::rules(context, parts, report);
        let answers = answers(parts, report);
        let tool = ConfiguredTool {
            name: (*name).clone(),
            source: source?,
            enable: enable.unwrap_or(Sourced::default(true)),
            toolset: builtin.map(|builtin| builtin.toolset.to_owned()),
            disabled,
            title: copied(parts, |tool| tool.title.as_ref()),
            description: copied(parts, |tool| tool.description.as_ref()),
            grants,
            limits: limits.under(context.overrides),
            rates: rate.map(counted).into_iter().collect(),
            approve,
            answers,
            mask: copied(parts, |tool| tool.mask.as_ref()).unwrap_or(Sourced::default(true)),
        };
        Some(if is_untrusted { untrusted_tools::turned_off(context, tool) } else { tool })
    }

    fn source(
        &self,
        context: &Context<'_>,
        path: &KeyPath<'_>,
        report: &mut Report,
    ) -> Option<Sourced<ToolSource>> {
        let (value, origin) = match self.script {
            _ if context.bytes_tools.contains(self.name) && !self.is_named_script() => {
                let bytes = local::bytes(context, self, path, report);
                (ToolSource::Bytes(bytes), Origin::Caller)
            }
            Script::Unknown => return None,
            Script::Found(script) => {
                let script = scripts::tool(context, self, script, path, report);
                let origin = script.path.origin.clone();
                (ToolSource::Script(script), origin)
            }
            Script::None => {
                let kind = kind(context, self, path, report);
                let source = match kind.value {
                    SourceConfig::Builtin => builtins::builtin(context, self, path, report)?,
                    SourceConfig::Local => {
                        ToolSource::Local(local::local(context, self, path, report)?)
                    }
                    // Only a component in `.kitbag/tools` gets here, which was reported.
                    SourceConfig::Server(_) => return None,
                };
                (source, kind.origin)
            }
        };
        Some(Sourced { value, origin })
    }

    fn is_named_script(&self) -> bool {
        matches!(self.script, Script::Found(FoundScript { is_named: true, .. }))
    }

    fn code(&self, source: Option<&Sourced<ToolSource>>) -> Code {
        let is_of_workspace = match source.map(|source| &source.value) {
            Some(ToolSource::Script(_)) => !self.is_named_script(),
            Some(ToolSource::Local(_)) => self.is_of_workspace(),
            Some(ToolSource::Builtin { name }) => {
                name.value != self.name.as_str() && !self.is_builtin_of_user()
            }
            Some(ToolSource::Bytes(_) | ToolSource::Native | ToolSource::Server(_)) | None => false,
        };
        if is_of_workspace { Code::Workspace } else { Code::Own }
    }

    /// Returns the parts from the file that determines the kind of the tool, and from stronger
    /// files. A weaker file may mean another kind of tool by the name, which is not a mistake.
    pub(super) fn said_of_kind(&self) -> Vec<Part<'a, ToolConfig>> {
        let by = last(&self.tables, |tool| tool.source.as_ref()).map(|at| at.file.layer());
        let parts = self.parts.iter().copied();
        parts.filter(|part| by.is_none_or(|by| part.at.file.layer() >= by)).collect()
    }

    /// Returns whether the user config selects the built-in for the name, and no other file selects
    /// a different one.
    fn is_builtin_of_user(&self) -> bool {
        let mut user = self.tables.iter().filter(|part| part.at.file.layer() == Layer::User);
        let own = user.find_map(|part| part.at.value.builtin.as_ref());
        let builtin = last(&self.tables, |tool| tool.builtin.as_ref());
        own.is_some_and(|own| builtin.is_some_and(|builtin| *builtin.value == own.value))
    }

    /// Returns whether the workspace contains its component or names its path.
    pub(super) fn is_of_workspace(&self) -> bool {
        let wasm = last(&self.tables, |tool| tool.wasm.as_ref());
        self.found.is_some() || wasm.is_none_or(|wasm| wasm.file.layer() != Layer::User)
    }
}

/// Returns whether the tool is built in, with the origin of that decision.
fn kind(
    context: &Context<'_>,
    candidate: &Candidate<'_>,
    path: &KeyPath<'_>,
    report: &mut Report,
) -> Sourced<SourceConfig> {
    let Candidate { name, found, tables, parts, .. } = candidate;
    let replaces = last(parts, |tool| tool.replaces.as_ref());
    let is_builtin = context.named(name.as_str()).is_some()
        && replaces.is_none_or(|replaces| replaces.value != name.as_str());
    let source = last(tables, |tool| tool.source.as_ref());
    if let Some(found) = found {
        let origin = Origin::Found { path: found.shown.clone() };
        if let Some(source) = source.filter(|source| *source.value != SourceConfig::Local) {
            report.at(source, two_tools(name, &found.shown));
        }
        return Sourced { value: SourceConfig::Local, origin };
    }
    if let Some(source) = source {
        if is_builtin && *source.value == SourceConfig::Local {
            report.at(source, shadows_builtin(name));
        }
        return source.sourced(source.value.clone());
    }
    if is_builtin {
        return Sourced::default(SourceConfig::Builtin);
    }
    if let Some(wasm) = last(tables, |tool| tool.wasm.as_ref()) {
        return wasm.sourced(SourceConfig::Local);
    }
    // A table of the user config for an absent tool is not a mistake.
    let is_wrong = |part: &&Part<'_, ToolConfig>| {
        part.at.file.layer() != Layer::User || part.at.value.makes_tool()
    };
    let at = tables.iter().find(is_wrong).unwrap_or(&tables[0]).at;
    if !context.invalid.covers(&path.key("source")) {
        let hint = did_you_mean(nearest(name.as_str(), context.builtin_names()));
        let problem = Problem::from(format!(
            "tool `{name}` has no source; add `wasm`, `script`, or `source = \"builtin\"`"
        ));
        report.at(at, problem.hint(hint));
    }
    at.sourced(SourceConfig::Local)
}

/// Refuses keys that repeat the file name of the component beside the manifest.
fn check_manifest(candidate: &Candidate<'_>, report: &mut Report) {
    let Some(Part { at, .. }) = candidate.manifest else { return };
    for (key, span) in at.value.source_keys() {
        let problem = format!(
            "a manifest may not have `{key}`: it describes the `{}.wasm` next to it; remove the \
             key",
            candidate.name
        );
        report.span(at.file, span, problem);
    }
}

/// Refuses `dev` and `mask` in a file of a workspace: only the user can build a tool or show its
/// unmasked output.
pub(super) fn check_own_keys(
    context: &Context<'_>,
    candidate: &Candidate<'_>,
    report: &mut Report,
) {
    let dev = all(&candidate.parts, |tool| tool.dev.as_ref()).map(|at| ("dev", at));
    let mask = all(&candidate.parts, |tool| tool.mask.as_ref()).map(|at| ("mask", at));
    for (key, at) in dev.chain(mask) {
        if at.file.layer() != Layer::User {
            report.at(at, user_only(key, context.own_file));
        }
    }
}

/// Returns the rate of the tool: the lowest rate of all layers, for each period. A workspace can
/// only lower the user's rates.
pub(super) fn rate(parts: &[Part<'_, ToolConfig>], report: &mut Report) -> Option<Sourced<Rates>> {
    let mut effective: Option<Sourced<Rates>> = None;
    for at in all(parts, |tool| tool.rate.as_ref()) {
        let rates: Rates = match at.value.parse() {
            Ok(rates) => rates,
            Err(error) => {
                report.at(at, error);
                continue;
            }
        };
        effective = Some(match effective {
            None => at.sourced(rates),
            Some(weaker) => {
                let value = weaker.value.and(&rates);
                // The origin is the last layer that lowered the rate.
                if value == weaker.value { weaker } else { at.sourced(value) }
            }
        });
    }
    effective
}

/// Returns the preset answers, by the question's id. An answer is one value, so a stronger layer
/// replaces it as a whole.
pub(super) fn answers(
    parts: &[Part<'_, ToolConfig>],
    report: &mut Report,
) -> BTreeMap<String, Sourced<Value>> {
    let tables =
        parts.iter().filter_map(|part| Some((part.at.file, part.at.value.answers.as_ref()?)));
    let mut answers = BTreeMap::new();
    for layers in merge(tables) {
        for Part { key, at } in layers {
            match json(&at.value.0) {
                Ok(value) => {
                    answers.insert(key.value.to_owned(), at.sourced(value));
                }
                Err(problem) => report.at(at, problem),
            }
        }
    }
    answers
}
