//! `[serve]`: the tools that a server offers, also by `--tools`, and the handling of unknown
//! arguments.

use std::collections::BTreeMap;

use kitbag_base::text::{nearest, shown};
use kitbag_contract::{ToolName, UnknownArguments};
use kitbag_glob::Glob;

use crate::config::ConfiguredTool;
use crate::format::UnknownArgumentsConfig;
use crate::layers::origin::{Origin, Sourced};
use crate::layers::toolsets::Disabled;
use crate::read::sources::Sources;
use crate::report::text::{did_you_mean, not_a_glob};
use crate::report::{Diagnostic, Excerpt, Problem, Report};
use crate::resolve::context::{ConfigFiles, tables};

struct Patterns<'a> {
    key: &'static str,
    origin: Origin,
    /// The patterns, each with its place. A pattern in a file has an excerpt.
    texts: Vec<(&'a str, Origin, Option<Excerpt>)>,
}

/// Turns off the tools that a server does not offer, if the tools are for a server. Each list must
/// match a tool: the files of a workspace cannot offer tools that the user config excludes.
/// Patterns on the command line replace both lists.
///
/// A pattern of a file that matches no tool is added to `unmatched`, since the file also applies to
/// other workspaces and builds. On the command line such a pattern is an error.
pub(crate) fn choose(
    tools: &mut BTreeMap<ToolName, ConfiguredTool>,
    configs: &ConfigFiles<'_>,
    sources: &Sources<'_>,
    unmatched: &mut Vec<Diagnostic>,
    report: &mut Report,
) {
    let lists = match &sources.served_tools {
        Some(patterns) => vec![Patterns {
            key: "--tools",
            origin: patterns.origin.clone(),
            texts: patterns
                .value
                .iter()
                .map(|text| (text.as_str(), patterns.origin.clone(), None))
                .collect(),
        }],
        None => lists(configs),
    };
    for Patterns { key, origin, texts } in lists {
        let mut globs = Vec::new();
        for (text, origin, excerpt) in texts {
            let problem = match Glob::new(text) {
                Ok(glob) if tools.keys().any(|name| glob.matches(name.as_str())) => {
                    globs.push(glob);
                    continue;
                }
                Ok(_) => format!("`{}` matches no tool", shown(text)),
                Err(reason) => not_a_glob(text, reason),
            };
            let hint = did_you_mean(nearest(text, tools.keys().map(|name| name.as_str())));
            let problem = Problem::from(problem).hint(hint);
            match excerpt {
                None => report.origin(origin, problem),
                Some(excerpt) => unmatched.push(problem.at(origin).quoting(excerpt)),
            }
        }
        if !sources.is_server {
            continue;
        }
        for (name, tool) in tools.iter_mut().filter(|(_, tool)| tool.is_enabled()) {
            if !globs.iter().any(|glob| glob.matches(name.as_str())) {
                let (key, origin) = (key.into(), origin.clone());
                tool.disabled = Some(Disabled::NotServed { key, origin });
            }
        }
    }
}

/// Returns the handling of unknown arguments: the strictest value of all files.
pub(crate) fn unknown_arguments(configs: &ConfigFiles<'_>) -> Sourced<UnknownArguments> {
    let mut found = Sourced::default(UnknownArguments::default());
    for (file, written) in
        tables(configs, |config| config.serve.as_ref()?.unknown_arguments.as_ref())
    {
        let value = match written.value {
            UnknownArgumentsConfig::Drop => UnknownArguments::Drop,
            UnknownArgumentsConfig::Error => UnknownArguments::Refuse,
        };
        if found.value != UnknownArguments::Refuse {
            found = written.at(file).sourced(value);
        }
    }
    found
}

fn lists<'a>(configs: &ConfigFiles<'a>) -> Vec<Patterns<'a>> {
    let lists = tables(configs, |config| config.serve.as_ref()?.tools.as_ref());
    let lists = lists.map(|(file, written)| {
        let texts = written.value.iter().map(|text| {
            let at = text.at(file);
            (text.value.as_str(), at.origin(), Some(Excerpt::new(file.text(), at.span)))
        });
        let origin = written.at(file).origin();
        Patterns { key: "[serve] tools", origin, texts: texts.collect() }
    });
    lists.collect()
}
