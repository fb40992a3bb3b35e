//! Tools that are scripts of Python: what the header says, and which script a table means.

use kitbag_base::text::{nearest, shown};
use kitbag_contract::ToolName;
use kitbag_policy::RequestedGrants;
use serde_json::{Map, Value};

use crate::config::ScriptTool;
use crate::format::ToolConfig;
use crate::format::key::KeyPath;
use crate::format::spanned::{AnyValue, At, Part, Table, all};
use crate::layers::origin::{Origin, Sourced};
use crate::read::FoundScript;
use crate::read::file::Layer;
use crate::report::Problem;
use crate::report::text::{did_you_mean, known_words, shown_path, unknown_key};
use crate::resolve::parameters::ParameterRole;
use crate::resolve::parameters::value::json;
use crate::resolve::resolver::Resolver;
use crate::resolve::tools::shadows_builtin;

/// Which script a tool is.
#[derive(Clone, Copy)]
pub(in crate::resolve) enum Script<'a> {
    /// None: it is something else.
    None,
    /// This one.
    Found(&'a FoundScript),
    /// One that is not there, which has been reported.
    Unknown,
}

impl<'a> Resolver<'a> {
    /// The script that a table names, where no script has the name of the tool.
    pub(in crate::resolve) fn named_script(
        &mut self,
        tables: &[Part<'_, ToolConfig>],
    ) -> Script<'a> {
        let own = all(tables, |tool| tool.script.as_ref()).find(is_own);
        if let Some(at) = own {
            let problem = "this file is for all workspaces, and a script is one of a workspace: name \
                           it in its `.kitbag/config.toml`";
            self.report.at(at, problem);
            return Script::Unknown;
        }
        let Some(at) = script_key(tables) else { return Script::None };
        match self.scripts.get(at.value.as_str()) {
            Some(script) => Script::Found(script),
            None => {
                let names = || self.scripts.keys().map(ToolName::as_str);
                let hint = did_you_mean(nearest(at.value, names()))
                    .or_else(|| known_words("scripts", names()));
                let name = shown(at.value);
                let problem =
                    Problem::from(format!("no script in `.kitbag/scripts` is named `{name}`"));
                self.report.at(at, problem.hint(hint));
                Script::Unknown
            }
        }
    }

    /// The names of scripts that other tools have taken.
    pub(in crate::resolve) fn taken_scripts<'b>(
        &self,
        tables: impl Iterator<Item = (&'b ToolName, &'b Vec<Part<'b, ToolConfig>>)>,
    ) -> Vec<&'a ToolName> {
        let taken = tables.filter_map(|(name, tables)| {
            let script = script_key(tables)?;
            let (script, _) = self.scripts.get_key_value(script.value.as_str())?;
            (script != name).then_some(script)
        });
        taken.collect()
    }

    /// Refuses `script` for a tool that is something else.
    pub(in crate::resolve) fn check_no_script(
        &mut self,
        name: &ToolName,
        tables: &[Part<'_, ToolConfig>],
        is: &'static str,
    ) {
        for at in all(tables, |tool| tool.script.as_ref()) {
            self.report.at(at, format!("tool `{name}` takes no `script`: {is}; remove it"));
        }
    }

    /// The tool that a script is.
    pub(in crate::resolve) fn script(
        &mut self,
        name: &ToolName,
        script: &FoundScript,
        tables: &[Part<'_, ToolConfig>],
        parts: &[Part<'_, ToolConfig>],
        path: &KeyPath<'_>,
    ) -> ScriptTool {
        for part in tables {
            for (key, span) in part.at.value.source_keys() {
                let problem = format!(
                    "`{name}` is the script `{}`, which takes no `{key}`; remove it",
                    shown_path(&script.shown)
                );
                self.report.span(part.at.file, span, problem);
            }
        }
        let replaces = self.replaces(parts);
        let replaces_itself =
            replaces.as_ref().is_some_and(|builtin| builtin.value == name.as_str());
        if !script.is_named
            && self.named(name.as_str()).is_some()
            && !replaces_itself
            && let Some(at) = script_key(tables)
        {
            self.report.at(at, shadows_builtin(name));
        }
        let parameters: Vec<_> = all(parts, |tool| tool.parameters.as_ref()).collect();
        let parameters =
            self.parameters(&path.key("parameters"), &parameters, ParameterRole::Variable);
        let header = script.header.as_ref().map(|(file, header)| (&self.files[*file], header));
        let output = header.and_then(|(file, header)| header.output.as_ref().map(|it| it.at(file)));
        let asks = header.and_then(|(file, header)| header.grants.as_ref().map(|it| it.at(file)));
        let origin = match script.is_named {
            true => Origin::Caller,
            false => Origin::Found { path: script.shown.clone() },
        };
        ScriptTool {
            path: Sourced { value: script.path.clone(), origin },
            replaces,
            code: script.file.map(|file| self.files[file].shared_text()).unwrap_or_default(),
            parameters,
            output: output.and_then(|at| {
                let key = At { file: at.file, span: at.span, value: "output" };
                let path = path.key("output");
                let parameter =
                    self.parameter(&path, &[Part { key, at }], ParameterRole::Output)?;
                Some(at.sourced(parameter.schema()))
            }),
            asks: asks.map(|at| self.asks(at, path)).unwrap_or_default(),
        }
    }

    /// What a script would like to be granted, as a component says it.
    fn asks(&mut self, at: At<'_, Table<AnyValue>>, path: &KeyPath<'_>) -> Map<String, Value> {
        let mut asks = Map::new();
        for part in at.value.parts(at.file) {
            let key = part.key.value;
            if !RequestedGrants::KEYS.contains(&key) {
                let table = path.key("grants").to_string();
                let hint = did_you_mean(nearest(key, RequestedGrants::KEYS))
                    .or_else(|| known_words("keys", RequestedGrants::KEYS.into_iter()));
                self.report.at(part.key, Problem::from(unknown_key(key, &table)).hint(hint));
                continue;
            }
            let one = json(&part.at.value.0).and_then(|value| {
                let one = Map::from_iter([(key.to_owned(), value)]);
                RequestedGrants::read(&one)
                    .map_err(|error| format!("it cannot be asked for like this: {error}"))?;
                Ok(one)
            });
            match one {
                Ok(one) => asks.extend(one),
                Err(problem) => self.report.at(part.at, problem),
            }
        }
        asks
    }
}

/// The script that the tables of a workspace name.
pub(in crate::resolve) fn script_key<'b>(
    tables: &[Part<'b, ToolConfig>],
) -> Option<At<'b, String>> {
    all(tables, |tool| tool.script.as_ref()).rfind(|at| !is_own(at))
}

/// Whether something stands in the user's own file, which is for all workspaces.
fn is_own(at: &At<'_, String>) -> bool {
    at.file.layer() == Layer::User
}
