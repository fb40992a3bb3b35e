//! `[serve]`: which tools a server offers, also by `--tools`, and what becomes of unknown arguments.

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

/// One list of patterns.
struct Patterns<'a> {
    key: &'static str,
    origin: Origin,
    /// Each with its place, where that is in a file.
    texts: Vec<(&'a str, Origin, Option<Excerpt>)>,
}

/// Takes away what a server does not offer, where this is one. Each list has to match a
/// tool: the files of a workspace offer nothing that the user's own file leaves out. Those of
/// the command line count instead of both.
///
/// A pattern of a file that matches no tool is among `unmatched`, since the file is for
/// other workspaces and builds as well; one of the command line is an error.
pub(in crate::resolve) fn choose(
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
                tool.disabled = Some(Disabled::NotServed { key, origin: origin.clone() });
            }
        }
    }
}

/// The handling of unknown arguments: the strictest value of all files.
pub(in crate::resolve) fn unknown_arguments(
    configs: &ConfigFiles<'_>,
) -> Sourced<UnknownArguments> {
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

/// The lists of the files.
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
