//! `kitbag test`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use kitbag::base::text::{alternatives, printable, shown_path};
use kitbag::config::{Origin, Sourced};
use kitbag::{Kitbag, Places};
use serde_json::{Value, json};
use similar::TextDiff;

use crate::commands::author::cases::{Case, CaseFile};
use crate::commands::author::run_case::{self, CaseResult};
use crate::commands::author::{Project, build};
use crate::commands::{Global, name_of};
use crate::console::listener::Screen;
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;
use crate::files::replace::Original;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag test
  kitbag test --filter page
  kitbag test --bless")]
pub(crate) struct Args {
    /// The directory of the project [default: the current directory]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Write the answers into the case files instead of comparing them
    #[arg(long)]
    bless: bool,
    /// Run only the cases whose call contains this text
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Test the installed components without building them
    #[arg(long)]
    no_build: bool,
}

/// The results of all cases.
#[derive(Default)]
pub(crate) struct Report {
    passed: usize,
    /// The number of cases whose answers were written.
    blessed: usize,
    failed: Vec<Failure>,
}

struct Failure {
    /// `cases.txt:12`.
    place: String,
    call: String,
    difference: String,
    notes: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, global: &Global) -> Result<Exit, CliError> {
        let project = Project::find(self.directory.as_deref(), global)?;
        if !self.no_build {
            build::build(&project, global)?;
        }
        let report = run(&project, self.filter.as_deref(), self.bless, global)?;
        match global.json {
            true => output::json(&report.as_value())?,
            false => output::data(&report.text())?,
        }
        Ok(report.exit())
    }
}

/// Runs the case files of a project.
pub(crate) fn run(
    project: &Project,
    filter: Option<&str>,
    bless: bool,
    global: &Global,
) -> Result<Report, CliError> {
    let components = components(&project.tools(), global)?;
    let mut report = Report::default();
    for path in case_files(&project.directory)? {
        let name = path.strip_prefix(&project.directory).unwrap_or(&path);
        let name = name.display().to_string();
        let failed = |source| CliError::Read { path: shown_path(&path), source };
        let text = fs::read_to_string(&path).map_err(failed)?;
        let file = CaseFile::parse(&text)
            .map_err(|error| CliError::Usage(format!("{name}:{}: {error}", error.line)))?;
        let mut answers = Vec::new();
        for case in &file.cases {
            let call = format!("{} {}", case.tool, case.arguments);
            if filter.is_some_and(|filter| !call.contains(filter)) {
                answers.push(case.expected.clone());
                continue;
            }
            let place = format!("{name}:{}", case.number());
            let component = component(&components, &case.tool, &place)?;
            let result = run_case::run(case, component, global)?;
            report.add(case, &result, (place, call), bless);
            answers.push(result.lines);
        }
        if bless {
            let new = file.with_answers(&answers);
            if new != text {
                let replaced =
                    Original::read(&path).and_then(|mut file| file.replace(new.as_bytes()));
                replaced.map_err(|source| CliError::Save { path: shown_path(&path), source })?;
            }
        }
    }
    match report.total() {
        0 => Err(CliError::Usage(format!(
            "`{}` has no cases to run: write them to `cases.txt`, or to files in `cases/`",
            shown_path(&project.directory)
        ))),
        _ => Ok(report),
    }
}

impl Report {
    fn total(&self) -> usize {
        self.passed + self.blessed + self.failed.len()
    }

    fn add(
        &mut self,
        case: &Case,
        result: &CaseResult,
        (place, call): (String, String),
        bless: bool,
    ) {
        if case.expected == result.lines {
            self.passed += 1;
        } else if bless {
            self.blessed += 1;
        } else {
            let difference = difference(&case.expected, &result.lines);
            self.failed.push(Failure { place, call, difference, notes: result.notes.clone() });
        }
    }

    /// Returns the differences, and the number of cases.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for Failure { place, call, difference, notes } in &self.failed {
            let _ = write!(text, "{place}: {}\n{difference}", printable(call));
            for note in notes {
                let _ = writeln!(text, "  note: {}", printable(note));
            }
            text.push('\n');
        }
        let _ = write!(text, "{} passed, {} failed", self.passed, self.failed.len());
        if self.blessed > 0 {
            let _ = write!(text, ", {} rewritten", self.blessed);
        }
        text.push('\n');
        text
    }

    fn as_value(&self) -> Value {
        let failure = |failure: &Failure| {
            json!({
                "place": failure.place,
                "call": failure.call,
                "difference": failure.difference,
                "notes": failure.notes,
            })
        };
        json!({
            "passed": self.passed,
            "rewritten": self.blessed,
            "failed": self.failed.iter().map(failure).collect::<Vec<_>>(),
        })
    }

    pub(crate) fn exit(&self) -> Exit {
        if self.failed.is_empty() { Exit::Done } else { Exit::ToolError }
    }
}

/// Returns the lines of a difference: `-` was expected, `+` was found.
fn difference(expected: &[String], found: &[String]) -> String {
    let [old, new] = [expected, found].map(|lines| {
        let lines = lines.iter().map(|line| format!("{}\n", printable(line)));
        lines.collect::<String>()
    });
    let diff = TextDiff::from_lines(&old, &new);
    diff.iter_all_changes().map(|change| format!("  {}{}", change.tag(), change.value())).collect()
}

/// Returns the case files of a project, in order.
fn case_files(directory: &Path) -> Result<Vec<PathBuf>, CliError> {
    let one = directory.join("cases.txt");
    let mut files: Vec<_> = one.is_file().then_some(one).into_iter().collect();
    let several = directory.join("cases");
    if several.is_dir() {
        let failed = |source| CliError::Read { path: shown_path(&several), source };
        let mut found = Vec::new();
        for entry in fs::read_dir(&several).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "txt") {
                found.push(path);
            }
        }
        found.sort_unstable();
        files.extend(found);
    }
    Ok(files)
}

/// Returns the components in a directory, each with the names of its tools.
fn components(directory: &Path, global: &Global) -> Result<Vec<(PathBuf, Vec<String>)>, CliError> {
    let failed = |source| CliError::Read { path: shown_path(directory), source };
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            paths.push(path);
        }
    }
    paths.sort_unstable();
    let named = paths.into_iter().map(|path| {
        let names = tool_names(&path, global)?;
        Ok((path, names))
    });
    named.collect()
}

fn tool_names(path: &Path, global: &Global) -> Result<Vec<String>, CliError> {
    let name = name_of(path);
    let usual = Places::from_environment(std::env::vars_os());
    let empty = tempfile::tempdir()
        .map_err(|source| CliError::Save { path: "a temporary directory".into(), source })?;
    let is_limit = |(name, _): &(String, String)| name.starts_with("KITBAG_LIMITS_");
    let places = Places {
        cache: usual.cache,
        state: Some(Sourced { value: empty.path().join("state"), origin: Origin::Caller }),
        environment: usual.environment.into_iter().filter(is_limit).collect(),
        ..Places::default()
    };
    let kitbag: Kitbag = global
        .builder()
        .places(places)
        .workspace(empty.path())
        .trust_workspace(false)
        .component_file(name.clone(), path)
        .single_call()
        .build()?;
    let names = |events| kitbag.toolbox().with_events(events).names_in_component(name.as_str());
    let names = Screen::during(global.json, names)?;
    Ok(if names.is_empty() { vec![name.to_string()] } else { names })
}

/// Returns the component that has a tool.
fn component<'a>(
    components: &'a [(PathBuf, Vec<String>)],
    tool: &str,
    place: &str,
) -> Result<&'a Path, CliError> {
    let found = components.iter().find(|(_, names)| names.iter().any(|name| name == tool));
    found.map(|(path, _)| &**path).ok_or_else(|| {
        let names: Vec<_> = components.iter().flat_map(|(_, names)| names).collect();
        let known = match names.is_empty() {
            true => "no tool is installed; run `kitbag build`".to_owned(),
            false => format!("the tools are {}", alternatives(&names)),
        };
        CliError::Usage(format!("{place}: there is no tool `{}`; {known}", printable(tool)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_show_expected_and_found_lines() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            difference(&lines("= a\n= b"), &lines("= a\n= \u{1b}c")),
            "   = a\n  -= b\n  += \\u{1b}c\n"
        );
    }
}
