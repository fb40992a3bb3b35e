//! Tools: those that are built in, those in `.kitbag/tools`, and those that a
//! table names.

mod absent;
mod aliases;
mod scripts;
pub(in crate::resolve) mod served;
pub(in crate::resolve) mod switches;
mod toolsets;
mod untrusted;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_base::text::nearest;
use kitbag_contract::ToolName;
use kitbag_policy::Rates;
use serde_json::Value;

use crate::config::{
    BytesTool, ConfiguredGrants, ConfiguredTool, LocalTool, Parameters, ToolRate, ToolSource,
};
use crate::format::key::KeyPath;
use crate::format::spanned::{At, Part, Span, Written, all, copied, last, merge};
use crate::format::{ConfigFile, SourceConfig, ToolConfig};
use crate::layers::limits::EffectiveLimits;
use crate::layers::origin::{Origin, Sourced};
use crate::layers::path::is_fixed;
use crate::layers::toolsets::Disabled;
use crate::read::file::{Layer, SourceFile};
use crate::read::sources::{BuiltinTool, ComponentTool, PYTHON};
use crate::read::{FoundScript, FoundTool};
use crate::report::text::{did_you_mean, relative_path, shown_path, user_only};
use crate::report::{Piece, Problem};
use crate::resolve::grants::beyond::Code;
use crate::resolve::parameters::ParameterRole;
use crate::resolve::parameters::value::json;
use crate::resolve::resolver::Resolver;
use crate::resolve::tools::scripts::{Script, script_key};

/// What is known of a tool before it is resolved.
struct Candidate<'a> {
    name: &'a ToolName,
    found: Option<&'a FoundTool>,
    script: Script<'a>,
    manifest: Option<Part<'a, ToolConfig>>,
    /// What the tables of its name say, the weakest first.
    tables: Vec<Part<'a, ToolConfig>>,
    /// The same, over the manifest, or what a script says of itself.
    parts: Vec<Part<'a, ToolConfig>>,
}

impl<'a> Resolver<'a> {
    /// All tools. `limits` are those of a tool that has none of its own.
    pub(in crate::resolve) fn tools(
        &mut self,
        configs: &[(&SourceFile, &ConfigFile)],
        found: &BTreeMap<ToolName, FoundTool>,
        component: Option<ComponentTool>,
        named_script: Option<&(ToolName, FoundScript)>,
        limits: &EffectiveLimits,
    ) -> BTreeMap<ToolName, ConfiguredTool> {
        let mut tables: HashMap<ToolName, Vec<Part<'_, ToolConfig>>> = HashMap::new();
        for parts in
            merge(configs.iter().filter_map(|(file, config)| Some((*file, config.tools.as_ref()?))))
        {
            match ToolName::new(parts[0].key.value) {
                Ok(name) => {
                    tables.insert(name, parts);
                }
                Err(error) => {
                    self.report.enter(Piece::Tool(parts[0].key.value.to_owned()));
                    self.report.at(parts[0].key, error);
                }
            }
        }
        let mut tools = BTreeMap::new();
        let taken = self.taken_scripts(tables.iter());
        for (name, found) in self.listed_components(found).collect::<Vec<_>>() {
            let tables = tables.remove(name).unwrap_or_default();
            self.report.enter(Piece::Tool(name.to_string()));
            self.check_no_script(name, &tables, "it is a component in `.kitbag/tools`");
            let is_unused = self.is_unused(name, &found.shown, Some(&found.wasm), &tables);
            let manifest = found.manifest.as_ref().map(|(_, config)| config);
            let is_left_out = is_unused || self.shadows(name, &found.shown, manifest, &tables);
            let found = (!is_left_out).then_some(found);
            let candidate = Candidate::new(name, found, Script::None, tables, self.files);
            tools.extend(self.tool(&candidate, limits).map(|tool| (name.clone(), tool)));
        }
        for (name, script) in self.listed_scripts(self.scripts, found).collect::<Vec<_>>() {
            let own = tables.remove(name);
            if own.is_none() && taken.contains(&name) {
                continue;
            }
            let own = own.unwrap_or_default();
            self.report.enter(Piece::Tool(name.to_string()));
            if let Some(found) = found.get(name) {
                let origin = Origin::Found { path: script.shown.clone() };
                let piece = (Layer::Manifest, Piece::Tool(name.to_string()));
                self.report.piece(origin, two_tools(name, &found.shown), piece);
                continue;
            }
            if let Some(at) = script_key(&own)
                && at.value != name.as_str()
            {
                self.report.at(at, two_tools(name, &script.shown));
                continue;
            }
            let is_left_out = self.is_unused(name, &script.shown, None, &own)
                || script_key(&own).is_none() && self.shadows(name, &script.shown, None, &own);
            let script = if is_left_out { Script::None } else { Script::Found(script) };
            let candidate = Candidate::new(name, None, script, own, self.files);
            tools.extend(self.tool(&candidate, limits).map(|tool| (name.clone(), tool)));
        }
        for (name, tables) in tables {
            if self.is_absent(&name, &tables) {
                continue;
            }
            self.report.enter(Piece::Tool(name.to_string()));
            let script = self.named_script(&tables);
            let candidate = Candidate::new(&name, None, script, tables, self.files);
            tools.extend(self.tool(&candidate, limits).map(|tool| (name.clone(), tool)));
        }
        for name in self.bytes_tools {
            if !tools.contains_key(name) {
                self.report.enter(Piece::Tool(name.to_string()));
                let candidate = Candidate::new(name, None, Script::None, Vec::new(), self.files);
                tools.extend(self.tool(&candidate, limits).map(|tool| (name.clone(), tool)));
            }
        }
        self.report.enter(Piece::Everything);
        if let Some(ComponentTool { name, wasm }) = component {
            let wasm = Sourced { value: wasm, origin: Origin::Caller };
            let local = ToolSource::Local(LocalTool::new(wasm, None, None));
            let source = Sourced { value: local, origin: Origin::Caller };
            let grants = self.grants(&name, Vec::new(), true, None, Code::Own);
            let tool = ConfiguredTool::of_caller(
                name.clone(),
                source,
                limits.clone().under(self.overrides),
            );
            let approve = self.approve(&[]);
            tools.insert(name, ConfiguredTool { grants, approve, ..tool });
        }
        if let Some((name, script)) = named_script {
            let script = Script::Found(script);
            let candidate = Candidate::new(name, None, script, Vec::new(), self.files);
            tools.extend(self.tool(&candidate, limits).map(|tool| (name.clone(), tool)));
        }
        self.check_replaced_once(&tools);
        self.add_builtins(&mut tools, limits);
        self.aliases(configs, &mut tools);
        tools
    }

    /// Adds the built-ins that no file mentions. One that was given another
    /// name has it instead of its own, and one that is replaced has none, also where that
    /// tool is then taken away.
    fn add_builtins(
        &mut self,
        tools: &mut BTreeMap<ToolName, ConfiguredTool>,
        limits: &EffectiveLimits,
    ) {
        let renamed: HashSet<String> = tools
            .values()
            .filter_map(|tool| match &tool.source.value {
                ToolSource::Builtin { name } => Some(name.value.clone()),
                source => Some(source.replaces()?.value.clone()),
            })
            .chain(std::mem::take(&mut self.replaced))
            .collect();
        let builtins = self.builtins;
        // Most of them ask for one of two things.
        let mut granted: Vec<(bool, &BuiltinTool<'_>, ConfiguredGrants)> = Vec::new();
        for builtin in builtins.iter().filter(|builtin| !renamed.contains(builtin.name)) {
            let name = match ToolName::new(builtin.name) {
                Ok(name) => name,
                Err(error) => {
                    self.report.origin(Origin::Default, error);
                    continue;
                }
            };
            if let Entry::Vacant(vacant) = tools.entry(name.clone()) {
                let own_name = Sourced::default(builtin.name.to_owned());
                let source = Sourced::default(ToolSource::Builtin { name: own_name });
                let disabled = self.disabled(builtin, None, &[]);
                let is_on = disabled.is_none();
                let same = granted.iter().find(|(other_is_on, other, _)| {
                    is_on == *other_is_on
                        && builtin.workspace == other.workspace
                        && builtin.calls == other.calls
                        && builtin.keeps == other.keeps
                        && builtin.given_by_call == other.given_by_call
                });
                let grants = match same {
                    Some((.., grants)) => grants.clone(),
                    None => {
                        let grants =
                            self.grants(&name, Vec::new(), is_on, Some(builtin), Code::Own);
                        granted.push((is_on, builtin, grants.clone()));
                        grants
                    }
                };
                let toolset = Some(builtin.toolset.to_owned());
                let limits = self.under(limits, Some(builtin)).under(self.overrides);
                let tool = ConfiguredTool::of_caller(name, source, limits);
                let approve = self.approve(&[]);
                vacant.insert(ConfiguredTool { toolset, disabled, grants, approve, ..tool });
            }
        }
    }

    fn tool(
        &mut self,
        candidate: &Candidate<'_>,
        limits: &EffectiveLimits,
    ) -> Option<ConfiguredTool> {
        let Candidate { name, parts, .. } = candidate;
        let tools = KeyPath::ROOT.key("tools");
        let path = tools.key(name.as_str());

        self.check_manifest(candidate);
        self.check_own_keys(candidate);
        let enable = copied(parts, |tool| tool.enable.as_ref());
        let is_named =
            matches!(candidate.script, Script::Found(FoundScript { is_named: true, .. }));
        let source = match candidate.script {
            _ if self.bytes_tools.contains(name) && !is_named => {
                let source = self.bytes(candidate, &path);
                Some(Sourced { value: ToolSource::Bytes(source), origin: Origin::Caller })
            }
            Script::Unknown => None,
            Script::Found(script) => {
                let tool = self.script(name, script, &candidate.tables, parts, &path);
                let origin = tool.path.origin.clone();
                Some(Sourced { value: ToolSource::Script(tool), origin })
            }
            Script::None => match self.kind(candidate, &path) {
                kind @ Sourced { value: SourceConfig::Builtin, .. } => self
                    .builtin(candidate, &path)
                    .map(|source| Sourced { value: source, origin: kind.origin }),
                kind @ Sourced { value: SourceConfig::Local, .. } => self
                    .local(candidate, &path)
                    .map(|local| Sourced { value: ToolSource::Local(local), origin: kind.origin }),
            },
        };
        if source.is_none() && !self.is_untrusted() {
            let replaces = last(parts, |tool| tool.replaces.as_ref());
            self.replaced.extend(replaces.map(|at| at.value.clone()));
        }
        let builtin = match &source {
            Some(Sourced { value: ToolSource::Builtin { name }, .. }) => self.named(&name.value),
            _ => None,
        };
        // What a script reaches where nothing is said is what `python` does.
        let python = matches!(&source, Some(Sourced { value: ToolSource::Script(_), .. }))
            .then(|| self.named(PYTHON));
        let grants: Vec<_> = all(parts, |tool| tool.grants.as_ref()).collect();
        let disabled = match (builtin, &enable) {
            (Some(builtin), enable) if self.is_untrusted() => {
                let is_own = |at: &&At<'_, _>| at.file.layer() == Layer::User;
                let own: Vec<_> = grants.iter().filter(is_own).copied().collect();
                self.disabled(builtin, enable.as_ref(), &own)
            }
            (Some(builtin), enable) => self.disabled(builtin, enable.as_ref(), &grants),
            (None, Some(Sourced { value: false, origin })) => {
                Some(Disabled::Tool { origin: origin.clone() })
            }
            (None, _) if python == Some(None) => Some(Disabled::NoPython),
            (None, _) => None,
        };
        let code = match &source {
            Some(Sourced { value: ToolSource::Script(_), .. }) if !is_named => Code::Workspace,
            Some(Sourced { value: ToolSource::Local(_), .. }) if candidate.is_of_workspace() => {
                Code::Workspace
            }
            Some(Sourced { value: ToolSource::Builtin { name: builtin }, .. })
                if builtin.value != name.as_str() && !candidate.is_builtin_of_user() =>
            {
                Code::Workspace
            }
            _ => Code::Own,
        };
        let is_untrusted = self.is_untrusted() && code == Code::Workspace && builtin.is_none();
        let asks = builtin.or(python.flatten());
        let grants = if is_untrusted { Vec::new() } else { grants };
        let grants = self.grants(name, grants, disabled.is_none(), asks, code);
        let layers: Vec<_> = parts
            .iter()
            .filter_map(|part| Some((part.at.file, part.at.value.limits.as_ref()?)))
            .collect();
        let limits = self.under(limits, asks);
        let limits = self.limits(&path.key("limits"), &layers, &limits);
        let rate = self.rate(parts);
        let approve = self.approve(parts);
        let counted = |rates| ToolRate { rates, counted_as: (*name).clone() };
        let answers = self.answers(parts);
        let mask = copied(parts, |tool| tool.mask.as_ref()).unwrap_or(Sourced::default(true));
        let tool = ConfiguredTool {
            name: (*name).clone(),
            source: source?,
            enable: enable.unwrap_or(Sourced::default(true)),
            toolset: builtin.map(|builtin| builtin.toolset.to_owned()),
            disabled,
            title: copied(parts, |tool| tool.title.as_ref()),
            description: copied(parts, |tool| tool.description.as_ref()),
            grants,
            limits: limits.under(self.overrides),
            rates: rate.map(counted).into_iter().collect(),
            approve,
            answers,
            mask,
        };
        Some(if is_untrusted { self.untrusted(tool) } else { tool })
    }

    /// Whether a component or a script of the workspace has a name that stands for another tool
    /// in the user's own file, which counts then: a warning says so.
    fn is_unused(
        &mut self,
        name: &ToolName,
        shown: &Arc<Path>,
        found: Option<&Path>,
        tables: &[Part<'_, ToolConfig>],
    ) -> bool {
        let is_own = |file: &SourceFile| file.layer() == Layer::User;
        let source = last(tables, |tool| tool.source.as_ref());
        let builtin = source.filter(|at| *at.value == SourceConfig::Builtin && is_own(at.file));
        let wasm = last(tables, |tool| tool.wasm.as_ref()).filter(|at| is_own(at.file));
        let other = wasm.filter(|at| {
            is_fixed(at.value)
                && self
                    .bases
                    .absolute(at.value)
                    .is_ok_and(|path| found.is_none_or(|found| !is_same_file(found, &path)))
        });
        let Some(own) = builtin.map(|at| at.origin()).or(other.map(|at| at.origin())) else {
            return false;
        };
        let message = format!(
            "is not used: `{name}` is the tool of your own file ({own}); give this one another name"
        );
        self.warnings.push(Problem::from(message).at(Origin::Found { path: shown.clone() }));
        true
    }

    /// Whether a component or a script has the name of a built-in that it does not replace. It is
    /// left out then, and the built-in stays.
    fn shadows(
        &mut self,
        name: &ToolName,
        shown: &Arc<Path>,
        manifest: Option<&ToolConfig>,
        tables: &[Part<'_, ToolConfig>],
    ) -> bool {
        let by_table = last(tables, |tool| tool.replaces.as_ref()).map(|at| at.value.as_str());
        let by_manifest = manifest.and_then(|tool| tool.replaces.as_ref()).map(|it| &*it.value);
        let replaces = by_table.or(by_manifest);
        let shadows = self.named(name.as_str()).is_some() && replaces != Some(name.as_str());
        if shadows {
            let origin = Origin::Found { path: shown.clone() };
            let piece = (Layer::Manifest, Piece::Component);
            self.report.piece(origin, shadows_builtin(name), piece);
        }
        shadows
    }

    /// Refuses what the file beside a manifest already says.
    fn check_manifest(&mut self, candidate: &Candidate<'_>) {
        let Some(Part { at, .. }) = candidate.manifest else { return };
        for (key, span) in at.value.source_keys() {
            let problem = format!(
                "`{key}` has no place in a manifest: it describes `{}.wasm` beside it; remove it",
                candidate.name
            );
            self.report.span(at.file, span, problem);
        }
    }

    /// Refuses a file of a workspace that says of a tool that the user builds it, or that what
    /// it gives is shown as it is.
    fn check_own_keys(&mut self, candidate: &Candidate<'_>) {
        let dev = all(&candidate.parts, |tool| tool.dev.as_ref()).map(|at| ("dev", at));
        let mask = all(&candidate.parts, |tool| tool.mask.as_ref()).map(|at| ("mask", at));
        for (key, at) in dev.chain(mask) {
            if at.file.layer() != Layer::User {
                self.report.at(at, user_only(key, self.own_file));
            }
        }
    }

    /// Whether the tool is built in, and who says so.
    fn kind(&mut self, candidate: &Candidate<'_>, path: &KeyPath<'_>) -> Sourced<SourceConfig> {
        let Candidate { name, found, tables, parts, .. } = candidate;
        let replaces = last(parts, |tool| tool.replaces.as_ref());
        let is_builtin = self.named(name.as_str()).is_some()
            && replaces.is_none_or(|replaces| replaces.value != name.as_str());
        let source = last(tables, |tool| tool.source.as_ref());
        if let Some(found) = found {
            let origin = Origin::Found { path: found.shown.clone() };
            if let Some(source) = source.filter(|source| *source.value == SourceConfig::Builtin) {
                self.report.at(source, two_tools(name, &found.shown));
            }
            return Sourced { value: SourceConfig::Local, origin };
        }
        if let Some(source) = source {
            if is_builtin && *source.value == SourceConfig::Local {
                self.report.at(source, shadows_builtin(name));
            }
            return source.sourced(*source.value);
        }
        if is_builtin {
            return Sourced::default(SourceConfig::Builtin);
        }
        // What the user's own file says of a tool that is not there is no mistake there.
        let is_wrong = |part: &&Part<'_, ToolConfig>| {
            part.at.file.layer() != Layer::User || part.at.value.makes_tool()
        };
        let at = tables.iter().find(is_wrong).unwrap_or(&tables[0]).at;
        if !self.invalid.covers(&path.key("source")) {
            let hint = did_you_mean(nearest(name.as_str(), self.builtin_names()));
            let problem = Problem::from(format!(
                "tool `{name}` has no `source`; add `source = \"local\"` and `wasm`, `source = \
                 \"builtin\"`, or `script`"
            ));
            self.report.at(at, problem.hint(hint));
        }
        at.sourced(SourceConfig::Local)
    }

    fn builtin(&mut self, candidate: &Candidate<'_>, path: &KeyPath<'_>) -> Option<ToolSource> {
        let Candidate { name, tables, .. } = candidate;
        let said = candidate.said_of_kind();
        self.fixed(&said, "parameters", candidate, |tool| tool.parameters.as_ref());
        self.fixed(&said, "wasm", candidate, |tool| tool.wasm.as_ref());
        self.fixed(&said, "dev", candidate, |tool| tool.dev.as_ref());
        for at in all(&said, |tool| tool.replaces.as_ref()) {
            let problem = format!(
                "tool `{name}` takes no `replaces`: only a local tool replaces a built-in; remove it"
            );
            self.report.at(at, problem);
        }

        let written = last(tables, |tool| tool.builtin.as_ref());
        let builtin = written.map_or(name.as_str(), |at| at.value.as_str());
        let is_known = self.named(builtin).is_some();
        let at = written.map(|at| at.with(builtin));
        let source = last(tables, |tool| tool.source.as_ref()).map(|at| at.with(builtin));
        if let Some(at) = at.or(source)
            && !is_known
            && !self.invalid.covers(&path.key("builtin"))
        {
            self.report.at(at, self.unknown_builtin(builtin));
        }
        if let Some(at) = at
            && is_known
            && builtin != name.as_str()
            && self.named(name.as_str()).is_some()
        {
            let problem = format!(
                "tool `{name}` stands for the built-in `{builtin}`, but has the name of another \
                 built-in; give it another one"
            );
            self.report.at(at, problem);
        }
        let own_name =
            at.map_or(Sourced::default(builtin.to_owned()), |at| at.sourced(builtin.to_owned()));
        is_known.then_some(ToolSource::Builtin { name: own_name })
    }

    /// Refuses a key that means nothing for a built-in.
    fn fixed<'b, T: 'b>(
        &mut self,
        parts: &[Part<'b, ToolConfig>],
        key: &'static str,
        candidate: &Candidate<'_>,
        field: impl Fn(&'b ToolConfig) -> Option<&'b Written<T>>,
    ) {
        for at in all(parts, field) {
            let why = match key {
                "parameters" => "it brings its own",
                _ => "its component is part of kitbag",
            };
            let tool = candidate.name;
            let problem = format!("built-in tool `{tool}` takes no `{key}`: {why}; remove the key");
            self.report.at(at, problem);
        }
    }

    /// Refuses two tools in the place of one built-in.
    fn check_replaced_once(&mut self, tools: &BTreeMap<ToolName, ConfiguredTool>) {
        let mut replaced: BTreeMap<&str, &ToolName> = BTreeMap::new();
        for (name, tool) in tools {
            let Some(builtin) = tool.source.value.replaces() else { continue };
            if let Some(other) = replaced.insert(&builtin.value, name) {
                // What the user's own file says beats what the workspace says.
                let layer = |tool: &ConfiguredTool| match &tool.source.value {
                    ToolSource::Local(local) => local.layer,
                    _ => Layer::Workspace,
                };
                let is_other = layer(tool) == Layer::User && layer(&tools[other]) != Layer::User;
                let spoilt = if is_other { other } else { name };
                let piece = (layer(&tools[spoilt]), Piece::Tool(spoilt.to_string()));
                let (builtin, origin) = (&builtin.value, builtin.origin.clone());
                let problem =
                    format!("`{builtin}` is replaced by `{other}` already; remove one `replaces`");
                self.report.piece(origin, problem, piece);
            }
        }
    }

    /// A tool whose component the embedding program brings: no file says where it is.
    fn bytes(&mut self, candidate: &Candidate<'_>, path: &KeyPath<'_>) -> BytesTool {
        let Candidate { name, found, tables, parts, .. } = candidate;
        let script = match candidate.script {
            Script::Found(script) => Some(&script.shown),
            Script::None | Script::Unknown => None,
        };
        if let Some(path) = found.map(|found| &found.shown).or(script) {
            let origin = Origin::Found { path: path.clone() };
            let problem = format!(
                "local tool `{name}` has the name of a tool of the program; give it another one"
            );
            self.report.piece(origin, problem, (Layer::Manifest, Piece::Component));
        }
        for part in tables {
            for (key, span) in part.at.value.source_keys() {
                let problem = format!(
                    "tool `{name}` takes no `{key}`: its component comes from the program; remove \
                     the key, or give the tool of this table another name"
                );
                self.report.span(part.at.file, span, problem);
            }
        }
        let parameters = self.component_parameters(parts, path);
        BytesTool { component: (*name).clone(), parameters }
    }

    /// The arguments that a component takes, where configuration says it.
    fn component_parameters(
        &mut self,
        parts: &[Part<'_, ToolConfig>],
        path: &KeyPath<'_>,
    ) -> Option<Parameters> {
        let parameters: Vec<_> = all(parts, |tool| tool.parameters.as_ref()).collect();
        (!parameters.is_empty())
            .then(|| self.parameters(&path.key("parameters"), &parameters, ParameterRole::Argument))
    }

    fn local(&mut self, candidate: &Candidate<'_>, path: &KeyPath<'_>) -> Option<LocalTool> {
        let Candidate { name, parts, .. } = candidate;
        let said = candidate.said_of_kind();
        let builtins = all(&said, |tool| tool.builtin.as_ref());
        // That of a manifest has been refused.
        for at in builtins.filter(|at| at.file.layer() != Layer::Manifest) {
            let problem = format!(
                "local tool `{name}` takes no `builtin`; remove it, or write `source = \"builtin\"`"
            );
            self.report.at(at, problem);
        }
        let wasm = self.wasm(candidate, path);
        let replaces = self.replaces(parts);
        let parameters = self.component_parameters(parts, path);
        let mut local = LocalTool::new(wasm?, replaces, parameters);
        if let Some(dev) = last(&candidate.tables, |tool| tool.dev.as_ref()) {
            local.dev = dev.sourced(*dev.value);
        }
        let lock = match candidate.is_of_workspace() {
            true => {
                local.layer = Layer::Workspace;
                &self.locks.workspace
            }
            false => &self.locks.user,
        };
        if let Some(recorded) = lock.recorded(name) {
            local.record(name, recorded);
        }
        Some(local)
    }

    fn wasm(&mut self, candidate: &Candidate<'_>, path: &KeyPath<'_>) -> Option<Sourced<PathBuf>> {
        let Candidate { name, found, tables, .. } = candidate;
        let mut wasm = None;
        for at in all(tables, |tool| tool.wasm.as_ref()) {
            let is_for_all = at.file.layer() == Layer::User;
            if is_for_all && !at.value.is_empty() && !is_fixed(at.value) {
                self.report.at(at, relative_path(at.value));
            } else {
                wasm = self.path(at).map(|path| (at, path));
            }
        }
        match (found, wasm) {
            (Some(found), Some((at, path))) if !is_same_file(&found.wasm, &path) => {
                let problem = match path.try_exists() {
                    Ok(false) => format!(
                        "this file does not exist, and `{name}` is the component `{}`; remove \
                         `wasm`",
                        shown_path(&found.shown)
                    ),
                    _ => two_tools(name, &found.shown),
                };
                self.report.at(at, problem);
                None
            }
            (Some(found), _) => {
                let origin = Origin::Found { path: found.shown.clone() };
                Some(Sourced { value: found.wasm.clone(), origin })
            }
            (None, Some((at, path))) => Some(at.sourced(path)),
            (None, None) => {
                let is_written = last(tables, |tool| tool.wasm.as_ref()).is_some();
                let needs_source = last(tables, |tool| tool.source.as_ref()).is_none();
                if !is_written && !needs_source && !self.invalid.covers(&path.key("wasm")) {
                    let problem =
                        format!("local tool `{name}` has no `wasm`; add the path of its component");
                    self.report.at(tables[0].at, problem);
                }
                None
            }
        }
    }

    /// How often the tool may be called: the lowest rate of every layer, for each time. A
    /// workspace can only lower what the user says.
    fn rate(&mut self, parts: &[Part<'_, ToolConfig>]) -> Option<Sourced<Rates>> {
        let mut effective: Option<Sourced<Rates>> = None;
        for at in all(parts, |tool| tool.rate.as_ref()) {
            let rates: Rates = match at.value.parse() {
                Ok(rates) => rates,
                Err(error) => {
                    self.report.at(at, error);
                    continue;
                }
            };
            effective = Some(match effective {
                None => at.sourced(rates),
                Some(weaker) => {
                    let value = weaker.value.and(&rates);
                    // Where it came from is who has lowered it last.
                    if value == weaker.value { weaker } else { at.sourced(value) }
                }
            });
        }
        effective
    }

    /// Preset answers, by the question's id. An answer is one value, so that of
    /// a stronger layer replaces it whole.
    fn answers(&mut self, parts: &[Part<'_, ToolConfig>]) -> BTreeMap<String, Sourced<Value>> {
        let tables =
            parts.iter().filter_map(|part| Some((part.at.file, part.at.value.answers.as_ref()?)));
        let mut answers = BTreeMap::new();
        for layers in merge(tables) {
            for Part { key, at } in layers {
                match json(&at.value.0) {
                    Ok(value) => {
                        answers.insert(key.value.to_owned(), at.sourced(value));
                    }
                    Err(problem) => self.report.at(at, problem),
                }
            }
        }
        answers
    }
}

impl<'a> Candidate<'a> {
    fn new(
        name: &'a ToolName,
        found: Option<&'a FoundTool>,
        script: Script<'a>,
        tables: Vec<Part<'a, ToolConfig>>,
        files: &'a [SourceFile],
    ) -> Self {
        let part = |(file, config): &'a (usize, ToolConfig)| {
            let (file, span) = (&files[*file], Span::default());
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

    /// What is said by the file that says whether the tool is built in, and by stronger ones.
    /// A weaker file may mean another kind of tool by the name, which is no mistake there.
    fn said_of_kind(&self) -> Vec<Part<'a, ToolConfig>> {
        let by = last(&self.tables, |tool| tool.source.as_ref()).map(|at| at.file.layer());
        let parts = self.parts.iter().copied();
        parts.filter(|part| by.is_none_or(|by| part.at.file.layer() >= by)).collect()
    }

    /// Whether the user's own file says for which built-in its name stands, and no other file
    /// says another one.
    fn is_builtin_of_user(&self) -> bool {
        let mut user = self.tables.iter().filter(|part| part.at.file.layer() == Layer::User);
        let own = user.find_map(|part| part.at.value.builtin.as_ref());
        let builtin = last(&self.tables, |tool| tool.builtin.as_ref());
        own.is_some_and(|own| builtin.is_some_and(|builtin| *builtin.value == own.value))
    }

    /// Whether the workspace holds its component or says where it is.
    fn is_of_workspace(&self) -> bool {
        let wasm = last(&self.tables, |tool| tool.wasm.as_ref());
        self.found.is_some() || wasm.is_none_or(|wasm| wasm.file.layer() != Layer::User)
    }
}

/// Two components with one name. `other` is the component in `.kitbag/tools`, as it is shown.
fn two_tools(name: &ToolName, other: &Path) -> String {
    format!(
        "two tools are named `{name}`: this one and `{}`; give one of them another name",
        shown_path(other)
    )
}

/// A local tool with the name of a built-in.
pub(in crate::resolve) fn shadows_builtin(name: &ToolName) -> String {
    format!(
        "local tool `{name}` has the name of a built-in tool; give it another one, or replace the \
         built-in with `replaces = \"{name}\"` in `tools.{name}`"
    )
}

/// Whether two paths lead to one file. The files are not opened.
fn is_same_file(a: &Path, b: &Path) -> bool {
    a == b || a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
}
