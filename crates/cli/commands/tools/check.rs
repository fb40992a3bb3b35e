//! `kitbag check`.

use kitbag::config::{ConfiguredTool, Diagnostic, Disabled};
use kitbag::contract::{ErrorKind, ToolName};
use kitbag::host::{CacheProblem, Host};
use kitbag::toolbox::Skills;
use kitbag::{BuildError, CallContext, Caller, Kitbag, Toolbox, ToolboxError};
use serde_json::json;

use crate::commands::doctor::servers::required_sign_in;
use crate::commands::tools::findings::Findings;
use crate::commands::{Global, warn};
use crate::console::output;
use crate::error::{CliError, Finding};
use crate::exit::{self, Exit};
use crate::labels::labelled;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  kitbag check && echo all is well")]
pub(crate) struct Args {}

/// The result of reading all configuration and loading every tool.
#[derive(Default)]
pub(crate) struct Examination {
    /// `None`: the configuration cannot be used at all.
    pub(crate) kitbag: Option<Kitbag>,
    pub(crate) problems: Vec<Finding>,
    pub(crate) warnings: Vec<String>,
    /// The reason why the workspace does not take effect yet.
    pub(crate) trust_notice: Option<String>,
    /// The tools that wait for trust.
    pub(crate) skipped: Vec<ToolName>,
    pub(crate) cache_problems: Vec<CacheProblem>,
    pub(crate) tools: usize,
    pub(crate) topics: usize,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let mut examined = Examination::of(&global);
        warn(&examined.cache_problems);
        examined.warnings.extend(examined.trust_notice.take());
        let Examination { problems, warnings, skipped, tools, topics, .. } = examined;
        report(&problems, &warnings, &skipped, (tools, topics), global.json)?;
        // The first kind in the order of the exit codes.
        Ok(problems
            .iter()
            .map(|problem| exit::of_kind(problem.kind).0)
            .min_by_key(|exit| *exit as u8)
            .unwrap_or(Exit::Done))
    }
}

impl Examination {
    pub(crate) fn of(global: &Global) -> Self {
        let (kitbag, errors) = global.builder().build_faulty();
        let mut examined = Self::default();
        for error in errors {
            let texts = match &error {
                BuildError::Config(errors) => {
                    errors.diagnostics().iter().map(ToString::to_string).collect()
                }
                BuildError::Tool(error) => vec![error.to_string()],
                #[cfg(feature = "servers")]
                BuildError::Server(error) => vec![error.to_string()],
            };
            examined.problems.extend(texts.into_iter().map(config_finding));
        }
        if let Some(kitbag) = &kitbag {
            examined.load(kitbag.toolbox(), global.json);
        }
        Self { kitbag, ..examined }
    }

    fn load(&mut self, toolbox: &Toolbox, as_json: bool) {
        let config = toolbox.config();
        let of_servers = config.servers.values().flat_map(|server| &server.warnings);
        let unsure = config.warnings.iter().chain(&config.unmatched).chain(&config.absent);
        let unsure = unsure.chain(of_servers);
        self.warnings.extend(unsure.map(ToString::to_string));
        for server in config.servers.values() {
            let sign_in = required_sign_in(config, server);
            let warning = |text| format!("the server `{}`: {text}", server.name);
            self.warnings.extend(sign_in.map(warning));
        }
        self.trust_notice = config.trust_notice();
        let is_skipped =
            |tool: &&ConfiguredTool| tool.disabled.as_ref().is_some_and(Disabled::is_trust);
        self.skipped.extend(config.tools.values().filter(is_skipped).map(|tool| tool.name.clone()));
        let ignored = config.ignored.iter().map(|ignored| config_finding(ignored.to_string()));
        self.problems.extend(ignored);
        let names: Vec<_> = toolbox.summaries().map(|tool| tool.name).collect();
        for name in &names {
            self.tools += 1;
            let findings = Findings::of_tool(toolbox, name, as_json);
            self.cache_problems.extend(findings.cache_problems);
            self.problems.extend(findings.problems);
            self.warnings.extend(findings.warnings);
        }
        match unmatched_subjects(toolbox) {
            Ok(unmatched) => self.warnings.extend(unmatched.iter().map(ToString::to_string)),
            Err(error) => self.problems.push(Finding {
                about: "configuration".into(),
                text: error.to_string(),
                kind: error.kind(),
            }),
        }
        match skills(toolbox) {
            Ok(skills) => self.warnings.extend(skills.problems),
            Err(error) => self.problems.push(Finding {
                about: "skills".into(),
                text: error.to_string(),
                kind: error.kind(),
            }),
        }
        for topic in toolbox.topics() {
            self.topics += 1;
            if let Err(error) = topic {
                self.problems
                    .push(Finding { about: "topic".into(), ..config_finding(error.message) });
            }
        }
    }
}

fn config_finding(text: String) -> Finding {
    Finding { about: "configuration".into(), text, kind: ErrorKind::Configuration }
}

/// Returns a problem for each subject that matches no topic.
fn unmatched_subjects(toolbox: &Toolbox) -> Result<Vec<Diagnostic>, CliError> {
    let context = CallContext::new(Caller::this_user());
    let asked = || toolbox.unmatched_subjects(context);
    Ok(Host::block_on(asked).map_err(ToolboxError::from).flatten()?)
}

/// Reads all skills as a server does.
fn skills(toolbox: &Toolbox) -> Result<Skills, CliError> {
    let context = CallContext::new(Caller::this_user());
    Ok(Host::block_on(|| toolbox.skills(context)).map_err(ToolboxError::from).flatten()?)
}

fn report(
    problems: &[Finding],
    warnings: &[String],
    skipped: &[ToolName],
    (tools, topics): (usize, usize),
    as_json: bool,
) -> Result<(), CliError> {
    if as_json {
        let problem =
            |problem: &Finding| json!({ "about": problem.about, "problem": problem.text });
        return output::json(&json!({
            "tools": tools,
            "topics": topics,
            "problems": problems.iter().map(problem).collect::<Vec<_>>(),
            "warnings": warnings,
            "skipped": skipped,
        }));
    }
    for warning in warnings {
        output::warn(warning);
    }
    if !skipped.is_empty() {
        let names: Vec<_> = skipped.iter().map(|name| format!("`{name}`")).collect();
        output::note(&format!("skipped until you run `kitbag trust`: {}", names.join(", ")));
    }
    for problem in problems {
        let text = match &*problem.about {
            "configuration" => problem.text.clone(),
            about => format!("{about}: {}", problem.text),
        };
        output::note(&labelled("error", &text));
    }
    let count = |number: usize, noun: &str| match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    };
    let found = match (problems.len(), warnings.len()) {
        (0, 0) => "no problem".to_owned(),
        (errors, warnings) => {
            format!("{}, {}", count(errors, "error"), count(warnings, "warning"))
        }
    };
    output::data(&format!("{}, {}: {found}", count(tools, "tool"), count(topics, "topic")))
}
