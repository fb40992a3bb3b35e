//! `kitbag check`.

use kitbag::config::Diagnostic;
use kitbag::contract::ToolName;
use kitbag::contract::text::printable;
use kitbag::host::Host;
use kitbag::{BuildError, CallContext, Caller, Toolbox, ToolboxError};
use serde_json::json;

use crate::commands::{Global, warn};
use crate::error::CliError;
use crate::exit::Exit;
use crate::listener::Screen;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  kitbag check && echo all is well")]
pub(crate) struct Args {}

/// Something that is wrong.
struct Problem {
    /// What it is about: a tool, a topic, or the configuration.
    about: String,
    text: String,
    exit: Exit,
}

impl Problem {
    fn of_tool(name: &ToolName, error: ToolboxError) -> Self {
        let error = CliError::from(error);
        Self { about: format!("tool `{name}`"), text: error.to_string(), exit: error.exit() }
    }
}

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
            problems.extend(texts.into_iter().map(|text| Problem {
                about: "configuration".into(),
                text,
                exit: Exit::Configuration,
            }));
        }
        let mut warnings = Vec::new();
        let (mut tools, mut topics) = (0, 0);
        if let Some(kitbag) = &kitbag {
            let toolbox = kitbag.toolbox();
            let config = toolbox.config();
            let unsure = config.warnings.iter().chain(&config.unmatched).chain(&config.absent);
            warnings.extend(unsure.map(ToString::to_string));
            warnings.extend(config.workspace_trust.notice().map(ToString::to_string));
            problems.extend(toolbox.config().ignored.iter().map(|ignored| Problem {
                about: "configuration".into(),
                text: ignored.to_string(),
                exit: Exit::Configuration,
            }));
            let names: Vec<_> = toolbox.summaries().map(|tool| tool.name).collect();
            for name in &names {
                tools += 1;
                let load = |events| toolbox.with_events(events).load(name.as_str());
                match Screen::during(global.json, load) {
                    Ok(component) => {
                        warn(component.cache_problems());
                        if let Some(problem) = component.described().problem() {
                            problems.push(Problem {
                                about: format!("tool `{name}`"),
                                text: format!("its description cannot be used: {problem}"),
                                exit: Exit::Trap,
                            });
                        }
                    }
                    Err(error) => {
                        problems.push(Problem::of_tool(name, error));
                        continue;
                    }
                }
                let checked = toolbox.tool(name.as_str()).and_then(|tool| {
                    if let Some(reason) = tool.refused {
                        let tool = name.to_string();
                        return Err(ToolboxError::NotAsRecorded { tool, reason });
                    }
                    if tool.unavailable(toolbox.config()).is_some() {
                        warnings.push(format!(
                            "the tool `{name}` is unavailable until it is granted what it asks for"
                        ));
                    }
                    warnings.extend(tool.grant_warnings());
                    warnings.extend(tool.missing_grants(toolbox.config()));
                    tool.check_schemas()
                });
                problems.extend(checked.err().map(|error| Problem::of_tool(name, error)));
            }
            warnings.extend(unmatched_subjects(toolbox)?.iter().map(ToString::to_string));
            for topic in toolbox.topics() {
                topics += 1;
                if let Err(error) = topic {
                    let text = error.message;
                    problems.push(Problem {
                        about: "topic".into(),
                        text,
                        exit: Exit::Configuration,
                    });
                }
            }
        }
        report(&problems, &warnings, tools, topics, global.json)?;
        // The first of the kinds in the order of the exit codes.
        Ok(problems
            .iter()
            .map(|problem| problem.exit)
            .min_by_key(|exit| *exit as u8)
            .unwrap_or(Exit::Done))
    }
}

/// The names of subjects that no topic has.
fn unmatched_subjects(toolbox: &Toolbox) -> Result<Vec<Diagnostic>, CliError> {
    let context = CallContext::new(Caller::Host);
    let asked = || toolbox.unmatched_subjects(context);
    Ok(Host::block_on(asked).map_err(ToolboxError::from).flatten()?)
}

fn report(
    problems: &[Problem],
    warnings: &[String],
    tools: usize,
    topics: usize,
    as_json: bool,
) -> Result<(), CliError> {
    if as_json {
        let problem =
            |problem: &Problem| json!({ "about": problem.about, "problem": problem.text });
        return output::json(&json!({
            "tools": tools,
            "topics": topics,
            "problems": problems.iter().map(problem).collect::<Vec<_>>(),
            "warnings": warnings,
        }));
    }
    for warning in warnings {
        output::note(&format!("warning: {}", printable(warning)));
    }
    for problem in problems {
        let text = match &*problem.about {
            "configuration" => problem.text.clone(),
            about => format!("{about}: {}", problem.text),
        };
        output::note(&format!("error: {}", printable(&text)));
    }
    let count = |number: usize, noun: &str| match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    };
    let found =
        if problems.is_empty() { "no problem".into() } else { count(problems.len(), "problem") };
    output::data(&format!("{}, {}: {found}", count(tools, "tool"), count(topics, "topic")))
}
