//! `[serve] discovery` and the keys beside it: how a server offers many tools and large results.
//!
//! These keys give no access, so every file may set them, and the file of a workspace takes
//! precedence over the user config.

use std::collections::BTreeMap;

use kitbag_base::ByteSize;
use kitbag_base::text::{nearest, shown};
use kitbag_contract::ToolName;
use kitbag_glob::Glob;

use crate::config::{ConfiguredTool, Discovery};
use crate::format::ServeConfig;
use crate::report::text::{did_you_mean, not_a_glob};
use crate::report::{Diagnostic, Excerpt, Problem, Report};
use crate::resolve::context::{ConfigFiles, tables};

/// Returns the settings in effect. A pattern of `pinned` that matches no tool is added to
/// `unmatched`.
pub(super) fn discovery(
    configs: &ConfigFiles<'_>,
    tools: &BTreeMap<ToolName, ConfiguredTool>,
    unmatched: &mut Vec<Diagnostic>,
    report: &mut Report,
) -> Discovery {
    let mut discovery = Discovery::default();
    for (file, serve) in tables(configs, |config| config.serve.as_ref()) {
        let ServeConfig { discovery: mode, tool_tokens, pinned, result_size, .. } = serve;
        if let Some(mode) = mode {
            discovery.mode = mode.at(file).sourced(mode.value);
        }
        if let Some(tokens) = tool_tokens {
            discovery.tool_tokens = tokens.at(file).sourced(tokens.value.get());
        }
        if let Some(patterns) = pinned {
            let mut globs = Vec::new();
            for text in &patterns.value {
                let (at, pattern) = (text.at(file), text.value.as_str());
                let problem = match Glob::new(pattern) {
                    Ok(glob) => {
                        globs.push(pattern.to_owned());
                        if tools.keys().any(|name| glob.matches(name.as_str())) {
                            continue;
                        }
                        format!("`{}` matches no tool", shown(pattern))
                    }
                    Err(reason) => not_a_glob(pattern, reason),
                };
                let hint = did_you_mean(nearest(pattern, tools.keys().map(ToolName::as_str)));
                let problem = Problem::from(problem).hint(hint).at(at.origin());
                unmatched.push(problem.quoting(Excerpt::new(file.text(), at.span)));
            }
            discovery.pinned = patterns.at(file).sourced(globs);
        }
        if let Some(size) = result_size {
            let at = size.at(file);
            match at.value.parse::<ByteSize>() {
                Err(error) => report.at(at, error),
                Ok(size) if size < Discovery::LEAST_RESULT_SIZE => {
                    let least = Discovery::LEAST_RESULT_SIZE;
                    report.at(at, format!("`serve.result_size` is `{size}`, less than `{least}`"));
                }
                Ok(size) => discovery.result_size = at.sourced(size),
            }
        }
    }
    discovery
}
