//! `kitbag check`.

use kitbag::config::{ConfiguredTool, Diagnostic, Disabled};
use kitbag::contract::{ErrorKind, ToolName};
use kitbag::host::Host;
use kitbag::{BuildError, CallContext, Caller, Toolbox, ToolboxError};
use serde_json::json;

use crate::commands::tools::findings::{Finding, Findings};
use crate::commands::{Global, warn};
use crate::console::output;
use crate::error::CliError;
use crate::exit::{self, Exit};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  kitbag check && echo all is well")]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let (kitbag, errors) = global.builder().build_faulty();
        let mut problems = Vec::new();
        for error in errors {
            let texts = match &error {
                BuildError::Config(errors) => {
                    errors.diagnostics().iter().map(ToString::to_string).collect()
                }
                BuildError::Tool(error) => vec![error.to_string()],
            };
            problems.extend(texts.into_iter().map(|text| Finding {
                about: "configuration".into(),
                text,
                kind: ErrorKind::Configuration,
            }));
        }
        let (mut warnings, mut skipped) = (Vec::new(), Vec::new());
        let (mut tools, mut topics) = (0, 0);
        if let Some(kitbag) = &kitbag {
            let toolbox = kitbag.toolbox();
            let config = toolbox.config();
            let unsure = config.warnings.iter().chain(&config.unmatched).chain(&config.absent);
            warnings.extend(unsure.map(ToString::to_string));
            warnings.extend(config.trust_notice());
            let is_skipped =
                |tool: &&ConfiguredTool| tool.disabled.as_ref().is_some_and(Disabled::is_trust);
            skipped.extend(config.tools.values().filter(is_skipped).map(|tool| tool.name.clone()));
            problems.extend(toolbox.config().ignored.iter().map(|ignored| Finding {
                about: "configuration".into(),
                text: ignored.to_string(),
                kind: ErrorKind::Configuration,
            }));
            let names: Vec<_> = toolbox.summaries().map(|tool| tool.name).collect();
            for name in &names {
                tools += 1;
                let findings = Findings::of_tool(toolbox, name, global.json);
                warn(&findings.cache_problems);
                problems.extend(findings.problems);
                warnings.extend(findings.warnings);
            }
            warnings.extend(unmatched_subjects(toolbox)?.iter().map(ToString::to_string));
            for topic in toolbox.topics() {
                topics += 1;
                if let Err(error) = topic {
                    let text = error.message;
                    problems.push(Finding {
                        about: "topic".into(),
                        text,
                        kind: ErrorKind::Configuration,
                    });
                }
            }
        }
        report(&problems, &warnings, &skipped, (tools, topics), global.json)?;
        // The first kind in the order of the exit codes.
        Ok(problems
            .iter()
            .map(|problem| exit::of_kind(problem.kind).0)
            .min_by_key(|exit| *exit as u8)
            .unwrap_or(Exit::Done))
    }
}

/// Returns a problem for each subject that matches no topic.
fn unmatched_subjects(toolbox: &Toolbox) -> Result<Vec<Diagnostic>, CliError> {
    let context = CallContext::new(Caller::this_user());
    let asked = || toolbox.unmatched_subjects(context);
    Ok(Host::block_on(asked).map_err(ToolboxError::from).flatten()?)
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
        output::note(&output::labelled("error", &text));
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
